#include "gradwire/problem.h"

#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "api/content.h"
#include "api/reading.h"
#include "engine/data/readers/source.h"
#include "simulation/optimum/f_star.h"
#include "simulation/optimum/mean_function.h"
#include "simulation/prepare.h"

namespace gradwire {
namespace {

Experiment with_samples(const Experiment& experiment, const std::optional<Data>& data,
                        const std::optional<Data>& test) {
  KeyValues keys;
  if (data) keys.emplace_back("problem.data", kGivenSource);
  if (test) keys.emplace_back("problem.test", kGivenSource);
  return keys.empty() ? experiment : experiment.with(keys);
}

}  // namespace

struct Problem::Content {
  LoadedExperiment loaded;
  Reading reading;
  bool has_given_samples;
  Prepared prepared;
  mutable std::mutex mutex;  // guards `functions`
  mutable Functions functions;

  template <class Real>
  const ClientObjectives<Real>& objectives() const {
    const std::lock_guard lock(mutex);
    auto& made = functions.of<Real>();
    if (made == nullptr)
      made = make_client_objectives<Real>(prepared.problem, prepared.schema, prepared.data);
    return *made;
  }
};

Problem::Problem(const Experiment& experiment, const std::optional<Data>& data,
                 const std::optional<Data>& test) {
  auto content = std::make_shared<Content>();
  content->loaded = with_samples(experiment, data, test).content().loaded;
  content->reading = reading_of(data, test);
  content->has_given_samples = data || test;
  with_errors_of_keys([&] {
    content->prepared =
        prepare(with_gd(content->loaded, "1"), nullptr, nullptr, {}, {.reading = content->reading});
  });
  std::vector<double>& weights = content->prepared.weights;
  if (weights.empty()) weights.assign(content->prepared.n(), 1.0 / content->prepared.n());
  content_ = std::move(content);
}

std::size_t Problem::dim() const { return content_->prepared.d; }
std::uint32_t Problem::clients() const { return content_->prepared.n(); }
const std::vector<double>& Problem::weights() const { return content_->prepared.weights; }
const std::vector<double>& Problem::start() const { return content_->prepared.x0; }

template <class Real>
std::unique_ptr<Oracle<Real>> Problem::oracle(std::uint32_t client) const {
  if (client >= clients())
    throw std::out_of_range("client " + std::to_string(client) + " does not exist; the problem has " +
                            std::to_string(clients()));
  auto oracle = content_->objectives<Real>().oracle();
  oracle->bind(client);
  return oracle;
}
template std::unique_ptr<Oracle<float>> Problem::oracle(std::uint32_t) const;
template std::unique_ptr<Oracle<double>> Problem::oracle(std::uint32_t) const;

double Problem::loss_and_gradient(std::span<const double> x, std::span<double> gradient) const {
  if (x.size() != dim() || gradient.size() != dim())
    throw std::invalid_argument("a problem of dimension " + std::to_string(dim()) +
                                " was given a vector of length " +
                                std::to_string(x.size() != dim() ? x.size() : gradient.size()));
  return MeanFunction(content_->objectives<double>(), weights()).value_and_gradient(x, gradient);
}

ProblemConstants Problem::constants() const {
  std::optional<Smoothness> found = content_->prepared.smoothness;
  if (!found)
    with_errors_of_keys([&] {
      std::optional<Smoothness> unknown;
      found = plan_on(with_gd(content_->loaded, "theory"), content_->prepared.problem,
                      content_->prepared.data, unknown)
                  .smoothness;
    });
  return {found->L, found->mu, found->L_i, found->estimated};
}

std::optional<double> Problem::f_star() const {
  const ExperimentSpec& experiment = content_->loaded.experiment;
  const std::filesystem::path base = content_->loaded.folder();
  if (content_->has_given_samples) return find_f_star(experiment, base, content_->reading);
  return is_convex(experiment) && has_minimum(experiment.problem)
             ? FStars(cache_folder()).of(experiment, base).value
             : std::nullopt;
}

}  // namespace gradwire
