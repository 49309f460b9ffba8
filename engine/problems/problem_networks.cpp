// The kinds that are networks: from numbers of the experiment to the shape of a model, and what does not fit.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "engine/models/char_mlp.h"
#include "engine/models/gpt.h"
#include "engine/models/lenet.h"
#include "engine/models/mlp.h"
#include "engine/models/samples.h"
#include "engine/problems/problem_kinds.h"

namespace gradwire {
namespace {

constexpr std::size_t kMaxClasses = 65'536;  // more distinct labels are probably those of a regression
constexpr std::size_t kMaxLayers = 1'000;
constexpr std::size_t kMaxWidth = 1'000'000;
constexpr std::size_t kMaxContext = 4'096;
constexpr std::size_t kMaxSide = 4'096;  // of an image
constexpr std::size_t kMaxChannels = 1'024;

void check_range(const char* key, std::size_t value, std::size_t high) {
  if (value < 1 || value > high) {
    throw DataError("problem." + std::string(key) + " = " + std::to_string(value) + " is not between 1 and " +
                    std::to_string(high));
  }
}

void check_widths(const char* key, const std::vector<std::uint32_t>& widths) {
  if (widths.size() > kMaxLayers) {
    throw DataError("problem." + std::string(key) + " has " + std::to_string(widths.size()) +
                    " layers; at most " + std::to_string(kMaxLayers));
  }
  for (const std::uint32_t width : widths) {
    if (width >= 1 && width <= kMaxWidth) continue;
    throw DataError("problem." + std::string(key) + ": a layer of width " + std::to_string(width) +
                    "; every width is between 1 and " + std::to_string(kMaxWidth));
  }
}

void check_classes(const ProblemSpec& spec, const Agreement& agreement) {
  if (agreement.labels.size() >= 2 && agreement.labels.size() <= kMaxClasses) return;
  throw DataError("kind = \"" + spec.kind + "\" needs 2 to " + std::to_string(kMaxClasses) +
                  " distinct labels but the data has " + count_and_list(agreement.labels));
}

void check_alphabet(const Agreement& agreement, std::size_t fewest) {
  const auto ascending = [](char a, char b) {
    return static_cast<unsigned char>(a) >= static_cast<unsigned char>(b);
  };
  const std::string& letters = agreement.alphabet;
  if (std::adjacent_find(letters.begin(), letters.end(), ascending) != letters.end())
    throw DataError("the alphabet that the clients agreed on does not ascend");
  if (letters.size() < fewest) {
    throw DataError("the text has " + std::to_string(letters.size()) + " distinct letters; the model needs " +
                    std::to_string(fewest) + " or more");
  }
}

Activation activation_of(const ProblemSpec& spec, Activation fallback) {
  constexpr std::pair<std::string_view, Activation> kNames[] = {{"tanh", Activation::kTanh},
                                                                {"relu", Activation::kRelu},
                                                                {"sigmoid", Activation::kSigmoid},
                                                                {"gelu", Activation::kGelu}};
  if (spec.activation.empty()) return fallback;
  for (const auto& [name, activation] : kNames)
    if (spec.activation == name) return activation;
  throw DataError("unknown problem.activation '" + spec.activation +
                  "'; known are tanh, relu, sigmoid and gelu");
}

// 0 means the model's default.
std::size_t number_or(std::size_t number, std::size_t fallback) { return number > 0 ? number : fallback; }

MlpShape mlp_shape(const ProblemSpec& spec, const Agreement& agreement) {
  MlpShape shape;
  shape.inputs = feature_count(spec, agreement);
  shape.hidden = spec.hidden;
  shape.classes = agreement.labels.size();
  shape.activation = activation_of(spec, shape.activation);
  return shape;
}

CharMlpShape char_mlp_shape(const ProblemSpec& spec, const Agreement& agreement) {
  CharMlpShape shape;
  shape.vocabulary = agreement.alphabet.size() + 1;
  shape.context = number_or(spec.context, shape.context);
  shape.width = number_or(spec.width, shape.width);
  shape.hidden = spec.hidden;
  shape.activation = activation_of(spec, shape.activation);
  shape.tanh_logits = spec.tanh_logits;
  return shape;
}

GptShape gpt_shape(const ProblemSpec& spec, const Agreement& agreement) {
  GptShape shape;
  shape.vocabulary = agreement.alphabet.size();
  shape.context = number_or(spec.context, shape.context);
  shape.width = number_or(spec.width, shape.width);
  shape.layers = number_or(spec.layers, shape.layers);
  shape.heads = number_or(spec.heads, shape.heads);
  shape.activation = activation_of(spec, shape.activation);
  shape.epsilon = spec.epsilon;
  shape.tanh_logits = spec.tanh_logits;
  return shape;
}

// Completes channels x height x width from those that are given. Throws DataError when the features do not
// fill it.
TensorShape image_shape(const ProblemSpec& spec, const Agreement& agreement) {
  const std::size_t features = feature_count(spec, agreement);
  TensorShape image{number_or(spec.channels, 1), spec.image_height, spec.image_width};
  check_range("channels", image.channels, kMaxChannels);
  const std::size_t pixels = features / image.channels;
  if (image.height == 0 && image.width == 0) {
    image.height = image.width =
        static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(pixels))));
  } else if (image.height == 0) {
    image.height = pixels / image.width;
  } else if (image.width == 0) {
    image.width = pixels / image.height;
  }
  const std::string is = std::to_string(features) + " features are no ";
  if (spec.image_height == 0 && spec.image_width == 0 && image.size() != features) {
    throw DataError(is + "square image" +
                    (image.channels > 1 ? " of " + std::to_string(image.channels) + " channels" : "") +
                    "; set problem.image_height, problem.image_width and problem.channels");
  }
  if (image.size() != features) {
    throw DataError(is + "image of " + std::to_string(image.height) + " x " + std::to_string(image.width) +
                    " pixels with problem.channels = " + std::to_string(image.channels) +
                    "; correct these, or set problem.dim");
  }
  check_range("image_height", image.height, kMaxSide);
  check_range("image_width", image.width, kMaxSide);
  return image;
}

