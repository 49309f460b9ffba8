// Timing and reporting. Rivals run in turn inside one process, so that both see the same machine; min says
// what the machine can do, the median what it does.
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

// One number per repeat.
class Series {
 public:
  void add(double value) { values_.push_back(value); }
  bool empty() const { return values_.empty(); }
  double min() const;
  double median() const;  // of an even number: the mean of the middle two
  Series times(double factor) const;
  Series minus(const Series& other) const;    // repeat by repeat
  Series or_more(const Series& other) const;  // the larger one, repeat by repeat

 private:
  std::vector<double> values_;
};

template <class F>
double seconds_of(F&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// One repeat of something; returns its seconds, so that preparations need not count.
using BenchBody = std::function<double()>;

// Calls the bodies in turn, `repeats` times, each time another one first, after a warm-up that does not
// count. One series per body.
std::vector<Series> interleave(std::uint32_t repeats, const std::vector<BenchBody>& bodies);

// What a figure is compared with.
struct Versus {
  std::string what;
  Series value;
};

// A bound on the median of the figure, or of its ratio to what it is compared with.
struct Target {
  enum class Of : std::uint8_t { kValue, kRatio } of = Of::kValue;
  double at_most = 0;
};

// The least that the figure could be on this core. Floor over figure is its share of the peak.
struct Floor {
  Series value;
  double share_at_least = 0;  // what the median must reach; 0: any
};

struct Row {
  std::string name;  // "rounds/overhead n=20"
  Series value;
  std::string unit;
  std::optional<Versus> versus;
  std::optional<Target> target;
  std::optional<Floor> floor;
  std::string note;
};

// Figures that are no rows of the kind above: several programs side by side. A cell is "-" where there is
// none.
struct Table {
  std::string name;  // "papers/burtorch gpt"
  std::string unit;
  std::vector<std::string> columns;  // that of the names first
  struct Line {
    std::string name;
    std::vector<std::optional<double>> figures;  // one for each further column
  };
  std::vector<Line> lines;
  std::vector<std::string> notes;
};

// What a benchmark is handed: the options, and where its rows go.
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

  // Folds a result into the checksum that is printed at the end, so that nothing is optimised away.
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
  struct BenchRows;  // of --json
  std::unique_ptr<BenchRows> rows_;
};

}  // namespace gradwire::bench
