// Objectives of clients that call a function of the run's owner before each computation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "engine/client_objectives.h"

namespace gradwire {

// Thrown by that function to give up the round in progress. The run ends as if the round had not begun.
struct RoundGivenUp {};

template <class Real>
class CheckedObjectives final : public ClientObjectives<Real> {
 public:
  // `before` is called by the thread that computes. What it throws ends the computation.
  CheckedObjectives(std::shared_ptr<const ClientObjectives<Real>> inner, std::function<void()> before)
      : inner_(std::move(inner)), before_(std::move(before)) {}

  std::uint32_t clients() const override { return inner_->clients(); }
  std::size_t sample_count(std::uint32_t client) const override { return inner_->sample_count(client); }
  std::unique_ptr<RebindableOracle<Real>> oracle() const override {
    return std::make_unique<Checked>(inner_->oracle(), before_);
  }

 private:
  class Checked final : public ForwardingOracle<Real, Checked, RebindableOracle<Real>> {
   public:
    Checked(std::unique_ptr<RebindableOracle<Real>> inner, std::function<void()> before)
        : inner_(std::move(inner)), before_(std::move(before)) {}

    void bind(std::uint32_t client) override { inner_->bind(client); }
    std::size_t dim() const override { return inner_->dim(); }
    std::size_t sample_count() const override { return inner_->sample_count(); }
    Oracle<Real>& inner() const {
      before_();
      return *inner_;
    }

   private:
    std::unique_ptr<RebindableOracle<Real>> inner_;
    std::function<void()> before_;
  };

  std::shared_ptr<const ClientObjectives<Real>> inner_;
  std::function<void()> before_;
};

// Returns `inner` itself if there is no function.
template <class Real>
std::shared_ptr<const ClientObjectives<Real>> checked(std::shared_ptr<const ClientObjectives<Real>> inner,
                                                      const std::function<void()>& before) {
  if (!before) return inner;
  return std::make_shared<const CheckedObjectives<Real>>(std::move(inner), before);
}

}  // namespace gradwire