LenetShape lenet_shape(const ProblemSpec& spec, const Agreement& agreement) {
  LenetShape shape;
  shape.image = image_shape(spec, agreement);
  shape.filters = spec.filters;
  shape.hidden = spec.hidden;
  shape.classes = agreement.labels.size();
  shape.activation = activation_of(spec, shape.activation);
  return shape;
}

}  // namespace

// ---- mlp ----

void MlpKind::check(const ProblemSpec& spec, const Agreement& agreement) {
  check_classes(spec, agreement);
  check_widths("hidden", spec.hidden);
  activation_of(spec, {});
}

Network MlpKind::network(const ProblemSpec& spec, const Agreement& agreement) {
  return mlp(mlp_shape(spec, agreement));
}

template <class Real>
std::unique_ptr<const Examples<Real>> MlpKind::samples(const ProblemSpec& spec, const Agreement& agreement,
                                                       const Part& part, Half half) {
  const Dataset& data = half == Half::kTrain ? part.train : part.test;
  return std::make_unique<SparseSamples<Real>>(data, feature_count(spec, agreement), agreement.labels);
}

// ---- cnn ----

void CnnKind::check(const ProblemSpec& spec, const Agreement& agreement) {
  check_classes(spec, agreement);
  check_widths("filters", spec.filters);
  check_widths("hidden", spec.hidden);
  if (spec.filters.empty()) throw DataError("problem.filters is empty; a cnn has one convolution or more");
  const LenetShape shape = lenet_shape(spec, agreement);
  if (shape.pooled().size() > 0) return;
  throw DataError("images of " + std::to_string(shape.image.height) + " x " +
                  std::to_string(shape.image.width) + " pixels are too small for " +
                  std::to_string(shape.filters.size()) +
                  " convolutions 5 x 5 with pooling 2 x 2; shorten problem.filters");
}

Network CnnKind::network(const ProblemSpec& spec, const Agreement& agreement) {
  return lenet(lenet_shape(spec, agreement));
}

template <class Real>
std::unique_ptr<const Examples<Real>> CnnKind::samples(const ProblemSpec& spec, const Agreement& agreement,
                                                       const Part& part, Half half) {
  const Dataset& data = half == Half::kTrain ? part.train : part.test;
  return std::make_unique<DenseSamples<Real>>(data, feature_count(spec, agreement), agreement.labels);
}

// ---- char_mlp and gpt ----

template <class Real>
std::unique_ptr<const Examples<Real>> TextKind::samples(const ProblemSpec&, const Agreement& agreement,
                                                        const Part& part, Half half) {
  const Windows& text = half == Half::kTrain ? part.train_text : part.test_text;
  return std::make_unique<TextSamples<Real>>(with_alphabet(text, agreement.alphabet));
}

void CharMlpKind::check(const ProblemSpec& spec, const Agreement& agreement) {
  check_alphabet(agreement, 1);
  check_widths("hidden", spec.hidden);
  if (spec.hidden.empty())
    throw DataError("problem.hidden is empty; a char_mlp has one hidden layer or more");
  const CharMlpShape shape = char_mlp_shape(spec, agreement);
  check_range("context", shape.context, kMaxContext);
  check_range("width", shape.width, kMaxWidth);
}

Network CharMlpKind::network(const ProblemSpec& spec, const Agreement& agreement) {
  return char_mlp(char_mlp_shape(spec, agreement));
}

void GptKind::check(const ProblemSpec& spec, const Agreement& agreement) {
  check_alphabet(agreement, 2);
  const GptShape shape = gpt_shape(spec, agreement);
  check_range("context", shape.context, kMaxContext);
  check_range("width", shape.width, kMaxWidth);
  check_range("layers", shape.layers, kMaxLayers);
  check_range("heads", shape.heads, shape.width);
  if (shape.width % shape.heads != 0) {
    throw DataError("problem.heads = " + std::to_string(shape.heads) +
                    " does not divide problem.width = " + std::to_string(shape.width));
  }
  if (!(shape.epsilon >= 0) || !std::isfinite(shape.epsilon))
    throw DataError("problem.epsilon must be a finite number, 0 or more");
}

Network GptKind::network(const ProblemSpec& spec, const Agreement& agreement) {
  return gpt(gpt_shape(spec, agreement));
}

#define GRADWIRE_SAMPLES(Kind)                                                                         \
  template std::unique_ptr<const Examples<float>> Kind::samples(const ProblemSpec&, const Agreement&,  \
                                                                const Part&, Half);                    \
  template std::unique_ptr<const Examples<double>> Kind::samples(const ProblemSpec&, const Agreement&, \
                                                                 const Part&, Half);
GRADWIRE_SAMPLES(MlpKind)
GRADWIRE_SAMPLES(CnnKind)
GRADWIRE_SAMPLES(TextKind)
#undef GRADWIRE_SAMPLES

}  // namespace gradwire
