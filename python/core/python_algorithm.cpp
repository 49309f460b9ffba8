#include "python/core/python_algorithm.h"

#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "python/core/bind.h"
#include "python/core/payload.h"
#include "python/core/random.h"

namespace gradwire::python {
namespace {

constexpr double kVector = -1;  // the last number of a state that is an array; of others: bytes of padding

// Returns true if the state is a vector in the precision of the run.
template <class Real>
bool is_vector(const NumPy& numpy, const py::object& state) {
  if (!numpy.is_array(state)) return false;
  Py_buffer view;
  if (PyObject_GetBuffer(state.ptr(), &view, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
    PyErr_Clear();  // arrays of dates have no buffer
    return false;
  }
  const bool is_vector =
      view.ndim == 1 && std::string_view(view.format) == std::string_view(&NumberType<Real>::kFormat, 1);
  PyBuffer_Release(&view);
  return is_vector;
}

// `of` says whose state it is.
template <class Real>
std::vector<Real> encode(const AlgorithmParts& parts, const py::object& state, const char* of) {
  if (state.is_none()) return {};
  if (is_vector<Real>(parts.callbacks.numpy, state)) {
    std::vector<Real> numbers = vector_of<Real>(parts.callbacks.numpy, state, kAnyLength, "a state");
    numbers.push_back(static_cast<Real>(kVector));
    return numbers;
  }
  std::string bytes;
  try {
    bytes = static_cast<std::string>(py::bytes(parts.dumps(state, 5)));
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_AttributeError) &&
        !error.matches(py::module_::import("pickle").attr("PicklingError")))
      throw;
    throw py::type_error(std::string(of) + " has type " +
                         std::string(py::str(py::type::handle_of(state).attr("__name__"))) +
                         ", which pickle cannot write (" + std::string(py::str(error.value())) +
                         "); a state has numbers, texts, arrays, and lists and dicts of them");
  }
  const std::size_t count = (bytes.size() + sizeof(Real) - 1) / sizeof(Real);
  std::vector<Real> numbers(count + 1);
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  numbers.back() = static_cast<Real>(count * sizeof(Real) - bytes.size());
  return numbers;
}

template <class Real>
py::object decode(const AlgorithmParts& parts, const std::vector<Real>& numbers) {
  if (numbers.empty()) return py::none();
  const std::span<const Real> all = std::span(numbers).first(numbers.size() - 1);
  if (numbers.back() == static_cast<Real>(kVector)) return parts.callbacks.numpy.array_of(all);
  const std::size_t padding = static_cast<std::size_t>(numbers.back());
  return parts.loads(py::bytes(reinterpret_cast<const char*>(all.data()), all.size_bytes() - padding));
}

template <class Real>
std::vector<Real> numbers_of(const std::vector<std::byte>& bytes) {
  std::vector<Real> numbers(bytes.size() / sizeof(Real));
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}
template <class Real>
std::vector<std::byte> bytes_of(std::span<const Real> numbers) {
  const auto bytes = std::as_bytes(numbers);
  return {bytes.begin(), bytes.end()};
}

// A context of Python is valid during one call of its function.
template <template <class> class RoundOf>
struct Context {
  std::variant<std::monostate, RoundOf<float>, RoundOf<double>> round;
  AlgorithmParts* parts = nullptr;
  py::object rng;

