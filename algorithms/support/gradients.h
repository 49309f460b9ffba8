// Gradients that client algorithms request from their oracle, and points that they keep from broadcasts.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "algorithms/core/context.h"
#include "algorithms/core/params.h"
#include "algorithms/core/sampling.h"
#include "algorithms/core/vector_ops.h"
#include "base/rng_stream.h"
#include "compressors/compress_finite.h"
#include "compressors/scaled_entries.h"
#include "compressors/support.h"

namespace gradwire {

// Returns the batch of `algorithm.batch` samples for round t and local step k; empty (all samples) for full
// gradients.
template <class Real>
Batch batch_of(const RunContext<Real>& run_context, const ClientContext<Real>& ctx, std::uint32_t t,
               std::uint32_t k = 0) {
  return draw_batch(ctx.seed, ctx.client, t, k, run_context.algorithm.batch, ctx.oracle.sample_count(),
                    ctx.scratch.order);
}

// Computes out = ∇f_i(x; ξ) on the batch of round t and returns the loss.
template <class Real>
double gradient_at(const RunContext<Real>& run_context, const ClientContext<Real>& ctx, std::uint32_t t,
                   View<Real> x, Vec<Real>& out) {
  out.resize(x.size());
  return ctx.oracle.loss_and_gradient(x, batch_of(run_context, ctx, t), out);
}

// Computes out = ∇f_i(x; B) − ∇f_i(y; B) on one batch B and returns the loss at x. `work` is scratch.
template <class Real>
double gradient_difference(const ClientContext<Real>& ctx, View<Real> x, View<Real> y, Batch batch,
                           Vec<Real>& out, Vec<Real>& work) {
  out.resize(x.size());
  work.resize(x.size());
  const double loss = ctx.oracle.two_gradients(x, y, batch, out, work).x;
  axpy<Real>(Real(-1), work, out);
  return loss;
}

// Options for the gradients of a client's messages.
struct PartialGradientWords {
  static constexpr std::array<std::string_view, 2> words{"false", "true"};
};
struct GradientParams {
  static constexpr std::string_view kPartial = "partial_gradient", kBackpropFraction = "backprop_fraction";
  Choice<PartialGradientWords> partial;
  double backprop_fraction = 1;

  static void fields(auto& self, auto&& visit) {
    visit(kPartial, self.partial,
          "true: compute only the coordinates that randk or randseqk send; same bits, less work, but a "
          "coordinate that is not finite is only detected when it is drawn");
    visit(kBackpropFraction, self.backprop_fraction,
          "share of the paths through a network that each backward pass follows, drawn at random, unbiased "
          "(arXiv:2007.10412); 1 follows all",
          Constraints{.old_key = "paths"});
  }
  bool is_partial() const { return partial.is("true"); }
};

// Returns the gradient options of an algorithm's Params, or the defaults if it has none.
GradientParams gradient_params(const auto& params) {
  if constexpr (requires { params.gradient; })
    return params.gradient;
  else
    return {};
}

// A maker of messages C(∇f_i(x; ξ) − h). It reports the values of a message to ClientContext::early as soon
// as they are final. If `partial`, it computes only the coordinates that C reads.
template <class Real>
struct GradientMessage {
  bool partial;
  double backprop_fraction;
  DrawnSupport support = {};
  ScaledEntries<Real> entries = {};

  explicit GradientMessage(const GradientParams& p)
      : partial(p.is_partial()), backprop_fraction(p.backprop_fraction) {}

  // Writes the message of round t at x to `to` and returns the loss. An empty `shift` means 0.
  double make(const RunContext<Real>& run_context, const ClientContext<Real>& ctx, std::uint32_t t,
              View<Real> x, View<Real> shift, PayloadBuffer<Real>& to) {
    Vec<Real>& v = ctx.scratch.vec(0, x.size());
    const RngKey key = ctx.draw_key(t);
    const bool some = partial && draw_support(ctx.compressor, key, x.size(), support);
    const Coordinates wanted = !some ? Coordinates()
                               : support.is_range
                                   ? Coordinates::cyclic(support.first, support.count, x.size())
                                   : Coordinates::list(support.indices);
    GradientOptions options{.wanted = wanted};
    if (backprop_fraction < 1)
      options.paths = {backprop_fraction, RngStream({ctx.seed, ctx.client, t, RngDomain::kPaths}).next()};
    const auto subtract = [&](std::size_t first, std::size_t end) {
      for (std::size_t j = first; j < end; ++j) v[j] -= shift[j];
    };
    const bool shows =
        ctx.early != nullptr && entries.draw(ctx.compressor, key, x.size(), ctx.scratch.blocks);
    if (shows) {
      ctx.early->begin(entries.place(v));
      options.finished = [&](CoordinateRange range) {
        if (!shift.empty()) subtract(range.first, range.end);
        entries.take(v, range.first, range.end,
                     [&](std::size_t first, std::size_t count) { ctx.early->ready(first, count); });
      };
    }
    const double loss = shows || some || backprop_fraction < 1
                            ? ctx.oracle.compute(x, batch_of(run_context, ctx, t), v, options).value()
                            : gradient_at(run_context, ctx, t, x, v);
    const bool is_shifted = shows || shift.empty();
    if (some) {
      if (!is_shifted) wanted.for_runs(x.size(), subtract);
      compress_at(ctx.compressor, support, v, key, ctx.scratch, to);
    } else if (is_shifted) {
      compress(ctx.compressor, v, key, ctx.scratch, to);
    } else {
      compress_shifted(ctx.compressor, v, shift, key, ctx.scratch, to);
    }
    return loss;
  }
};

// The last two broadcast points with their round, for algorithms whose clients need x^{t−1} and x^t.
template <class Real>
struct LastPoints {
  Vec<Real> x, x_prev;
  std::uint32_t round = 0;  // round of x

  static void fields(auto& self, auto&& visit) {
    visit(self.x);
    visit(self.x_prev);
    visit(self.round);
  }

  // Takes x^t. Returns false if this client missed x^{t−1}; round 0 needs none. A repeated broadcast changes
  // nothing.
  bool follow(const Downlink<Real>& down) {
    if (!x.empty() && round == down.round) return down.round == 0 || !x_prev.empty();
    const bool next = !x.empty() && round + 1 == down.round;
    if (down.round > 0 && !next) return false;
    x_prev.swap(x);
    if (!next) x_prev.clear();
    set(down);
    return true;
  }
  // Takes x^{t−1}, where t = `resync.round`. A message without parts means that x^{t−1} does not exist yet.
  void adopt(const Downlink<Real>& resync) {
    x.clear();
    x_prev.clear();
    round = 0;
    if (resync.parts.size() == 0) return;
    set(resync);
    round = resync.round - 1;
  }

 private:
  void set(const Downlink<Real>& down) {
    const View<Real> values = down.parts[0].values;
    x.assign(values.begin(), values.end());
    round = down.round;
  }
};

// Returns the server's resync message with x^{t−1}, in round t.
template <class Real>
Downlink<Real> previous_point(std::uint32_t t, const Vec<Real>& x_prev) {
  Downlink<Real> down;
  down.round = t;
  if (t > 0) down.parts = {Payload<Real>::dense(x_prev)};
  return down;
}

}  // namespace gradwire
