#include "benchmarks/peak.h"

#include <algorithm>
#include <cmath>

namespace gradwire::bench {
namespace {

constexpr double kTurnSeconds = 2e-3;

// Returns a body that repeats `work` to fill a turn. The body returns the seconds of one call.
template <class F>
BenchBody called_often(F work) {
  const double once = std::max(seconds_of(work), 1e-8);
  const auto times = static_cast<std::uint32_t>(std::clamp(kTurnSeconds / once, 1.0, 1e6));
  return [work, times] {
    return seconds_of([&] {
             for (std::uint32_t k = 0; k < times; ++k) work();
           }) /
           times;
  };
}

}  // namespace

Peak::Peak(const Kernels<float>& kernels, std::size_t numbers, std::uint32_t turns) {
  constexpr Index kRounds = 10'000;
  const std::size_t half = (numbers + 1) / 2;
  AlignedVector<float> from(half, 1.0f), to(half);
  volatile float kept = 0;
  const auto compute = [&] { kept = kernels.multiply_adds(kRounds, 0.5f, 0.5f); };
  const auto pass = [&] {
    kernels.axpy(static_cast<Index>(half), 1e-30f, from.data(), to.data());
    kept = to[half / 2];
  };
  const auto series = interleave(turns, {called_often(compute), called_often(pass)});
  for_a_multiply_add_ = series[0].times(
      1 / (static_cast<double>(kRounds) * static_cast<double>(kernels.multiply_adds_a_round)));
  for_a_byte_ = series[1].times(1 / (3.0 * sizeof(float) * static_cast<double>(half)));
}

Series Peak::seconds(const PeakWork& work) const {
  return for_a_multiply_add_.times(work.multiply_adds).or_more(for_a_byte_.times(work.bytes));
}

}  // namespace gradwire::bench