  template <class F>
  auto use(F&& f) const {
    if (const auto* const now = std::get_if<RoundOf<float>>(&round)) return f(*now);
    if (const auto* const now = std::get_if<RoundOf<double>>(&round)) return f(*now);
    throw std::runtime_error("the round of this context is over; keep what you need of it instead");
  }
  py::object generator() {
    if (!rng) rng = use([](const auto& now) { return generator_of(now.round->random()); });
    return rng;
  }
};

template <class T>
struct ClientNow {
  using Real = T;
  ClientRound<T>* round;
  std::span<const T> x;
};
template <class T>
struct ServerNow {
  using Real = T;
  const ServerRound<T>* round;
  py::object x;
};
using ClientContext = Context<ClientNow>;
using ServerContext = Context<ServerNow>;

// Calls f with a context that ends with the call.
template <class C, class F>
py::object with_context(C context, F&& f) {
  const py::object object = py::cast(std::move(context));
  struct End {
    C& context;
    ~End() { context.round = std::monostate(); }
  } end{object.cast<C&>()};
  return f(object);
}

// Returns the point where a client computes: that of the argument, or x of the round.
template <class Now, class Real = typename Now::Real>
std::vector<Real> point_of(const ClientContext& self, const Now& now, const py::object& x) {
  if (x.is_none()) return {now.x.begin(), now.x.end()};
  return vector_of<Real>(self.parts->callbacks.numpy, x, now.x.size(), "x");
}

py::object gradient(const ClientContext& self, const py::object& x) {
  return self.use([&]<class Real>(const ClientNow<Real>& now) -> py::object {
    const std::vector<Real> point = point_of(self, now, x);
    const std::vector<Real> made =
        call_unlocked(self.parts->callbacks.trouble, [&] { return now.round->gradient(point); });
    return self.parts->callbacks.numpy.array_of(std::span(made));
  });
}

py::object compress(const ClientContext& self, const py::object& v, std::uint32_t part) {
  return self.use([&]<class Real>(const ClientNow<Real>& now) -> py::object {
    const std::vector<Real> vector = vector_of<Real>(self.parts->callbacks.numpy, v, now.x.size(), "v");
    return py::cast(PyPayload(
        call_unlocked(self.parts->callbacks.trouble, [&] { return now.round->compress(vector, part); })));
  });
}

// Returns (loss, gradient) of the client's function, over a batch.
py::object loss_and_gradient(const ClientContext& self, const py::object& x, const py::object& batch) {
  return self.use([&]<class Real>(const ClientNow<Real>& now) -> py::object {
    const NumPy& numpy = self.parts->callbacks.numpy;
    const std::vector<Real> point = point_of(self, now, x);
    const std::vector<std::uint32_t> samples =
        batch.is_none() ? std::vector<std::uint32_t>()
                        : vector_of<std::uint32_t>(numpy, batch, kAnyLength, "batch");
    std::vector<Real> made(point.size());
    const Real loss = call_unlocked(self.parts->callbacks.trouble, [&] {
      return now.round->oracle().loss_and_gradient(point, samples, made);
    });
    return py::make_tuple(static_cast<double>(loss), numpy.array_of(std::span(std::as_const(made))));
  });
}

// Returns `onto` plus the scaled mean of a part over the replies, or plus its sum.
template <bool kMean>
py::object combine(const ServerContext& self, std::size_t part, const py::object& onto, double scale) {
  return self.use([&]<class Real>(const ServerNow<Real>& now) -> py::object {
    const NumPy& numpy = self.parts->callbacks.numpy;
    const std::size_t d = py::len(now.x);
    std::vector<Real> out = onto.is_none() ? std::vector<Real>(d) : vector_of<Real>(numpy, onto, d, "onto");
    if constexpr (kMean)
      now.round->add_mean(out, static_cast<Real>(scale), part);
    else
      now.round->add_sum(out, static_cast<Real>(scale), part);
    return numpy.array_of(std::span(std::as_const(out)));
  });
}

// Returns a Payload, or a tuple of these.
template <class Real>
py::object payloads_of(const Message<Real>& message) {
  py::list parts;
  for (const Compressed<Real>& part : message) parts.append(PyPayload(part));
  return py::len(parts) == 1 ? py::object(parts[0]) : py::tuple(parts);
}

py::object received(const ClientContext& self) {
  return self.use([](const auto& now) { return payloads_of(now.round->received()); });
}

py::list replies(const ServerContext& self) {
  return self.use([](const auto& now) {
    py::list all;
    const std::size_t count = now.round->replied().size();
    for (std::size_t k = 0; k < count; ++k) all.append(payloads_of(now.round->reply(k)));
    return all;
  });
}

// Returns the message of a vector, a Payload or a tuple of these.
template <class Real>
Message<Real> message_of(const NumPy& numpy, const py::object& made, std::size_t d, const char* what) {
  Message<Real> message;
  if (py::isinstance<py::tuple>(made))
    for (const py::handle part : made) message.push_back(compressed_of<Real>(numpy, part, d, what));
  else
    message.push_back(compressed_of<Real>(numpy, made, d, what));
  return message;
}

// Returns the two members of what a function of the algorithm returned.
std::pair<py::object, py::object> pair_of(const py::object& made, const char* what) {
  if (!py::isinstance<py::tuple>(made) || py::len(made) != 2) throw py::type_error(what);
  const py::tuple pair = py::reinterpret_borrow<py::tuple>(made);
  return {pair[0], pair[1]};
}

// Returns a tuple of the vectors of a broadcast, whose first one is `x`, or `x` if it is the only one.
template <class Real>
py::object vectors_of(const NumPy& numpy, const Message<Real>& received, const py::object& x) {
  if (received.size() == 1) return x;
  py::list vectors;
  vectors.append(x);
  for (std::size_t k = 1; k < received.size(); ++k) {
    const std::vector<Real> vector = received[k].to_vector();
    vectors.append(numpy.array_of(std::span(vector)));
  }
  return py::tuple(vectors);
}

template <class Real>
void begin(AlgorithmParts& parts, std::span<const Real> x0) {
  std::vector<std::byte> point = bytes_of(x0);
  if (parts.client_state && parts.start_point == point) return;
  parts.start_point = std::move(point);
  const py::object x = parts.callbacks.numpy.array_of(x0);
  const py::object context = py::module_::import("types").attr("SimpleNamespace")(py::arg("x") = x);
  const auto [client, server] =
      pair_of(parts.start(context), "start(s) must return (state of every client, state of the server)");
  parts.client_state =
      bytes_of<Real>(encode<Real>(parts, client, "the state of every client that start() returned"));
  parts.server_state =
      bytes_of<Real>(encode<Real>(parts, server, "the state of the server that start() returned"));
}

}  // namespace

