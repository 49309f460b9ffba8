#include "engine/files/number_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "engine/tape/eager_tape.h"
#include "storage/model_file.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(NumberFile, KeepsNumbersOfEachFormatSmallAndLarge) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "x";
  for (const std::size_t count : {0, 1, 7, 504, 505, 100'000}) {
    std::vector<double> x(count), y(count);
    for (std::size_t j = 0; j < count; ++j) x[j] = 1.0 / static_cast<double>(j + 1);
    ASSERT_TRUE(save_numbers<double>(file, x));
    ASSERT_TRUE(load_numbers<double>(file, y));
    EXPECT_EQ(x, y);
    const auto mapped = MappedNumbers<double>::open(file);
    ASSERT_TRUE(mapped) << mapped.error().message;
    EXPECT_EQ(std::vector<double>(mapped->numbers().begin(), mapped->numbers().end()), x);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapped->numbers().data()) % alignof(double), 0u);
    ASSERT_TRUE(save_npy<double>(file, x));
    y.assign(count, 0);
    ASSERT_TRUE(load_numbers<double>(file, y));
    EXPECT_EQ(x, y);
    ASSERT_TRUE(save_raw_numbers<double>(file, x));
    EXPECT_EQ(fs::file_size(file), count * sizeof(double));
    y.assign(count, 0);
    ASSERT_TRUE(load_raw_numbers<double>(file, y));
    EXPECT_EQ(x, y);
    EXPECT_EQ(files_in(folder.path()), 1u) << "no draft is left";
  }
}

TEST(NumberFile, ReadsTheModelOfARun) {
  const TemporaryFolder folder;
  const std::vector<float> model = {1.5f, -2, 3};
  write_model<float>(folder.path() / "model.bin", model);
  std::vector<float> x(3);
  ASSERT_TRUE(load_numbers<float>(folder.path() / "model.bin", x));
  EXPECT_EQ(x, model);
}

TEST(NumberFile, HoldsValuesAndGradientsOfATape) {
  const TemporaryFolder folder;
  EagerTape<double> tape(3);
  const std::vector<double> start = {1, 2, 3};
  ASSERT_TRUE(save_numbers<double>(folder.path() / "start", start));
  ASSERT_TRUE(load_numbers<double>(folder.path() / "start", tape.parameter_values()));
  const auto leaves = tape.leaves(std::vector<double>{4, 5, 6});
  backward(inner_product(tape.parameters(), leaves));
  ASSERT_TRUE(save_numbers(folder.path() / "gradient", tape.gradients(leaves)));
  std::vector<double> gradient(3);
  ASSERT_TRUE(load_numbers<double>(folder.path() / "gradient", gradient));
  EXPECT_EQ(gradient, start);
  ASSERT_TRUE(save_numbers(folder.path() / "values", tape.values(leaves)));
  ASSERT_TRUE(load_numbers<double>(folder.path() / "values", gradient));
  EXPECT_EQ(gradient, (std::vector<double>{4, 5, 6}));
}

TEST(NumberFile, NamesTheFileInErrorsAndChangesNothing) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "x.gwn";
  std::vector<double> x = {1, 2}, untouched = x;
  const auto refuses = [&](const Status& status, const std::string& why) {
    ASSERT_FALSE(status);
    EXPECT_TRUE(status.error().message.starts_with(file.string() + ": ")) << status.error().message;
    EXPECT_NE(status.error().message.find(why), std::string::npos) << status.error().message;
    EXPECT_EQ(status.error().message.find('\n'), std::string::npos);
    EXPECT_EQ(x, untouched);
  };
  refuses(load_numbers<double>(file, x), "No such file");
  EXPECT_FALSE(fs::exists(file));
  folder.write("x.gwn", "");
  refuses(load_numbers<double>(file, x), "is not a file of numbers");
  refuses(load_raw_numbers<double>(file, x), "holds 0 numbers of fp64, but 2");
  folder.write("x.gwn", "123");
  refuses(load_raw_numbers<double>(file, x), "which is not a multiple of the size of fp64");
  ASSERT_TRUE(save_numbers<float>(file, std::vector<float>{1, 2}));
  refuses(load_numbers<double>(file, x), "holds 2 numbers of fp32");
  EXPECT_FALSE(MappedNumbers<double>::open(file));
  // Damage after the first page; only files larger than a page are mapped.
  const std::vector<double> many(5000, 1.5);
  ASSERT_TRUE(save_numbers<double>(file, many));
  std::string bytes = read_file(file);
  folder.write("x.gwn", bytes.substr(0, 20000));
  refuses(load_numbers<double>(file, x), "cut short");
  bytes[30000] ^= 1;
  folder.write("x.gwn", bytes);
  refuses(load_numbers<double>(file, x), "checksum is wrong");
  EXPECT_FALSE(MappedNumbers<double>::open(file));
  fs::remove(file);
  fs::create_directory(file);
  refuses(load_numbers<double>(file, x), "directory");
  EXPECT_FALSE(FileBytes::open(file));
}

