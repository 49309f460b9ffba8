#include "engine/problems/problem.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <iterator>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "base/config_error.h"
#include "base/nearest.h"

namespace gradwire {
namespace {

template <class Kind>
concept ReadsRows = requires(Kind kind) {
  kind.rows;
};
template <class Kind>
concept ReadsText = requires(Kind kind) {
  kind.text;
  Kind::kTextForm;
  kind.context();
};
template <class Kind>
concept HasClientObjectives = requires(const Kind kind, const DataSchema schema, SharedSamples samples,
                                       AllClients all) {
  {
    kind.template client_objectives<double>(schema, std::move(samples), all)
    } -> std::convertible_to<std::unique_ptr<ClientObjectives<double>>>;
};
template <class Kind>
concept HasOracle = requires(const Kind kind, const DataSchema schema, const ClientDataset part,
                             AllClients all) {
  {
    kind.template oracle<double>(schema, part, std::uint32_t{}, all)
    } -> std::convertible_to<std::unique_ptr<Oracle<double>>>;
};
template <class Kind>
concept HasSmoothness = requires(const Kind kind, const DataSchema schema,
                                 std::span<const ClientDataset> parts, std::span<const double> weights,
                                 std::span<const ClientSmoothness> clients, AllClients all,
                                 const Turns& turns) {
  kind.smoothness(schema, parts, weights, all, turns);
  kind.client_smoothness(schema, parts[0], 0, all);
  kind.known_convexity(all);
  kind.smoothness_from_clients(clients, weights, all);
};

// A readable line of the compiler for a kind that lacks something.
template <class Kind>
constexpr bool is_kind() {
  static_assert(std::is_same_v<decltype(Kind::traits), const ProblemTraits>,
                "a kind needs constexpr ProblemTraits traits");
  static_assert(
      requires(Kind kind, Collector collect) { Kind::fields(kind, collect); },
      "a kind needs static void fields(auto& self, auto&& visit)");
  static_assert(
      requires(const Kind kind) { kind.check(); }, "a kind needs void check() const");
  static_assert(
      requires(const Kind kind, const DataSchema schema) { kind.check(schema); },
      "a kind needs void check(const DataSchema&) const");
  static_assert(
      requires(const Kind kind, const DataSchema schema) {
        { kind.dim(schema) } -> std::convertible_to<std::size_t>;
        { kind.start(schema, std::uint64_t{}) } -> std::convertible_to<std::vector<double>>;
      },
      "a kind needs dim(const DataSchema&) const and start(const DataSchema&, std::uint64_t seed) const");
  static_assert(
      HasClientObjectives<Kind> || HasOracle<Kind>,
      "a kind needs client_objectives<Real>(const DataSchema&, SharedSamples, const AllClients&) const, or "
      "oracle<Real>(const DataSchema&, const ClientDataset&, std::uint32_t client, const AllClients&) const");
  static_assert(!(ReadsRows<Kind> && ReadsText<Kind>), "a kind reads rows or text, not both");
  static_assert(
      HasSmoothness<Kind> || !requires(const Kind kind) { &Kind::smoothness; },
      "a kind with smoothness() needs the other three of engine/problems/kind.h");
  return true;
}

template <class Kind>
constexpr ProblemKind traits_of() {
  static_assert(is_kind<Kind>());
  return {Kind::traits,
          ReadsRows<Kind>   ? DataForm::kRows
          : ReadsText<Kind> ? DataForm::kText
                            : DataForm::kNone,
          HasSmoothness<Kind>};
}

template <class... Kinds>
constexpr std::array<ProblemKind, sizeof...(Kinds)> all_traits(const std::variant<Kinds...>*) {
  return {traits_of<Kinds>()...};
}
constexpr auto kKinds = all_traits(static_cast<const Problem*>(nullptr));

// Sets `problem` to the kind of that number.
template <std::size_t... Numbers>
void set_kind(Problem& problem, std::size_t number, std::index_sequence<Numbers...>) {
  ((Numbers == number ? (void)problem.emplace<Numbers>() : void()), ...);
}

// Calls f(kind) for a kind that has constants. Result is named: clang 16 crashes where it is deduced from f.
template <class Result, class F>
Result with_constants(const ProblemSpec& spec, const F& f) {
  return std::visit(
      [&]<class Kind>(const Kind& kind) -> Result {
        if constexpr (HasSmoothness<Kind>) return f(kind);
        throw std::logic_error("no closed-form smoothness for the problem kind '" +
                               std::string(Kind::traits.name) + "'");
      },
      spec.problem);
}

}  // namespace

std::span<const ProblemKind> problem_kinds() { return kKinds; }

const ProblemKind& kind_of(const Problem& problem) { return kKinds[problem.index()]; }

Problem problem_of(const std::string& kind) {
  Problem problem;
  std::vector<std::string> known;
  for (std::size_t number = 0; number < kKinds.size(); ++number) {
    known.emplace_back(kKinds[number].name);
    if (kKinds[number].name != kind) continue;
    set_kind(problem, number, std::make_index_sequence<kKinds.size()>());
    return problem;
  }
  throw ConfigError("problem.kind", "unknown kind '" + kind.substr(0, 100) + "'" + suggest(kind, known));
}

std::vector<Field> problem_fields(Problem& problem) {
  return std::visit([](auto& kind) { return fields_of(kind); }, problem);
}

void check_problem(const Problem& problem) {
  std::visit([](const auto& kind) { kind.check(); }, problem);
}

const SampleSource* sources_of(const Problem& problem) {
  return std::visit(
      []<class Kind>(const Kind& kind) -> const SampleSource* {
        if constexpr (ReadsRows<Kind>) return &kind.rows;
        if constexpr (ReadsText<Kind>) return &kind.text;
        return nullptr;
      },
      problem);
}
SampleSource* sources_of(Problem& problem) {
  return const_cast<SampleSource*>(sources_of(std::as_const(problem)));
}

const RowsData* rows_of(const Problem& problem) {
  return std::visit(
      []<class Kind>(const Kind& kind) -> const RowsData* {
        if constexpr (ReadsRows<Kind>) return &kind.rows;
        return nullptr;
      },
      problem);
}

std::optional<TextReading> text_reading(const Problem& problem) {
  return std::visit(
      []<class Kind>(const Kind& kind) -> std::optional<TextReading> {
        if constexpr (ReadsText<Kind>) return TextReading{Kind::kTextForm, kind.context()};
        return std::nullopt;
      },
      problem);
}

DataSchema schema_of(const SharedSamples& samples, const ProblemSpec& spec) {
  DataSchema schema;
  schema.columns = std::max(samples.train.columns, samples.test.columns);
  if (spec.kind().has_classes) {
    const std::vector<double> train =
                                  samples.made.part ? samples.made.labels : distinct_labels(samples.train),
                              test = distinct_labels(samples.test);
    std::set_union(train.begin(), train.end(), test.begin(), test.end(), std::back_inserter(schema.labels));
  }
  schema.alphabet = unite_alphabets(samples.train_text.alphabet(), samples.test_text.alphabet());
  return schema;
}

void check_schema(const ProblemSpec& spec, const DataSchema& schema) {
  if (spec.clients == 0) throw DataError("a problem needs at least one client");
  std::visit([&](const auto& kind) { kind.check(schema); }, spec.problem);
  std::size_t d = 0;
  try {
    d = model_dim(spec, schema);
  } catch (const std::logic_error& error) {  // each size is in range, but not all together
    throw DataError("[problem] describes no usable model: " + std::string(error.what()));
  }
  if (static_cast<double>(d) > kMaxModelDim)
    throw DataError("the model has more than " + std::to_string(static_cast<std::uint64_t>(kMaxModelDim)) +
                    " parameters");
}

template <class Real>
std::string check_activations(const ProblemSpec& spec, const DataSchema& schema) {
  return std::visit(
      [&]<class Kind>(const Kind& kind) -> std::string {
        if constexpr (requires { kind.template check_activations<Real>(schema); })
          return kind.template check_activations<Real>(schema);
        return "";
      },
      spec.problem);
}

template std::string check_activations<float>(const ProblemSpec&, const DataSchema&);
template std::string check_activations<double>(const ProblemSpec&, const DataSchema&);

bool has_random_paths(const ProblemSpec& spec, const DataSchema& schema) {
  return std::visit(
      [&](const auto& kind) {
        if constexpr (requires { kind.random_paths(schema); }) return kind.random_paths(schema);
        return false;
      },
      spec.problem);
}

std::size_t model_dim(const ProblemSpec& spec, const DataSchema& schema) {
  return std::visit([&](const auto& kind) { return kind.dim(schema); }, spec.problem);
}

std::vector<double> model_start(const ProblemSpec& spec, const DataSchema& schema) {
  return std::visit([&](const auto& kind) { return kind.start(schema, spec.seed); }, spec.problem);
}

template <class Real>
std::unique_ptr<Oracle<Real>> make_oracle(const ProblemSpec& spec, const DataSchema& schema,
                                          const ClientDataset& part, std::uint32_t client) {
  return std::visit(
      [&]<class Kind>(const Kind& kind) -> std::unique_ptr<Oracle<Real>> {
        if constexpr (HasClientObjectives<Kind>) {
          const bool has_data = ReadsRows<Kind> || ReadsText<Kind>;  // then the part is that of one client
          const auto clients = kind.template client_objectives<Real>(
              schema, has_data ? SharedSamples(part) : SharedSamples(), spec);
          auto oracle = clients->oracle();
          oracle->bind(has_data ? 0 : client);
          return oracle;
        } else {
          return kind.template oracle<Real>(schema, part, client, spec);
        }
      },
      spec.problem);
}

template std::unique_ptr<Oracle<float>> make_oracle(const ProblemSpec&, const DataSchema&,
                                                    const ClientDataset&, std::uint32_t);
template std::unique_ptr<Oracle<double>> make_oracle(const ProblemSpec&, const DataSchema&,
                                                     const ClientDataset&, std::uint32_t);

namespace {

// The function of a client is made anew from its samples whenever an oracle moves there.
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
  const bool has_data = spec.kind().needs_data();
  if (has_data && samples.clients() != spec.clients)
    throw std::logic_error("make_population: the samples are of another number of clients");
  if (samples.made.part)
    return std::make_unique<ClientObjectivesOf<Real, MadeOracle<Real>>>(
        MadeOracle<Real>(spec, schema, std::make_shared<const SharedSamples>(std::move(samples))));
  return std::visit(
      [&]<class Kind>(const Kind& kind) -> std::unique_ptr<ClientObjectives<Real>> {
        if constexpr (HasClientObjectives<Kind>) {
          return kind.template client_objectives<Real>(schema, std::move(samples), spec);
        } else {
          std::vector<std::unique_ptr<Oracle<Real>>> oracles;
          for (std::uint32_t client = 0; client < spec.clients; ++client)
            oracles.push_back(kind.template oracle<Real>(
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
  return with_constants<ClientSmoothness>(
      spec, [&](const auto& kind) { return kind.client_smoothness(schema, part, client, spec); });
}

Smoothness smoothness(const ProblemSpec& spec, const DataSchema& schema, std::span<const ClientDataset> parts,
                      std::span<const double> weights, const Turns& turns) {
  if (!weights.empty() && weights.size() != spec.clients)
    throw std::logic_error("smoothness: one weight per client");
  if (spec.kind().needs_data() && turns.all_clients(parts.size()) != spec.clients)
    throw std::logic_error("smoothness: one part per client");
  return with_constants<Smoothness>(
      spec, [&](const auto& kind) { return kind.smoothness(schema, parts, weights, spec, turns); });
}

bool has_minimum(const Problem& problem) {
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.has_minimum(); }) return kind.has_minimum();
        return true;
      },
      problem);
}

bool has_equal_clients(const Problem& problem) {
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.has_equal_clients(); }) return kind.has_equal_clients();
        return false;
      },
      problem);
}

double known_convexity(const ProblemSpec& spec) {
  return with_constants<double>(spec, [&](const auto& kind) { return kind.known_convexity(spec); });
}

Smoothness smoothness_from_clients(const ProblemSpec& spec, std::span<const ClientSmoothness> clients,
                                   std::span<const double> weights) {
  if (!weights.empty() && weights.size() != clients.size())
    throw std::logic_error("smoothness_from_clients: one weight per client");
  return with_constants<Smoothness>(
      spec, [&](const auto& kind) { return kind.smoothness_from_clients(clients, weights, spec); });
}

}  // namespace gradwire
