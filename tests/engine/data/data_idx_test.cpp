#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

#include "engine/data/readers/idx.h"
#include "engine/data/readers/source.h"
#include "tests/support/data_files.h"
#include "tests/support/test_data.h"

namespace gradwire {
namespace {

std::string big_endian(std::uint32_t number) {
  return {static_cast<char>(number >> 24), static_cast<char>(number >> 16), static_cast<char>(number >> 8),
          static_cast<char>(number)};
}

std::string images_file(std::uint32_t n, std::uint32_t height, std::uint32_t width,
                        const std::string& pixels) {
  return big_endian(0x803) + big_endian(n) + big_endian(height) + big_endian(width) + pixels;
}

std::string labels_file(std::uint32_t n, const std::string& labels) {
  return big_endian(0x801) + big_endian(n) + labels;
}

const std::string kPixels("\x00\xff\x33\x00\x01\x00", 6);

// Returns the error of a folder with these two files.
std::string error_of(const std::string& images, const std::string& labels) {
  const TemporaryFolder folder;
  folder.write("t10k-images-idx3-ubyte", images);
  folder.write("t10k-labels-idx1-ubyte", labels);
  std::string error = data_error([&] { read_idx(folder.path()); });
  const std::size_t at = error.find(folder.path().string() + "/");
  return at == 0 ? error.substr(folder.path().string().size() + 1) : error;
}

TEST(Idx, ReadsPlainAndGzippedFilesInBothSpellings) {
  for (const char* separator : {"-", "."}) {
    for (const bool zipped : {false, true}) {
      const TemporaryFolder folder;
      const std::string images = images_file(2, 1, 3, kPixels);
      const std::string labels = labels_file(2, "\x07\x03");
      const std::string end = zipped ? ".gz" : "";
      folder.write(std::string("train-images") + separator + "idx3-ubyte" + end,
                   zipped ? gzip(images) : images);
      folder.write(std::string("train-labels") + separator + "idx1-ubyte" + end,
                   zipped ? gzip(labels) : labels);
      const Dataset data = read_source("idx:" + folder.path().string(), "", {});
      EXPECT_EQ(data.columns, 3u);
      EXPECT_EQ(data.label, (std::vector<double>{7, 3}));
      EXPECT_EQ(data.row_start, (std::vector<std::uint64_t>{0, 2, 3}));
      EXPECT_EQ(data.column, (std::vector<std::uint32_t>{1, 2, 1}));
      EXPECT_EQ(data.value, (std::vector<double>{1, 0x33 / 255.0, 1 / 255.0}));
    }
  }
}

TEST(Idx, PrefersTheTrainingSet) {
  const TemporaryFolder folder;
  folder.write("t10k-images-idx3-ubyte", images_file(1, 1, 1, "a"));
  folder.write("t10k-labels-idx1-ubyte", labels_file(1, "\x01"));
  EXPECT_EQ(read_idx(folder.path()).label, std::vector<double>{1});
  folder.write("train-images-idx3-ubyte", images_file(1, 1, 1, "a"));
  folder.write("train-labels-idx1-ubyte", labels_file(1, "\x02"));
  EXPECT_EQ(read_idx(folder.path()).label, std::vector<double>{2});
}

TEST(Idx, PrefersTheTestSetForTests) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& set, const char* label) {
    folder.write(set + "-images-idx3-ubyte", images_file(1, 1, 1, "a"));
    folder.write(set + "-labels-idx1-ubyte", labels_file(1, label));
  };
  const auto label = [&] {
    return read_source("idx:" + folder.path().string(), "", {}, 0, {}, SampleUse::kTest).label;
  };
  write("train", "\x02");
  EXPECT_EQ(label(), std::vector<double>{2});
  write("t10k", "\x01");
  EXPECT_EQ(label(), std::vector<double>{1});
  EXPECT_EQ(read_idx(folder.path()).label, std::vector<double>{2});
}

TEST(Idx, ReadsTheNamesOfEmnist) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& set, const char* label) {
    folder.write(set + "-images-idx3-ubyte.gz", gzip(images_file(1, 1, 1, "a")));
    folder.write(set + "-labels-idx1-ubyte.gz", gzip(labels_file(1, label)));
  };
  write("emnist-letters-train", "\x05");
  write("emnist-letters-test", "\x06");
  EXPECT_EQ(read_idx(folder.path()).label, std::vector<double>{5});
  EXPECT_EQ(read_idx(folder.path(), {}, SampleUse::kTest).label, std::vector<double>{6});
  write("emnist-digits-train", "\x07");
  EXPECT_EQ(
      data_error([&] { read_idx(folder.path()); }),
      folder.path().string() +
          ": holds emnist-digits-train-images-idx3-ubyte and emnist-letters-train-images-idx3-ubyte; move "
          "the files of each set to its own folder");
  write("train", "\x04");
  EXPECT_EQ(read_idx(folder.path()).label, std::vector<double>{4});
}

