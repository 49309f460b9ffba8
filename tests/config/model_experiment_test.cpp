// Problem types that are networks, from the experiment file to the model.
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/config_error.h"
#include "config/experiment_file.h"
#include "config/settings.h"
#include "engine/nn/models/char_mlp.h"
#include "engine/nn/models/gpt.h"
#include "engine/nn/models/lenet.h"
#include "engine/problems/problem.h"
#include "experiments/cli/list.h"
#include "tests/config/experiment_text.h"

namespace gradwire {
namespace {

std::string file_of(const std::string& kind, const std::string& keys = "") {
  const std::string data = kind == "char_mlp" || kind == "gpt" ? "text:t" : "digits";
  return "[problem]\nkind = \"" + kind + "\"\ndata = \"" + data + "\"\n" + keys +
         "[algorithm]\nname = \"fedavg\"\nlocal_step_size = 0.1\n";
}
ProblemSpec spec_of(const std::string& kind, const std::string& keys = "") {
  return problem_spec(parse(file_of(kind, keys)).experiment);
}

DataSchema letters(std::size_t count) {
  DataSchema schema;
  for (std::size_t k = 0; k < count; ++k) schema.alphabet += static_cast<char>('0' + k);
  return schema;
}
DataSchema images(std::size_t features) {
  return {.columns = features, .labels = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}};
}

// Returns the error of check_schema(), or "" if there is none.
std::string complaint(const ProblemSpec& spec, const DataSchema& schema) {
  try {
    check_schema(spec, schema);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(ModelExperiment, DefaultsAreThoseOfTheModels) {
  EXPECT_EQ(model_dim(spec_of("gpt"), letters(65)), 46289u);
  EXPECT_EQ(model_start(spec_of("gpt"), letters(65)), gpt().start(1));
  EXPECT_EQ(model_dim(spec_of("char_mlp"), letters(26)), 1755u + 1052 * 128);
  EXPECT_EQ(model_start(spec_of("char_mlp"), letters(26)), char_mlp().start(1));
  EXPECT_EQ(model_dim(spec_of("cnn"), images(784)), 44426u);
  EXPECT_EQ(model_start(spec_of("cnn"), images(784)), lenet().start(1));
  const GptShape shape = std::get<Gpt>(spec_of("gpt").problem).shape;
  EXPECT_EQ(shape.epsilon, GptShape().epsilon);
  EXPECT_EQ(shape.tanh_logits, GptShape().tanh_logits);
  EXPECT_EQ(shape.activation, Activation::kRelu);
  EXPECT_EQ(std::get<Mlp>(spec_of("mlp").problem).shape.activation, Activation::kTanh);
  EXPECT_EQ(std::get<CharMlp>(spec_of("char_mlp").problem).shape.activation, Activation::kTanh);
  EXPECT_EQ(std::get<Cnn>(spec_of("cnn").problem).shape.activation, Activation::kRelu);
}

TEST(ModelExperiment, FillsASpecWithTheNumbersOfTheModel) {
  ProblemSpec spec;
  spec.problem = Gpt{};
  EXPECT_EQ(model_dim(spec, letters(65)), 46289u);
  spec.problem.emplace<CharMlp>().shape.hidden = {16};
  EXPECT_EQ(model_dim(spec, letters(26)), 1755u + 1052 * 16);
}

TEST(ModelExperiment, ReadsABudgetForActivationsAsASizeOrSqrt) {
  const auto budget = [](const std::string& text) {
    return std::get<Gpt>(spec_of("gpt", "activation_budget = \"" + text + "\"\n").problem).activations.budget;
  };
  EXPECT_EQ(std::get<Gpt>(spec_of("gpt").problem).activations.budget, ActivationBudget());
  EXPECT_EQ(budget("none"), ActivationBudget());
  EXPECT_EQ(budget("sqrt"), ActivationBudget::sqrt());
  EXPECT_EQ(budget("4MB"), ActivationBudget(4 << 20));
  EXPECT_EQ(budget("12345B"), ActivationBudget(12345));
  EXPECT_EQ(budget("1024KB"), budget("1MB"));
  EXPECT_EQ(budget("3GB").bytes(), std::uint64_t{3} << 30);
  for (const char* text : {"4", "0MB", "-1MB", "MB", "4 MB", "4.5MB", "4mb", "", "99999999999999999999B",
                           "17179869184GB", "all"})
    EXPECT_EQ(error_of(file_of("gpt", "activation_budget = \"" + std::string(text) + "\"\n")),
              "dir/a.toml:4: activation_budget must be \"none\", \"sqrt\" or a size such as \"4MB\" (or "
              "KB, GB), not \"" +
                  std::string(text) + "\"");
  EXPECT_EQ(error_of(file_of("mlp"), {"problem.activation_budget=4"}),
            "--set problem.activation_budget: activation_budget must be \"none\", \"sqrt\" or a size such "
            "as \"4MB\" (or KB, GB), not 4");
}

TEST(ModelExperiment, WarnsOfBfloat16ActivationsThatSaveNothing) {
  const std::string keys = "activation_dtype = \"bfloat16\"\n";
  const std::string start =
      "problem.activation_dtype = \"bfloat16\" saves no memory in this model: a microbatch takes ";
  EXPECT_EQ(check_activations<float>(spec_of("gpt", keys), letters(65)), "");
  EXPECT_EQ(check_activations<double>(spec_of("gpt", keys), letters(65)), "");
  EXPECT_EQ(check_activations<float>(spec_of("char_mlp", keys), letters(26)).substr(0, start.size()), start);
  EXPECT_EQ(check_activations<float>(spec_of("mlp", keys), images(784)).substr(0, start.size()), start);
  EXPECT_EQ(check_activations<float>(spec_of("char_mlp"), letters(26)), "");
  ProblemSpec no_network;
  EXPECT_EQ(check_activations<float>(no_network, {}), "");
}

TEST(ModelExperiment, RejectsABudgetThatIsTooSmallAndNamesTheLeast) {
  const auto check = [](const std::string& budget) {
    check_activations<float>(spec_of("gpt", "activation_budget = \"" + budget + "\"\n"), letters(65));
  };
  try {
    check("1KB");
    FAIL() << "nothing fits in 1 KB";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.key(), "problem.activation_budget");
    const std::string what = error.what(),
                      start = "activation_budget is too small for this model: it needs \"";
    ASSERT_EQ(what.substr(0, start.size()), start);
    check(what.substr(start.size(), what.size() - start.size() - 1));
  }
  check("sqrt");
  check("1GB");
}

TEST(ModelExperiment, EveryKeyReachesTheModel) {
  const ProblemSpec gpt_spec = spec_of("gpt",
                                       "context = 5\nwidth = 6\nlayers = 2\nheads = 3\nepsilon = 0\n"
                                       "tanh_logits = false\nactivation = \"gelu\"\n");
  const GptShape& shape = std::get<Gpt>(gpt_spec.problem).shape;
  EXPECT_EQ(shape.epsilon, 0);
  EXPECT_FALSE(shape.tanh_logits);
  EXPECT_EQ(shape.activation, Activation::kGelu);
  EXPECT_EQ(complaint(gpt_spec, letters(7)), "");
  const Network as_shape = gpt({.vocabulary = 7,
                                .context = 5,
                                .width = 6,
                                .layers = 2,
                                .heads = 3,
                                .epsilon = 0,
                                .tanh_logits = false});
  EXPECT_EQ(model_start(gpt_spec, letters(7)), as_shape.start(1));

  const ProblemSpec names = spec_of("char_mlp", "context = 3\nwidth = 2\nhidden = [7, 4]\n");
  EXPECT_EQ(model_dim(names, letters(4)),
            char_mlp({.vocabulary = 5, .context = 3, .width = 2, .hidden = {7, 4}}).dim());

  const ProblemSpec cnn = spec_of("cnn", "filters = [3]\nhidden = []\nchannels = 3\nimage_height = 6\n");
  EXPECT_EQ(complaint(cnn, images(3 * 6 * 8)), "");
  EXPECT_EQ(model_dim(cnn, images(3 * 6 * 8)),
            lenet({.image = {3, 6, 8}, .filters = {3}, .hidden = {}, .classes = 10}).dim());
}

TEST(ModelExperiment, IsWrittenWithEveryKeyOfItsKindAndReadsBack) {
  for (const std::string kind : {"mlp", "char_mlp", "gpt", "cnn"}) {
    const ExperimentSpec e = parse(file_of(kind)).experiment;
    EXPECT_EQ(e.run.x0, "model") << kind;
    const std::string text = to_toml(e);
    EXPECT_EQ(settings_of(parse_experiment(text, "elsewhere/a.toml").experiment), settings_of(e)) << text;
    const bool has_heads = text.find("\nheads = 6\n") != std::string::npos;
    EXPECT_EQ(has_heads, kind == "gpt") << text;
    const bool has_hidden = text.find("\nhidden = ") != std::string::npos;
    EXPECT_EQ(has_hidden, kind != "gpt") << text;
  }
  EXPECT_NE(to_toml(parse(file_of("cnn")).experiment).find("\nfilters = [6, 16]\n"), std::string::npos);
  const std::string plain = to_toml(parse(kGood).experiment);
  for (const char* key : {"hidden", "context", "width", "activation", "tanh_logits", "filters"})
    EXPECT_EQ(plain.find(key), std::string::npos) << key;
}

TEST(ModelExperiment, RefusesKeysOfOtherKinds) {
  EXPECT_EQ(error_of(file_of("mlp"), {"problem.context=8"}),
            "--set problem.context: context is a key of char_mlp and gpt, not kind 'mlp'");
  EXPECT_EQ(error_of(file_of("char_mlp"), {"problem.heads=2"}),
            "--set problem.heads: heads is a key of gpt, not kind 'char_mlp'");
  EXPECT_EQ(error_of(file_of("gpt"), {"problem.hidden=[8]"}),
            "--set problem.hidden: hidden is a key of mlp, char_mlp and cnn, not kind 'gpt'");
  EXPECT_EQ(error_of(file_of("gpt"), {"problem.filters=[8]"}),
            "--set problem.filters: filters is a key of cnn, not kind 'gpt'");
  EXPECT_EQ(error_of(file_of("cnn"), {"problem.tanh_logits=true"}),
            "--set problem.tanh_logits: tanh_logits is a key of char_mlp and gpt, not kind 'cnn'");
  EXPECT_EQ(
      error_of(kGood, {"problem.activation=relu"}),
      "--set problem.activation: activation is a key of mlp, char_mlp, gpt and cnn, not kind 'logistic'");
  EXPECT_EQ(error_of(file_of("gpt"), {"problem.epsilonn=1"}),
            "--set problem.epsilonn: unknown key 'epsilonn' in [problem]; did you mean 'epsilon'?");
}

TEST(ModelExperiment, RefusesNumbersOutOfRange) {
  EXPECT_EQ(error_of(file_of("gpt", "context = 0\n")),
            "dir/a.toml:4: context must be an integer, 1 to 4096, not 0");
  EXPECT_EQ(error_of(file_of("gpt", "heads = 5\n")), "dir/a.toml:4: heads = 5 does not divide width = 24");
  EXPECT_EQ(error_of(file_of("gpt", "width = 25\n")),
            "dir/a.toml:1: problem.heads: heads = 6 does not divide width = 25");
  EXPECT_EQ(error_of(file_of("gpt", "epsilon = -1\n")),
            "dir/a.toml:4: epsilon must be a number, 0 or more, not -1");
  EXPECT_EQ(error_of(file_of("cnn", "activation = \"swish\"\n")).substr(0, 45),
            "dir/a.toml:4: unknown activation 'swish'; kno");
  EXPECT_EQ(error_of(file_of("char_mlp", "hidden = []\n")),
            "dir/a.toml:4: hidden needs at least one layer for kind 'char_mlp', as in hidden = [128]");
  EXPECT_EQ(error_of(file_of("cnn", "filters = []\n")),
            "dir/a.toml:4: filters needs at least one convolution, as in filters = [6, 16]");
  EXPECT_EQ(error_of(file_of("mlp", "hidden = []\n")), "");
  EXPECT_EQ(error_of(file_of("cnn", "hidden = []\n")), "");
}

TEST(ModelExperiment, RefusesDataOfTheOtherForm) {
  EXPECT_EQ(error_of(file_of("gpt"), {"problem.data=digits"}),
            "--set problem.data: kind 'gpt' reads text: write text:PATH, not 'digits'");
  EXPECT_EQ(error_of(file_of("char_mlp"), {"problem.test=libsvm:a"}),
            "--set problem.test: kind 'char_mlp' reads text: write text:PATH, not 'libsvm:a'");
  EXPECT_EQ(
      error_of(file_of("mlp"), {"problem.data=text:t"}),
      "--set problem.data: kind 'mlp' needs labelled samples, but 'text:t' is text; `gradwire list problems` "
      "shows which kinds read text");
  EXPECT_EQ(error_of("[problem]\nkind = \"gpt\"\n[algorithm]\nname = \"gd\"\nstep_size = 1\n"),
            "dir/a.toml:1: problem.data: required for kind 'gpt', as in data = \"text:PATH\"");
  EXPECT_EQ(error_of(file_of("gpt"), {"problem.data=text:"}),
            "--set problem.data: data 'text' needs a path, as in text:PATH");
  EXPECT_EQ(error_of(file_of("gpt"), {"problem.dim=7"}),
            "--set problem.dim: dim is a key of quadratic, least_squares, logistic, mlp, cnn and custom, not "
            "kind 'gpt'");
  EXPECT_EQ(error_of(file_of("gpt"), {"clients.partition=by_label"}),
            "--set clients.partition: partition 'by_label' has no meaning for kind 'gpt', whose samples have "
            "a label "
            "at each position; use contiguous or iid");
  EXPECT_EQ(error_of(file_of("char_mlp"), {"clients.partition=by_label"}), "");
}

TEST(ModelExperiment, RefusesImagesThatDoNotFit) {
  EXPECT_EQ(complaint(spec_of("cnn"), images(783)),
            "783 features are not a square image; set problem.image_height, problem.image_width and "
            "problem.channels");
  EXPECT_EQ(
      complaint(spec_of("cnn", "channels = 3\n"), images(3073)),
      "3073 features are not a square image of 3 channels; set problem.image_height, problem.image_width and "
      "problem.channels");
  EXPECT_EQ(complaint(spec_of("cnn", "channels = 3\n"), images(3072)), "");
  EXPECT_EQ(
      complaint(spec_of("cnn", "image_height = 28\nimage_width = 20\n"), images(784)),
      "784 features are not an image of 28 x 20 pixels with problem.channels = 1; correct these, or set "
      "problem.dim");
  EXPECT_EQ(
      complaint(spec_of("cnn", "image_height = 1000\n"), images(784)),
      "784 features are not an image of 1000 x 0 pixels with problem.channels = 1; correct these, or set "
      "problem.dim");
  EXPECT_EQ(complaint(spec_of("cnn", "dim = 784\n"), images(780)), "");
  EXPECT_EQ(complaint(spec_of("cnn"), images(64)),
            "images of 8 x 8 pixels are too small for 2 convolutions 5 x 5 with pooling 2 x 2; shorten "
            "problem.filters");
  EXPECT_EQ(complaint(spec_of("cnn", "filters = [6]\n"), images(64)), "");
  EXPECT_NE(complaint(spec_of("cnn"), {.columns = 784, .labels = {1}}).find("2 to 65536"), std::string::npos);
  EXPECT_NE(complaint(spec_of("cnn"), {.columns = 0, .labels = {0, 1}}).find("no features"),
            std::string::npos);
}

TEST(ModelExperiment, RefusesLettersThatDoNotFit) {
  EXPECT_EQ(complaint(spec_of("gpt"), letters(1)),
            "the text has 1 distinct letters; the model needs 2 or more");
  EXPECT_EQ(complaint(spec_of("char_mlp"), letters(1)), "");
  EXPECT_NE(complaint(spec_of("char_mlp"), letters(0)), "");
  for (const char* alphabet : {"ba", "aa", "\xff\x01"})
    EXPECT_EQ(complaint(spec_of("gpt"), {.alphabet = alphabet}),
              "the alphabet that the clients agreed on is not ascending");
}

// A program can make a spec that has not passed check_experiment().
TEST(ModelExperiment, ChecksASpecThatAProgramMade) {
  const auto complaint_of_gpt = [](auto change) {
    Gpt gpt;
    change(gpt.shape);
    ProblemSpec spec;
    spec.problem = gpt;
    return complaint(spec, letters(5));
  };
  EXPECT_EQ(complaint_of_gpt([](GptShape& shape) { shape.heads = 5; }),
            "problem.heads = 5 does not divide problem.width = 24");
  EXPECT_EQ(complaint_of_gpt([](GptShape& shape) { shape.context = 5000; }),
            "problem.context = 5000 is not between 1 and 4096");
  EXPECT_EQ(complaint_of_gpt([](GptShape& shape) { shape.epsilon = std::nan(""); }),
            "problem.epsilon must be a finite number, 0 or more");
  EXPECT_EQ(complaint_of_gpt([](GptShape& shape) { shape.activation = static_cast<Activation>(9); }),
            "problem.activation must be tanh, relu, sigmoid or gelu");
  EXPECT_NE(
      complaint_of_gpt([](GptShape& shape) { shape.width = 1'000'000, shape.heads = 1; }).find("parameters"),
      std::string::npos);
  ProblemSpec spec;
  spec.problem.emplace<CharMlp>().shape.hidden.clear();
  EXPECT_NE(complaint(spec, letters(5)).find("problem.hidden is empty"), std::string::npos);
  spec.problem.emplace<Cnn>().shape.filters.clear();
  EXPECT_NE(complaint(spec, images(784)).find("problem.filters is empty"), std::string::npos);
}

TEST(ModelExperiment, KindsAreListed) {
  const std::string list = list_text("problems", "results");
  for (const char* kind : {"char_mlp", "gpt", "cnn"}) EXPECT_NE(list.find(kind), std::string::npos) << list;
}

}  // namespace
}  // namespace gradwire
