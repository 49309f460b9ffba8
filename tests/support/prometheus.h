// A strict parser of the text format of Prometheus (version 0.0.4).
#pragma once

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace gradwire {

class PrometheusText {
 public:
  // Fails the test at each line that Prometheus would reject or that breaks its conventions.
  explicit PrometheusText(const std::string& text) {
    EXPECT_FALSE(text.empty());
    EXPECT_TRUE(text.empty() || text.back() == '\n') << "the last line has no line break";
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) read(line);
    for (const auto& [name, type] : types_) {
      EXPECT_TRUE(helps_.count(name)) << name << " has no HELP";
      EXPECT_EQ(type == "counter", name.ends_with("_total")) << name << " is a " << type;
      if (type == "histogram") check_histogram(name);
    }
  }
  // Returns the value of a sample, by its name and labels as printed.
  double operator[](const std::string& sample) const {
    const auto found = samples_.find(sample);
    EXPECT_TRUE(found != samples_.end()) << "no sample " << sample;
    return found == samples_.end() ? std::nan("") : found->second;
  }
  const std::map<std::string, double>& samples() const { return samples_; }

 private:
  void read(const std::string& line) {
    static const std::regex help("# HELP ([a-z_:][a-z0-9_:]*) .+"),
        type("# TYPE ([a-z_:][a-z0-9_:]*) (counter|gauge|histogram)"),
        sample(
            R"(([a-z_:][a-z0-9_:]*)(\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\})? (\S+))");
    std::smatch found;
    if (std::regex_match(line, found, help)) {
      EXPECT_TRUE(helps_.insert(found[1]).second) << "twice: " << line;
      return;
    }
    if (std::regex_match(line, found, type)) {
      EXPECT_TRUE(types_.emplace(found[1], found[2]).second) << "twice: " << line;
      current_ = found[1];
      return;
    }
    ASSERT_TRUE(std::regex_match(line, found, sample)) << "not a line of the format: " << line;
    std::string base = found[1];
    if (types_[current_] == "histogram")
      for (const std::string end : {"_bucket", "_sum", "_count"})
        if (base == current_ + end) base = current_;
    EXPECT_EQ(base, current_) << "not after its TYPE: " << line;
    const std::string number = found[3];
    char* rest = nullptr;
    const double value = std::strtod(number.c_str(), &rest);
    EXPECT_EQ(*rest, '\0') << line;
    EXPECT_TRUE(types_[current_] != "counter" || value >= 0) << line;
    EXPECT_TRUE(samples_.emplace(found[1].str() + found[2].str(), value).second) << "twice: " << line;
    if (found[1].str() == current_ + "_bucket") buckets_[current_].emplace_back(found[2], value);
  }
  void check_histogram(const std::string& name) {
    double limit = -INFINITY, count = 0;
    for (const auto& [labels, value] : buckets_[name]) {
      const double le = std::strtod(labels.substr(std::string("{le=\"").size()).c_str(), nullptr);
      EXPECT_GT(le, limit) << name << labels;
      EXPECT_GE(value, count) << name << labels << ": buckets must be cumulative";
      limit = le;
      count = value;
    }
    EXPECT_EQ(limit, INFINITY) << name;
    EXPECT_EQ(count, (*this)[name + "_count"]);
    EXPECT_GE((*this)[name + "_sum"], 0);
  }

  std::set<std::string> helps_;
  std::map<std::string, std::string> types_;
  std::map<std::string, double> samples_;
  std::map<std::string, std::vector<std::pair<std::string, double>>> buckets_;
  std::string current_;
};

}  // namespace gradwire
