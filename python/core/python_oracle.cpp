#include "python/core/python_oracle.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "python/core/bind.h"
#include "python/core/problem_oracle.h"

namespace gradwire::python {
namespace {

double number_of(py::handle object, const char* what) {
  const double number = PyFloat_AsDouble(object.ptr());
  if (number != -1.0 || PyErr_Occurred() == nullptr) return number;
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw py::error_already_set();
  PyErr_Clear();
  throw py::type_error(std::string(what) + " must be a number, not " +
                       std::string(py::str(py::type::handle_of(object).attr("__name__"))));
}

std::uint64_t count_of(py::handle object, const char* what) {
  const double number = number_of(object, what);
  constexpr double kMost = 1ULL << 53;
  if (number >= 0 && number <= kMost && number == std::floor(number))
    return static_cast<std::uint64_t>(number);
  throw py::value_error(std::string(what) + " must be 0, 1, 2 and so on, not " +
                        std::string(py::str(object)));
}

// A NaN that no computation gives: a number that a function has not written.
template <class Real>
constexpr Real kUnwritten = std::bit_cast<Real>(
    std::conditional_t<sizeof(Real) == 8, std::uint64_t, std::uint32_t>(sizeof(Real) == 8
                                                                            ? 0x7ff8'6772'6164'7769
                                                                            : 0x7fc5'6772));
template <class Real>
bool is_unwritten(const Real& number) {
  return std::memcmp(&number, &kUnwritten<Real>, sizeof(Real)) == 0;
}

template <class Real>
class PythonOracle final : public Oracle<Real> {
 public:
  PythonOracle(const OracleParts& parts, Arrays& arrays, Callbacks& callbacks,
               std::optional<std::size_t> client)
      : parts_(parts), arrays_(arrays.of<Real>()), callbacks_(callbacks), client_(client) {}

  std::size_t dim() const override { return parts_.dim; }
  std::size_t sample_count() const override { return parts_.samples; }

  Real loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) override {
    return call([&] { return evaluate(x, batch, gradient); });
  }
  Real loss(std::span<const Real> x, Batch batch) override {
    return call([&]() -> Real {
      if (parts_.loss.is_none()) {
        std::vector<Real> gradient(parts_.dim);
        return evaluate(x, batch, gradient);
      }
      return static_cast<Real>(
          number_of(parts_.loss(arrays_.x.with(numpy(), x), batch_of(batch)), "the loss"));
    });
  }
  std::optional<Score> score(std::span<const Real> x) override {
    if (parts_.score.ptr() == Py_None) return std::nullopt;
    return call([&]() -> std::optional<Score> {
      const py::object made = parts_.score(arrays_.x.with(numpy(), x));
      if (made.is_none()) return std::nullopt;
      if (!py::isinstance<py::tuple>(made) || py::len(made) != 2)
        throw py::type_error("score(x) must return (correct, tested), the numbers of test samples");
      const py::tuple pair = made;
      return Score{count_of(pair[0], "the number of right predictions"),
                   count_of(pair[1], "the number of test samples")};
    });
  }

  bool hessian(std::span<const Real> x, std::span<Real> upper) override {
    if (parts_.hessian.ptr() == Py_None) return false;
    return call([&] {
      copy_vector<Real>(numpy(), parts_.hessian(arrays_.x.with(numpy(), x)), upper, "the Hessian");
      return true;
    });
  }

  std::optional<Real> train(std::span<Real> y, const LocalTraining& training) override {
    if (parts_.train_locally.ptr() == Py_None) return std::nullopt;
    return call([&]() -> std::optional<Real> {
      const py::object array = arrays_.y.with(numpy(), y);
      const py::object loss = parts_.train_locally(array, training);
      if (loss.is_none()) {
        std::vector<Real> after(y.size());
        copy_vector<Real>(numpy(), array, std::span(after), "y");
        if (std::memcmp(after.data(), y.data(), y.size_bytes()) == 0) return std::nullopt;
        throw py::type_error(
            "train_locally() changed y but returned None; return the mean loss at the first y, or leave y as "
            "it was");
      }
      copy_vector<Real>(numpy(), array, y, "y");
      return static_cast<Real>(number_of(loss, "what train_locally() returned"));
    });
  }

 private:
  template <class F>
  auto call(F&& f) {
    return call_python(callbacks_.trouble, f, [this] {
      return client_ ? "in the function of client " + std::to_string(*client_) : std::string();
    });
  }
  const NumPy& numpy() const { return callbacks_.numpy; }
  py::object batch_of(Batch batch) { return arrays_.batch.with(numpy(), batch); }

  // Calls the function. REQUIRES: the GIL is held.
  Real evaluate(std::span<const Real> x, Batch batch, std::span<Real> gradient) {
    const py::object x_array = arrays_.x.with(numpy(), x);
    PyObject* const function = parts_.function.ptr();
    if (parts_.form == Form::kPair) {
      const py::object made = result_of(PyObject_CallFunctionObjArgs(function, x_array.ptr(), nullptr));
      if (!py::isinstance<py::tuple>(made) || py::len(made) != 2)
        throw py::type_error(
            "f(x) must return (loss, gradient); for a function that returns the loss and fills the "
            "gradient, write f(x, out)");
      const py::tuple pair = py::reinterpret_borrow<py::tuple>(made);
      copy_vector<Real>(numpy(), pair[1], gradient, "the gradient");
      return static_cast<Real>(number_of(pair[0], "the loss"));
    }
    const bool is_first = std::exchange(is_first_, false);
    if (is_first) std::ranges::fill(gradient, kUnwritten<Real>);
    const py::object out =
        is_first ? arrays_.out.with(numpy(), gradient) : arrays_.out.of_size(numpy(), gradient.size());
    const py::object made = result_of(
        parts_.form == Form::kOut ? PyObject_CallFunctionObjArgs(function, x_array.ptr(), out.ptr(), nullptr)
                                  : PyObject_CallFunctionObjArgs(function, x_array.ptr(),
                                                                 batch_of(batch).ptr(), out.ptr(), nullptr));
    const Real loss = static_cast<Real>(number_of(made, "the loss"));
    copy_vector<Real>(numpy(), out, gradient, "out");
    if (is_first && std::ranges::any_of(gradient, is_unwritten<Real>))
      throw py::value_error(
          "out was not written, or was read before: write out[:] = gradient (out = gradient makes a new "
          "name)");
    return loss;
  }
  static py::object result_of(PyObject* made) {
    if (made == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(made);
  }

  const OracleParts& parts_;
  CallArrays<Real>& arrays_;
  Callbacks& callbacks_;
  const std::optional<std::size_t> client_;
  bool is_first_ = true;  // the first call checks that the function writes `out`
};

}  // namespace

OracleParts::OracleParts(const py::handle& oracle) {
  const py::tuple parts = oracle.attr("_parts")();
  function = parts[0];
  form = static_cast<Form>(parts[1].cast<int>());
  dim = parts[2].cast<std::size_t>();
  samples = parts[3].cast<std::size_t>();
  loss = parts[4];
  score = parts[5];
  is_thread_safe = parts[6].cast<bool>();
  hessian = parts[7];
  train_locally = parts[8];
  native = parts[9];
}

template <class Real>
std::unique_ptr<Oracle<Real>> python_oracle(const OracleParts& parts, Arrays& arrays, Callbacks& callbacks,
                                            std::optional<std::size_t> client) {
  if (!parts.native.is_none()) return parts.native.cast<const ProblemOracle&>().make<Real>();
  return std::make_unique<PythonOracle<Real>>(parts, arrays, callbacks, client);
}
template std::unique_ptr<Oracle<float>> python_oracle(const OracleParts&, Arrays&, Callbacks&,
                                                      std::optional<std::size_t>);
template std::unique_ptr<Oracle<double>> python_oracle(const OracleParts&, Arrays&, Callbacks&,
                                                       std::optional<std::size_t>);

void bind_oracle(py::module_& m) {
  py::class_<LocalTraining>(m, "LocalTraining",
                            "The local training that an experiment asks of train_locally().")
      .def(py::init([](std::uint32_t round, std::uint32_t steps, std::uint32_t epochs, std::uint32_t batch,
                       double step_size, double proximal, std::uint64_t seed) {
             return LocalTraining{round, steps, epochs, batch, step_size, proximal, seed};
           }),
           py::kw_only(), py::arg("round") = 0, py::arg("steps") = 1, py::arg("epochs") = 0,
           py::arg("batch") = 0, py::arg("step_size") = 0.0, py::arg("proximal") = 0.0, py::arg("seed") = 0)
      .def_readonly("round", &LocalTraining::round)
      .def_readonly("steps", &LocalTraining::steps, "K; not read if epochs > 0")
      .def_readonly("epochs", &LocalTraining::epochs, "Passes over the samples, or 0 for K steps")
      .def_readonly("batch", &LocalTraining::batch, "Samples of a step; 0 for all")
      .def_readonly("step_size", &LocalTraining::step_size, "gamma_l of this round")
      .def_readonly("proximal", &LocalTraining::proximal,
                    "mu of fedprox: each gradient gets mu (y - x), where x is the first y")
      .def_readonly("seed", &LocalTraining::seed, "For the random choices of this client in this round");
}

PythonOracles::PythonOracles(const py::sequence& oracles, Callbacks& callbacks) : callbacks_(callbacks) {
  for (const py::handle oracle : oracles) parts_.push_back(std::make_unique<OracleParts>(oracle));
  if (are_thread_safe())
    for (std::size_t i = 0; i < parts_.size(); ++i) arrays_.push_back(std::make_unique<Arrays>());
}

bool PythonOracles::are_thread_safe() const {
  return std::ranges::all_of(parts_, [](const auto& parts) { return parts->is_thread_safe; });
}

template <class Real>
std::vector<std::unique_ptr<Oracle<Real>>> PythonOracles::make() {
  std::vector<std::unique_ptr<Oracle<Real>>> all;
  for (std::size_t i = 0; i < parts_.size(); ++i)
    all.push_back(
        python_oracle<Real>(*parts_[i], arrays_.empty() ? callbacks_.arrays : *arrays_[i], callbacks_, i));
  return all;
}
template std::vector<std::unique_ptr<Oracle<float>>> PythonOracles::make();
template std::vector<std::unique_ptr<Oracle<double>>> PythonOracles::make();

}  // namespace gradwire::python
