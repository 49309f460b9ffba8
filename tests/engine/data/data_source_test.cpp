#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "engine/data/readers/source.h"
#include "tests/support/data_files.h"
#include "tests/support/test_data.h"

namespace gradwire {
namespace {

constexpr const char* kVariable = "GRADWIRE_DATA";

// Changes the working directory until it is destroyed.
class WorkingDirectory {
 public:
  explicit WorkingDirectory(const std::filesystem::path& path) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(path);
  }
  ~WorkingDirectory() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_;
};

TEST(Digits, AreFoundFromAnyDirectory) {
  const ScopedEnvironment unset(kVariable, nullptr);
  const TemporaryFolder folder;
  const WorkingDirectory here(folder.path());
  const Dataset data = read_source("digits", "/nonexistent", {});
  EXPECT_EQ(data.rows(), 1797u);
  EXPECT_EQ(data.columns, 64u);
  EXPECT_EQ(data.encoding, nullptr);
}

TEST(Digits, HavePixelsBetweenZeroAndOneAndLabelsZeroToNine) {
  const Dataset data = read_source("digits", "", {});
  EXPECT_EQ(distinct_labels(data), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  double sum = 0;
  for (const double pixel : data.value) {
    EXPECT_GT(pixel, 0);
    EXPECT_LE(pixel, 1);
    EXPECT_EQ(pixel * 16, std::floor(pixel * 16));
    sum += pixel;
  }
  std::array<int, 10> counts{};
  for (const double label : data.label) ++counts[static_cast<std::size_t>(label)];
  // Published facts: class sizes, and the sum of all pixels of the test part.
  EXPECT_EQ(counts, (std::array<int, 10>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}));
  EXPECT_EQ(sum * 16, 561718);
  EXPECT_EQ(std::vector<std::uint32_t>(data.row_columns(0).begin(), data.row_columns(0).begin() + 4),
            (std::vector<std::uint32_t>{2, 3, 4, 5}));
  EXPECT_EQ(data.row_values(0)[1], 13 / 16.0);
}

TEST(Source, AddsColumnsForDimAndNeverCutsThem) {
  EXPECT_EQ(read_source("digits", "", {}, 70).columns, 70u);
  EXPECT_EQ(data_error([] { read_source("digits", "", {}, 63); }),
            "digits: has 64 features, more than the given dim 63; raise dim");
}

TEST(Source, RefusesUnknownKindsAndMissingPaths) {
  EXPECT_EQ(data_error([] { read_source("a9a", "", {}); }),
            "unknown data source 'a9a'; use digits, libsvm:PATH, csv:PATH, npy:X,Y, npz:PATH, idx:DIR, "
            "text:PATH or synthetic");
  for (const char* source : {"libsvm:", "csv:", "idx:", ""}) {
    EXPECT_NE(data_error([&] { read_source(source, "", {}); }), "no error") << source;
  }
  EXPECT_NE(data_error([] { read_source("text:x", "", {}); }).find("needs labelled samples"),
            std::string::npos);
  EXPECT_NE(data_error([] {
              read_text("digits", "", {TextForm::kRunning, 4});
            }).find("is not text"),
            std::string::npos);
}

TEST(FindData, SearchesNextToTheExperimentThenInGradwireData) {
  const TemporaryFolder base, first, second;
  const ScopedEnvironment set(kVariable, (first.path().string() + "::" + second.path().string()).c_str());
  second.write("a9a", "1");
  EXPECT_EQ(find_data("sets/a9a", base.path()), second.path() / "a9a");
  second.write("sets/a9a", "1");
  EXPECT_EQ(find_data("sets/a9a", base.path()), second.path() / "sets/a9a");
  first.write("a9a", "1");
  EXPECT_EQ(find_data("sets/a9a", base.path()), first.path() / "a9a");
  EXPECT_EQ(find_data("/nonexistent/a9a", base.path()), first.path() / "a9a");
  base.write("sets/a9a", "1");
  EXPECT_EQ(find_data("sets/a9a", base.path()), base.path() / "sets/a9a");
}

TEST(FindData, FindsFoldersAndAbsolutePaths) {
  const TemporaryFolder base, extra;
  const ScopedEnvironment set(kVariable, extra.path().c_str());
  extra.write("mnist/file", "1");
  EXPECT_EQ(find_data("deep/mnist/", base.path()), extra.path() / "mnist");
  const auto absolute = extra.write("b", "1");
  EXPECT_EQ(find_data(absolute, base.path()), absolute);
}

TEST(FindData, SearchesTheCacheLast) {
  const TemporaryFolder base, extra, cache;
  const ScopedEnvironment set(kVariable, extra.path().c_str());
  const ScopedEnvironment home("GRADWIRE_CACHE", cache.path().c_str());
  const auto fetched = cache.write("data/mnist/file", "1");
  EXPECT_EQ(find_data("mnist/file", base.path()), fetched);
  const auto own = extra.write("mnist/file", "1");
  EXPECT_EQ(find_data("mnist/file", base.path()), own);
  {
    const ScopedEnvironment unset("GRADWIRE_CACHE", nullptr), caches("XDG_CACHE_HOME", "/caches");
    EXPECT_EQ(data_cache(), "/caches/gradwire/data");
    const ScopedEnvironment none("XDG_CACHE_HOME", ""), user("HOME", "/home/me");
    EXPECT_EQ(data_cache(), "/home/me/.cache/gradwire/data");
    const ScopedEnvironment no_home("HOME", nullptr);
    EXPECT_EQ(data_cache(), "");
  }
}

TEST(FindData, NamesEachPlaceThatItSearched) {
  const ScopedEnvironment home("GRADWIRE_CACHE", "/nowhere/cache");
  const std::string hint = "; public data: `gradwire data list`, `gradwire data fetch NAME`";
  {
    const ScopedEnvironment set(kVariable, "/nowhere/one:/nowhere/two");
    EXPECT_EQ(data_error([] { find_data("x/a9a", "/base"); }),
              "data 'x/a9a' not found; looked at /base/x/a9a, /nowhere/one/x/a9a, /nowhere/one/a9a, "
              "/nowhere/two/x/a9a, /nowhere/two/a9a, /nowhere/cache/data/x/a9a; correct the path or "
              "$GRADWIRE_DATA" +
                  hint);
    EXPECT_EQ(data_error([] { find_data("a9a", "/base"); }),
              "data 'a9a' not found; looked at /base/a9a, /nowhere/one/a9a, /nowhere/two/a9a, "
              "/nowhere/cache/data/a9a; correct the path or $GRADWIRE_DATA" +
                  hint);
  }
  const ScopedEnvironment unset(kVariable, nullptr);
  EXPECT_EQ(data_error([] { find_data("a9a", "/base"); }),
            "data 'a9a' not found; looked at /base/a9a, /nowhere/cache/data/a9a; correct the path, or "
            "name a folder in $GRADWIRE_DATA" +
                hint);
}

// Checks that rows that are not kept lose their features, and that all else is the same as if all rows were
// kept.
void expect_keeps(const std::string& source, const std::filesystem::path& base, std::size_t dim = 0) {
  SCOPED_TRACE(source);
  const SyntheticSpec synthetic{.samples = 60, .dim = 5};
  const Dataset all = read_source(source, base, synthetic, dim);
  for (const std::size_t every : {1u, 2u, 7u, 100'000u}) {
    const Dataset some =
        read_source(source, base, synthetic, dim, [&](std::size_t r) { return r % every == 1 % every; });
    EXPECT_EQ(some.columns, all.columns);
    EXPECT_EQ(some.label, all.label);
    ASSERT_EQ(some.row_start.size(), all.row_start.size());
    std::size_t kept = 0;
    for (std::size_t r = 0; r < all.rows(); ++r) {
      const auto want_columns = r % every == 1 % every ? all.row_columns(r) : all.row_columns(r).first(0);
      const auto want_values = r % every == 1 % every ? all.row_values(r) : all.row_values(r).first(0);
      ASSERT_TRUE(std::ranges::equal(some.row_columns(r), want_columns)) << r;
      ASSERT_TRUE(std::ranges::equal(some.row_values(r), want_values)) << r;
      kept += want_values.size();
    }
    EXPECT_EQ(some.value.size(), kept);
  }
}

TEST(KeptRows, MatchTheWholeSource) {
  const TemporaryFolder folder;
  std::string libsvm = "# a comment\n\n", csv = "a,b,label\n";
  for (int r = 0; r < 500; ++r) {
    libsvm += std::to_string(r % 3) + " 2:" + std::to_string(r) + (r == 311 ? " 9:1 # last\r\n" : "\n");
    csv += std::to_string(r) + ", 0.5 ,\t" + std::to_string(r % 2) + (r % 5 == 0 ? "\r\n\n" : "\n");
  }
  std::string wide = "1";  // longer than one read
  for (int j = 1; j < 40'000; ++j) wide += " " + std::to_string(j) + ":0.25";
  folder.write("a.txt", libsvm);
  folder.write("a.txt.gz", gzip(libsvm));
  folder.write("wide", libsvm + wide + "\n" + libsvm + wide);
  folder.write("a.csv", csv);
  expect_keeps("libsvm:a.txt", folder.path());
  expect_keeps("libsvm:a.txt", folder.path(), 12);
  expect_keeps("libsvm:a.txt.gz", folder.path());
  expect_keeps("libsvm:wide", folder.path());
  expect_keeps("csv:a.csv", folder.path());
  expect_keeps("digits", folder.path());
  expect_keeps("synthetic", folder.path());
}

TEST(KeptRows, AreParsedAndTheOthersAreNot) {
  const TemporaryFolder folder;
  folder.write("a.txt", "1 1:1\n0 2:x\n1 3:1\n");
  folder.write("a.csv", "1,2,0\n1,2,1\n1,2e999,1\n1,2,0\n");
  const auto read = [&](const char* source, std::size_t kept) {
    return data_error(
        [&] { read_source(source, folder.path(), {}, 0, [&](std::size_t r) { return r == kept; }); });
  };
  EXPECT_EQ(read("libsvm:a.txt", 0), "no error");
  EXPECT_NE(read("libsvm:a.txt", 1).find("a.txt:2: the value 'x' is not a number"), std::string::npos);
  EXPECT_EQ(read("csv:a.csv", 0), "no error");
  EXPECT_NE(read("csv:a.csv", 2).find("a.csv:3: column 2: '2e999' is not finite"), std::string::npos);
  folder.write("a.txt", "1 1:1\nx 2:1\n");
  EXPECT_NE(read("libsvm:a.txt", 0).find("a.txt:2: the label 'x'"), std::string::npos);
}

TEST(TextFile, SkipsTheByteOrderMarkAndRefusesUtf16) {
  const TemporaryFolder folder;
  const std::string mark = "\xef\xbb\xbf";
  for (const bool zipped : {false, true}) {
    const auto write = [&](const std::string& text) { folder.write("f", zipped ? gzip(text) : text); };
    const KeepRow all = [](std::size_t) { return true; };
    for (const KeepRow& keep : {KeepRow(), all}) {
      write(mark + "1 2:3\n");
      EXPECT_EQ(read_source("libsvm:f", folder.path(), {}, 0, keep).label, std::vector<double>{1});
      write(mark + "1,2,3\n");
      EXPECT_EQ(read_source("csv:f", folder.path(), {}, 0, keep).value, (std::vector<double>{1, 2}));
    }
    write(mark + "ab\n");
    EXPECT_EQ(read_text("text:f", folder.path(), {TextForm::kRunning, 1}).alphabet(), "\nab");
    EXPECT_EQ(read_text("text:f", folder.path(), {TextForm::kNames, 1}).alphabet(), "ab");
    write(
        std::string("\xff\xfe"
                    "1\0",
                    4));
    EXPECT_EQ(data_error([&] { read_source("libsvm:f", folder.path(), {}); }),
              (folder.path() / "f").string() + ": is text in UTF-16; save it as UTF-8");
    write("12");  // shorter than a mark
    EXPECT_EQ(read_source("libsvm:f", folder.path(), {}, 3).label, std::vector<double>{12});
  }
}

TEST(TextFile, AcceptsLinesThatEndWithCarriageReturnsAlone) {
  const TemporaryFolder folder;
  std::string lines;
  for (int k = 0; k < 30'000; ++k) lines += std::to_string(k) + " 1:" + std::to_string(k + 1) + '\r';
  folder.write("f", lines);
  const Dataset whole = read_source("libsvm:f", folder.path(), {});
  EXPECT_EQ(whole.rows(), 30'000u);
  const Dataset streamed = read_source("libsvm:f", folder.path(), {}, 0, [](std::size_t) { return true; });
  EXPECT_EQ(streamed.label, whole.label);
  EXPECT_EQ(streamed.value, whole.value);
  folder.write("f", "emma\rava\r\rmia");
  EXPECT_EQ(read_text("text:f", folder.path(), {TextForm::kNames, 2}).size(), 5u + 4 + 4);
}

TEST(TextFile, KeepsCarriageReturnAndLineFeedTogetherAtTheEndOfTheBuffer) {
  const TemporaryFolder folder;
  for (const std::size_t length : {65534u, 65535u, 65536u, 65537u, 131071u}) {
    folder.write("f", "1 1:1 #" + std::string(length - 7, 'x') + "\r\n2 1:1\r\nx");
    EXPECT_EQ(
        data_error([&] { read_source("libsvm:f", folder.path(), {}, 0, [](std::size_t) { return true; }); }),
        (folder.path() / "f").string() + ":3: the label 'x' is not a number; correct it")
        << length;
  }
}

TEST(Text, IsReadUnchangedAndMustHoldAWindow) {
  const TemporaryFolder folder;
  const std::string text("caf\xc3\xa9\r\n\0z", 9);
  folder.write("t", text);
  folder.write("t.gz", gzip(text));
  for (const char* source : {"text:t", "text:t.gz"}) {
    const Windows windows = read_text(source, folder.path(), {TextForm::kRunning, 2});
    EXPECT_EQ(windows.alphabet(), std::string("\0\n\racfz\xa9\xc3", 9));
    EXPECT_EQ(windows.size(), 7u);
  }
  EXPECT_EQ(data_error([&] {
              read_text("text:t", folder.path(), {TextForm::kRunning, 9});
            }),
            (folder.path() / "t").string() +
                ": holds 9 letters, but problem.context = 9 needs 10 or more; lower problem.context");
  folder.write("empty", "");
  EXPECT_NE(data_error([&] {
              read_text("text:empty", folder.path(), {TextForm::kRunning, 1});
            }).find("holds 0 letters"),
            std::string::npos);
  EXPECT_NE(data_error([&] {
              read_text("text:empty", folder.path(), {TextForm::kNames, 1});
            }).find("holds no names"),
            std::string::npos);
}

TEST(Dataset, SelectsRowsInTheGivenOrder) {
  Dataset data;
  data.columns = 5;
  data.row_start = {0, 2, 2, 3, 4};
  data.column = {0, 4, 1, 2};
  data.value = {1, 2, 3, 4};
  data.label = {10, 11, 12, 13};
  const std::vector<std::uint32_t> rows = {2, 0, 2};
  const Dataset selected = select_rows(data, rows);
  EXPECT_EQ(selected.columns, data.columns);
  ASSERT_EQ(selected.rows(), 3u);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(selected.label[i], data.label[rows[i]]);
    EXPECT_TRUE(std::ranges::equal(selected.row_columns(i), data.row_columns(rows[i])));
    EXPECT_TRUE(std::ranges::equal(selected.row_values(i), data.row_values(rows[i])));
  }
  const std::vector<std::uint32_t> outside = {4};
  EXPECT_THROW(select_rows(data, outside), std::logic_error);
  EXPECT_EQ(select_rows(data, {}).rows(), 0u);
}

TEST(Dataset, ListsDistinctLabelsAscending) {
  Dataset data;
  data.label = {3, -1, 0.0, 3, -0.0, 2};
  EXPECT_EQ(distinct_labels(data), (std::vector<double>{-1, 0, 2, 3}));
  EXPECT_TRUE(distinct_labels(Dataset{}).empty());
}

}  // namespace
}  // namespace gradwire
