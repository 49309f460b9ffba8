// The metrics, model and result of a run, for tests that compare runs.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "report/columns.h"
#include "simulation/simulate.h"

namespace gradwire {

struct RunTrace {
  std::string metrics;  // rows of metrics.csv, all at second 0
  std::vector<double> model;
  RunResult result;
  bool operator==(const RunTrace& other) const { return metrics == other.metrics && model == other.model; }
};

inline RunTrace trace(const Prepared& prepared, bool encoded, unsigned threads,
                      std::shared_ptr<Ranks> ranks = nullptr) {
  RunTrace t;
  RunObserver observer;
  observer.on_record = [&](RoundRecord record) {
    record.seconds = 0;
    t.metrics += metrics_line(record) + "\n";
  };
  const std::atomic<bool> stop{false};
  t.result = simulate(prepared, encoded, threads, observer, stop, {}, ranks);
  t.model = t.result.model;
  return t;
}

}  // namespace gradwire
