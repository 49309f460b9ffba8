// Timing and reporting. A benchmark and its reference take turns in one process, so that the load of the
// machine affects both alike. The minimum shows what the machine can do, and the median what it usually did.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/bench.h"

namespace gradwire::bench {

// One number for each repeat.
class Series {
 public:
  void add(double value) { values_.push_back(value); }
  bool empty() const { return values_.empty(); }
  double min() const;
  double median() const;  // for an even count, the mean of the middle two
  Series times(double factor) const;
  Series minus(const Series& other) const;    // the difference for each repeat
  Series or_more(const Series& other) const;  // the larger one for each repeat

 private:
  std::vector<double> values_;
};

template <class F>
double seconds_of(F&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// One repeat of a measurement. The function itself returns the seconds, so that it can exclude its
// preparation.
using BenchBody = std::function<double()>;

// Calls all bodies in turn, `repeats` times. Each repeat starts with a different body. A first call of each
// body is a warm-up and does not count. Returns one series for each body.
std::vector<Series> interleave(std::uint32_t repeats, const std::vector<BenchBody>& bodies);

// Reference that a figure is compared with.
struct Versus {
  std::string what;
  Series value;
};

// Upper bound on the median of the figure, or on its ratio to the median of the reference.
struct Target {
  enum class Of : std::uint8_t { kValue, kRatio } of = Of::kValue;
  double at_most = 0;
};

// Least possible value of the figure on this core. The ratio of this value to the figure is the share of the
// peak.
struct Floor {
  Series value;
  double share_at_least = 0;  // least share for the median; 0 sets no target
};

struct Row {
  std::string name;  // as in "rounds/overhead n=20"
  Series value;
  std::string unit;
  std::optional<Versus> versus;
  std::optional<Target> target;
  std::optional<Floor> floor;
  std::string note;
};

// Figures that do not fit a row, such as those of several programs. A missing figure is shown as "-".
struct Table {
  std::string name;  // as in "papers/burtorch gpt"
  std::string unit;
  std::vector<std::string> columns;  // titles; the first one is above the names
  struct Line {
    std::string name;
    std::vector<std::optional<double>> figures;  // one for each further column
  };
  std::vector<Line> lines;
  std::vector<std::string> notes;
};

// Argument of each benchmark: the options, and the output for its rows.
class Bench {
 public:
  Bench(const BenchOptions& options, std::ostream& out);
  ~Bench();

  const BenchOptions& options() const { return options_; }
  bool small() const { return options_.small; }
  template <class T>
  T size(T full, T tiny) const {
    return options_.small ? tiny : full;
  }
  std::uint32_t repeats(std::uint32_t usual) const;

  void row(const Row& row);
  void table(const Table& table);
  void skip(const std::string& name, const std::string& why);

  // Adds a result to the checksum at the end of the output, so that the compiler keeps the result.
  void keep(double value) { checksum_ += value; }
  template <class Real>
  void keep_all(std::span<const Real> values) {
    for (const Real v : values) checksum_ += static_cast<double>(v);
  }

  void begin();
  void end();

 private:
  void text_row(const Row& row);

  const BenchOptions& options_;
  std::ostream& out_;
  double checksum_ = 0;
  struct BenchRows;  // for --json
  std::unique_ptr<BenchRows> rows_;
};

}  // namespace gradwire::bench
