#include "engine/problems/problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <iterator>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "base/config_error.h"
#include "base/suggest.h"

namespace gradwire {
namespace {

template <class Type>
concept ReadsRows = requires(Type type) {
  type.rows;
};
template <class Type>
concept ReadsText = requires(Type type) {
  type.text;
  Type::kTextForm;
  type.context();
};
template <class Type>
concept HasClientObjectives = requires(const Type type, const DataSchema schema, SharedSamples samples,
                                       AllClients all) {
  {
    type.template client_objectives<double>(schema, std::move(samples), all)
    } -> std::convertible_to<std::unique_ptr<ClientObjectives<double>>>;
};
template <class Type>
concept HasOracle = requires(const Type type, const DataSchema schema, const ClientDataset part,
                             AllClients all) {
  {
    type.template oracle<double>(schema, part, std::uint32_t{}, all)
    } -> std::convertible_to<std::unique_ptr<Oracle<double>>>;
};
template <class Type>
concept PredictsFromRows = requires(const Type type, const DataSchema schema, const Dataset data,
                                    std::span<const double> x) {
  { type.outputs(schema, data, x) } -> std::same_as<std::vector<double>>;
};
template <class Type>
concept HasSmoothness = requires(const Type type, const DataSchema schema,
                                 std::span<const ClientDataset> parts, std::span<const double> weights,
                                 std::span<const ClientSmoothness> clients, AllClients all,
                                 const OrderedScan& scan) {
  type.smoothness(schema, parts, weights, all, scan);
  type.client_smoothness(schema, parts[0], 0, all);
  type.known_convexity(all);
  type.smoothness_from_clients(clients, weights, all);
};

// Checks a problem type with readable compiler errors for missing members.
template <class Type>
constexpr bool is_problem_type() {
  static_assert(std::is_same_v<decltype(Type::traits), const ProblemTraits>,
                "a problem type needs constexpr ProblemTraits traits");
  static_assert(
      requires(Type type, Collector collect) { Type::fields(type, collect); },
      "a problem type needs static void fields(auto& self, auto&& visit)");
  static_assert(
      requires(const Type type) { type.check(); }, "a problem type needs void check() const");
  static_assert(
      requires(const Type type, const DataSchema schema) { type.check(schema); },
      "a problem type needs void check(const DataSchema&) const");
  static_assert(
      requires(const Type type, const DataSchema schema) {
        { type.dim(schema) } -> std::convertible_to<std::size_t>;
        { type.start(schema, std::uint64_t{}) } -> std::convertible_to<std::vector<double>>;
      },
      "a problem type needs dim(const DataSchema&) const and start(const DataSchema&, std::uint64_t seed) "
      "const");
  static_assert(
      HasClientObjectives<Type> || HasOracle<Type>,
      "a problem type needs client_objectives<Real>(const DataSchema&, SharedSamples, const AllClients&) "
      "const, or oracle<Real>(const DataSchema&, const ClientDataset&, std::uint32_t client, const "
      "AllClients&) const");
  static_assert(!(ReadsRows<Type> && ReadsText<Type>), "a problem type reads rows or text, not both");
  static_assert(
      HasSmoothness<Type> || !requires(const Type type) { &Type::smoothness; },
      "a problem type with smoothness() needs the other three of engine/problems/problem_type.h");
  return true;
}

template <class Type>
constexpr ProblemInfo traits_of() {
  static_assert(is_problem_type<Type>());
  return {Type::traits,
          ReadsRows<Type>   ? DataForm::kRows
          : ReadsText<Type> ? DataForm::kText
                            : DataForm::kNone,
          HasSmoothness<Type>};
}

template <class... Types>
constexpr std::array<ProblemInfo, sizeof...(Types)> all_traits(const std::variant<Types...>*) {
  return {traits_of<Types>()...};
}
constexpr auto kProblemTypes = all_traits(static_cast<const ProblemType*>(nullptr));

// Sets `problem` to the problem type with that number.
template <std::size_t... Numbers>
void set_problem_type(ProblemType& problem, std::size_t number, std::index_sequence<Numbers...>) {
  ((Numbers == number ? (void)problem.emplace<Numbers>() : void()), ...);
}

// Calls f(type) for a problem type that has constants. Result is explicit: clang 16 crashes if it is deduced
// from f.
template <class Result, class F>
Result with_constants(const ProblemSpec& spec, const F& f) {
  return std::visit(
      [&]<class Type>(const Type& type) -> Result {
        if constexpr (HasSmoothness<Type>) return f(type);
        throw std::logic_error("no closed-form smoothness for the problem kind '" +
                               std::string(Type::traits.name) + "'");
      },
      spec.problem);
}

}  // namespace

std::string_view name_of(DataForm data) {
  switch (data) {
    case DataForm::kRows: return "samples";
    case DataForm::kText: return "text";
    case DataForm::kNone: break;
  }
  return "nothing";
}

std::span<const ProblemInfo> problem_types() { return kProblemTypes; }

const ProblemInfo& info_of(const ProblemType& problem) { return kProblemTypes[problem.index()]; }

ProblemType problem_of(const std::string& type) {
  ProblemType problem;
  std::vector<std::string> known;
  for (std::size_t number = 0; number < kProblemTypes.size(); ++number) {
    known.emplace_back(kProblemTypes[number].name);
    if (kProblemTypes[number].name != type) continue;
    set_problem_type(problem, number, std::make_index_sequence<kProblemTypes.size()>());
    return problem;
  }
  throw ConfigError("problem.kind", "unknown kind '" + type.substr(0, 100) + "'" + suggest(type, known));
}

std::vector<Field> problem_fields(ProblemType& problem) {
  return std::visit([](auto& type) { return fields_of(type); }, problem);
}

void check_problem(const ProblemType& problem) {
  std::visit([](const auto& type) { type.check(); }, problem);
}

const SampleSource* sources_of(const ProblemType& problem) {
  return std::visit(
      []<class Type>(const Type& type) -> const SampleSource* {
        if constexpr (ReadsRows<Type>) return &type.rows;
        if constexpr (ReadsText<Type>) return &type.text;
        return nullptr;
      },
      problem);
}
SampleSource* sources_of(ProblemType& problem) {
  return const_cast<SampleSource*>(sources_of(std::as_const(problem)));
}

const RowsData* rows_of(const ProblemType& problem) {
  return std::visit(
      []<class Type>(const Type& type) -> const RowsData* {
        if constexpr (ReadsRows<Type>) return &type.rows;
        return nullptr;
      },
      problem);
}

std::optional<TextReading> text_reading(const ProblemType& problem) {
  return std::visit(
      []<class Type>(const Type& type) -> std::optional<TextReading> {
        if constexpr (ReadsText<Type>) return TextReading{Type::kTextForm, type.context()};
        return std::nullopt;
      },
      problem);
}

DataSchema schema_of(const SharedSamples& samples, const ProblemSpec& spec) {
  DataSchema schema;
  schema.columns = std::max(samples.train.columns, samples.test.columns);
  if (samples.train.encoding != nullptr) schema.feature_names = samples.train.encoding->feature_names();
  if (spec.info().has_classes) {
    const std::vector<double> train =
                                  samples.made.part ? samples.made.labels : distinct_labels(samples.train),
                              test = distinct_labels(samples.test);
    std::set_union(train.begin(), train.end(), test.begin(), test.end(), std::back_inserter(schema.labels));
    if (const TableEncoding* const table = samples.train.encoding.get(); table != nullptr) {
      schema.label_place = table->label_place;
      schema.label_texts = table->label.texts;
    }
  }
  schema.alphabet = unite_alphabets(samples.train_text.alphabet(), samples.test_text.alphabet());
  return schema;
}

bool predicts_from_rows(const ProblemType& problem) {
  return std::visit([]<class Type>(const Type&) { return PredictsFromRows<Type>; }, problem);
}

namespace {

// Returns the class of one row. Its outputs are the logits of all labels, or that of the second of two.
Prediction class_of(const DataSchema& schema, std::span<const double> outputs) {
  if (outputs.size() == 1) {
    const double z = outputs[0];
    return {schema.labels[z > 0 ? 1 : 0], 1 / (1 + std::exp(-std::fabs(z)))};
  }
  const auto best = std::ranges::max_element(outputs);
  double sum = 0;
  for (const double z : outputs) sum += std::exp(z - *best);
  return {schema.labels[static_cast<std::size_t>(best - outputs.begin())], 1 / sum};
}

}  // namespace

std::vector<Prediction> predict(const ProblemSpec& spec, const DataSchema& schema, const Dataset& rows,
                                std::span<const double> x) {
  const std::vector<double> outputs = std::visit(
      [&]<class Type>(const Type& type) -> std::vector<double> {
        if constexpr (PredictsFromRows<Type>) return type.outputs(schema, rows, x);
        throw std::logic_error("models of this problem kind do not predict from rows");
      },
      spec.problem);
  std::vector<Prediction> predictions;
  for (std::size_t r = 0; r < rows.rows(); ++r) {
    const std::size_t width = outputs.size() / rows.rows();
    const auto row = std::span(outputs).subspan(r * width, width);
    predictions.push_back(spec.info().has_classes ? class_of(schema, row) : Prediction{row[0], std::nullopt});
  }
  return predictions;
}

std::optional<double> regularizer_of(const ProblemType& problem, std::span<const double> x) {
  return std::visit(
      [&]<class Type>(const Type& type) -> std::optional<double> {
        if constexpr (std::is_base_of_v<LinearModel, Type>)
          if (type.regularizer != Regularizer::kNone)
            return regularizer_value(type.regularizer, type.lambda, x);
        return std::nullopt;
      },
      problem);
}

void check_schema(const ProblemSpec& spec, const DataSchema& schema) {
  if (spec.clients == 0) throw DataError("a problem needs at least one client");
  std::visit([&](const auto& type) { type.check(schema); }, spec.problem);
  std::size_t d = 0;
  try {
    d = model_dim(spec, schema);
  } catch (const std::logic_error& error) {  // each size is in range, but not their product
    throw DataError("[problem] describes an unusable model: " + std::string(error.what()));
  }
  if (static_cast<double>(d) > kMaxModelDim)
    throw DataError("the model has more than " + std::to_string(static_cast<std::uint64_t>(kMaxModelDim)) +
                    " parameters");
}

template <class Real>
std::string check_activations(const ProblemSpec& spec, const DataSchema& schema) {
  return std::visit(
      [&]<class Type>(const Type& type) -> std::string {
        if constexpr (requires { type.template check_activations<Real>(schema); })
          return type.template check_activations<Real>(schema);
        return "";
      },
      spec.problem);
}

template std::string check_activations<float>(const ProblemSpec&, const DataSchema&);
template std::string check_activations<double>(const ProblemSpec&, const DataSchema&);

bool has_random_paths(const ProblemSpec& spec, const DataSchema& schema) {
  return std::visit(
      [&](const auto& type) {
        if constexpr (requires { type.random_paths(schema); }) return type.random_paths(schema);
        return false;
      },
      spec.problem);
}

std::size_t model_dim(const ProblemSpec& spec, const DataSchema& schema) {
  return std::visit([&](const auto& type) { return type.dim(schema); }, spec.problem);
}

std::vector<double> model_start(const ProblemSpec& spec, const DataSchema& schema) {
  return std::visit([&](const auto& type) { return type.start(schema, spec.seed); }, spec.problem);
}

template <class Real>
std::unique_ptr<Oracle<Real>> make_oracle(const ProblemSpec& spec, const DataSchema& schema,
                                          ClientDataset part, std::uint32_t client) {
  return std::visit(
      [&]<class Type>(const Type& type) -> std::unique_ptr<Oracle<Real>> {
        if constexpr (HasClientObjectives<Type>) {
          const bool has_data = ReadsRows<Type> || ReadsText<Type>;  // then the part is that of one client
          const auto clients = type.template client_objectives<Real>(
              schema, has_data ? SharedSamples(std::move(part)) : SharedSamples(), spec);
          auto oracle = clients->oracle();
          oracle->bind(has_data ? 0 : client);
          return oracle;
        } else {
          return type.template oracle<Real>(schema, part, client, spec);
        }
      },
      spec.problem);
}

template std::unique_ptr<Oracle<float>> make_oracle(const ProblemSpec&, const DataSchema&, ClientDataset,
                                                    std::uint32_t);
template std::unique_ptr<Oracle<double>> make_oracle(const ProblemSpec&, const DataSchema&, ClientDataset,
                                                     std::uint32_t);

namespace {

// An oracle that builds the function of a client from its samples each time it is bound.
template <class Real>
class MadeOracle final : public ForwardingOracle<Real, MadeOracle<Real>, RebindableOracle<Real>> {
  using Forwarding = ForwardingOracle<Real, MadeOracle<Real>, RebindableOracle<Real>>;

