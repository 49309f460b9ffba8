#include "config/start_frame.h"

#include <cstddef>
#include <span>

#include "config/settings.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {

std::string start_frame(const RunPlan& plan, std::uint64_t run) {
  wire::Start start;
  start.set_dim(static_cast<std::uint32_t>(plan.d));
  start.set_columns(static_cast<std::uint32_t>(plan.schema.columns));
  start.mutable_labels()->Assign(plan.schema.labels.begin(), plan.schema.labels.end());
  if (!plan.schema.alphabet.empty()) start.set_alphabet(plan.schema.alphabet);
  start.set_clients(plan.n());
  start.set_experiment(pack_experiment(plan.experiment));
  start.set_first_request_id(1);
  start.set_run(run);
  return control_frame(FrameType::kStart, start);
}

std::uint64_t run_of(const std::string& start_frame) {
  wire::Start start;
  const auto frame = std::as_bytes(std::span(start_frame));
  if (frame.size() < kPrefixBytes || !parse_control(frame.subspan(kPrefixBytes), start)) return 0;
  return start.run();
}

}  // namespace gradwire
