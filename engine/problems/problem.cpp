#include "engine/problems/problem.h"

#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "engine/problems/problem_kinds.h"

namespace gradwire {
namespace {

constexpr std::size_t kMaxDim = 0xfffffffe;  // coordinates have 32-bit numbers

template <class Real>
using MakeOracle = std::unique_ptr<Oracle<Real>> (*)(const ProblemSpec&, const Agreement&, const Part&,
                                                     std::uint32_t client);

struct Entry {
  ProblemKind facts;
  void (*check)(const ProblemSpec&, const Agreement&);
  std::size_t (*dim)(const ProblemSpec&, const Agreement&);
  std::vector<double> (*start)(const ProblemSpec&, const Agreement&);
  MakeOracle<float> oracle32;
  MakeOracle<double> oracle64;
};

template <class Kind>
constexpr Entry entry(const ProblemKind& facts) {
  return {facts,
          &Kind::check,
          &Kind::dim,
          &Kind::start,
          &Kind::template oracle<float>,
          &Kind::template oracle<double>};
}

constexpr Entry kKinds[] = {
    entry<QuadraticKind>({
        .name = "quadratic",
        .summary =
            "tridiagonal quadratics x^T A_i x / 2 - b_i^T x; heterogeneity says how much clients differ",
        .data = DataForm::kNone,
        .has_classes = false,
        .has_smoothness = true,
        .is_network = false,
    }),
    entry<LeastSquaresKind>({
        .name = "least_squares",
        .summary = "||A_i x - y_i||^2 / (2 m_i), the labels as they stand",
        .data = DataForm::kRows,
        .has_classes = false,
        .has_smoothness = true,
        .is_network = false,
    }),
    entry<LogisticKind>({
        .name = "logistic",
        .summary = "mean_j log(1 + exp(-b_j a_j^T x)), two labels; loss = \"sigmoid_squared\": mean_j (1 - "
                   "sigma(b_j a_j^T x))^2",
        .data = DataForm::kRows,
        .has_classes = true,
        .has_smoothness = true,
        .is_network = false,
    }),
    entry<MlpKind>({
        .name = "mlp",
        .summary = "softmax cross-entropy of a fully connected network; hidden = [] is softmax regression",
        .data = DataForm::kRows,
        .has_classes = true,
        .has_smoothness = false,
        .is_network = true,
    }),
    entry<CharMlpKind>({
        .name = "char_mlp",
        .summary =
            "the next letter of a name, from the `context` letters before it; a file with one name per line",
        .data = DataForm::kText,
        .has_classes = false,
        .has_smoothness = false,
        .is_network = true,
    }),
    entry<GptKind>({
        .name = "gpt",
        .summary =
            "a transformer that predicts the next letter at each of `context` positions of running text",
        .data = DataForm::kText,
        .has_classes = false,
        .has_smoothness = false,
        .is_network = true,
    }),
    entry<CnnKind>({
        .name = "cnn",
        .summary = "LeNet on images: convolutions 5 x 5 with max pooling, then fully connected layers",
        .data = DataForm::kRows,
        .has_classes = true,
        .has_smoothness = false,
        .is_network = true,
    }),
};

const Entry& find(const ProblemSpec& spec) {
  std::string known;
  for (const Entry& kind : kKinds) {
    if (kind.facts.name == spec.kind) return kind;
    known += (known.empty() ? "" : ", ") + std::string(kind.facts.name);
  }
  throw DataError("unknown problem kind '" + spec.kind + "'; known are " + known);
}

}  // namespace

std::span<const ProblemKind> problem_kinds() {
  static const std::vector<ProblemKind> kinds = [] {
    std::vector<ProblemKind> all;
    for (const Entry& kind : kKinds) all.push_back(kind.facts);
    return all;
  }();
  return kinds;
}

void check_agreement(const ProblemSpec& spec, const Agreement& agreement) {
  const Entry& kind = find(spec);
  if (!(spec.lambda >= 0) || !std::isfinite(spec.lambda))
    throw DataError("problem.lambda must be a finite number, 0 or more");
  if (kind.facts.data == DataForm::kRows) feature_count(spec, agreement);
  kind.check(spec, agreement);
  std::size_t d = 0;
  try {
    d = kind.dim(spec, agreement);
  } catch (const std::logic_error& error) {  // each size is in range, but not all together
    throw DataError("[problem] describes no usable model: " + std::string(error.what()));
  }
  if (d > kMaxDim) throw DataError("the model has more than " + std::to_string(kMaxDim) + " parameters");
}

std::size_t model_dim(const ProblemSpec& spec, const Agreement& agreement) {
  return find(spec).dim(spec, agreement);
}

std::vector<double> model_start(const ProblemSpec& spec, const Agreement& agreement) {
  return find(spec).start(spec, agreement);
}

template <class Real>
std::unique_ptr<Oracle<Real>> make_oracle(const ProblemSpec& spec, const Agreement& agreement,
                                          const Part& part, std::uint32_t client) {
  const Entry& kind = find(spec);
  if constexpr (std::is_same_v<Real, float>) return kind.oracle32(spec, agreement, part, client);
  if constexpr (std::is_same_v<Real, double>) return kind.oracle64(spec, agreement, part, client);
}

template std::unique_ptr<Oracle<float>> make_oracle(const ProblemSpec&, const Agreement&, const Part&,
                                                    std::uint32_t);
template std::unique_ptr<Oracle<double>> make_oracle(const ProblemSpec&, const Agreement&, const Part&,
                                                     std::uint32_t);

template <class Real>
std::vector<std::unique_ptr<Oracle<Real>>> make_oracles(const ProblemSpec& spec, const Agreement& agreement,
                                                        std::span<const Part> parts) {
  const Entry& kind = find(spec);
  if (kind.facts.needs_data() && parts.size() != spec.clients)
    throw std::logic_error("make_oracles: one part per client");
  if (spec.kind == "quadratic") return QuadraticKind::oracles<Real>(spec);
  std::vector<std::unique_ptr<Oracle<Real>>> oracles;
  oracles.reserve(spec.clients);
  for (std::uint32_t client = 0; client < spec.clients; ++client)
    oracles.push_back(make_oracle<Real>(spec, agreement, parts[client], client));
  return oracles;
}

template std::vector<std::unique_ptr<Oracle<float>>> make_oracles(const ProblemSpec&, const Agreement&,
                                                                  std::span<const Part>);
template std::vector<std::unique_ptr<Oracle<double>>> make_oracles(const ProblemSpec&, const Agreement&,
                                                                   std::span<const Part>);

}  // namespace gradwire
