// The parts of a run that are written in Python.
#pragma once

#include <optional>

#include "gradwire/train.h"
#include "python/core/callbacks.h"
#include "python/core/python_algorithm.h"
#include "python/core/python_compressor.h"
#include "python/core/python_oracle.h"

namespace gradwire::python {

// The Python functions of one run, or of the runs of a sweep. Made and destroyed with the GIL.
class PythonParts {
 public:
  // Takes a sequence of gw.Oracle, a gw.Algorithm and a gw.UserCompressor. Each may be None.
  PythonParts(const py::object& oracles, const py::object& algorithm, const py::object& compressor) {
    if (!oracles.is_none()) oracles_.emplace(oracles, callbacks);
    if (!algorithm.is_none()) algorithm_.emplace(algorithm, callbacks);
    if (!compressor.is_none()) compressor_.emplace(compressor, callbacks);
  }

  // Returns whether only the calling thread may call the functions.
  bool need_one_thread() const {
    return algorithm_ || (oracles_ && !oracles_->are_thread_safe()) ||
           (compressor_ && !compressor_->is_thread_safe);
  }
  // Adds the algorithm and the compressor to TrainOptions or SweepOptions.
  void add_to(auto& options) {
    if (algorithm_) options.algorithm = BothAlgorithms(*algorithm_);
    if (compressor_) options.compressor = BothCompressors(*compressor_);
  }
  // Calls f(oracles...) without the GIL; the argument is missing if there are no oracles.
  auto call(bool is_fp32, auto&& f) {
    if (!oracles_) return call_unlocked(callbacks.trouble, f);
    return is_fp32 ? call_with<float>(f) : call_with<double>(f);
  }

  Callbacks callbacks;

 private:
  struct BothAlgorithms : PythonAlgorithm<float>, PythonAlgorithm<double> {
    explicit BothAlgorithms(AlgorithmParts& parts)
        : PythonAlgorithm<float>(parts), PythonAlgorithm<double>(parts) {}
  };
  struct BothCompressors : PythonCompressor<float>, PythonCompressor<double> {
    explicit BothCompressors(CompressorParts& parts)
        : PythonCompressor<float>(parts), PythonCompressor<double>(parts) {}
  };

  template <class Real>
  auto call_with(auto& f) {
    const auto all = oracles_->make<Real>();
    return call_unlocked(callbacks.trouble, [&] { return f(Oracles(all)); });
  }

  std::optional<PythonOracles> oracles_;
  std::optional<AlgorithmParts> algorithm_;
  std::optional<CompressorParts> compressor_;
};

}  // namespace gradwire::python
