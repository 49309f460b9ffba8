// Oracles whose functions are written in Python.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "gradwire/oracle.h"
#include "python/core/arrays.h"
#include "python/core/callbacks.h"

namespace gradwire::python {

// The arguments and the result of a Python function.
enum class Form : std::uint8_t {
  kPair,   // f(x) -> (loss, gradient)
  kOut,    // f(x, out) -> loss
  kBatch,  // f(x, batch, out) -> loss
};

// The arrays of the calls on one thread.
template <class Real>
struct CallArrays {
  ReusedArray<Real> x{false}, out{true}, y{true};
  ReusedArray<std::uint32_t> batch{false};
};
struct Arrays {
  CallArrays<double> fp64;
  CallArrays<float> fp32;

  template <class Real>
  CallArrays<Real>& of() {
    if constexpr (std::is_same_v<Real, float>)
      return fp32;
    else
      return fp64;
  }
};

// The members of a gw.Oracle of Python, in the order of Oracle._parts(). Made and destroyed with the GIL.
struct OracleParts {
  explicit OracleParts(const py::handle& oracle);

  py::object function;
  Form form;
  std::size_t dim, samples;
  py::object loss, score, train_locally;  // None if the oracle lacks them
  py::object hessian;                     // returns the upper triangle; None if the oracle lacks it
  py::object native;                      // a ProblemOracle, which is called in place of all these; else None
  bool is_thread_safe;
};

// Functions of Python that one run calls. Made and destroyed with the GIL.
struct Callbacks {
  NumPy numpy;
  Trouble trouble;
  Arrays arrays;  // those of all calls on the run's own thread
};

// `parts`, `arrays` and `callbacks` must outlive the oracle, which holds no Python object of its own.
// Exceptions say the number of the client, if it is given.
template <class Real>
std::unique_ptr<Oracle<Real>> python_oracle(const OracleParts& parts, Arrays& arrays, Callbacks& callbacks,
                                            std::optional<std::size_t> client = std::nullopt);

// The oracles of all clients of a run.
class PythonOracles {
 public:
  PythonOracles(const py::sequence& oracles, Callbacks& callbacks);

  bool are_thread_safe() const;
  std::size_t size() const { return parts_.size(); }
  template <class Real>
  std::vector<std::unique_ptr<Oracle<Real>>> make();

 private:
  Callbacks& callbacks_;
  std::vector<std::unique_ptr<OracleParts>> parts_;
  std::vector<std::unique_ptr<Arrays>> arrays_;  // one for each oracle that several threads may call
};

}  // namespace gradwire::python
