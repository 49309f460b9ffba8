#include "c_api/caller_oracle.h"

#include <memory>
#include <type_traits>
#include <utility>

namespace gradwire {
namespace {

template <class Real>
class CallerOracle final : public Oracle<Real> {
 public:
  CallerOracle(Calls& calls, const ClientRun& run)
      : calls_(calls), dim_(calls.oracle.dim > 0 ? calls.oracle.dim : run.dim) {}

  std::size_t dim() const override { return dim_; }
  std::size_t sample_count() const override { return calls_.oracle.sample_count; }

  Real loss_and_gradient(View<Real> x, Batch batch, Out<Real> gradient) override {
    double loss = 0;
    if constexpr (std::is_same_v<Real, float>)
      call("gradient_f32", calls_.oracle.gradient_f32, x.data(), x.size(), batch.data(), batch.size(),
           gradient.data(), &loss);
    else
      call("gradient_f64", calls_.oracle.gradient_f64, x.data(), x.size(), batch.data(), batch.size(),
           gradient.data(), &loss);
    return static_cast<Real>(calls_.loss = loss);
  }

  std::optional<Real> train(Out<Real> y, const LocalTraining& training) override {
    gradwire_training of_round{};
    of_round.struct_size = sizeof of_round;
    of_round.round = calls_.round = training.round;
    of_round.steps = training.steps;
    of_round.epochs = training.epochs;
    of_round.batch = training.batch;
    of_round.seed = training.seed;
    of_round.step_size = training.step_size;
    of_round.proximal = training.proximal;
    double loss = 0;
    if constexpr (std::is_same_v<Real, float>) {
      if (calls_.oracle.train_f32 == nullptr) return std::nullopt;
      call("train_f32", calls_.oracle.train_f32, y.data(), y.size(), &of_round, &loss);
    } else {
      if (calls_.oracle.train_f64 == nullptr) return std::nullopt;
      call("train_f64", calls_.oracle.train_f64, y.data(), y.size(), &of_round, &loss);
    }
    return static_cast<Real>(calls_.loss = loss);
  }

  std::optional<Score> score(View<Real> x) override {
    if (calls_.oracle.score == nullptr) return std::nullopt;
    Score score{0, calls_.oracle.test_count};
    call("score", calls_.oracle.score, static_cast<const void*>(x.data()), x.size(), &score.correct);
    return score;
  }

 private:
  // Calls a callback. A client that was cancelled computes no more.
  template <class Callback, class... Arguments>
  void call(const char* name, Callback callback, Arguments... arguments) {
    if (calls_.cancelled) throw OracleStopped();
    if (const std::int32_t result = callback(calls_.oracle.user, arguments...); result != 0)
      throw CallbackFailed(name, result);
    if (calls_.cancelled) throw OracleStopped();
  }

  Calls& calls_;
  const std::size_t dim_;
};

template <class Real>
std::unique_ptr<Oracle<Real>> begin(Calls& calls, const ClientRun& run) {
  gradwire_run_info info{};
  info.struct_size = sizeof info;
  info.precision = 8 * sizeof(Real);
  info.dim = run.dim;
  info.client = run.client;
  info.clients = run.clients;
  info.rounds = run.rounds;
  if (calls.oracle.begin != nullptr)
    if (const std::int32_t result = calls.oracle.begin(calls.oracle.user, &info); result != 0)
      throw CallbackFailed("begin", result);
  return std::make_unique<CallerOracle<Real>>(calls, run);
}

}  // namespace

OracleFactory factory_of(Calls& calls) {
  OracleFactory factory;
  if (calls.oracle.gradient_f64 != nullptr)
    factory.fp64 = [&calls](const ClientRun& run) { return begin<double>(calls, run); };
  if (calls.oracle.gradient_f32 != nullptr)
    factory.fp32 = [&calls](const ClientRun& run) { return begin<float>(calls, run); };
  return factory;
}

}  // namespace gradwire
