#include "benchmarks/tasks.h"

#include <fstream>
#include <iterator>
#include <span>
#include <utility>

#include "base/random.h"
#include "engine/data/readers/source.h"
#include "engine/nn/models/char_mlp.h"
#include "engine/nn/models/gpt.h"

namespace gradwire::bench {
namespace {

constexpr double kRate = 1e-3;

TaskText text_or(const char* name, bool small, std::string (*stand_in)(std::size_t)) {
  if (!small) {
    try {
      const std::filesystem::path path = find_data(name, {});
      std::ifstream file(path, std::ios::binary);
      return {std::string(std::istreambuf_iterator<char>(file), {}), path};
    } catch (const DataError&) {
    }
  }
  return {stand_in(small ? 2'000 : 1'000'000), {}};
}

std::string random_names(std::size_t letters) {
  Random random(1, "bench names");
  std::string text = "abcdefghijklmnopqrstuvwxyz\n";
  while (text.size() < letters) {
    for (std::uint64_t left = 3 + random.below(8); left > 0; --left)
      text += static_cast<char>('a' + random.below(26));
    text += '\n';
  }
  return text;
}

std::string random_running_text(std::size_t letters) {
  Random random(1, "bench text");
  std::string text;
  for (char c = ' '; text.size() < 65; ++c) text += c;
  while (text.size() < letters) text += static_cast<char>(' ' + random.below(65));
  return text;
}

}  // namespace

TaskText names_text(bool small) { return text_or("names.txt", small, random_names); }
TaskText shakespeare_text(bool small) { return text_or("tinyshakespeare.txt", small, random_running_text); }

Network letters_network(std::size_t hidden) {
  CharMlpShape shape;
  shape.hidden = {static_cast<std::uint32_t>(hidden)};
  return char_mlp(shape);
}

Network gpt_network(std::size_t context, std::size_t width) {
  GptShape shape;
  shape.context = context;
  shape.width = width;
  shape.epsilon = 0;
  return gpt(shape);
}

Windows names_windows(const TaskText& text) {
  return list_of_names(text.text, "names", CharMlpShape().context);
}
Windows shakespeare_windows(const TaskText& text, std::size_t context) {
  return running_text(std::string_view(text.text).substr(0, text.text.size() * 9 / 10), "text", context);
}

template <class Real>
TaskRun<Real>::TaskRun(const Network& network, Windows windows, std::size_t batch,
                       const Kernels<Real>* kernels, std::size_t block)
    : executor_(network, block, kernels),
      samples_(std::move(windows)),
      index_(batch),
      gradient_(network.dim()) {
  const std::vector<double> start = network.start(1);
  x_.assign(start.begin(), start.end());
}

template <class Real>
void TaskRun<Real>::draw() {
  for (std::uint32_t& i : index_) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    i = static_cast<std::uint32_t>(state_ % samples_.size());
  }
}

template <class Real>
void TaskRun<Real>::step() {
  gradient();
  executor_.kernels().axpy(static_cast<Index>(x_.size()), static_cast<Real>(-kRate), gradient_.data(),
                           x_.data());
}

template <class Real>
void TaskRun<Real>::fused_step() {
  draw();
  loss_ = executor_.descend(
      x_, index_.size(), [this](std::size_t k) { return example(k); }, static_cast<Real>(kRate));
}

template <class Real>
void TaskRun<Real>::gradient() {
  draw();
  loss_ = executor_.loss_and_gradient(
      x_, index_.size(), [this](std::size_t k) { return example(k); }, gradient_);
}

template <class Real>
void TaskRun<Real>::each_gradient() {
  draw();
  for (std::size_t s = 0; s < index_.size(); ++s)
    loss_ = executor_.loss_and_gradient(
        x_, 1, [&](std::size_t) { return example(s); }, gradient_);
}

namespace {

constexpr std::size_t kDeepContext = 32, kDeepSamples = 16, kDeepWidth = 48;

}  // namespace

DeepTransformer::DeepTransformer(std::size_t layers)
    : network(gpt(
          {.vocabulary = 65, .context = kDeepContext, .width = kDeepWidth, .layers = layers, .heads = 6})),
      layers_(layers),
      letters_(kDeepSamples + kDeepContext + 1) {
  for (std::size_t k = 0; k < letters_.size(); ++k) letters_[k] = static_cast<Token>(k * k % 65);
  const std::vector<double> start = network.start(1);
  x.assign(start.begin(), start.end());
}

std::string DeepTransformer::title() const {
  return "gpt, " + std::to_string(layers_) + " layers, width " + std::to_string(kDeepWidth) + ", context " +
         std::to_string(kDeepContext) + ", b = " + std::to_string(kDeepSamples);
}

void DeepTransformer::gradient(Executor<float>& executor, std::vector<float>& g) const {
  const Executor<float>::ExampleAt at = [&](std::size_t k) {
    Example<float> example;
    example.tokens = std::span(letters_).subspan(k, kDeepContext);
    example.labels = std::span(letters_).subspan(k + 1, kDeepContext);
    return example;
  };
  executor.loss_and_gradient(x, kDeepSamples, at, g);
}

template class TaskRun<float>;
template class TaskRun<double>;

}  // namespace gradwire::bench
