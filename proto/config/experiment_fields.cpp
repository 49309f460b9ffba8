#include "proto/config/experiment_fields.h"

#include <algorithm>
#include <type_traits>

#include "base/config_error.h"
#include "base/nearest.h"
#include "engine/problems/problem.h"
#include "proto/config/client_seconds.h"

namespace gradwire {
namespace {

constexpr double kMaxU32 = 4294967295.0;
constexpr double kMaxClients = 1e6;
constexpr double kMaxWidth = 1e6;  // of a layer
constexpr double kMaxContext = 4096;
constexpr double kMaxLayers = 1000;
constexpr double kMaxChannels = 1024;
constexpr double kMaxSide = 4096;  // of an image
constexpr double kMaxClasses = 65536;
constexpr double kMaxDim = kMaxU32 - 1;  // indices of coordinates have 32 bits
constexpr std::size_t kLongestName = 100;

// ---- where a field is kept ----

template <class T>
TomlValue to_value(const T& v) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return static_cast<std::int64_t>(v);  // above 2^63 it turns negative, which no field accepts
  } else {
    return v;
  }
}

template <class T>
T from_value(const TomlValue& v) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return static_cast<T>(std::get<std::int64_t>(v));
  } else {
    return std::get<T>(v);
  }
}

// ---- checks of text ----

void check_name(const Field& field, const std::string& name) {
  if (name.empty() || name.front() == '.' || name.find_first_of("/\\") != std::string::npos ||
      name.size() > kLongestName)
    field.fail("name " + describe(name) +
               " cannot be the name of a folder: no slashes, no dot in front, 1 to " +
               std::to_string(kLongestName) + " characters");
}

void check_source(const Field& field, const std::string& source) {
  if (source.empty() || source == "digits" || source == "synthetic") return;
  const std::size_t colon = source.find(':');
  const std::string scheme = source.substr(0, colon);
  if (scheme == "libsvm" || scheme == "csv" || scheme == "idx" || scheme == "text") {
    if (colon != std::string::npos && colon + 1 < source.size()) return;
    field.fail(std::string(field.key) + " '" + scheme + "' needs a path, as in " + scheme + ":PATH");
  }
  field.fail("unknown data source " + describe(source) +
             suggest(scheme, {"digits", "libsvm", "csv", "idx", "text", "synthetic"}));
}

void check_x0(const Field& field, const std::string& x0) {
  if (x0.empty() || x0 == "zeros" || x0 == "normal" || x0 == "model") return;
  if (x0.starts_with("file:") && x0.size() > 5) return;
  field.fail("unknown x0 " + describe(x0) + suggest(x0, {"zeros", "normal", "model", "file:PATH"}));
}

void check_seconds(const Field&, const std::string& seconds) { (void)parse_client_seconds(seconds); }

// ---- when a default is worth a line in a written file ----

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const ProblemKind& kind : problem_kinds()) names.emplace_back(kind.name);
  return names;
}

bool never(const proto::Experiment&) { return false; }
bool has_data(const proto::Experiment& e) { return !e.problem().data().empty(); }
bool is_synthetic(const proto::Experiment& e) { return e.problem().data() == "synthetic"; }
bool is_quadratic(const proto::Experiment& e) { return e.problem().kind() == "quadratic"; }
bool is_regularized(const proto::Experiment& e) {
  return e.problem().regularizer() != "none" || is_quadratic(e);
}
bool is_dirichlet(const proto::Experiment& e) { return e.clients().partition() == "dirichlet"; }

// ---- the table ----

using enum FieldType;

// clang-format off

// protobuf's lite runtime has no reflection: two functions per field.
#define GRADWIRE_TOP(name)                                                                              \
  .get = [](const proto::Experiment& e) { return to_value(e.name()); },                                 \
  .set = [](proto::Experiment& e, const TomlValue& v) {                                                 \
    e.set_##name(from_value<std::decay_t<decltype(e.name())>>(v));                                      \
  },                                                                                                    \
  .section = "", .key = #name
#define GRADWIRE_IN(part, name)                                                                         \
  .get = [](const proto::Experiment& e) { return to_value(e.part().name()); },                          \
  .set = [](proto::Experiment& e, const TomlValue& v) {                                                 \
    e.mutable_##part()->set_##name(from_value<std::decay_t<decltype(e.part().name())>>(v));             \
  },                                                                                                    \
  .section = #part, .key = #name
