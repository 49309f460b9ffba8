#include <cmath>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/config_error.h"
#include "tests/engine/oracle_checks.h"
#include "tests/engine/problem_types.h"

namespace gradwire {
namespace {

ProblemSpec spec_of(const std::string& kind) {
  ProblemSpec spec = spec_of_type(kind);
  if (auto* quadratic = std::get_if<Quadratic>(&spec.problem)) quadratic->shape.dim = 5;
  if (auto* names = std::get_if<CharMlp>(&spec.problem)) names->shape.context = 4, names->shape.hidden = {3};
  if (auto* text = std::get_if<Gpt>(&spec.problem)) text->shape.context = 4;
  if (auto* cnn = std::get_if<Cnn>(&spec.problem)) cnn->shape.filters = {2}, cnn->shape.hidden = {3};
  return spec;
}

DataForm form_of(const std::string& kind) {
  for (const ProblemInfo& k : problem_types())
    if (k.name == kind) return k.data;
  return DataForm::kNone;
}

// Returns a schema that the kind accepts: text, images of 6 x 6, or four features.
DataSchema schema_for(const std::string& kind) {
  if (form_of(kind) == DataForm::kText) return {.alphabet = "abc"};
  return {.columns = kind == "cnn" ? 36u : 4u, .labels = {0, 1}};
}
ClientDataset part_for(const std::string& kind) {
  ClientDataset part;
  if (kind == "gpt") {
    part.train_text = running_text("abcabacacb", "text", 4);
  } else if (kind == "char_mlp") {
    part.train_text = list_of_names("ab\nca", "text", 4);
  } else {
    part.train = random_data(6, schema_for(kind).columns, 0.7, {0, 1});
  }
  return part;
}

// Returns the error of check_schema, or "" if there is none.
std::string complaint(const ProblemSpec& spec, const DataSchema& schema) {
  try {
    check_schema(spec, schema);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ProblemType, MakesOraclesOfItsDimensionInBothPrecisions) {
  std::set<std::string_view> names;
  for (const ProblemInfo& kind : problem_types()) {
    if (kind.brings_functions) continue;
    SCOPED_TRACE(kind.name);
    names.insert(kind.name);
    const std::string name(kind.name);
    const ProblemSpec spec = spec_of(name);
    const DataSchema schema = schema_for(name);
    const ClientDataset part = part_for(name);
    EXPECT_EQ(complaint(spec, schema), "");
    const auto wide = make_oracle<double>(spec, schema, part, 0);
    const auto narrow = make_oracle<float>(spec, schema, part, 0);
    EXPECT_EQ(wide->dim(), model_dim(spec, schema));
    EXPECT_EQ(wide->sample_count(), kind.needs_data() ? 6u : 1u);
    const std::vector<double> start = model_start(spec, schema);
    ASSERT_EQ(start.size(), wide->dim());
    expect_float_agrees(*narrow, *wide, start);
    EXPECT_FALSE(wide->score(start).has_value()) << "no test samples";
    if (kind.has_smoothness) {
      EXPECT_GT(client_smoothness(spec, schema, part, 0).L_i, 0);
    } else {
      EXPECT_THROW(client_smoothness(spec, schema, part, 0), std::logic_error);
    }
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"quadratic", "least_squares", "logistic", "mlp", "char_mlp",
                                               "gpt", "cnn"}));
}

TEST(ProblemType, KeepsActivationsInTheTypeOfItsSetting) {
  for (const std::string name : {"mlp", "char_mlp", "gpt", "cnn"}) {
    SCOPED_TRACE(name);
    ProblemSpec spec = spec_of(name);
    if (auto* mlp = std::get_if<Mlp>(&spec.problem)) mlp->shape.hidden = {8};
    const DataSchema schema = schema_for(name);
    const ClientDataset part = part_for(name);
    const auto exact = make_oracle<double>(spec, schema, part, 0);
    std::visit(
        [](auto& problem) {
          if constexpr (requires { problem.activations; })
            problem.activations.kept = KeptActivations::kBFloat16;
        },
        spec.problem);
    const auto kept = make_oracle<double>(spec, schema, part, 0);
    const std::vector<double> x = model_start(spec, schema);
    std::vector<double> g(x.size()), g_kept(x.size());
    EXPECT_EQ(kept->loss_and_gradient(x, {}, g_kept), exact->loss_and_gradient(x, {}, g));
    EXPECT_NE(g_kept, g);
    for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(g_kept[j], g[j], 0.01);
  }
}

TEST(ProblemType, RunsEveryNetworkWithinItsBudgetOrNamesTheMinimum) {
  for (const std::string name : {"mlp", "char_mlp", "gpt", "cnn"}) {
    SCOPED_TRACE(name);
    ProblemSpec spec = spec_of(name);
    if (auto* mlp = std::get_if<Mlp>(&spec.problem)) mlp->shape.hidden = {8, 8, 8, 8};
    const DataSchema schema = schema_for(name);
    const ClientDataset part = part_for(name);
    const auto oracle_within = [&](ActivationBudget budget) {
      std::visit(
          [&](auto& problem) {
            if constexpr (requires { problem.activations; }) problem.activations.budget = budget;
          },
          spec.problem);
      return make_oracle<double>(spec, schema, part, 0);
    };
    const std::vector<double> x = model_start(spec, schema);
    std::vector<double> g(x.size()), fitted(x.size());
    const double loss = oracle_within({})->loss_and_gradient(x, {}, g);
    std::string least;
    try {
      oracle_within(ActivationBudget(100));
    } catch (const DataError& error) {
      const std::string what = error.what(),
                        start = "problem.activation_budget is too small for this model: it needs \"";
      ASSERT_EQ(what.substr(0, start.size()), start);
      least = what.substr(start.size(), what.size() - start.size() - 1);
    }
    ActivationBudget budget;
    ASSERT_TRUE(TextCodec<ActivationBudget>::read(least, budget)) << least;
    for (const ActivationBudget each : {budget, ActivationBudget::sqrt()}) {
      EXPECT_EQ(oracle_within(each)->loss_and_gradient(x, {}, fitted), loss);
      EXPECT_EQ(fitted, g);
    }
  }
}

// Compares all results of two oracles at x.
template <class Real>
void expect_equal_oracles(Oracle<Real>& got, Oracle<Real>& want, const std::vector<double>& at) {
  const std::vector<Real> x(at.begin(), at.end());
  ASSERT_EQ(got.dim(), want.dim());
  ASSERT_EQ(got.sample_count(), want.sample_count());
  std::vector<Real> a(x.size()), b(x.size());
  const auto last = static_cast<std::uint32_t>(want.sample_count() - 1);
  const std::vector<std::uint32_t> some = {last, 0, last};
  for (const Batch batch : {Batch{}, Batch(some)}) {
    EXPECT_EQ(got.loss_and_gradient(x, batch, a), want.loss_and_gradient(x, batch, b));
    EXPECT_EQ(a, b);
  }
  const std::vector<std::uint32_t> beyond = {last + 1};
  EXPECT_THROW(got.loss_and_gradient(x, beyond, a), std::logic_error);
  const auto score = got.score(x), wanted = want.score(x);
  ASSERT_EQ(score.has_value(), wanted.has_value());
  EXPECT_EQ(score.value_or(Score{}).correct, wanted.value_or(Score{}).correct);
  EXPECT_EQ(score.value_or(Score{}).tested, wanted.value_or(Score{}).tested);
  if (x.size() > 100) return;
  std::vector<Real> upper(upper_size(x.size())), wanted_upper(upper.size());
  ASSERT_EQ(got.hessian(x, upper), want.hessian(x, wanted_upper));
  EXPECT_EQ(upper, wanted_upper);
}

template <class Real>
void expect_client_objectives_of_parts(const std::string& name) {
  ProblemSpec spec = spec_of(name);
  spec.clients = 3;
  if (auto* quadratic = std::get_if<Quadratic>(&spec.problem)) quadratic->shape.heterogeneity = 0.5;
  const DataSchema schema = schema_for(name);
  std::vector<ClientDataset> parts(spec.info().needs_data() ? 3 : 0, part_for(name));
  if (spec.info().data == DataForm::kRows) {
    parts[2].train = random_data(7, schema.columns, 0.7, {0, 1}, 9);
    parts[1].test = random_data(4, schema.columns, 0.5, {0, 1}, 8);
  }
  const auto clients = make_client_objectives<Real>(spec, schema, parts);
  ASSERT_EQ(clients->clients(), 3u);
  const std::vector<double> x = random_point(model_dim(spec, schema), 0.3);
  auto one = clients->oracle(), other = clients->oracle();
  one->bind(2);
  for (const std::uint32_t c : {1u, 0u, 2u, 1u}) {
    const auto own = make_oracle<Real>(spec, schema, parts.empty() ? ClientDataset{} : parts[c], c);
    other->bind(c);
    EXPECT_EQ(clients->sample_count(c), own->sample_count());
    expect_equal_oracles<Real>(*other, *own, x);
  }
  const auto last = make_oracle<Real>(spec, schema, parts.empty() ? ClientDataset{} : parts[2], 2);
  expect_equal_oracles<Real>(*one, *last, x);  // the oracle keeps its binding
}

TEST(ProblemType, SharedOraclesEqualThoseOfSingleClients) {
  for (const ProblemInfo& kind : problem_types()) {
    if (kind.brings_functions) continue;
    SCOPED_TRACE(kind.name);
    expect_client_objectives_of_parts<double>(std::string(kind.name));
    expect_client_objectives_of_parts<float>(std::string(kind.name));
    if (!kind.needs_data()) continue;
    ProblemSpec spec = spec_of(std::string(kind.name));
    spec.clients = 3;
    const std::vector<ClientDataset> parts(2, part_for(std::string(kind.name)));
    EXPECT_THROW(make_client_objectives<double>(spec, schema_for(std::string(kind.name)), parts),
                 std::logic_error);
  }
}

TEST(ProblemType, DrawnSamplesGiveTheOraclesOfTheirParts) {
  for (const std::string name : {"logistic", "least_squares", "mlp", "gpt"}) {
    SCOPED_TRACE(name);
    ProblemSpec spec = spec_of(name);
    spec.clients = 9;
    const DataSchema schema = schema_for(name);
    SharedSamples samples(part_for(name));
    const std::size_t total = samples.train_count(0);
    samples.train_shares = Shares::drawn(9, total, static_cast<std::uint32_t>(total / 2), 5);
    samples.test_shares = Shares::equal(9, samples.part(0).test_count());
    const auto clients = make_client_objectives<double>(spec, schema, samples);
    const std::vector<double> x = random_point(model_dim(spec, schema), 0.3);
    const auto oracle = clients->oracle();
    for (const std::uint32_t c : {8u, 0u, 3u}) {
      oracle->bind(c);
      const auto own = make_oracle<double>(spec, schema, samples.part(c), c);
      expect_equal_oracles<double>(*oracle, *own, x);
    }
  }
}

TEST(ProblemType, StartsAtZeroExceptForQuadraticsAndNetworks) {
  const DataSchema schema{.columns = 3, .labels = {0, 1}};
  EXPECT_EQ(model_start(spec_of("logistic"), schema), std::vector<double>(3));
  EXPECT_EQ(model_start(spec_of("least_squares"), schema), std::vector<double>(3));
  EXPECT_EQ(model_start(spec_of("quadratic"), schema), (std::vector<double>{std::sqrt(5.0), 0, 0, 0, 0}));
}

TEST(ProblemType, LogisticNamesTheLabelsItFound) {
  const std::string three = complaint(spec_of("logistic"), {.columns = 3, .labels = {1, 2, 3.5}});
  EXPECT_TRUE(mentions(three, "two labels") && mentions(three, "3: 1, 2, 3.5")) << three;
  EXPECT_TRUE(mentions(complaint(spec_of("logistic"), {.columns = 3, .labels = {1}}), "1: 1"));
  EXPECT_TRUE(mentions(complaint(spec_of("logistic"), {.columns = 3, .labels = {}}), "0: "));
  EXPECT_TRUE(
      mentions(complaint(spec_of("logistic"), {.columns = 3, .labels = {1, 2, 3, 4, 5, 6, 7}}), "5, ..."));
}

TEST(ProblemType, RefusesUnfitDataWithOneLine) {
  const DataSchema schema{.columns = 4, .labels = {0, 1}};
  EXPECT_THROW(problem_of("logstic"), ConfigError);
  EXPECT_TRUE(mentions(complaint(spec_of("logistic"), {.columns = 0, .labels = {0, 1}}), "no features"));

  ProblemSpec spec = spec_of("logistic");
  LinearModel& model = linear_model(spec);
  model.rows.dim = 3;
  EXPECT_TRUE(mentions(complaint(spec, schema), "problem.dim = 3"));
  model.rows.dim = 9;
  EXPECT_EQ(complaint(spec, schema), "");
  EXPECT_EQ(model_dim(spec, schema), 9u);
  model.lambda = -1;
  EXPECT_TRUE(mentions(complaint(spec, schema), "lambda"));
  model.lambda = std::nan("");
  EXPECT_TRUE(mentions(complaint(spec, schema), "lambda"));

  ProblemSpec quadratic = spec_of("quadratic");
  QuadraticShape& shape = std::get<Quadratic>(quadratic.problem).shape;
  shape.dim = 0;
  EXPECT_TRUE(mentions(complaint(quadratic, {}), "problem.dim"));
  shape = {.dim = 5, .heterogeneity = -1};
  EXPECT_TRUE(mentions(complaint(quadratic, {}), "heterogeneity"));

  ProblemSpec mlp = spec_of("mlp");
  std::vector<std::uint32_t>& hidden = std::get<Mlp>(mlp.problem).shape.hidden;
  hidden = {8, 0};
  EXPECT_TRUE(mentions(complaint(mlp, schema), "width 0"));
  hidden = {4'000'000'000, 4'000'000'000};
  EXPECT_TRUE(mentions(complaint(mlp, schema), "width 4000000000"));
  hidden = {1'000'000, 1'000'000};
  EXPECT_TRUE(mentions(complaint(mlp, schema), "parameters"));
  hidden = {};
  EXPECT_TRUE(mentions(complaint(mlp, {.columns = 4, .labels = {1}}), "2 to"));
}

TEST(ProblemType, AppendsABiasOfOneAsTheLastFeature) {
  const DataSchema schema{.columns = 4, .labels = {0, 1}}, wider{.columns = 5, .labels = {0, 1}};
  const ClientDataset part{random_data(6, 4, 0.7, {0, 1}), random_data(5, 4, 0.7, {0, 1}, 3)};
  ClientDataset written = part;
  for (Dataset* data : {&written.train, &written.test}) {
    DenseRows rows = dense_rows(*data);
    for (auto& row : rows) row.push_back(1);
    *data = sparse_data(rows, data->label, 5);
  }
  const std::vector<double> x = random_point(5, 1);
  for (const char* kind : {"logistic", "least_squares"}) {
    ProblemSpec spec = spec_of(kind);
    const auto want = make_oracle<double>(spec, wider, written, 0);
    linear_model(spec).bias = true;
    EXPECT_EQ(model_dim(spec, schema), 5u);
    EXPECT_EQ(model_start(spec, schema).size(), 5u);
    const auto got = make_oracle<double>(spec, schema, part, 0);
    EXPECT_EQ(evaluate(*got, x).loss, evaluate(*want, x).loss);
    EXPECT_EQ(evaluate(*got, x).gradient, evaluate(*want, x).gradient);
    const auto score = got->score(x), wanted = want->score(x);
    ASSERT_EQ(score.has_value(), wanted.has_value());
    if (score) {
      EXPECT_EQ(score->correct, wanted->correct);
    }
    // A feature that the model lacks must not become the bias.
    const ClientDataset wide{random_data(6, 5, 1, {0, 1}), {}};
    EXPECT_THROW(make_oracle<double>(spec, schema, wide, 0), DataError);
    // The bias comes after all features of problem.dim.
    linear_model(spec).rows.dim = 9;
    const auto spread = make_oracle<double>(spec, schema, part, 0);
    std::vector<double> far(10);
    std::copy(x.begin(), x.begin() + 4, far.begin());
    far[9] = x[4];
    EXPECT_EQ(evaluate(*spread, far).loss, evaluate(*want, x).loss);
  }
}

TEST(ProblemType, RefusesTestSamplesWithAFeatureThatTheModelLacks) {
  const DataSchema schema{.columns = 3, .labels = {0, 1}};
  const ClientDataset part{random_data(6, 3, 1, {0, 1}), random_data(6, 4, 1, {0, 1})};
  for (const char* kind : {"logistic", "mlp"}) {
    EXPECT_THROW(make_oracle<double>(spec_of(kind), schema, part, 0), DataError) << kind;
  }
}

}  // namespace
}  // namespace gradwire