AlgorithmParts::AlgorithmParts(const py::handle& algorithm, Callbacks& run) : callbacks(run) {
  name = py::str(algorithm.attr("name")());
  start = algorithm.attr("start");
  client = algorithm.attr("client");
  server = algorithm.attr("server");
  for (auto [method, of] : {std::pair("asks_all", &asks_all), {"cohort", &cohort}, {"broadcast", &broadcast}})
    *of = own_method(algorithm, "gradwire._algorithm", "Algorithm", method);
  const py::module_ pickle = py::module_::import("pickle");
  dumps = pickle.attr("dumps");
  loads = pickle.attr("loads");
}

template <class Real>
AlgorithmState<Real> PythonAlgorithm<Real>::client_start(std::span<const Real> x0) const {
  return call_python(parts_->callbacks.trouble, [&]() -> AlgorithmState<Real> {
    begin(*parts_, x0);
    return {numbers_of<Real>(*parts_->client_state)};
  });
}

template <class Real>
AlgorithmState<Real> PythonAlgorithm<Real>::server_start(std::span<const Real> x0) const {
  return call_python(parts_->callbacks.trouble, [&]() -> AlgorithmState<Real> {
    begin(*parts_, x0);
    return {numbers_of<Real>(*parts_->server_state)};
  });
}

template <class Real>
Message<Real> PythonAlgorithm<Real>::client(ClientRound<Real>& round, std::span<const Real> x,
                                            AlgorithmState<Real>& state) const {
  AlgorithmParts& parts = *parts_;
  return call_python(
      parts.callbacks.trouble,
      [&] {
        const NumPy& numpy = parts.callbacks.numpy;
        py::object received =
            py::reinterpret_borrow<py::object>(parts.client_arrays.of<Real>().x.with(numpy, x));
        if (!parts.broadcast.is_none()) received = vectors_of<Real>(numpy, round.received(), received);
        const auto [reply, next] =
            pair_of(with_context(ClientContext{ClientNow<Real>{&round, x}, &parts, {}},
                                 [&](const py::object& context) {
                                   return parts.client(context, received, decode<Real>(parts, state[0]));
                                 }),
                    "client(c, x, state) must return (reply, state)");
        Message<Real> message = message_of<Real>(numpy, reply, x.size(), "the reply that client() returned");
        state[0] = encode<Real>(parts, next, "the state that client() returned");
        return message;
      },
      [&round] {
        return "in client() of client " + std::to_string(round.client()) + " in round " +
               std::to_string(round.round());
      });
}

template <class Real>
void PythonAlgorithm<Real>::server(ServerRound<Real>& round, std::vector<Real>& x,
                                   AlgorithmState<Real>& state) const {
  AlgorithmParts& parts = *parts_;
  call_python(
      parts.callbacks.trouble,
      [&] {
        const py::object array =
            parts.server_arrays.of<Real>().x.with(parts.callbacks.numpy, std::span<const Real>(x));
        const auto [next_x, next] =
            pair_of(with_context(ServerContext{ServerNow<Real>{&round, array}, &parts, {}},
                                 [&](const py::object& context) {
                                   return parts.server(context, array, decode<Real>(parts, state[0]));
                                 }),
                    "server(s, x, state) must return (x, state)");
        copy_vector<Real>(parts.callbacks.numpy, next_x, x, "the x that server() returned");
        state[0] = encode<Real>(parts, next, "the state that server() returned");
      },
      [&round] { return "in server() in round " + std::to_string(round.round()); });
}

template <class Real>
bool PythonAlgorithm<Real>::asks_all(std::uint32_t t) const {
  if (parts_->asks_all.ptr() == Py_None) return false;
  return call_python(parts_->callbacks.trouble, [&] { return py::bool_(parts_->asks_all(t)).cast<bool>(); });
}

