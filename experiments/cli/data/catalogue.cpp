#include "experiments/cli/data/catalogue.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/suggest.h"
#include "engine/data/dataset.h"
#include "engine/data/readers/source.h"
#include "report/results_dir.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

#define LIBSVM "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
#define MNIST "https://ossci-datasets.s3.amazonaws.com/mnist/"

constexpr DataFile kA1a[] = {
    {LIBSVM "a1a", "a1a", "eb54c45f1bdb51286f803dd092eb8202b44637a858fc6c4e533a2d64a0d94b4e"}};
constexpr DataFile kA9a[] = {
    {LIBSVM "a9a", "a9a", "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"},
    {LIBSVM "a9a.t", "a9a.t", "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9"}};
constexpr DataFile kAustralian[] = {
    {LIBSVM "australian", "australian", "e11b85d6265a6cc8d07e3200fc04557009e6e2407331ea8d7910eddf199c2d1a"}};
constexpr DataFile kIjcnn1[] = {{LIBSVM "ijcnn1.bz2", "ijcnn1", ""}, {LIBSVM "ijcnn1.t.bz2", "ijcnn1.t", ""}};
constexpr DataFile kMushrooms[] = {
    {LIBSVM "mushrooms", "mushrooms", "f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538"}};
constexpr DataFile kPhishing[] = {
    {LIBSVM "phishing", "phishing", "0cf66ef36604c393da9359b2e5d894a2df8aee31fd184633cefa138add2ef08a"}};
constexpr DataFile kW8a[] = {
    {LIBSVM "w8a", "w8a", "6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2"},
    {LIBSVM "w8a.t", "w8a.t", "618929ecb01bebb841daec4cae4aa07b97832d29b08652452775598929547fde"}};
// The test images have a separate folder, because idx:DIR reads a folder with a single set of images.
constexpr DataFile kMnist[] = {{MNIST "train-images-idx3-ubyte.gz", "mnist/train-images-idx3-ubyte.gz",
                                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
                               {MNIST "train-labels-idx1-ubyte.gz", "mnist/train-labels-idx1-ubyte.gz",
                                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
                               {MNIST "t10k-images-idx3-ubyte.gz", "mnist.t/t10k-images-idx3-ubyte.gz",
                                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
                               {MNIST "t10k-labels-idx1-ubyte.gz", "mnist.t/t10k-labels-idx1-ubyte.gz",
                                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}};
constexpr DataFile kShakespeare[] = {
    {"https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
     "tinyshakespeare.txt", "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"}};

#undef LIBSVM
#undef MNIST

constexpr DataSet kDataSets[] = {
    {"a1a", "libsvm:a1a", "1,605 samples, 119 features", kA1a},
    {"a9a", "libsvm:a9a", "32,561 samples, 123 features; test: libsvm:a9a.t, 16,281", kA9a},
    {"australian", "libsvm:australian", "690 samples, 14 features", kAustralian},
    {"ijcnn1", "libsvm:ijcnn1", "49,990 samples, 22 features; test: libsvm:ijcnn1.t, 91,701", kIjcnn1},
    {"mushrooms", "libsvm:mushrooms", "8,124 samples, 112 features", kMushrooms},
    {"phishing", "libsvm:phishing", "11,055 samples, 68 features", kPhishing},
    {"w8a", "libsvm:w8a", "49,749 samples, 300 features; test: libsvm:w8a.t, 14,951", kW8a},
    {"mnist", "mnist", "60,000 images of 28 x 28 pixels, 10 classes; test: idx:mnist.t, 10,000", kMnist},
    {"shakespeare", "shakespeare", "1,115,394 letters of text", kShakespeare}};

// Returns the path of the set's first file, as an experiment in the current folder finds it. Returns nullopt
// if a file of the set is missing.
std::optional<fs::path> found(const DataSet& set) {
  std::optional<fs::path> first;
  for (const DataFile& file : set.files) {
    try {
      const fs::path path = find_data(fs::path(file.name), "");
      if (!first) first = path;
    } catch (const DataError&) {
      return std::nullopt;
    }
  }
  return first;
}

}  // namespace

std::span<const DataSet> data_sets() { return kDataSets; }

std::string data_set_text(const DataSet& set) {
  const auto path = found(set);
  std::array<char, 40> name{};
  std::snprintf(name.data(), name.size(), "%-12s", std::string(set.name).c_str());
  return std::string(name.data()) + " data = \"" + std::string(set.source) + "\": " + std::string(set.about) +
         "; " + (path ? "here, " + path->string() : "not here");
}

const DataSet& find_data_set(const std::string& name) {
  std::vector<std::string> known;
  for (const DataSet& set : kDataSets) {
    if (set.name == name) return set;
    known.emplace_back(set.name);
  }
  throw UsageError("unknown data set '" + name.substr(0, 64) + "'" + suggest(name, known));
}

}  // namespace gradwire
