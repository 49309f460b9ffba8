// Servers and clients with oracles of their own, as threads of one process.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "gradwire/client.h"
#include "gradwire/server.h"
#include "gradwire/train.h"
#include "tests/support/data_files.h"
#include "tests/support/eventually.h"
#include "tests/support/run_program.h"

namespace gradwire {

inline constexpr std::uint32_t kParts = 4;
inline constexpr std::size_t kDim = 12;

// The mean of (a_j x - b_j)^2 / 2 over samples drawn from `seed`.
template <class Real>
class Rows : public Oracle<Real> {
 public:
  explicit Rows(std::uint32_t seed, std::size_t dim = kDim, std::size_t samples = 7)
      : dim_(dim), b_(samples) {
    std::uint32_t state = seed * 2654435761u + 1;
    const auto next = [&] {
      state = state * 1664525u + 1013904223u;
      return static_cast<Real>(state >> 8) / static_cast<Real>(1 << 24) - Real(0.5);
    };
    for (std::size_t j = 0; j < samples * dim; ++j) a_.push_back(next());
    for (Real& b : b_) b = next();
  }
  std::size_t dim() const override { return dim_; }
  std::size_t sample_count() const override { return b_.size(); }
  Real loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) override {
    std::fill(gradient.begin(), gradient.end(), Real(0));
    const std::size_t count = batch.empty() ? b_.size() : batch.size();
    Real loss = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t j = batch.empty() ? k : batch[k];
      const Real* const a = a_.data() + j * dim_;
      Real residual = -b_[j];
      for (std::size_t i = 0; i < dim_; ++i) residual += a[i] * x[i];
      for (std::size_t i = 0; i < dim_; ++i) gradient[i] += residual * a[i] / static_cast<Real>(count);
      loss += residual * residual / 2;
    }
    return loss / static_cast<Real>(count);
  }

 private:
  std::size_t dim_;
  std::vector<Real> a_, b_;  // shapes (samples, d), (samples)
};

// Oracles with unequal numbers of samples.
template <class Real>
std::vector<Rows<Real>> rows_of_all() {
  std::vector<Rows<Real>> all;
  for (std::uint32_t i = 0; i < kParts; ++i) all.emplace_back(i, kDim, 5 + 3 * i);
  return all;
}

// An experiment for these oracles.
inline Experiment custom(const KeyValues& keys) {
  KeyValues all = {{"problem.kind", "custom"},
                   {"problem.dim", kDim},
                   {"clients.count", kParts},
                   {"clients.weights", "samples"},
                   {"run.rounds", 40}};
  all.insert(all.end(), keys.begin(), keys.end());
  return Experiment::from(all);
}

// Makes a folder the working directory, during the lifetime of this object.
class WorkingIn {
 public:
  explicit WorkingIn(const std::filesystem::path& folder) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  ~WorkingIn() { std::filesystem::current_path(before_); }
  WorkingIn(const WorkingIn&) = delete;
  WorkingIn& operator=(const WorkingIn&) = delete;

 private:
  const std::filesystem::path before_;
};

// Lines of a log, from any thread.
class Lines {
 public:
  std::function<void(std::string_view)> log() {
    return [this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      text_ += std::string(line) + "\n";
    };
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  bool have(const std::string& what) const { return text().find(what) != std::string::npos; }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

// A client on a thread. The destructor stops it.
class ClientThread {
 public:
  template <class Own>
  ClientThread(Own& own, ClientOptions options) {
    options.stop = stop_.get_token();
    thread_ = std::thread([this, &own, options] {
      try {
        (void)own;
        if constexpr (std::is_same_v<Own, const std::nullptr_t>)
          run_client(options);
        else
          run_client(own, options);
      } catch (...) {
        trouble_ = std::current_exception();
      }
      over_ = true;
    });
  }
  ~ClientThread() {
    stop();
    if (thread_.joinable()) thread_.join();
  }
  ClientThread(const ClientThread&) = delete;
  ClientThread& operator=(const ClientThread&) = delete;

  void stop() { stop_.request_stop(); }
  bool over() const { return over_; }
  // Waits for the end, and rethrows what ended the client.
  void join() {
    if (thread_.joinable()) thread_.join();
    if (trouble_) std::rethrow_exception(std::exchange(trouble_, nullptr));
  }
  // Returns the text of the BadInput that ends the client.
  std::string refusal() {
    try {
      join();
    } catch (const BadInput& error) {
      return error.what();
    }
    return "no error";
  }

 private:
  std::stop_source stop_;
  std::atomic<bool> over_ = false;
  std::exception_ptr trouble_;
  std::thread thread_;
};

// One client for each oracle.
class AllClients {
 public:
  template <class Real>
  AllClients(const std::string& server, std::vector<Rows<Real>>& oracles) {
    for (std::uint32_t i = 0; i < oracles.size(); ++i)
      all_.emplace_back(
          oracles[i],
          ClientOptions{.server = server, .part = i, .parts = static_cast<std::uint32_t>(oracles.size())});
  }
  void join() {
    for (ClientThread& client : all_) client.join();
  }

 private:
  std::deque<ClientThread> all_;
};

inline void expect_same_run(const TrainResult& a, const TrainResult& b) {
  EXPECT_FALSE(a.model().empty());
  EXPECT_TRUE(std::ranges::equal(a.model(), b.model()));
  EXPECT_EQ(a.outcome(), b.outcome());
  EXPECT_EQ(a.rounds(), b.rounds());
  for (const char* column :
       {"round", "loss", "bits_up", "bits_down", "bits_up_paper", "grad_calls", "replies"})
    EXPECT_EQ(a.metrics(column), b.metrics(column)) << column;
}

}  // namespace gradwire
