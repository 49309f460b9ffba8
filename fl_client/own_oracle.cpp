#include "fl_client/own_oracle.h"

#include <string>
#include <utility>

#include "config/settings.h"
#include "engine/first_gradient.h"
#include "engine/forwarding_oracle.h"
#include "engine/problems/problem.h"

namespace gradwire {
namespace {

template <class Real>
class BorrowedOracle final : public ForwardingOracle<Real, BorrowedOracle<Real>> {
 public:
  explicit BorrowedOracle(Oracle<Real>& inner) : inner_(inner) {}
  Oracle<Real>& inner() const { return inner_; }

 private:
  Oracle<Real>& inner_;
};

template <class Real>
auto borrowing(Oracle<Real>& oracle) {
  return [&oracle](const ClientRun&) { return std::make_unique<BorrowedOracle<Real>>(oracle); };
}

// `precision` is that of the run, and `other` the one that the program may have brought.
template <class Real, class Make>
std::unique_ptr<Oracle<Real>> make(const Make& factory, const ClientRun& run, const std::string& precision,
                                   const std::string& other) {
  if (!factory)
    throw UnfitClient("precision is \"" + precision + "\", but the oracle of this client is for \"" + other +
                      "\"; set precision = \"" + other + "\" at the server, or bring an oracle for \"" +
                      precision + "\"");
  std::unique_ptr<Oracle<Real>> oracle = factory(run);
  if (oracle == nullptr)
    throw UnfitClient("this client made no oracle for client " + std::to_string(run.client));
  if (oracle->dim() != run.dim)
    throw UnfitClient("problem.dim is " + std::to_string(run.dim) +
                      ", but the oracle of this client has dimension " + std::to_string(oracle->dim()) +
                      "; give both the same dimension");
  if (oracle->sample_count() == 0)
    throw UnfitClient("the oracle of this client has no samples; its sample_count() must be at least 1");
  return std::make_unique<FirstGradient<Real>>(std::move(oracle), "the oracle of this client");
}

}  // namespace

OwnOracle make_own_oracle(const OracleFactory* factory, const ExperimentSpec& experiment,
                          std::uint32_t client) {
  const ProblemSpec spec = problem_spec(experiment);
  const std::string kind = "problem.kind is \"" + std::string(spec.info().name) + "\"";
  const bool is_custom = spec.info().brings_functions;
  if (is_custom && factory == nullptr)
    throw UnfitClient(kind +
                      ", but this client has no oracle of its own; start a program that brings one "
                      "(docs/how-to/own_client.md)");
  if (!is_custom && factory != nullptr)
    throw UnfitClient(kind +
                      ", but this client has an oracle of its own; set problem.kind = \"custom\" at the "
                      "server, or start a client with data");
  OwnOracle own;
  if (!is_custom) return own;
  const ClientRun run{model_dim(spec, {}), client, experiment.clients.count, experiment.run.rounds};
  if (experiment.precision == Precision::kFp32)
    own.fp32 = make<float>(factory->fp32, run, "fp32", "fp64");
  else
    own.fp64 = make<double>(factory->fp64, run, "fp64", "fp32");
  return own;
}

OracleFactory factory_of(Oracle<double>& oracle) { return {.fp64 = borrowing(oracle), .fp32 = {}}; }
OracleFactory factory_of(Oracle<float>& oracle) { return {.fp64 = {}, .fp32 = borrowing(oracle)}; }

}  // namespace gradwire