 public:
  MadeOracle(const ProblemSpec& spec, const DataSchema& schema, std::shared_ptr<const SharedSamples> samples)
      : spec_(spec), schema_(schema), samples_(std::move(samples)) {
    make(0);
  }
  MadeOracle(const MadeOracle& other) : MadeOracle(other.spec_, other.schema_, other.samples_) {}
  std::uint32_t clients() const { return samples_->clients(); }
  using Forwarding::sample_count;
  std::size_t sample_count(std::uint32_t client) const { return samples_->train_count(client); }

  void bind(std::uint32_t client) override {
    if (client != client_) make(client);
  }
  Oracle<Real>& inner() const { return *at_; }

 private:
  void make(std::uint32_t client) {
    at_ = make_oracle<Real>(spec_, schema_, samples_->part(client), client);
    client_ = client;
  }

  ProblemSpec spec_;
  DataSchema schema_;
  std::shared_ptr<const SharedSamples> samples_;
  std::uint32_t client_ = 0;
  std::unique_ptr<Oracle<Real>> at_;
};

}  // namespace

template <class Real>
std::unique_ptr<ClientObjectives<Real>> make_client_objectives(const ProblemSpec& spec,
                                                               const DataSchema& schema,
                                                               SharedSamples samples) {
  const bool has_data = spec.info().needs_data();
  if (has_data && samples.clients() != spec.clients)
    throw std::logic_error("make_client_objectives: the samples are of another number of clients");
  if (samples.made.part)
    return std::make_unique<ClientObjectivesOf<Real, MadeOracle<Real>>>(
        MadeOracle<Real>(spec, schema, std::make_shared<const SharedSamples>(std::move(samples))));
  return std::visit(
      [&]<class Type>(const Type& type) -> std::unique_ptr<ClientObjectives<Real>> {
        if constexpr (HasClientObjectives<Type>) {
          return type.template client_objectives<Real>(schema, std::move(samples), spec);
        } else {
          std::vector<std::unique_ptr<Oracle<Real>>> oracles;
          for (std::uint32_t client = 0; client < spec.clients; ++client)
            oracles.push_back(type.template oracle<Real>(
                schema, has_data ? samples.part(client) : ClientDataset{}, client, spec));
          return std::make_unique<OracleList<Real>>(std::move(oracles));
        }
      },
      spec.problem);
}

template std::unique_ptr<ClientObjectives<float>> make_client_objectives(const ProblemSpec&,
                                                                         const DataSchema&, SharedSamples);
template std::unique_ptr<ClientObjectives<double>> make_client_objectives(const ProblemSpec&,
                                                                          const DataSchema&, SharedSamples);

ClientSmoothness client_smoothness(const ProblemSpec& spec, const DataSchema& schema,
                                   const ClientDataset& part, std::uint32_t client) {
  // A client whose samples are all zero knows no feature. Any number of them gives it the same constants.
  DataSchema seen = schema;
  seen.columns = std::max<std::size_t>(seen.columns, 1);
  return with_constants<ClientSmoothness>(
      spec, [&](const auto& type) { return type.client_smoothness(seen, part, client, spec); });
}

Smoothness smoothness(const ProblemSpec& spec, const DataSchema& schema, std::span<const ClientDataset> parts,
                      std::span<const double> weights, const OrderedScan& scan) {
  if (!weights.empty() && weights.size() != spec.clients)
    throw std::logic_error("smoothness: needs one weight per client");
  if (spec.info().needs_data() && scan.all_clients(parts.size()) != spec.clients)
    throw std::logic_error("smoothness: needs one part per client");
  return with_constants<Smoothness>(
      spec, [&](const auto& type) { return type.smoothness(schema, parts, weights, spec, scan); });
}

bool has_minimum(const ProblemType& problem) {
  return std::visit(
      [](const auto& type) {
        if constexpr (requires { type.has_minimum(); }) return type.has_minimum();
        return true;
      },
      problem);
}

bool has_equal_clients(const ProblemType& problem) {
  return std::visit(
      [](const auto& type) {
        if constexpr (requires { type.has_equal_clients(); }) return type.has_equal_clients();
        return false;
      },
      problem);
}

double known_convexity(const ProblemSpec& spec) {
  return with_constants<double>(spec, [&](const auto& type) { return type.known_convexity(spec); });
}

Smoothness smoothness_from_clients(const ProblemSpec& spec, std::span<const ClientSmoothness> clients,
                                   std::span<const double> weights) {
  if (!weights.empty() && weights.size() != clients.size())
    throw std::logic_error("smoothness_from_clients: needs one weight per client");
  return with_constants<Smoothness>(
      spec, [&](const auto& type) { return type.smoothness_from_clients(clients, weights, spec); });
}

}  // namespace gradwire
