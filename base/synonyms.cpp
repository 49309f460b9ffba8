#include "base/synonyms.h"

#include <algorithm>
#include <array>

namespace gradwire {
namespace {

// A word may have several rows. The first one whose name is known counts.
constexpr auto kSynonyms = std::to_array<Synonym>({
    // problem types
    {"logreg", "logistic"},
    {"logit", "logistic"},
    {"logistic_regression", "logistic"},
    {"linreg", "least_squares"},
    {"linear_regression", "least_squares"},
    {"ols", "least_squares"},
    {"ridge", "least_squares", "regularizer = \"l2\" and lambda = 0.1"},
    {"ridge_regression", "least_squares", "regularizer = \"l2\" and lambda = 0.1"},
    {"softmax", "mlp", "hidden = []"},
    {"softmax_regression", "mlp", "hidden = []"},
    {"multinomial", "mlp", "hidden = []"},
    {"nn", "mlp"},
    {"neural_network", "mlp"},
    {"lenet", "cnn"},
    {"convnet", "cnn"},
    {"transformer", "gpt"},
    // algorithms
    {"gradient_descent", "gd"},
    {"dgd", "gd"},
    {"fedsgd", "sgd_nice"},
    {"sgd", "sgd_nice", "batch = 8"},
    {"minibatch_sgd", "sgd_nice", "batch = 8"},
    {"local_sgd", "fedavg", "local_steps = 5 and batch = 8"},
    {"localsgd", "fedavg", "local_steps = 5 and batch = 8"},
    {"local_gd", "fedavg", "local_steps = 5"},
    {"federated_averaging", "fedavg"},
    {"scaffnew", "proxskip"},
    {"agd", "nesterov"},
    {"accelerated_gd", "nesterov"},
    {"cgd", "dcgd"},
    {"qsgd", "dcgd", "compressor = \"qsgd\""},
    {"error_feedback", "ef14"},
    {"ec_sgd", "ef14"},
    {"ef_sgd", "ef14"},
    {"ef21_momentum", "ef21_sgdm"},
    {"async_sgd", "asgd"},
    {"adam", "fedadam"},
    // compressors
    {"none", "identity"},
    {"uncompressed", "identity"},
    {"random_k", "randk"},
    {"quantization", "qsgd"},
    {"natural_compression", "natural"},
    {"signsgd", "sign"},
    {"low_rank", "rankk"},
    {"powersgd", "rankk"},
    // keys
    {"method", "algorithm.name"},
    {"algorithm", "algorithm.name"},
    {"optimizer", "algorithm.name"},
    {"step", "algorithm.step_size"},
    {"stepsize", "algorithm.step_size"},
    {"gamma", "algorithm.step_size"},
    {"lr", "algorithm.step_size"},
    {"learning_rate", "algorithm.step_size"},
    {"server_lr", "algorithm.step_size"},
    {"local_lr", "algorithm.local_step_size"},
    {"client_lr", "algorithm.local_step_size"},
    {"batch_size", "algorithm.batch"},
    {"minibatch", "algorithm.batch"},
    {"n", "clients.count"},
    {"clients", "clients.count"},
    {"n_clients", "clients.count"},
    {"num_clients", "clients.count"},
    {"workers", "clients.count"},
    {"n_workers", "clients.count"},
    {"num_workers", "clients.count"},
    {"nodes", "clients.count"},
    {"client_fraction", "clients.participation"},
    {"sample_rate", "clients.participation"},
    {"iterations", "run.rounds"},
    {"iters", "run.rounds"},
    {"steps", "run.rounds"},
    {"num_rounds", "run.rounds"},
    {"n_rounds", "run.rounds"},
    {"eval_every", "run.evaluate_every"},
    {"problem", "problem.kind"},
    {"objective", "problem.kind"},
    {"model", "problem.kind"},
    {"type", "problem.kind"},
    {"dataset", "problem.data"},
    {"d", "problem.dim"},
    {"dimension", "problem.dim"},
    {"reg", "problem.regularizer"},
    {"regularization", "problem.regularizer"},
    {"random_seed", "seed"},
    {"dtype", "precision"},
    // columns of figures
    {"round", "rounds"},
    {"iteration", "rounds"},
    {"iter", "rounds"},
    {"epoch", "grad_calls"},
    {"epochs", "grad_calls"},
    {"time", "seconds"},
    {"wallclock", "seconds"},
    {"wall_clock", "seconds"},
    {"walltime", "seconds"},
    {"communication", "bits"},
    {"grad", "grad_norm_sq"},
    {"gradient", "grad_norm_sq"},
    {"grad_norm", "grad_norm_sq"},
    {"gradnorm", "grad_norm_sq"},
    {"f", "loss"},
    {"objective", "loss"},
    {"acc", "accuracy"},
    {"f_f*", "gap"},
    {"f_fstar", "gap"},
    {"f_f_star", "gap"},
    {"f_gap", "gap"},
    {"suboptimality", "gap"},
    // topics of `gradwire list`
    {"algorithm", "algorithms"},
    {"method", "algorithms"},
    {"methods", "algorithms"},
    {"compressor", "compressors"},
    {"quantizers", "compressors"},
    {"optimizer", "optimizers"},
    {"problem", "problems"},
    {"models", "problems"},
    {"objectives", "problems"},
    {"key", "keys"},
    {"settings", "keys"},
    {"options", "keys"},
    {"parameters", "keys"},
    {"dataset", "data"},
    {"datasets", "data"},
    {"metric", "metrics"},
    {"columns", "metrics"},
    {"experiment", "experiments"},
    {"configs", "experiments"},
    {"examples", "experiments"},
    // commands
    {"train", "run"},
    {"simulate", "run"},
    {"start", "run"},
    {"figure", "plot"},
    {"draw", "plot"},
    {"test", "evaluate"},
    {"download", "data"},
});

std::string_view last_part(std::string_view name) { return name.substr(name.find('.') + 1); }

}  // namespace

std::span<const Synonym> synonyms() { return kSynonyms; }

std::string plain_spelling(std::string_view word) {
  std::string plain(word);
  for (char& c : plain) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-' || c == ' ') c = '_';
  }
  return plain;
}

std::optional<MeantName> meant_name(std::string_view word, std::span<const std::string> known) {
  const std::string plain = plain_spelling(word);
  for (const std::string& name : known)
    if (plain_spelling(name) == plain) return MeantName{name, {}};
  for (const Synonym& row : kSynonyms) {
    if (row.word != plain) continue;
    auto at = std::find(known.begin(), known.end(), row.name);
    if (at == known.end()) at = std::find(known.begin(), known.end(), last_part(row.name));
    if (at != known.end()) return MeantName{*at, row.with};
  }
  return std::nullopt;
}

}  // namespace gradwire
