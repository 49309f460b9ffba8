#include "benchmarks/harness.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <ostream>
#include <thread>

#include "report/json.h"

namespace gradwire::bench {
namespace {

// Formats at most four decimals, about three significant digits, and never an exponent.
std::string short_number(double value) {
  char text[48];
  const double size = std::abs(value);
  const int digits = size >= 100 || size == 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : 4;
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

constexpr std::size_t kTableColumn = 10;

std::string padded(std::string text, std::size_t width, bool right = false) {
  if (text.size() < width) text.insert(right ? 0 : text.size(), width - text.size(), ' ');
  return text;
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

std::string build_kind() {
#if defined(__OPTIMIZE__) && defined(NDEBUG)
  return "optimised";
#else
  return "not a release build: the figures mean little";
#endif
}

bool met(const Row& row) {
  const double figure = row.target->of == Target::Of::kValue
                            ? row.value.median()
                            : row.value.median() / row.versus->value.median();
  return figure <= row.target->at_most;
}

double share_of_peak(const Row& row) { return row.floor->value.median() / row.value.median(); }

std::string percent(double share) { return short_number(100 * share) + " %"; }

// Returns a text like "82.1 % / 80.3 % of the peak", for the minima and the medians.
std::string peak_text(const Row& row, bool small) {
  std::string text = percent(row.floor->value.min() / row.value.min()) + " / " + percent(share_of_peak(row)) +
                     " of the peak";
  if (row.floor->share_at_least > 0) {
    text += ", >= " + percent(row.floor->share_at_least);
    text += small ? "" : share_of_peak(row) >= row.floor->share_at_least ? ": met" : ": MISSED";
  }
  return text;
}

Json row_json(const Row& row, bool small) {
  Json json = {
      {"name", row.name}, {"unit", row.unit}, {"min", row.value.min()}, {"median", row.value.median()}};
  if (row.versus) {
    const Series& other = row.versus->value;
    json["versus"] = row.versus->what;
    json["versus_min"] = other.min();
    json["versus_median"] = other.median();
    json["ratio_min"] = row.value.min() / other.min();
    json["ratio_median"] = row.value.median() / other.median();
  }
  if (row.target) {
    json[row.target->of == Target::Of::kValue ? "target_median" : "target_ratio_median"] =
        row.target->at_most;
    if (!small) json["met"] = met(row);
  }
  if (row.floor) {
    json["share_of_peak_min"] = row.floor->value.min() / row.value.min();
    json["share_of_peak_median"] = share_of_peak(row);
    if (row.floor->share_at_least > 0) {
      json["target_share_of_peak_median"] = row.floor->share_at_least;
      if (!small) json["share_met"] = share_of_peak(row) >= row.floor->share_at_least;
    }
  }
  if (!row.note.empty()) json["note"] = row.note;
  return json;
}

}  // namespace

double Series::min() const { return *std::min_element(values_.begin(), values_.end()); }

double Series::median() const {
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

Series Series::times(double factor) const {
  Series scaled = *this;
  for (double& v : scaled.values_) v *= factor;
  return scaled;
}

Series Series::minus(const Series& other) const {
  Series difference = *this;
  for (std::size_t k = 0; k < values_.size(); ++k) difference.values_[k] -= other.values_[k];
  return difference;
}

std::vector<Series> interleave(std::uint32_t repeats, const std::vector<BenchBody>& bodies) {
  for (const BenchBody& body : bodies) body();
  std::vector<Series> series(bodies.size());
  for (std::uint32_t r = 0; r < repeats; ++r) {
    for (std::size_t k = 0; k < bodies.size(); ++k) {
      const std::size_t turn = (k + r) % bodies.size();
      series[turn].add(bodies[turn]());
    }
  }
  return series;
}

Series Series::or_more(const Series& other) const {
  Series larger = *this;
  for (std::size_t k = 0; k < values_.size(); ++k)
    larger.values_[k] = std::max(larger.values_[k], other.values_[k]);
  return larger;
}

struct Bench::BenchRows {
  Json json = Json::array();
};

Bench::Bench(const BenchOptions& options, std::ostream& out)
    : options_(options), out_(out), rows_(std::make_unique<BenchRows>()) {}
Bench::~Bench() = default;

std::uint32_t Bench::repeats(std::uint32_t usual) const {
  if (options_.repeats > 0) return options_.repeats;
  return options_.small ? 2 : usual;
}

void Bench::begin() {
  if (options_.json) return;
  const std::uint32_t threads = std::thread::hardware_concurrency();
  out_ << processor() << ", " << threads << " threads; " << compiler() << "; " << build_kind() << "\n"
       << padded("name", 44) << padded("min", 9, true) << padded("median", 10, true) << "  "
       << padded("unit", 12) << padded("compared with", 34) << padded("min", 9, true)
       << padded("median", 10, true) << "  " << padded("ratios", 16) << "target\n";
}

void Bench::end() {
  if (options_.json) {
    out_ << json_text({{"processor", processor()},
                       {"threads", std::thread::hardware_concurrency()},
                       {"compiler", compiler()},
                       {"build", build_kind()},
                       {"small", options_.small},
                       {"rows", rows_->json},
                       {"checksum", checksum_}});
  } else {
    out_ << "checksum " << checksum_ << "\n";
  }
  out_.flush();
}

void Bench::row(const Row& row) {
  if (options_.json) {
    rows_->json.push_back(row_json(row, options_.small));
  } else {
    text_row(row);
    out_.flush();
  }
}

void Bench::table(const Table& table) {
  if (options_.json) {
    Json lines = Json::array();
    for (const Table::Line& line : table.lines) {
      Json json = {{"name", line.name}};
      for (std::size_t k = 0; k < line.figures.size(); ++k)
        json[table.columns[k + 1]] = line.figures[k] ? Json(*line.figures[k]) : Json(nullptr);
      lines.push_back(std::move(json));
    }
    rows_->json.push_back(
        {{"name", table.name}, {"unit", table.unit}, {"table", lines}, {"notes", table.notes}});
    return;
  }
  std::size_t first = table.columns[0].size();
  for (const Table::Line& line : table.lines) first = std::max(first, line.name.size());
  std::string text = table.name + ", " + table.unit + "\n    " + padded(table.columns[0], first);
  for (std::size_t k = 1; k < table.columns.size(); ++k)
    text += "  " + padded(table.columns[k], kTableColumn, true);
  for (const Table::Line& line : table.lines) {
    text += "\n    " + padded(line.name, first);
    for (std::size_t k = 0; k < line.figures.size(); ++k)
      text += "  " + padded(line.figures[k] ? short_number(*line.figures[k]) : "-",
                            std::max(kTableColumn, table.columns[k + 1].size()), true);
  }
  for (const std::string& note : table.notes) text += "\n    " + note;
  out_ << text << "\n";
  out_.flush();
}

void Bench::skip(const std::string& name, const std::string& why) {
  if (options_.json) {
    rows_->json.push_back({{"name", name}, {"skipped", why}});
  } else {
    out_ << padded(name, 44) << "skipped: " << why << "\n";
    out_.flush();
  }
}

void Bench::text_row(const Row& row) {
  std::string line = padded(row.name, 44) + padded(short_number(row.value.min()), 9, true) +
                     padded(short_number(row.value.median()), 10, true) + "  " + padded(row.unit, 12);
  if (row.versus) {
    const Series& other = row.versus->value;
    line += padded(row.versus->what, 34) + padded(short_number(other.min()), 9, true) +
            padded(short_number(other.median()), 10, true) + "  " +
            padded(short_number(row.value.min() / other.min()) + " / " +
                       short_number(row.value.median() / other.median()),
                   16);
  }
  if (row.target) {
    line = padded(line, 135) + "<= " + short_number(row.target->at_most) +
           (row.target->of == Target::Of::kValue ? " " + row.unit : " times") +
           (options_.small ? ": not judged at this size"
            : met(row)     ? ": met"
                           : ": MISSED");
  }
  if (row.floor) line = padded(line, 135) + "  " + peak_text(row, options_.small);
  line.erase(line.find_last_not_of(' ') + 1);
  out_ << line << "\n";
  if (!row.note.empty()) out_ << "    " << row.note << "\n";
}

}  // namespace gradwire::bench
