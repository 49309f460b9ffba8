// A client with its own samples, in a program that cannot read data files. Its server has no data either.
//   client HOST:PORT
#include "fl_client/client.h"

#include <cstdint>
#include <cstdio>
#include <exception>

#include "engine/data/dataset.h"

// Four samples of y = 2 x_1 - x_2.
gradwire::ClientDataset own_samples() {
  gradwire::ClientDataset part;
  const double points[][2] = {{1, 0}, {0, 1}, {1, 1}, {2, -1}};
  for (const auto& x : points) {
    for (std::uint32_t j = 0; j < 2; ++j) {
      if (x[j] == 0) continue;
      part.train.column.push_back(j);
      part.train.value.push_back(x[j]);
    }
    part.train.row_start.push_back(part.train.value.size());
    part.train.label.push_back(2 * x[0] - x[1]);
  }
  part.train.columns = 2;
  return part;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  gradwire::ClientOptions options;
  options.server = argv[1];
  options.name = "own-samples";
  options.data.load = [](const gradwire::ExperimentSpec&, const gradwire::Log&) { return own_samples(); };
  try {
    gradwire::run_client(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
