// The two tasks that engines are compared on: a character-level next-letter network on names, and a small GPT
// on running text, one SGD step at a time.
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

// A text, and where a program from outside finds the same one; the path is empty where the file was not found
// and letters drawn at random stand in for it.
struct TaskText {
  std::string text;
  std::filesystem::path path;
};
TaskText names_text(bool small);        // names.txt, one name per line
TaskText shakespeare_text(bool small);  // tinyshakespeare.txt

Network letters_network(
    std::size_t hidden);  // 16 letters before, 64 numbers a letter, d = 1755 + 1052 hidden
Network gpt_network(std::size_t context = 8, std::size_t width = 24);  // 6 layers, 6 heads, 65 letters

Windows names_windows(const TaskText& text);
Windows shakespeare_windows(const TaskText& text, std::size_t context);

// One after the other, steps of SGD on batches of b samples drawn at random.
template <class Real>
class TaskRun {
 public:
  TaskRun(const Network& network, Windows windows, std::size_t batch, const Kernels<Real>* kernels = nullptr,
          std::size_t block = 0);

  void step();           // gradient of the mean loss, then x -= rate * gradient
  void fused_step();     // Executor::descend
  void gradient();       // no step
  void each_gradient();  // one gradient for each sample of the batch

  double loss() const { return loss_; }  // of the last call
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

// A transformer of so many layers that activations are most of its memory, and samples for it: width 48, 6
// heads, 65 letters.
class DeepTransformer {
 public:
  explicit DeepTransformer(std::size_t layers);

  Network network;
  std::vector<float> x;  // where it starts
  std::string title() const;
  // The gradient of the mean loss, into `g` of the length of x.
  void gradient(Executor<float>& executor, std::vector<float>& g) const;

 private:
  const std::size_t layers_;
  std::vector<Token> letters_;
};

extern template class TaskRun<float>;
extern template class TaskRun<double>;

}  // namespace gradwire::bench
