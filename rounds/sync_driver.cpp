// The synchronous driver: all clients of a round get the same request id, and the algorithm gets all replies
// at once.
#include "algorithms/core/sampling.h"
#include "rounds/driver.h"

namespace gradwire {
namespace {

template <class Real>
class SyncDriver final : public Driver<Real> {
 public:
  using Driver<Real>::Driver;

 private:
  using Driver<Real>::run_, Driver<Real>::totals_, Driver<Real>::asked_, Driver<Real>::slots_,
      Driver<Real>::frames_, Driver<Real>::at_once_;

  bool step(std::uint32_t k) override {
    run_.server.cohort(asked_);
    const Downlink<Real> body = run_.server.broadcast();
    std::size_t got = 0;
    if (!asked_.empty()) {
      const bool all = run_.traits.needs_all_replies;
      const std::size_t needed = all ? asked_.size() : this->quorum_of(asked_.size());
      if (!all)
        add_spare_clients(run_.run_context.seed, k, run_.run_context.n, run_.limits.over_selection, asked_);
      add_bits<Real>(body.parts, static_cast<double>(asked_.size()), totals_.bits_down,
                     totals_.bits_down_paper);
      if (!this->collect(RequestKind::kRound, body, needed, k)) return false;
      if (!at_once_.replies.empty() && at_once_.others.empty()) {
        this->commit(at_once_.replies, {});
        return true;
      }
      got = put_together();
    }
    this->commit(std::span(slots_).first(got), std::span(frames_).first(got));
    return true;
  }
  bool evaluate(std::uint32_t k, bool last) override { return this->evaluate_now(k, last); }

  // Moves the received replies to the front, in their order. Returns their number.
  std::size_t put_together() {
    std::size_t got = 0;
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (!this->have_[i]) continue;
      if (got < i) {
        slots_[got] = slots_[i];
        frames_[got] = frames_[i];
      }
      ++got;
    }
    return got;
  }
};

}  // namespace

template <class Real>
Outcome run_synchronous(const RunOf<Real>& run) {
  return SyncDriver<Real>(run).run();
}
template Outcome run_synchronous(const RunOf<float>&);
template Outcome run_synchronous(const RunOf<double>&);

}  // namespace gradwire
