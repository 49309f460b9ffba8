// From [problem] of an experiment and a client's samples to its oracle: the one place where kinds of problem
// are listed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/oracle.h"
#include "engine/part.h"
#include "engine/regularizer.h"
#include "engine/smoothness/smoothness.h"

namespace gradwire {

// The loss of a margin z = b a^T x: log(1 + e^-z), or (1 - sigma(z))^2.
enum class LinearLoss : std::uint8_t { kLogistic, kSigmoidSquared };

// [problem] of an experiment, as far as oracles are concerned. A number 0 or an empty word, where allowed,
// means the default of the model (engine/models/).
struct ProblemSpec {
  std::string kind;  // one of problem_kinds()
  Regularizer regularizer = Regularizer::kNone;
  LinearLoss loss = LinearLoss::kLogistic;  // logistic
  bool bias = false;         // logistic, least_squares: a constant feature 1 behind the last one
  double lambda = 0;         // of the regulariser; quadratic: the smallest eigenvalue of the mean
  std::size_t dim = 0;       // quadratic: d; with data: overrides the largest index in the file when > 0
  double heterogeneity = 0;  // quadratic: s of engine/problems/quadratic.h, 0 = equal clients
  std::vector<std::uint32_t>
      hidden;               // mlp, char_mlp, cnn: widths of the hidden layers; none is softmax regression
  std::string activation;   // networks: tanh, relu, sigmoid or gelu
  std::size_t context = 0;  // char_mlp, gpt: letters that the next one is predicted from
  std::size_t width = 0;    // char_mlp: of a letter's vector; gpt: of the model
  std::size_t layers = 0;   // gpt
  std::size_t heads = 0;    // gpt: divides width
  double epsilon = 1e-5;    // gpt: of the layer norms
  bool tanh_logits = true;  // char_mlp, gpt
  std::vector<std::uint32_t> filters;             // cnn: of each convolution, one or more
  std::size_t channels = 0;                       // cnn: numbers per pixel; they come channel by channel
  std::size_t image_height = 0, image_width = 0;  // cnn; both 0: a square
  std::uint32_t clients = 1;                      // n
  std::uint64_t seed = 1;
};

// What the clients must agree on before any of them can build an oracle.
struct Agreement {
  std::size_t columns = 0;          // number of features
  std::vector<double> labels = {};  // the distinct labels of all clients, ascending
  std::string alphabet = {};        // the distinct letters of all clients, ascending bytes
};

enum class DataForm : std::uint8_t { kNone, kRows, kText };

struct ProblemKind {
  std::string_view name;
  std::string_view summary;  // one line for `gradwire list`
  DataForm data;
  bool has_classes;     // labels are classes that the clients agree on
  bool has_smoothness;  // closed-form constants: step_size = "theory" works
  bool is_network;      // starts at a point of its own, not at 0

  bool needs_data() const { return data != DataForm::kNone; }
};
std::span<const ProblemKind> problem_kinds();

// Throws DataError (one line) when labels, letters or shapes do not fit the kind, e.g. logistic with three
// labels.
void check_agreement(const ProblemSpec& spec, const Agreement& agreement);

// d, the length of x.
std::size_t model_dim(const ProblemSpec& spec, const Agreement& agreement);

// x0 = "model": the problem's own start, shape (d); a function of spec.seed (networks: scaled random weights;
// quadratic: sqrt(d) e_1; otherwise zeros).
std::vector<double> model_start(const ProblemSpec& spec, const Agreement& agreement);

// `client` in [0, spec.clients). The oracle copies what it needs from the part. REQUIRES: check_agreement
// passed.
template <class Real>
std::unique_ptr<Oracle<Real>> make_oracle(const ProblemSpec& spec, const Agreement& agreement,
                                          const Part& part, std::uint32_t client);

// The oracles of all clients as make_oracle() gives them, with what they share computed once. REQUIRES: the
// same, and parts.size() == spec.clients (parts may be empty for kinds without data).
template <class Real>
std::vector<std::unique_ptr<Oracle<Real>>> make_oracles(const ProblemSpec& spec, const Agreement& agreement,
                                                        std::span<const Part> parts);

// The constants of one client, from its own samples alone. REQUIRES: the kind has_smoothness.
ClientSmoothness client_smoothness(const ProblemSpec& spec, const Agreement& agreement, const Part& part,
                                   std::uint32_t client);

// The constants of f = sum_i weights[i] f_i (weights empty: 1/n each). REQUIRES: the kind has_smoothness;
// parts.size() == spec.clients (kinds without data ignore the parts).
Smoothness smoothness(const ProblemSpec& spec, const Agreement& agreement, std::span<const Part> parts,
                      std::span<const double> weights);

// A lower bound of mu that is known without data: 0 where f need not be strongly convex. REQUIRES: the kind
// has_smoothness.
double known_convexity(const ProblemSpec& spec);

// For a server that sees no data: L is the mean of the L_i (an upper bound), mu the mean of the mu_i, exact =
// false; means by `weights` (empty: 1/n each).
Smoothness smoothness_from_clients(const ProblemSpec& spec, std::span<const ClientSmoothness> clients,
                                   std::span<const double> weights = {});

}  // namespace gradwire