TEST(Idx, RefusesAnotherMagicNumber) {
  EXPECT_EQ(
      error_of(labels_file(6, "abcdefgh"), labels_file(1, "a")),
      "t10k-images-idx3-ubyte: has no IDX header of unsigned bytes in 3 dimensions; fetch the file again");
  EXPECT_EQ(
      error_of(images_file(1, 1, 1, "a"), images_file(1, 1, 1, "a")),
      "t10k-labels-idx1-ubyte: has no IDX header of unsigned bytes in 1 dimensions; fetch the file again");
  EXPECT_NE(error_of("", labels_file(1, "a")), "no error");
}

TEST(Idx, RefusesSizesThatDoNotMatchTheFile) {
  EXPECT_EQ(error_of(images_file(2, 1, 3, "abcde"), labels_file(2, "ab")),
            "t10k-images-idx3-ubyte: declares 6 bytes of data but holds 5; fetch the file again");
  EXPECT_EQ(error_of(images_file(2, 1, 3, "abcdefg"), labels_file(2, "ab")),
            "t10k-images-idx3-ubyte: declares 6 bytes of data but holds more; fetch the file again");
  EXPECT_EQ(error_of(images_file(1, 1, 1, "a"), labels_file(2, "ab")),
            "t10k-labels-idx1-ubyte: 2 labels for 1 images; fetch both files again");
  EXPECT_NE(error_of(images_file(0, 1, 1, ""), labels_file(0, "")), "no error");
}

TEST(Idx, AllocatesNothingForAHeaderThatClaimsTooMuch) {
  const std::uint32_t most = 0xffffffff;
  const std::string error = error_of(images_file(most, most, most, "a"), labels_file(1, "a"));
  EXPECT_NE(error.find("declares more than"), std::string::npos) << error;
  // 4 GiB are below the limit, but the file has one byte.
  EXPECT_NE(error_of(images_file(65536, 256, 256, "a"), labels_file(1, "a")).find("holds 1"),
            std::string::npos);
}

TEST(Idx, InflatesNoMoreThanTheHeaderDeclares) {
  const TemporaryFolder folder;
  folder.write("t10k-images-idx3-ubyte.gz", gzip(images_file(1, 1, 1, std::string(50'000'000, '\0'))));
  folder.write("t10k-labels-idx1-ubyte", labels_file(1, "a"));
  EXPECT_NE(data_error([&] { read_idx(folder.path()); }).find("declares 1 bytes of data but holds more"),
            std::string::npos);
}

TEST(Idx, NamesTheMissingFile) {
  const TemporaryFolder folder;
  const std::string nothing = data_error([&] { read_idx(folder.path()); });
  EXPECT_NE(nothing.find("holds no train-images-idx3-ubyte"), std::string::npos);
  EXPECT_NE(nothing.find("or run `gradwire data fetch mnist`"), std::string::npos);
  folder.write("train-images-idx3-ubyte", images_file(1, 1, 1, "a"));
  EXPECT_NE(data_error([&] { read_idx(folder.path()); }).find("but no train-labels-idx1-ubyte"),
            std::string::npos);
}

TEST(Idx, ReadsMnist) {
  const auto path = test_data("mnist");
  if (!path) GTEST_SKIP() << "no mnist: set GRADWIRE_TEST_DATA";
  const Dataset data = read_idx(*path);
  ASSERT_GE(data.rows(), 10000u);
  EXPECT_EQ(data.columns, 784u);
  EXPECT_EQ(distinct_labels(data).size(), 10u);
  if (data.rows() != 10000) return;  // the folder also has the training set
  // The published labels of the first test images, and the mean pixel value.
  EXPECT_EQ(std::vector<double>(data.label.begin(), data.label.begin() + 10),
            (std::vector<double>{7, 2, 1, 0, 4, 1, 4, 9, 5, 9}));
  const double mean = std::accumulate(data.value.begin(), data.value.end(), 0.0) / (10000.0 * 784);
  EXPECT_NEAR(mean, 0.1325, 5e-4);
}

}  // namespace
}  // namespace gradwire