TEST(NumberFile, RefusesAPipeWithoutWaiting) {
  const TemporaryFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::vector<double> x(2);
  EXPECT_FALSE(load_numbers<double>(pipe, x));
  EXPECT_FALSE(MappedNumbers<double>::open(pipe));
}

TEST(NumberFile, StaysWithoutADraftIfItCannotBeReplaced) {
  const TemporaryFolder folder;
  const std::vector<double> x = {1, 2};
  const fs::path absent = folder.path() / "absent" / "x.gwn";
  const Status nowhere = save_numbers<double>(absent, x);
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().message, absent.string() + ": cannot be written: No such file or directory");
  EXPECT_FALSE(fs::exists(absent.parent_path()));
  // A file cannot replace a folder that is not empty.
  fs::create_directories(folder.path() / "x.gwn" / "y");
  const Status status = save_numbers<double>(folder.path() / "x.gwn", x);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("x.gwn: cannot be written"), std::string::npos);
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(NumberFile, IsWrittenNextToAnOldDraft) {
  const TemporaryFolder folder;
  folder.write("x.gwn.new", "left");
  const std::vector<double> x = {1, 2};
  ASSERT_TRUE(save_numbers<double>(folder.path() / "x.gwn", x));
  EXPECT_EQ(read_file(folder.path() / "x.gwn.new"), "left");
  EXPECT_EQ(files_in(folder.path()), 2u);
}

TEST(NumberFile, ReplacesALinkAndNotItsTarget) {
  const TemporaryFolder folder;
  folder.write("mine", "mine");
  fs::create_symlink("mine", folder.path() / "x.gwn");
  ASSERT_TRUE(save_numbers<double>(folder.path() / "x.gwn", std::vector<double>{1, 2}));
  EXPECT_FALSE(fs::is_symlink(folder.path() / "x.gwn"));
  EXPECT_EQ(read_file(folder.path() / "mine"), "mine");
}

TEST(NumberFile, KeepsMappedNumbersWhenItIsReplaced) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "x";
  const std::vector<double> ones(5000, 1), twos(5000, 2);
  ASSERT_TRUE(save_numbers<double>(file, ones));
  const auto mapped = MappedNumbers<double>::open(file);
  ASSERT_TRUE(mapped);
  ASSERT_TRUE(save_numbers<double>(file, twos));
  EXPECT_EQ(mapped->numbers()[4999], 1);
}

TEST(NumberFile, IsReadAndWrittenByNumPy) {
  if (std::system("python3 -c 'import numpy' > /dev/null 2>&1") != 0) GTEST_SKIP() << "no NumPy here";
  const TemporaryFolder folder;
  const std::vector<double> x = {1, -2.5, 3};
  ASSERT_TRUE(save_npy<double>(folder.path() / "x.npy", x));
  folder.write("twice.py",
               "import numpy, sys\nx = numpy.load('x.npy')\nassert x.shape == (3,) and x.dtype == 'f8'\n"
               "numpy.save('y.npy', (2 * x).reshape(3, 1).astype('>f4'))\n");
  ASSERT_EQ(std::system(("cd '" + folder.path().string() + "' && python3 twice.py").c_str()), 0);
  std::vector<float> y(3);
  const Status loaded = load_numbers<float>(folder.path() / "y.npy", y);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(y, (std::vector<float>{2, -5, 6}));
}

}  // namespace
}  // namespace gradwire
