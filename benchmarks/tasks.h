// The two tasks for comparing engines: a character-level next-letter network on names, and a small GPT on
// running text. Both make one SGD step at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "engine/data/text.h"
#include "engine/nn/executor.h"
#include "engine/nn/models/samples.h"

namespace gradwire::bench {

// A text, and its path for other programs. If the file is missing, the path is empty and the text is random.
struct TaskText {
  std::string text;
  std::filesystem::path path;
};
TaskText names_text(bool small);        // names.txt, one name per line
TaskText shakespeare_text(bool small);  // tinyshakespeare.txt

// Returns a network with a context of 16 letters, 64 numbers per letter, and d = 1755 + 1052 * hidden.
Network letters_network(std::size_t hidden);
Network gpt_network(std::size_t context = 8, std::size_t width = 24);  // 6 layers, 6 heads, 65 letters

Windows names_windows(const TaskText& text);
Windows shakespeare_windows(const TaskText& text, std::size_t context);

// SGD on batches of b samples that are drawn at random.
template <class Real>
class TaskRun {
 public:
  TaskRun(const Network& network, Windows windows, std::size_t batch, const Kernels<Real>* kernels = nullptr,
          std::size_t block = 0);

  void step();           // gradient of the mean loss, then x -= rate * gradient
  void fused_step();     // Executor::descend
  void gradient();       // without a step
  void each_gradient();  // one gradient for each sample of the batch

  double loss() const { return loss_; }  // loss of the last call
  const Executor<Real>& executor() const { return executor_; }

 private:
  void draw();
  Example<Real> example(std::size_t k) const { return samples_[index_[k]]; }

  Executor<Real> executor_;
  TextSamples<Real> samples_;
  std::vector<std::uint32_t> index_;
  AlignedVector<Real> x_, gradient_;
  std::uint64_t state_ = 88172645463325252;
  double loss_ = 0;
};

// A transformer with so many layers that activations take most of its memory, and its samples. Width 48, 6
// heads, 65 letters.
class DeepTransformer {
 public:
  explicit DeepTransformer(std::size_t layers);

  Network network;
  std::vector<float> x;  // start point
  std::string title() const;
  // Writes the gradient of the mean loss to `g`, which has the length of x.
  void gradient(Executor<float>& executor, std::vector<float>& g) const;

 private:
  const std::size_t layers_;
  std::vector<Token> letters_;
};

extern template class TaskRun<float>;
extern template class TaskRun<double>;

}  // namespace gradwire::bench
