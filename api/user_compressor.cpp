#include "api/user_compressor.h"

#include <cmath>
#include <stdexcept>
#include <utility>

#include "algorithms/algorithms.h"
#include "compressors/compressed.h"

namespace gradwire {
namespace {

template <class Real>
class AdaptedCompressor final : public CompressorInterface {
 public:
  explicit AdaptedCompressor(std::shared_ptr<const UserCompressor<Real>> compressor)
      : compressor_(std::move(compressor)) {}

  std::string spec() const override { return std::string(kCustomName) + ":" + compressor_->name(); }
  CompressorConstants joint(std::size_t d, std::uint32_t n) const override {
    return compressor_->constants(d).independent(n);
  }
  std::size_t most_values(std::size_t d) const override { return d; }
  const Payload<float>& compress(Vec<float>& v, const RngKey& key, Scratch<float>&,
                                 PayloadBuffer<float>& to) const override {
    return compress_in(v, key, to);
  }
  const Payload<double>& compress(Vec<double>& v, const RngKey& key, Scratch<double>&,
                                  PayloadBuffer<double>& to) const override {
    return compress_in(v, key, to);
  }
  bool redraw(Shape shape, std::size_t count, std::uint32_t dim, const RngKey& key,
              std::vector<std::uint32_t>& indices, std::uint32_t&) const override {
    if (shape != Shape::kSparse) return false;
    RngStream random(key);
    const auto drawn = compressor_->drawn_indices(dim, random);
    if (!drawn || drawn->size() != count) return false;
    indices = *drawn;
    return true;
  }

 private:
  template <class T>
  const Payload<T>& compress_in(Vec<T>& v, const RngKey& key, PayloadBuffer<T>& to) const {
    if constexpr (std::is_same_v<T, Real>) {
      RngStream random(key);
      const Compressed<Real> made = compressor_->compress(v, random);
      const Payload<Real>& payload = made.content().payload();
      if (payload.dim != v.size())
        throw std::logic_error("compressor " + compressor_->name() + " returned a vector of length " +
                               std::to_string(payload.dim) + ", not " + std::to_string(v.size()));
      if (payload.shape == Shape::kDense) {
        v.assign(payload.values.begin(), payload.values.end());
        return to.whole(v);
      }
      if (payload.shape != Shape::kSparse || payload.next != nullptr)
        throw std::logic_error("compressor " + compressor_->name() +
                               " must return Compressed::whole() or Compressed::entries()");
      to.indices().assign(payload.indices.begin(), payload.indices.end());
      to.values().assign(payload.values.begin(), payload.values.end());
      to.sparse(payload.dim);
      RngStream again(key);
      if (const auto drawn = compressor_->drawn_indices(v.size(), again)) {
        if (*drawn != to.indices())
          throw std::logic_error("compressor " + compressor_->name() +
                                 ": drawn_indices() differ from the indices that compress() sends");
        to.set_seeded(key);
      }
      return to.view();
    } else {
      (void)v, (void)key, (void)to;
      throw std::logic_error("compressor " + compressor_->name() + " is for the other precision");
    }
  }

  std::shared_ptr<const UserCompressor<Real>> compressor_;
};

}  // namespace

template <class Real>
std::shared_ptr<const CompressorInterface> adapt(std::shared_ptr<const UserCompressor<Real>> compressor) {
  return std::make_shared<const AdaptedCompressor<Real>>(std::move(compressor));
}

template std::shared_ptr<const CompressorInterface> adapt(std::shared_ptr<const UserCompressor<float>>);
template std::shared_ptr<const CompressorInterface> adapt(std::shared_ptr<const UserCompressor<double>>);

}  // namespace gradwire
