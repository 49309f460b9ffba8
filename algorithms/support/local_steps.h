// Settings of algorithms with local steps: the length of a client's training in a round, its batches and its
// optimizer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "algorithms/core/context.h"
#include "algorithms/core/params.h"
#include "algorithms/core/sampling.h"
#include "algorithms/optimizers/optimizer.h"
#include "algorithms/support/schedule.h"
#include "base/config_error.h"

namespace gradwire {

struct LocalSteps {
  std::uint32_t steps = 1;   // K
  std::uint32_t epochs = 0;  // > 0: passes over the client's samples in place of K steps
  StepSize step_size;        // gamma_l
  Schedule schedule;         // schedule of gamma_l
  OptimizerSettings optimizer;

  static void fields(auto& self, auto&& visit) {
    visit("local_steps", self.steps, "K: gradient steps of a client in one round");
    visit("local_epochs", self.epochs,
          "passes of a client over its samples in one round, in shuffled batches; 0 uses local_steps");
    visit("local_step_size", self.step_size, "gamma_l of the client's steps; theory: 1/(K L_max)");
    Schedule::fields(self.schedule, visit);
    OptimizerSettings::fields(self.optimizer, visit);
  }

  // Returns K, or the K of an average client if steps are counted in epochs.
  double count(const Theory& theory) const {
    if (epochs == 0) return steps;
    return epochs * (theory.batch == 0 ? 1 : std::max(1.0, std::ceil(theory.m() / theory.batch)));
  }
  void needs(NeededConstants& constants) const {
    if (!step_size.value) constants.smoothness = "algorithm.local_step_size";
  }
  void resolve(const Theory& theory, Warnings& warnings, auto&& theory_step,
               std::string_view rounds = "rounds") {
    if (steps == 0 && epochs == 0)
      throw ConfigError("algorithm.local_steps", "0 local steps do not train; give at least 1");
    if (steps > 1 && epochs > 0)
      throw ConfigError("algorithm.local_epochs", "give local_steps or local_epochs, not both");
    schedule.resolve(theory, warnings, !step_size.value, rounds);
    if (!step_size.value && !optimizer.is_plain())
      throw ConfigError("algorithm.local_step_size",
                        "theory only has a step size for plain gradient steps; give a number, or leave out "
                        "local_optimizer, local_weight_decay and local_clip_norm");
    if (!step_size.value) step_size.resolve(theory_step(count(theory)));
    optimizer.resolve(theory.d);
  }
};

// Calls step(k, batch) for each local step k of round t.
template <class Real>
void each_local_step(const LocalSteps& local, std::uint32_t batch_size, std::uint32_t t,
                     const ClientContext<Real>& ctx, auto&& step) {
  const std::size_t m = ctx.oracle.sample_count();
  std::vector<std::uint32_t>& order = ctx.scratch.order;
  if (local.epochs == 0) {
    for (std::uint32_t k = 0; k < local.steps; ++k)
      step(k, draw_batch(ctx.seed, ctx.client, t, k, batch_size, m, order));
    return;
  }
  std::uint32_t k = 0;
  for (std::uint32_t epoch = 0; epoch < local.epochs; ++epoch) {
    if (batch_size == 0) {
      step(k++, Batch{});
      continue;
    }
    shuffle_samples(ctx.seed, ctx.client, t, epoch, m, order);
    for (std::size_t first = 0; first < m; first += batch_size)
      step(k++, Batch(order).subspan(first, std::min<std::size_t>(batch_size, m - first)));
  }
}

}  // namespace gradwire
