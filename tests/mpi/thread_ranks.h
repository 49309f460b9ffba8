// Ranks that are threads of the test.
#pragma once

#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "mpi/ranks.h"

namespace gradwire::testing {

// The meeting point of the ranks. If one throws, the others are released.
class RankTable {
 public:
  explicit RankTable(unsigned count) : mine(count), to(count), count_(count) {}
  void meet() {
    std::unique_lock lock(mutex_);
    if (broken_) throw std::runtime_error("another rank has failed");
    const unsigned turn = turn_;
    if (++waiting_ == count_) {
      waiting_ = 0;
      ++turn_;
      changed_.notify_all();
      return;
    }
    changed_.wait(lock, [&] { return turn_ != turn || broken_; });
    if (turn_ == turn) throw std::runtime_error("another rank has failed");
  }
  void fail() {
    const std::lock_guard lock(mutex_);
    broken_ = true;
    changed_.notify_all();
  }

  std::vector<std::span<const std::byte>> mine;
  std::vector<std::span<const std::vector<std::byte>>> to;

 private:
  const unsigned count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned waiting_ = 0, turn_ = 0;
  bool broken_ = false;
};

class ThreadRanks final : public Ranks {
 public:
  ThreadRanks(RankTable& table, unsigned rank) : table_(table), rank_(rank) {}
  unsigned rank() const override { return rank_; }
  unsigned count() const override { return static_cast<unsigned>(table_.mine.size()); }
  void all_gather(std::span<const std::byte> mine, RankBytes& all) override {
    table_.mine[rank_] = mine;
    take(all, [this](unsigned r) { return table_.mine[r]; });
  }
  void exchange(std::span<const std::vector<std::byte>> to, RankBytes& from) override {
    table_.to[rank_] = to;
    take(from, [this](unsigned r) { return std::span<const std::byte>(table_.to[r][rank_]); });
  }

 private:
  void take(RankBytes& into, const auto& of) {
    table_.meet();
    std::vector<std::size_t> sizes;
    for (unsigned r = 0; r < count(); ++r) sizes.push_back(of(r).size());
    RankBytes got;  // another rank may still read `into`
    got.resize(sizes);
    for (unsigned r = 0; r < count(); ++r)
      if (!of(r).empty()) std::memcpy(got.of(r).data(), of(r).data(), of(r).size());
    table_.meet();
    into = std::move(got);
  }

  RankTable& table_;
  const unsigned rank_;
};

// Calls work(ranks) on a thread for each of `count` ranks. Rethrows the exception of the first one that
// threw.
inline void on_ranks(unsigned count, const std::function<void(std::shared_ptr<Ranks>)>& work) {
  RankTable table(count);
  std::vector<std::exception_ptr> errors(count);
  std::vector<std::thread> threads;
  for (unsigned r = 0; r < count; ++r)
    threads.emplace_back([&, r] {
      try {
        work(std::make_shared<ThreadRanks>(table, r));
      } catch (...) {
        errors[r] = std::current_exception();
        table.fail();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace gradwire::testing
