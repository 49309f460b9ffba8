// Arrays of NumPy as samples: npy:X.npy,y.npy and npz:FILE.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "engine/data/readers/npy.h"
#include "engine/data/readers/source.h"
#include "tests/support/data_files.h"
#include "tests/support/numpy_files.h"

namespace gradwire {
namespace {

using Values = std::vector<double>;

const std::string kX = npy<float>("<f4", "(3, 2)", {0.5f, 0, 2, 3, 0, -1});
const std::string kY = npy<std::int64_t>("<i8", "(3,)", {1, 0, 7});

void expect_samples(const Dataset& data) {
  EXPECT_EQ(data.columns, 2u);
  EXPECT_EQ(data.label, (Values{1, 0, 7}));
  EXPECT_EQ(data.row_start, (std::vector<std::uint64_t>{0, 1, 3, 4}));
  EXPECT_EQ(data.column, (std::vector<std::uint32_t>{0, 0, 1, 1}));
  EXPECT_EQ(data.value, (Values{0.5, 2, 3, -1}));
}

TEST(Npy, ReadsSamplesFromTwoFilesAndFromAnArchive) {
  const TemporaryFolder folder;
  folder.write("X.npy", kX);
  folder.write("y.npy", kY);
  folder.write("X.npy.gz", gzip(kX));
  folder.write("d.npz", npz({{"X.npy", kX}, {"y.npy", kY}}));
  folder.write("c.npz", npz({{"names.npy", "?"}, {"y_train.npy", kY}, {"X_train.npy", kX}}, true));
  for (const char* source : {"npy:X.npy,y.npy", "npy:X.npy.gz,y.npy", "npz:d.npz", "npz:c.npz"}) {
    SCOPED_TRACE(source);
    expect_samples(read_source(source, folder.path(), {}));
  }
  EXPECT_EQ(read_source("npz:d.npz", folder.path(), {}, 5).columns, 5u);
  const Dataset second =
      read_source("npz:d.npz", folder.path(), {}, 0, [](std::size_t row) { return row == 1; });
  EXPECT_EQ(second.label, (Values{1, 0, 7}));
  EXPECT_EQ(second.value, (Values{2, 3}));
  EXPECT_EQ(second.row_start, (std::vector<std::uint64_t>{0, 0, 2, 2}));
}

TEST(Npy, ReadsTheTestArraysOfAnArchive) {
  const std::string file = npz({{"x_train.npy", kX},
                                {"y_train.npy", kY},
                                {"x_test.npy", npy<double>("<f8", "(1, 2)", {4, 5})},
                                {"y_test.npy", npy<std::uint8_t>("|u1", "(1,)", {9})}});
  expect_samples(samples_of_npz(file, "f.npz"));
  const Dataset test = samples_of_npz(file, "f.npz", {}, SampleUse::kTest);
  EXPECT_EQ(test.label, Values{9});
  EXPECT_EQ(test.value, (Values{4, 5}));
  expect_samples(samples_of_npz(npz({{"X.npy", kX}, {"y.npy", kY}}), "f.npz", {}, SampleUse::kTest));
}

TEST(Npy, ReadsEveryTypeOfNumberOrderAndShape) {
  const auto labels = [](const std::string& y) {
    return samples_of_arrays(npy<double>("<f8", "(2, 1)", {1, 2}), "X", y, "y").label;
  };
  EXPECT_EQ(labels(npy<bool>("|b1", "(2,)", {true, false})), (Values{1, 0}));
  EXPECT_EQ(labels(npy<std::int8_t>("|i1", "(2,)", {-1, 1})), (Values{-1, 1}));
  EXPECT_EQ(labels(npy<std::int16_t>("<i2", "(2, 1)", {-300, 1})), (Values{-300, 1}));
  EXPECT_EQ(labels(npy<std::uint16_t>("<u2", "(2,)", {65535, 1})), (Values{65535, 1}));
  EXPECT_EQ(labels(npy<std::int32_t>("<i4", "(2,)", {-70000, 1})), (Values{-70000, 1}));
  EXPECT_EQ(labels(npy<std::uint32_t>("<u4", "(2,)", {4000000000u, 1})), (Values{4e9, 1}));
  EXPECT_EQ(labels(npy<std::uint64_t>("<u8", "(2,)", {5, 1})), (Values{5, 1}));
  EXPECT_EQ(labels(npy<std::uint16_t>("<f2", "(2,)", {0x3c00, 0xc000})), (Values{1, -2}));
  EXPECT_EQ(labels(npy<std::uint32_t>(">i4", "(2,)", {0x01000000, 0x02010000})), (Values{1, 258}));
  const std::string y = npy<double>("<f8", "(2,)", {0, 1});
  EXPECT_EQ(samples_of_arrays(npy<double>("<f8", "(2, 3)", {1, 4, 2, 5, 3, 6}, "True"), "X", y, "y").value,
            (Values{1, 2, 3, 4, 5, 6}));
  const Dataset images =
      samples_of_arrays(npy<std::uint8_t>("|u1", "(2, 2, 2)", {1, 2, 3, 4, 5, 6, 7, 8}), "X", y, "y");
  EXPECT_EQ(images.columns, 4u);
  EXPECT_EQ(images.value, (Values{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(Npy, RefusesArraysThatAreNotSamples) {
  const auto error = [](const std::string& x, const std::string& y) {
    return data_error([&] { samples_of_arrays(x, "X.npy", y, "y.npy"); });
  };
  EXPECT_EQ(error("1,2\n", kY),
            "X.npy: is not a file of numpy.save; save one array of numbers with numpy.save");
  EXPECT_EQ(error(npy<double>("<f8", "(3,)", {1, 2, 3}), kY),
            "X.npy: needs a row of features for each sample; save an array of two dimensions");
  EXPECT_EQ(error(kX, npy<double>("<f8", "(2,)", {1, 2})),
            "X.npy: has 3 rows, but y.npy has 2 labels; save one label for each row");
  EXPECT_EQ(error(kX, npy<double>("<f8", "(3, 2)", {1, 2, 1, 2, 1, 2})),
            "y.npy: needs one label for each sample, but has several; save class numbers, as in y.argmax(1)");
  EXPECT_EQ(error(kX, npy<std::uint32_t>("<U1", "(3,)", {97, 98, 99})),
            "y.npy: holds values of type '<U1'; this program reads numbers: save x.astype('f8')");
  EXPECT_EQ(error(kX, npy<double>("<f8", "(3,)", {1, 2, 0. / 0.})),
            "y.npy: row 2, counted from 0, has a number that is not finite; remove or replace it");
  EXPECT_EQ(error(kX.substr(0, kX.size() - 1), kY),
            "X.npy: has 23 bytes of numbers, but its header says 6 of <f4; copy the file again");
}

TEST(Npz, RefusesOtherAndDamagedArchives) {
  EXPECT_EQ(data_error([] { samples_of_npz("x", "f.npz"); }),
            "f.npz: is not a zip archive, as numpy.savez writes it; name another file");
  EXPECT_EQ(data_error([] {
              samples_of_npz(npz({{"a.npy", kX}, {"y.npy", kY}}), "f.npz");
            }),
            "f.npz: has no array X; it has 'a.npy', 'y.npy'; save it with numpy.savez(file, X=X, y=y)");
  for (const bool is_compressed : {false, true}) {
    const std::string whole = npz({{"X.npy", kX}, {"y.npy", kY}}, is_compressed);
    expect_samples(samples_of_npz(whole, "f.npz"));
    for (std::size_t size = 4; size < whole.size(); ++size)
      EXPECT_EQ(data_error([&] { samples_of_npz(whole.substr(0, size), "f.npz"); }),
                "f.npz: damaged or cut zip archive; copy the file again")
          << size;
    for (std::size_t at = 4; at < whole.size(); ++at) {  // no change of a byte crashes or changes a number
      std::string changed = whole;
      changed[at] ^= 0x41;
      try {
        const Dataset data = samples_of_npz(changed, "f.npz");
        EXPECT_EQ(data.value, (Values{0.5, 2, 3, -1})) << at;
      } catch (const DataError& error) {
        EXPECT_EQ(std::string(error.what()).find("f.npz"), 0u) << at;
      }
    }
  }
}

}  // namespace
}  // namespace gradwire