// Text that the file may also spell as a number or a bool.
#define GRADWIRE_TEXT_IN(part, name)                                                                    \
  .get = [](const proto::Experiment& e) { return value_of(e.part().name()); },                          \
  .set = [](proto::Experiment& e, const TomlValue& v) { e.mutable_##part()->set_##name(text_of(v)); },  \
  .section = #part, .key = #name

#define GRADWIRE_LIST_IN(part, name)                                                                    \
  .get = [](const proto::Experiment& e) -> TomlValue {                                                  \
    return std::vector<std::int64_t>(e.part().name().begin(), e.part().name().end());                   \
  },                                                                                                    \
  .set = [](proto::Experiment& e, const TomlValue& v) {                                                 \
    const auto& list = std::get<std::vector<std::int64_t>>(v);                                          \
    e.mutable_##part()->mutable_##name()->Assign(list.begin(), list.end());                             \
  },                                                                                                    \
  .section = #part, .key = #name

Field batch_field() {
  return {.type = kWordOrInteger, .low = 1, .high = kMaxU32, .words = {"full"},
          .get = [](const proto::Experiment& e) -> TomlValue {
            if (e.algorithm().batch() == 0) return "full";
            return to_value(e.algorithm().batch());
          },
          .set = [](proto::Experiment& e, const TomlValue& v) {
            const bool full = std::holds_alternative<std::string>(v);
            e.mutable_algorithm()->set_batch(full ? 0 : from_value<std::uint32_t>(v));
          },
          .section = "algorithm", .key = "batch", .fallback = "full",
          .meaning = "samples per stochastic gradient; full: all of the client's"};
}

std::vector<Field> top_fields() {
  return {
      {.check_text = check_name, GRADWIRE_TOP(name), .fallback = "",
       .fallback_note = "the file's name without .toml", .meaning = "results go to results/NAME"},
      {.type = kInteger, GRADWIRE_TOP(seed), .fallback = std::int64_t{1},
       .meaning = "every random number of the run is a function of it"},
      {.type = kWord, .words = {"fp64", "fp32"}, GRADWIRE_TOP(precision), .fallback = "fp64",
       .meaning = "of the model and of all vectors that travel"},
  };
}

std::vector<Field> problem_fields() {
  return {
      {.type = kWord, .words = kind_names(), GRADWIRE_IN(problem, kind), .fallback = "", .fallback_note = "required",
       .meaning = "the family of objectives"},
      {.check_text = check_source, GRADWIRE_IN(problem, data), .fallback = "",
       .fallback_note = "required, except by quadratic",
       .meaning = "`digits`, `libsvm:PATH`, `csv:PATH`, `idx:DIR` (MNIST) or `synthetic`; char_mlp, gpt: "
                  "`text:PATH`; gzipped will do",
       .matters = never},
      {.check_text = check_source, GRADWIRE_IN(problem, test), .fallback = "", .fallback_note = "none",
       .meaning = "data on which accuracy is measured, spelled like data", .matters = never},
      {.type = kNumber, .high = 1, .high_open = true, GRADWIRE_IN(problem, test_share), .fallback = 0.0,
       .meaning = "share of the samples held out for accuracy before the rest is split: drawn ones; gpt: the end "
                  "of the text",
       .matters = has_data},
      {.type = kWord, .words = {"none", "l2", "nonconvex"}, GRADWIRE_IN(problem, regularizer),
       .fallback = "none", .meaning = "logistic, least_squares: `l2` is lambda/2 sum_j x_j^2, `nonconvex` is "
                                      "lambda sum_j x_j^2 / (1 + x_j^2)",
       .matters = is_regularized},
      {.type = kWord, .words = {"logistic", "sigmoid_squared"}, GRADWIRE_IN(problem, loss), .fallback = "",
       .kinds = {{"logistic", "logistic"}},
       .meaning = "of a margin z: `logistic` is log(1 + e^-z), `sigmoid_squared` is (1 - sigma(z))^2, which is "
                  "not convex",
       .matters = never},
      {.type = kFlag, GRADWIRE_IN(problem, bias), .fallback = false,
       .kinds = {{"logistic", false}, {"least_squares", false}},
       .meaning = "logistic, least_squares: a constant feature 1 behind the others, so that d is one more",
       .matters = never},
      {.type = kNumber, GRADWIRE_IN(problem, lambda), .fallback = 0.0,
       .meaning = "weight of the regulariser; quadratic: the smallest eigenvalue of the mean Hessian",
       .matters = is_regularized},
      {.type = kInteger, .high = kMaxDim, GRADWIRE_IN(problem, dim), .fallback = std::int64_t{0},
       .fallback_note = "the largest feature index (0); required by quadratic",
       .meaning = "quadratic: d, the length of x; with data: the number of features", .matters = never},
      {.type = kNumber, GRADWIRE_IN(problem, heterogeneity), .fallback = 0.0,
       .meaning = "quadratic: s, how much the clients differ; 0: not at all", .matters = is_quadratic},
      {.type = kInteger, .low = 1, .high = kMaxU32, GRADWIRE_IN(problem, samples),
       .fallback = std::int64_t{1000}, .meaning = "synthetic: number of samples", .matters = is_synthetic},
      {.type = kInteger, .high = kMaxClasses, GRADWIRE_IN(problem, classes),
       .fallback = std::int64_t{2}, .meaning = "synthetic: number of labels; 0: labels are real numbers",
       .matters = is_synthetic},
      {.type = kNumber, GRADWIRE_IN(problem, noise), .fallback = 0.1,
       .meaning = "synthetic: standard deviation of the noise", .matters = is_synthetic},
  };
}

// The keys of networks; what they mean is in engine/models/. Defaults are those of the models there.
std::vector<Field> network_fields() {
  using List = std::vector<std::int64_t>;
  const std::int64_t none = 0;
  return {
      {.type = kIntegers, .low = 1, .high = kMaxWidth, GRADWIRE_LIST_IN(problem, hidden), .fallback = List{},
       .kinds = {{"mlp", List{}}, {"char_mlp", List{128}}, {"cnn", List{120, 84}}},
       .meaning = "widths of the hidden layers; mlp: none is softmax regression"},
      {.type = kWord, .words = {"tanh", "relu", "sigmoid", "gelu"}, GRADWIRE_IN(problem, activation),
       .fallback = "", .kinds = {{"mlp", "tanh"}, {"char_mlp", "tanh"}, {"gpt", "relu"}, {"cnn", "relu"}},
       .meaning = "between the layers; gpt: inside the feed-forward layers"},
      {.type = kInteger, .low = 1, .high = kMaxContext, GRADWIRE_IN(problem, context), .fallback = none,
       .kinds = {{"char_mlp", std::int64_t{16}}, {"gpt", std::int64_t{8}}},
       .meaning = "letters that the next one is predicted from"},
      {.type = kInteger, .low = 1, .high = kMaxWidth, GRADWIRE_IN(problem, width), .fallback = none,
       .kinds = {{"char_mlp", std::int64_t{64}}, {"gpt", std::int64_t{24}}},
       .meaning = "numbers in the vector that stands for a letter; gpt: also between the layers, and 4 times as "
                  "many inside the feed-forward layers"},
      {.type = kInteger, .low = 1, .high = kMaxLayers, GRADWIRE_IN(problem, layers), .fallback = none,
       .kinds = {{"gpt", std::int64_t{6}}}, .meaning = "gpt: number of blocks of attention and feed-forward"},
      {.type = kInteger, .low = 1, .high = kMaxWidth, GRADWIRE_IN(problem, heads), .fallback = none,
       .kinds = {{"gpt", std::int64_t{6}}}, .meaning = "gpt: heads of the attention; divides width"},
      {.type = kNumber, GRADWIRE_IN(problem, epsilon), .fallback = 0.0, .kinds = {{"gpt", 1e-5}},
       .meaning = "gpt: added to the variance in layer norms"},
      {.type = kFlag, GRADWIRE_IN(problem, tanh_logits), .fallback = false,
       .kinds = {{"char_mlp", true}, {"gpt", true}},
       .meaning = "char_mlp, gpt: tanh on the outputs, which keeps the loss away from 0; false trains further"},
      {.type = kIntegers, .low = 1, .high = kMaxWidth, GRADWIRE_LIST_IN(problem, filters), .fallback = List{},
       .kinds = {{"cnn", List{6, 16}}},
       .meaning = "cnn: channels behind each 5 x 5 convolution; max pooling 2 x 2 follows each"},
      {.type = kInteger, .low = 1, .high = kMaxChannels, GRADWIRE_IN(problem, channels), .fallback = none,
       .kinds = {{"cnn", std::int64_t{1}}},
       .meaning = "cnn: numbers per pixel; the features are the image channel by channel, row by row"},
      {.type = kInteger, .high = kMaxSide, GRADWIRE_IN(problem, image_height), .fallback = none,
       .kinds = {{"cnn", none}}, .meaning = "cnn: rows of pixels; 0: what image_width leaves, or a square"},
      {.type = kInteger, .high = kMaxSide, GRADWIRE_IN(problem, image_width), .fallback = none,
       .kinds = {{"cnn", none}}, .meaning = "cnn: pixels of a row; 0: what image_height leaves, or a square"},
  };
}

std::vector<Field> clients_fields() {
  return {
      {.type = kInteger, .low = 1, .high = kMaxClients, GRADWIRE_IN(clients, count),
       .fallback = std::int64_t{10}, .meaning = "n, the number of clients"},
      {.type = kWord, .words = {"contiguous", "iid", "by_label", "dirichlet"},
       GRADWIRE_IN(clients, partition), .fallback = "contiguous",
       .meaning = "how samples become clients: in their order, shuffled, sorted by label, or with shares "
                  "of each label drawn from a Dirichlet distribution"},
      {.type = kNumber, .low_open = true, GRADWIRE_IN(clients, dirichlet_alpha), .fallback = 0.3,
       .meaning = "dirichlet: concentration; the smaller, the more clients differ", .matters = is_dirichlet},
      {.type = kNumber, .high = 1, .low_open = true, GRADWIRE_IN(clients, participation), .fallback = 1.0,
       .meaning = "share of the clients asked in a round: a uniform sample of round(share n), at least 1"},
      {.type = kWord, .words = {"equal", "samples"}, GRADWIRE_IN(clients, weights), .fallback = "equal",
       .meaning = "of the clients in f and in the method's means: 1/n each, or by their number of samples"},
      {.type = kNumberOrText, .check_text = check_seconds, GRADWIRE_TEXT_IN(clients, seconds), .fallback = "",
       .fallback_note = "none; asynchronous methods: 1",
       .meaning = "simulations: what a request takes client i = 0, 1, ... on a virtual clock: a number, `sqrt` (the root "
                  "of i + 1), `linear` (i + 1), or `lognormal:SIGMA` (drawn for each request, mean 1); `0.1*sqrt` "
                  "scales them; metrics.csv then has virtual seconds",
       .matters = never},
  };
}

std::vector<Field> algorithm_fields() {
  return {
      {GRADWIRE_IN(algorithm, name), .fallback = "", .fallback_note = "required",
       .meaning = "a method, see `gradwire list`"},
      {GRADWIRE_IN(algorithm, compressor), .fallback = "identity",
       .meaning = "`NAME` or `NAME:KEY=VALUE,...`, see `gradwire list`; a count may be a share, as `1%`"},
      {.type = kNumberOrText, GRADWIRE_TEXT_IN(algorithm, step_size), .fallback = "",
       .fallback_note = "the method's", .meaning = "`theory`, `theory*8` or a number above 0",
       .matters = never},
      batch_field(),
  };
}

std::vector<Field> run_fields() {
  return {
      {.type = kInteger, .high = kMaxU32, GRADWIRE_IN(run, rounds), .fallback = std::int64_t{100},
       .meaning = "number of rounds"},
      {.type = kInteger, .high = kMaxU32, GRADWIRE_IN(run, evaluate_every), .fallback = std::int64_t{1},
       .meaning = "rounds from one line of metrics.csv to the next; 0: no evaluation"},
      {.type = kNumber, GRADWIRE_IN(run, stop_at_grad_norm_sq), .fallback = 0.0,
       .meaning = "an evaluation with a squared gradient norm this small ends the run; 0: none does"},
      {.check_text = check_x0, GRADWIRE_IN(run, x0), .fallback = "", .fallback_note = "`zeros`; networks: `model`",
       .meaning = "`zeros`, `normal`, `model` (the model's own start) or `file:PATH` (d lines with a number "
                  "each, or a model.bin)",
       .matters = never},
  };
}

std::vector<Field> server_fields() {
  return {
      {.type = kNumber, .high = 1, .low_open = true, GRADWIRE_IN(server, quorum), .fallback = 1.0,
       .meaning = "share of a round's clients whose replies end it"},
      {.type = kNumber, GRADWIRE_IN(server, over_selection), .fallback = 0.0,
       .meaning = "share of clients asked beyond those that participation says, so that a round need not wait for the "
                  "slowest: it still uses quorum of the first number, those who answer first"},
      {.type = kInteger, .low = 1, .high = kMaxU32, GRADWIRE_IN(server, deadline_ms),
       .fallback = std::int64_t{60000}, .meaning = "milliseconds until whoever is missing is asked again"},
      {.type = kWordOrInteger, .low = 1, .high = 19, .words = {"auto", "off"},
       GRADWIRE_TEXT_IN(server, zstd), .fallback = "auto",
       .meaning = "compress payloads of 1 KB or more: where a trial gains 5 %, never, or at this level"},
      {.type = kWordOrFlag, .words = {"auto"}, GRADWIRE_TEXT_IN(server, mirrors), .fallback = "auto",
       .meaning = "the server keeps a copy of each client's state, to restore clients that lost it; "
                  "`auto`: over a network, and when faults.wiped is above 0"},
      {.type = kWord, .words = {"auto", "process", "power"}, GRADWIRE_IN(server, durability), .fallback = "auto",
       .meaning = "what a committed round survives: the death of the server, or also a loss of power (slower: "
                  "every round waits for the disk); `auto`: \"power\" where the server could not give a client its "
                  "state back, else \"process\""},
      {.type = kInteger, .low = 1, .high = kMaxU32, GRADWIRE_IN(server, join_deadline_ms),
       .fallback = std::int64_t{86400000},
       .meaning = "milliseconds that a server which is started waits for its clients: until all have joined, or, "
                  "in a run that goes on, until as many are back as its first request needs"},
  };
}

Field fault(Field field, std::string_view meaning) {
  field.type = kNumber;
  field.high = 1;
  field.high_open = true;
  field.fallback = 0.0;
  field.meaning = meaning;
  field.matters = never;
  return field;
}

std::vector<Field> faults_fields() {
  return {
      fault({GRADWIRE_IN(faults, lost_replies)}, "share of the replies that are lost"),
      fault({GRADWIRE_IN(faults, lost_requests)}, "share of the requests that are lost"),
      fault({GRADWIRE_IN(faults, duplicates)}, "share of the messages that arrive twice"),
      fault({GRADWIRE_IN(faults, crashes)}, "chance that a client crashes and forgets its last proposal"),
      fault({GRADWIRE_IN(faults, wiped)}, "chance that a client comes back with nothing"),
      {.type = kFlag, GRADWIRE_IN(faults, shuffle), .fallback = false,
       .meaning = "replies arrive in random order", .matters = never},
  };
}

#undef GRADWIRE_TOP
#undef GRADWIRE_IN
#undef GRADWIRE_TEXT_IN
#undef GRADWIRE_LIST_IN

// clang-format on

std::vector<Field> all_fields() {
  std::vector<Field> all;
  for (const auto& fields : {top_fields(), problem_fields(), network_fields(), clients_fields(),
                             algorithm_fields(), run_fields(), server_fields(), faults_fields()})
    all.insert(all.end(), fields.begin(), fields.end());
  return all;
}

}  // namespace

std::span<const Field> experiment_fields() {
  static const std::vector<Field> fields = all_fields();
  return fields;
}

const Field* find_field(std::string_view section, std::string_view key) {
  for (const Field& field : experiment_fields())
    if (field.section == section && field.key == key) return &field;
  return nullptr;
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const Field& field : experiment_fields())
    if (!field.section.empty() && (names.empty() || names.back() != field.section))
      names.emplace_back(field.section);
  return names;
}

}  // namespace gradwire