template <class Real>
std::optional<std::vector<std::uint32_t>> PythonAlgorithm<Real>::cohort(
    const ServerRound<Real>& round) const {
  AlgorithmParts& parts = *parts_;
  if (parts.cohort.ptr() == Py_None) return std::nullopt;
  return call_python(parts.callbacks.trouble, [&]() -> std::optional<std::vector<std::uint32_t>> {
    const py::object made =
        with_context(ServerContext{ServerNow<Real>{&round, py::none()}, &parts, {}}, parts.cohort);
    if (made.is_none()) return std::nullopt;
    const NumPy& numpy = parts.callbacks.numpy;
    return vector_of<std::uint32_t>(numpy, numpy.as_array(made).attr("astype")("uint32"), kAnyLength,
                                    "the cohort");
  });
}

template <class Real>
Message<Real> PythonAlgorithm<Real>::broadcast(const ServerRound<Real>& round, std::span<const Real> x,
                                               const AlgorithmState<Real>& state) const {
  AlgorithmParts& parts = *parts_;
  if (parts.broadcast.ptr() == Py_None) return {};
  return call_python(parts.callbacks.trouble, [&] {
    const NumPy& numpy = parts.callbacks.numpy;
    const py::object array = numpy.array_of(x);
    const py::object made = with_context(
        ServerContext{ServerNow<Real>{&round, array}, &parts, {}}, [&](const py::object& context) {
          return parts.broadcast(context, array, decode<Real>(parts, state[0]));
        });
    if (made.is_none()) return Message<Real>();
    return message_of<Real>(numpy, made, x.size(), "what broadcast() returned");
  });
}

template class PythonAlgorithm<float>;
template class PythonAlgorithm<double>;

void bind_algorithm(py::module_& m) {
  py::class_<ClientContext>(m, "ClientContext", "What the client part of an algorithm sees in one round.")
      .def_property_readonly(
          "client", [](const ClientContext& c) { return c.use([](auto& n) { return n.round->client(); }); })
      .def_property_readonly(
          "clients", [](const ClientContext& c) { return c.use([](auto& n) { return n.round->clients(); }); })
      .def_property_readonly(
          "round", [](const ClientContext& c) { return c.use([](auto& n) { return n.round->round(); }); })
      .def_property_readonly(
          "first", [](const ClientContext& c) { return c.use([](auto& n) { return n.round->first(); }); },
          "True if no reply of this client was used before.")
      .def_property_readonly(
          "step_size",
          [](const ClientContext& c) { return c.use([](auto& n) { return n.round->step_size(); }); })
      .def_property_readonly("received", &received,
                             "What the server sent: a Payload, or a tuple of Payloads.")
      .def_property_readonly("rng", &ClientContext::generator,
                             "A generator of NumPy, drawn from (seed, client, round).")
      .def("gradient", &gradient, py::arg("x") = py::none(),
           "Returns the gradient of f_i at x, or at x of the round, over algorithm.batch samples.")
      .def("loss_and_gradient", &loss_and_gradient, py::arg("x") = py::none(), py::arg("batch") = py::none(),
           "Returns (loss, gradient) over a batch, or over all samples.")
      .def("compress", &compress, py::arg("v"), py::arg("part") = 0,
           "Compresses v with algorithm.compressor, for one part of the reply.");
  py::class_<ServerContext>(m, "ServerContext", "What the server part of an algorithm sees in one round.")
      .def_property_readonly(
          "clients", [](const ServerContext& s) { return s.use([](auto& n) { return n.round->clients(); }); })
      .def_property_readonly(
          "round", [](const ServerContext& s) { return s.use([](auto& n) { return n.round->round(); }); })
      .def_property_readonly(
          "step_size",
          [](const ServerContext& s) { return s.use([](auto& n) { return n.round->step_size(); }); })
      .def_property_readonly("x", [](const ServerContext& s) { return s.use([](auto& n) { return n.x; }); })
      .def_property_readonly(
          "replied", [](const ServerContext& s) { return s.use([](auto& n) { return n.round->replied(); }); },
          "The numbers of the clients that replied, ascending.")
      .def_property_readonly("replies", &replies, "Their replies: a Payload each, or a tuple of Payloads.")
      .def_property_readonly("rng", &ServerContext::generator,
                             "A generator of NumPy, drawn from (seed, round), another for each method.")
      .def("mean", &combine<true>, py::arg("part") = 0, py::arg("onto") = py::none(), py::arg("scale") = 1.0,
           "Returns onto + scale * the mean of a part over the replies, with the clients' weights: for "
           "messages of this round alone.")
      .def("sum", &combine<false>, py::arg("part") = 0, py::arg("onto") = py::none(), py::arg("scale") = 1.0,
           "Returns onto + scale * the sum of w_i m_i over the replies: for estimates that keep what other "
           "clients sent before. It differs from mean() if some clients do not reply.");
}

}  // namespace gradwire::python
