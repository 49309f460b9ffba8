// f_1 .. f_n, the functions of all clients of a process, over one copy of their data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/forwarding_oracle.h"
#include "gradwire/oracle.h"

namespace gradwire {

// An oracle that is bound to one client at a time, at first to client 0.
template <class Real>
class RebindableOracle : public Oracle<Real> {
 public:
  virtual void bind(std::uint32_t client) = 0;  // client < ClientObjectives::clients()
};

// The functions of all clients. Users derive from it, or list their oracles (OracleList).
template <class Real>
class ClientObjectives {
 public:
  virtual ~ClientObjectives() = default;

  virtual std::uint32_t clients() const = 0;  // n
  virtual std::size_t sample_count(std::uint32_t client) const = 0;
  // Returns an oracle for one thread. The oracle may outlive this object. Two oracles must not be bound to
  // the same client at the same time.
  virtual std::unique_ptr<RebindableOracle<Real>> oracle() const = 0;
};

// Client objectives made from one oracle, whose copies share the data. `Copied` is a RebindableOracle that
// also has
//   std::uint32_t clients() const
//   std::size_t sample_count(std::uint32_t client) const
template <class Real, class Copied>
class ClientObjectivesOf final : public ClientObjectives<Real> {
 public:
  explicit ClientObjectivesOf(Copied oracle) : first_(std::move(oracle)) {}

  std::uint32_t clients() const override { return first_.clients(); }
  std::size_t sample_count(std::uint32_t client) const override { return first_.sample_count(client); }
  std::unique_ptr<RebindableOracle<Real>> oracle() const override { return std::make_unique<Copied>(first_); }

 private:
  Copied first_;
};

// A list of oracles, one per client.
template <class Real>
class OracleList final : public ClientObjectives<Real> {
 public:
  // The oracles must outlive this object and the oracles that it returns.
  explicit OracleList(std::vector<Oracle<Real>*> oracles)
      : list_(std::make_shared<const List>(List{{}, std::move(oracles)})) {}
  explicit OracleList(std::vector<std::unique_ptr<Oracle<Real>>> oracles) {
    List list{std::move(oracles), {}};
    for (const auto& oracle : list.owned) list.all.push_back(oracle.get());
    list_ = std::make_shared<const List>(std::move(list));
  }

  std::uint32_t clients() const override { return static_cast<std::uint32_t>(list_->all.size()); }
  std::size_t sample_count(std::uint32_t client) const override {
    return list_->all.at(client)->sample_count();
  }
  std::unique_ptr<RebindableOracle<Real>> oracle() const override { return std::make_unique<Rebound>(list_); }

 private:
  struct List {
    std::vector<std::unique_ptr<Oracle<Real>>> owned;
    std::vector<Oracle<Real>*> all;
  };
  class Rebound final : public ForwardingOracle<Real, Rebound, RebindableOracle<Real>> {
   public:
    explicit Rebound(std::shared_ptr<const List> list) : list_(std::move(list)), at_(list_->all.at(0)) {}
    void bind(std::uint32_t client) override { at_ = list_->all.at(client); }
    Oracle<Real>& inner() const { return *at_; }

   private:
    std::shared_ptr<const List> list_;
    Oracle<Real>* at_;
  };

  std::shared_ptr<const List> list_;
};

}  // namespace gradwire
