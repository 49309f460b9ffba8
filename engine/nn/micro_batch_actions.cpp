// Microbatches whose values change their places during a pass: engine/nn/schedule.h.
#include <span>

#include "engine/nn/micro_batch.h"

namespace gradwire {

template <class Real>
void MicroBatch<Real>::place(const Plan::Action& action) {
  where_[plan_.steps[action.number].op.out] = values_ + action.value;
  if (action.kept != Plan::kNowhere) keep_[action.number] = values_ + action.kept;
}

template <class Real>
void MicroBatch<Real>::act(const Plan::Action& action, const Real* x) {
  using Kind = Plan::Action::Kind;
  const auto count = [&] { return static_cast<std::size_t>(numbers(action.number)); };
  switch (action.kind) {
    case Kind::kForward:
      place(action);
      forward(plan_.steps[action.number], x);
      break;
    case Kind::kPack:
      convert(std::span<const Real>(value(action.number), count()),
              std::span<BFloat16>(kept_ + action.kept, count()));
      break;
    case Kind::kUnpack:
      where_[action.number] = values_ + action.value;
      convert(std::span<const BFloat16>(kept_ + action.kept, count()),
              std::span<Real>(value(action.number), count()));
      break;
    case Kind::kReturn: where_[action.number] = values_ + action.value; break;
    case Kind::kBackward: break;
  }
}

// These are instantiated member by member, as in micro_batch.cpp.
#define GRADWIRE_INSTANTIATE(Real)                            \
  template void MicroBatch<Real>::place(const Plan::Action&); \
  template void MicroBatch<Real>::act(const Plan::Action&, const Real*);
GRADWIRE_INSTANTIATE(float)
GRADWIRE_INSTANTIATE(double)
#undef GRADWIRE_INSTANTIATE

}  // namespace gradwire
