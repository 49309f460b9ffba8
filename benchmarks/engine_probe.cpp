// gradwire-engine-probe TASK FILE SIZE BATCH STEPS: makes SGD steps in a process that links only the engine,
// for `gradwire bench engine/process`. TASK is letters (SIZE is the hidden width) or gpt (SIZE is the width).
// Prints one RESULT line.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "engine/nn/models/char_mlp.h"
#include "engine/nn/models/gpt.h"
#include "engine/nn/models/samples.h"
#include "engine/nn/network_oracle.h"

namespace gradwire {
namespace {

double peak_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  return 0;
}

std::string content(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError(std::string(path) + ": cannot be read");
  file.seekg(0, std::ios::end);
  std::string text(static_cast<std::size_t>(file.tellg()), '\0');
  file.seekg(0);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

void run(const std::string& task, const char* path, std::size_t size, std::size_t batch, std::size_t steps) {
  CharMlpShape letters;
  letters.hidden = {static_cast<std::uint32_t>(size)};
  GptShape transformer;
  transformer.width = size;
  const bool names = task == "letters";
  const Network network = names ? char_mlp(letters) : gpt(transformer);
  Windows windows = names ? list_of_names(content(path), path, letters.context)
                          : running_text(content(path), path, transformer.context);
  const std::size_t samples = windows.size();
  NetworkOracle<float> oracle(network, std::make_unique<TextSamples<float>>(std::move(windows)));
  const std::vector<double> start = network.start(1);
  AlignedVector<float> x(start.begin(), start.end()), gradient(x.size());
  std::vector<std::uint32_t> rows(batch);
  std::vector<double> ms;
  float loss = 0;
  for (std::size_t k = 0; k < steps; ++k) {
    for (std::size_t b = 0; b < batch; ++b)
      rows[b] = static_cast<std::uint32_t>((k * batch + b) * 7919 % samples);
    const auto begin = std::chrono::steady_clock::now();
    loss = oracle.loss_and_gradient(x, rows, gradient);
    for (std::size_t j = 0; j < x.size(); ++j) x[j] -= 1e-3f * gradient[j];
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(ms.begin(), ms.end());
  std::printf("RESULT %s loss=%.4f min_ms=%.5f med_ms=%.5f VmHWM_MB=%.2f\n", task.c_str(),
              static_cast<double>(loss), ms.front(), ms[ms.size() / 2], peak_mb());
}

}  // namespace
}  // namespace gradwire

int main(int count, char** arguments) {
  const std::string task = count > 1 ? arguments[1] : "";
  if (count != 6 || (task != "letters" && task != "gpt")) {
    std::fprintf(stderr, "usage: gradwire-engine-probe letters|gpt FILE SIZE BATCH STEPS\n");
    return 2;
  }
  try {
    const auto number = [&](int k) {
      return std::max<std::size_t>(1, std::strtoul(arguments[k], nullptr, 10));
    };
    gradwire::run(task, arguments[2], number(3), number(4), number(5));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
