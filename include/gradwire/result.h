// The result of a run: the model, the rows of the metrics, and what the run says about itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradwire/experiment.h"
#include "gradwire/version.h"

namespace gradwire {

struct MeasuredRun;  // private

// Row k of the metrics, at x^k: the columns of metrics.csv (docs/reference/metrics.md). Values are cumulative
// unless they say otherwise. bits_up and bits_down are those of a client on average; grad_calls are gradients
// of single samples, divided by n.
struct MetricsRow {
  std::uint32_t round = 0;                        // k
  double loss = 0;                                // f(x^k)
  std::optional<double> grad_norm_sq, accuracy;   // ||grad f(x^k)||^2; share of right predictions
  double bits_up = 0, bits_down = 0;              // by the definition of the compressor
  double bits_up_paper = 0, bits_down_paper = 0;  // as papers count: 32 bits a number, nothing for indices
  std::uint64_t bytes_up = 0, bytes_down = 0;     // encoded messages of all clients
  double grad_calls = 0;
  std::uint32_t replies = 0;  // used in the round before this row
  double seconds = 0;         // since the start; on the virtual clock if the run has one
};

class GRADWIRE_API TrainResult {
 public:
  // Returns the last x, shape (d). It is exact for both precisions.
  std::span<const double> model() const;
  const std::vector<MetricsRow>& rows() const;
  // Returns a column of metrics.csv, shape (number of rows); an empty cell is NaN. Throws std::out_of_range
  // for an unknown name.
  std::vector<double> metrics(std::string_view column) const;

  static std::vector<std::string> columns();  // names for metrics()

  // Returns "finished", "reached_target" (a target of [run], or on_row), "stopped", "diverged" or "stalled".
  std::string outcome() const;
  // Returns one line on why the run diverged or was stopped, and what to do, else "".
  std::string trouble() const;
  std::uint32_t rounds() const;  // finished rounds
  double seconds() const;        // wall time
  const std::vector<std::string>& warnings() const;

  Experiment experiment() const;  // as given
  Experiment resolved() const;    // every step size is a number
  std::string summary() const;    // the text of summary.json; empty while a run continues

  // Writes the folder that gradwire run writes: config.toml, metrics.csv, model.bin, summary.json, plot.svg.
  // Without `overwrite`, throws BadInput if the folder has finished results of other keys, and renames others
  // of the same keys to FOLDER.before. Throws BadInput if the folder has other files.
  void save(const std::filesystem::path& folder, bool overwrite = false) const;

  // Reads such a folder, of gradwire run, of save() or of a server. experiment() is then resolved(). Throws
  // BadInput (one line) if the folder has no config.toml or no metrics.csv. Before a run is over, its outcome
  // is "running" and its model empty.
  static TrainResult read(const std::filesystem::path& folder);

  explicit TrainResult(std::shared_ptr<const MeasuredRun> run);  // for the library

 private:
  std::shared_ptr<const MeasuredRun> run_;
};

}  // namespace gradwire
