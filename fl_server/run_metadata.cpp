#include "fl_server/run_metadata.h"

#include <utility>

#include "config/experiment_file.h"
#include "config/settings.h"
#include "fl_server/sessions/join.h"
#include "proto/wire/feature_messages.h"
#include "proto/wire/wire.pb.h"
#include "storage/state.pb.h"

namespace gradwire {
std::string save_metadata(const RunMetadata& metadata) {
  state::Run run;
  run.set_asked(pack_experiment(metadata.asked));
  run.set_experiment(pack_experiment(metadata.resolved));
  run.set_start(metadata.start);
  const ClientTable& table = metadata.table;
  for (ClientId client = 0; client < table.size(); ++client) {
    const ClientInfo& info = table.info(client);
    state::Client& saved = *run.add_clients();
    saved.set_name(info.name);
    saved.set_by_part(table.by_part(client));
    saved.set_build(info.build);
    saved.set_kernels(info.kernels);
    saved.set_pid(info.pid);
    wire::Join join;
    write_join(info, join);
    saved.set_join(join.SerializeAsString());
  }
  if (metadata.normalization) run.set_scaling(pack_scaling(*metadata.normalization));
  return run.SerializeAsString();
}

Result<RunMetadata> load_metadata(std::string_view bytes) {
  state::Run run;
  if (!run.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || run.start().empty())
    return Error{"its record of the run cannot be read"};
  Result<ExperimentSpec> asked = unpack_experiment(run.asked()),
                         resolved = unpack_experiment(run.experiment());
  if (!asked) return asked.error();
  if (!resolved) return resolved.error();
  if (resolved->clients.count != static_cast<std::uint32_t>(run.clients_size()))
    return Error{"its record of the clients cannot be read"};
  RunMetadata metadata;
  metadata.asked = std::move(*asked);
  metadata.resolved = std::move(*resolved);
  metadata.start = run.start();
  if (run.has_scaling()) {
    Result<Normalization> map = unpack_scaling(run.scaling(), normalize_of(metadata.resolved));
    if (!map) return map.error();
    metadata.normalization = std::make_shared<const Normalization>(std::move(*map));
  }
  metadata.table = ClientTable(static_cast<std::uint32_t>(run.clients_size()));
  for (int k = 0; k < run.clients_size(); ++k) {
    const state::Client& saved = run.clients(k);
    ClientInfo info;
    info.name = saved.name();
    info.build = saved.build();
    info.kernels = saved.kernels();
    info.pid = saved.pid();
    wire::Join join;
    if (!join.ParseFromString(saved.join()))
      return Error{"its record of client " + std::to_string(k) + " cannot be read"};
    Result<ClientInfo> read = read_join(join, std::move(info));
    if (!read) return read.error();
    if (Status status = metadata.table.restore(static_cast<ClientId>(k), std::move(*read), saved.by_part());
        !status)
      return status.error();
  }
  return metadata;
}

Normalize normalize_of(const ExperimentSpec& experiment) {
  const RowsData* const rows = rows_of(experiment.problem);
  return rows == nullptr ? Normalize::kNone : rows->normalize;
}

void require_map(const RunMetadata& metadata, const std::string& folder) {
  const Normalize kind = normalize_of(metadata.resolved);
  if (!needs_sums(kind) || metadata.normalization) return;
  throw ExperimentError("--state " + folder +
                        ": holds a run of an earlier release, without the map of problem.normalize = \"" +
                        std::string(normalize_word(kind)) +
                        "\"; continue it with that release, or start again with "
                        "--fresh, which moves that run aside");
}

void take_settings(const ExperimentSpec& now, RunMetadata& metadata, const std::string& folder) {
  const std::string changed = first_difference(now, metadata.asked);
  if (!changed.empty())
    throw ExperimentError("--state " + folder + ": holds a run of another experiment: " + changed +
                          "; restore it, choose another folder, or start again with --fresh, which moves "
                          "that run aside");
  copy_what_may_change(now, metadata.asked);
  copy_what_may_change(now, metadata.resolved);
}

}  // namespace gradwire
