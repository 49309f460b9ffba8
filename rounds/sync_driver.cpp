// Rounds: a cohort is asked under one ticket, and the method takes in all replies at once.
#include "algorithms/support/sampling.h"
#include "rounds/driver.h"

namespace gradwire {
namespace {

template <class Real>
class SyncDriver final : public Driver<Real> {
 public:
  using Driver<Real>::Driver;

 private:
  using Driver<Real>::run_, Driver<Real>::totals_, Driver<Real>::asked_;

  bool step(std::uint32_t k) override {
    run_.server.cohort(asked_);
    replies_.clear();
    const Downlink<Real> body = run_.server.broadcast();
    if (!asked_.empty()) {
      const bool all = run_.facts.needs_all_replies;
      const std::size_t needed = all ? asked_.size() : this->quorum_of(asked_.size());
      if (!all) add_spare_clients(run_.setup.seed, k, run_.setup.n, run_.limits.over_selection, asked_);
      add_bits(body.parts, static_cast<double>(asked_.size()), totals_.bits_down, totals_.bits_down_paper);
      if (!this->collect(Request::kRound, body, needed, k)) return false;
      for (std::size_t i = 0; i < asked_.size(); ++i)
        if (this->have_[i]) replies_.push_back(this->slots_[i]);
    }
    this->commit(replies_);
    return true;
  }
  bool evaluate(std::uint32_t k, bool) override { return this->evaluate_now(k); }

  std::vector<Uplink<Real>> replies_;
};

}  // namespace

template <class Real>
Outcome run_synchronous(const RunOf<Real>& run) {
  return SyncDriver<Real>(run).run();
}
template Outcome run_synchronous(const RunOf<float>&);
template Outcome run_synchronous(const RunOf<double>&);

}  // namespace gradwire
