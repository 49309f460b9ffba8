// The keys of [problem] for sources of samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/field.h"
#include "engine/problems/problem_type.h"

namespace gradwire {

struct SampleSource {
  std::string data;
  std::string test;       // empty if there is no test data
  double test_share = 0;  // held out for accuracy

  void check() const;  // throws ConfigError
};

// Returns the source of a public data set: "idx:mnist" for "mnist", "text:tinyshakespeare.txt" for
// "shakespeare". Returns other sources unchanged.
std::string full_source(const std::string& source);

// Throw ConfigError(path) if `source` is not a source of labelled samples, or not text, for kind `kind`.
void check_rows_source(std::string_view kind, const std::string& path, const std::string& source);
void check_text_source(std::string_view kind, const std::string& path, const std::string& source);

struct RowsData : SampleSource {
  std::uint64_t dim = 0;  // 0 for the largest feature index
  std::uint64_t samples = 1000;
  std::uint32_t classes = 2;
  double noise = 0.1;

  template <class Kind>
  static void fields(auto& self, auto&& visit) {
    const bool drawn = self.data == "synthetic";
    constexpr auto check_source = [](const std::string& path, const std::string& source) {
      check_rows_source(Kind::traits.name, path, source);
    };
    visit(
        "data", self.data,
        "`digits`, `libsvm:PATH`, `csv:PATH`, `idx:DIR`, `mnist` (idx:mnist) or `synthetic`; may be gzipped",
        {.required = ", as in data = \"libsvm:PATH\" or \"digits\"", .quiet = true, .check = check_source});
    visit("test", self.test, "data on which accuracy is measured, spelled like data",
          {.note = "none", .quiet = true, .check = check_source});
    visit("test_share", self.test_share,
          "share of the samples held out for accuracy before the rest is split; they are drawn",
          {.high = 1, .high_open = true});
    visit("dim", self.dim, "number of features",
          {.high = kMaxModelDim, .note = "the largest feature index (0)", .quiet = true});
    visit("samples", self.samples, "number of samples of `synthetic`",
          {.low = 1, .high = kMaxU32, .quiet = !drawn, .idle_by = idle_if(!drawn, "data")});
    visit("classes", self.classes, "number of labels of `synthetic`; 0: labels are real numbers",
          {.high = 65536, .quiet = !drawn, .idle_by = idle_if(!drawn, "data")});
    visit("noise", self.noise,
          "for `synthetic`: standard deviation of the noise in real labels, or the chance that a class is "
          "wrong",
          {.quiet = !drawn, .idle_by = idle_if(!drawn, "data")});
  }
  void check() const;  // throws ConfigError

  // Returns the number of features. Throws DataError if the data has more, or none.
  std::size_t features(const DataSchema& schema) const;
};

// Returns "5: 1, 2, ..." for messages.
std::string count_and_list(const std::vector<double>& labels);

struct TextData : SampleSource {
  template <class Kind>
  static void fields(auto& self, auto&& visit) {
    constexpr auto check_source = [](const std::string& path, const std::string& source) {
      check_text_source(Kind::traits.name, path, source);
    };
    visit("data", self.data, "`text:PATH` or `shakespeare` (text:tinyshakespeare.txt); may be gzipped",
          {.required = ", as in data = \"text:PATH\"", .quiet = true, .check = check_source});
    visit("test", self.test, "text on which accuracy is measured, spelled like data",
          {.note = "none", .quiet = true, .check = check_source});
    visit("test_share", self.test_share,
          "share of the text held out for accuracy before the rest is split; gpt: its end; char_mlp: "
          "drawn samples",
          {.high = 1, .high_open = true});
  }
};

}  // namespace gradwire
