// The samples that a program has in memory, checked against its network.
#pragma once

#include <cstddef>

#include "engine/nn/example.h"
#include "gradwire/network.h"

namespace gradwire {

template <class Real>
class MemorySamples final : public Examples<Real> {
 public:
  // Throws DataError with one line if a sample does not fit the network. `name` names the samples there:
  // "training" or "test". Throws std::logic_error if the network has no loss.
  MemorySamples(const Network& network, NetworkSamples<Real> samples, const char* name);

  std::size_t size() const override { return samples_.count; }
  Example<Real> operator[](std::size_t sample) const override;

 private:
  NetworkSamples<Real> samples_;
};

extern template class MemorySamples<float>;
extern template class MemorySamples<double>;

}  // namespace gradwire
