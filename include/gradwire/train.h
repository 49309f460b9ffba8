// Training in one call: all clients of an experiment, in this process.
//
//   auto result = gradwire::train(oracles, {.algorithm = "gd", .step_size = 0.2});
//   auto other = gradwire::train(gradwire::Experiment::load("a.toml"));
//
// A run has the bits of `gradwire run` for the same experiment, for any number of threads.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "gradwire/algorithm.h"
#include "gradwire/compressor.h"
#include "gradwire/data.h"
#include "gradwire/experiment.h"
#include "gradwire/oracle.h"
#include "gradwire/result.h"

namespace gradwire {

// The precision of an oracle, or of what a pointer to one refers to.
template <class Real>
Real precision_of(const Oracle<Real>& oracle);
template <class Pointer>
auto precision_of(const Pointer& pointer) -> decltype(precision_of(*pointer));

// The functions of all clients; oracle i is that of client i. Made from any range of oracles, or of pointers
// to them, all of double or all of float. They must outlive the run, and have one dimension. Several threads
// call them, each oracle on one thread at a time.
class GRADWIRE_API Oracles {
 public:
  Oracles(std::vector<Oracle<double>*> all) : all_(std::move(all)) {}
  Oracles(std::vector<Oracle<float>*> all) : all_(std::move(all)) {}
  template <std::ranges::input_range Range>
  requires requires(Range& range) { precision_of(*std::ranges::begin(range)); }
  Oracles(Range&& range) {
    using Real = decltype(precision_of(*std::ranges::begin(range)));
    std::vector<Oracle<Real>*> all;
    for (auto&& oracle : range) all.push_back(pointer_to<Real>(oracle));
    all_ = std::move(all);
  }

  const std::variant<std::vector<Oracle<double>*>, std::vector<Oracle<float>*>>& all() const { return all_; }

 private:
  template <class Real, class Element>
  static Oracle<Real>* pointer_to(Element& element) {
    if constexpr (std::is_convertible_v<Element*, Oracle<Real>*>)
      return &element;
    else
      return &*element;
  }

  std::variant<std::vector<Oracle<double>*>, std::vector<Oracle<float>*>> all_;
};

// An object of a program by value: any class that derives from Base<float>, from Base<double>, or from both.
template <template <class> class Base>
class ByValue {
 public:
  ByValue() = default;
  template <class T>
  requires std::derived_from<T, Base<float>> || std::derived_from<T, Base<double>> ByValue(T value) {
    const auto object = std::make_shared<const T>(std::move(value));
    if constexpr (std::derived_from<T, Base<float>>) fp32_ = object;
    if constexpr (std::derived_from<T, Base<double>>) fp64_ = object;
  }

  const std::shared_ptr<const Base<float>>& fp32() const { return fp32_; }
  const std::shared_ptr<const Base<double>>& fp64() const { return fp64_; }
  explicit operator bool() const { return fp32_ != nullptr || fp64_ != nullptr; }

 private:
  std::shared_ptr<const Base<float>> fp32_;
  std::shared_ptr<const Base<double>> fp64_;
};

// The commonest keys of an experiment whose functions the program brings. A member that is not set leaves its
// key at the default. `set` has any other keys, and comes last.
struct TrainKeys {
  std::string algorithm = {};  // as in `gradwire list algorithms`; "custom" if TrainOptions has one
  std::optional<std::string> compressor = {};
  std::optional<KeyValue> step_size = {};  // a number, or "theory", "theory*4"
  std::optional<std::uint32_t> rounds = {};
  std::optional<std::uint64_t> seed = {};
  KeyValues set = {};
};

// What a program adds to an experiment in one call of train().
struct TrainOptions {
  // Parts of the program, in place of those that the experiment names. They decide the result, like x0.
  ByValue<UserAlgorithm> algorithm = {};    // then algorithm.name is "custom"
  ByValue<UserCompressor> compressor = {};  // then algorithm.compressor is "custom:NAME"
  std::optional<Data> data = {};            // then problem.data is "given"
  std::optional<Data> test = {};            // then problem.test is "given"
  std::vector<double> x0 = {};              // start point, shape (d); empty for that of run.x0
  // L_i of the program's functions, shape (n), with which ||grad f_i(x) - grad f_i(y)|| <= L_i ||x - y||.
  // Theory uses them, and L = mean of the L_i, in place of estimates. Empty if they are unknown.
  std::vector<double> smoothness = {};

  // Called after each evaluation, on the thread of train(). The run ends at this row if it returns false.
  std::function<bool(const MetricsRow&)> on_row = {};
  // Called after each round with the number of rounds that are done, on the thread of train().
  std::function<void(std::uint32_t rounds)> on_round = {};
  // Ends the run after the round in progress. A round that takes more than 50 ms longer is given up before
  // the next gradient: the run ends as if the round had not begun, and does not write a last checkpoint.
  std::stop_token stop = {};
  // Called before each gradient, loss or Hessian, by the thread that computes it. What it throws ends the
  // run.
  std::function<void()> before_gradient = {};
  // Called with what was measured if an exception ends the run, before the exception reaches the caller. The
  // outcome is "stopped". The model is that of the last whole round, and empty if the rounds had not begun.
  std::function<void(const TrainResult&)> on_failure = {};
  unsigned threads = 0;                                 // 0 means one per processor
  std::string transport = "memory";                     // "encoded": every message passes through the codec
  std::function<void(std::string_view line)> log = {};  // notes and warnings

  // Folder for results. If it is set, the run stores rows as they come, and checkpoints. A later call with
  // the same arguments resumes an unfinished run; `fresh` moves its checkpoint aside. Finished results with
  // other settings are only replaced with `overwrite`.
  std::filesystem::path out = {};
  bool fresh = false, overwrite = false;
  double checkpoint_seconds = 30;  // 0 means none
};

// Runs an experiment. Throws BadInput (one line) if it cannot run, and std::runtime_error if the run fails.
// An exception of an oracle ends the run and reaches the caller. A run that diverges returns: see
// TrainResult::outcome().
GRADWIRE_API TrainResult train(const Experiment& experiment, const TrainOptions& options = {});

// Runs an algorithm on the functions of the program, f = mean of f_i. Throws as above. `experiment` has
// problem.kind = "custom".
GRADWIRE_API TrainResult train(const Oracles& oracles, const TrainKeys& keys,
                               const TrainOptions& options = {});
GRADWIRE_API TrainResult train(const Oracles& oracles, const Experiment& experiment,
                               const TrainOptions& options = {});

}  // namespace gradwire
