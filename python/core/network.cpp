// gw.Client and gw.Server. gradwire/_network.py runs them on threads of Python.
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "gradwire/client.h"
#include "gradwire/server.h"
#include "python/core/bind.h"
#include "python/core/callbacks.h"
#include "python/core/python_oracle.h"
#include "python/core/rows.h"

namespace gradwire::python {
namespace {

struct Stop {
  std::stop_source source;
};

std::function<void(std::string_view)> log_of(const py::object& log, Trouble& trouble) {
  if (log.is_none()) return {};
  return [&](std::string_view line) { call_python(trouble, [&] { log(std::string(line)); }); };
}

// Makes the oracle of a client for one precision.
template <class Real>
auto factory_of(const OracleParts& parts, Callbacks& callbacks) {
  return [&](const ClientRun& run) {
    if (run.dim != parts.dim)
      throw BadInput("the oracle has dim " + std::to_string(parts.dim) +
                     ", but the server's experiment has " + "problem.dim = " + std::to_string(run.dim));
    return python_oracle<Real>(parts, callbacks.arrays, callbacks);
  };
}

void run_client_of_python(ClientOptions options, const py::object& oracle, const std::optional<Data>& data,
                          const std::optional<Data>& test, const py::object& log, const Stop& stop) {
  Callbacks callbacks;
  std::optional<OracleParts> parts;
  if (!oracle.is_none()) parts.emplace(oracle);
  options.stop = stop.source.get_token();
  options.log = log_of(log, callbacks.trouble);
  call_unlocked(callbacks.trouble, [&] {
    if (parts)
      run_client(OracleFactory{factory_of<double>(*parts, callbacks), factory_of<float>(*parts, callbacks)},
                 options);
    else if (data)
      run_client(*data, options, test);
    else
      run_client(options);
  });
  callbacks.trouble.raise_if_any();
}

class PyServer {
 public:
  PyServer(const Experiment& experiment, ServerOptions options, py::object on_record, py::object log)
      : on_record_(std::move(on_record)), log_(std::move(log)) {
    options.log = log_of(log_, trouble_);
    if (!on_record_.is_none())
      options.on_row = [this](const MetricsRow& row) {
        return call_python(trouble_, [&] {
          const int ends = PyObject_IsTrue(on_record_(row_for_python(row)).ptr());
          if (ends < 0) throw py::error_already_set();
          return ends == 0;
        });
      };
    call_unlocked(trouble_, [&] { server_ = std::make_unique<Server>(experiment, options); });
  }
  ~PyServer() {
    if (trouble_.is_of_parent()) {
      static_cast<void>(server_.release());  // its thread is not in this process
      return;
    }
    const py::gil_scoped_release unlocked;
    server_.reset();
  }
  PyServer(const PyServer&) = delete;
  PyServer& operator=(const PyServer&) = delete;

  std::string address() const { return server_->address(); }
  TrainResult wait() {
    TrainResult result = call_unlocked(trouble_, [&] { return server_->wait(); });
    trouble_.raise_if_any();
    return result;
  }
  TrainResult result() {
    return call_unlocked(trouble_, [&] { return server_->result(); });
  }
  void stop() { server_->stop(); }

 private:
  Trouble trouble_;
  py::object on_record_, log_;
  std::unique_ptr<Server> server_;
};

}  // namespace

void bind_network(py::module_& m) {
  py::class_<Stop>(m, "Stop").def(py::init<>()).def("stop", [](Stop& stop) {
    const py::gil_scoped_release unlocked;
    stop.source.request_stop();
  });
  m.def("run_client",
        [](const std::string& server, const std::string& name, const std::string& identity,
           const std::string& token, const std::string& ca, bool insecure, const std::string& state,
           const std::string& source, const std::string& test_source, std::uint32_t part, std::uint32_t parts,
           unsigned threads, double give_up_after, const py::object& oracle, const std::optional<Data>& data,
           const std::optional<Data>& test, const py::object& log, const Stop& stop) {
          ClientOptions options{.server = server,
                                .name = name,
                                .identity = identity,
                                .token = token,
                                .ca_file = ca,
                                .insecure = insecure,
                                .state = state,
                                .data = source,
                                .test = test_source,
                                .part = part,
                                .parts = parts,
                                .threads = threads};
          options.give_up_after = std::chrono::milliseconds(static_cast<std::int64_t>(give_up_after * 1000));
          run_client_of_python(std::move(options), oracle, data, test, log, stop);
        });
  py::class_<PyServer>(m, "Server")
      .def(py::init([](const Experiment& experiment, const std::string& state, const std::string& listen,
                       const std::string& identity, bool insecure, const std::string& metrics, bool fresh,
                       py::object on_record, py::object log) {
        ServerOptions options;
        options.state = state;
        options.listen = listen;
        options.identity = identity;
        options.insecure = insecure;
        options.metrics = metrics;
        options.fresh = fresh;
        return std::make_unique<PyServer>(experiment, std::move(options), std::move(on_record),
                                          std::move(log));
      }))
      .def("address", &PyServer::address)
      .def("wait", &PyServer::wait)
      .def("result", &PyServer::result)
      .def("stop", &PyServer::stop, py::call_guard<py::gil_scoped_release>());
}

}  // namespace gradwire::python
