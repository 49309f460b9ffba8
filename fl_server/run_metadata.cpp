#include "fl_server/run_metadata.h"

#include <utility>

#include "config/experiment_file.h"
#include "config/settings.h"
#include "fl_server/sessions/join.h"
#include "proto/wire/feature_messages.h"
#include "proto/wire/wire.pb.h"
#include "storage/state.pb.h"

namespace gradwire {
namespace {

void write_client(const ClientInfo& info, bool by_part, state::Client& saved) {
  saved.set_name(info.name);
  saved.set_by_part(by_part);
  saved.set_build(info.build);
  saved.set_kernels(info.kernels);
  saved.set_pid(info.pid);
  wire::Join join;
  write_join(info, join);
  saved.set_join(join.SerializeAsString());
}

Status read_client(const state::Client& saved, ClientId client, ClientTable& table) {
  ClientInfo info;
  info.name = saved.name();
  info.build = saved.build();
  info.kernels = saved.kernels();
  info.pid = saved.pid();
  wire::Join join;
  if (!join.ParseFromString(saved.join()))
    return Error{"its record of client " + std::to_string(client) + " cannot be read"};
  Result<ClientInfo> read = read_join(join, std::move(info));
  if (!read) return read.error();
  return table.restore(client, std::move(*read), saved.by_part());
}

}  // namespace

std::string save_metadata(const RunMetadata& metadata) {
  state::Run run;
  run.set_asked(pack_experiment(metadata.asked));
  run.set_experiment(pack_experiment(metadata.resolved));
  run.set_start(metadata.start);
  const ClientTable& table = metadata.table;
  for (ClientId client = 0; client < table.size(); ++client) {
    state::Client& saved = *run.add_clients();
    if (table.joined(client)) write_client(table.info(client), table.by_part(client), saved);
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
  for (ClientId client = 0; client < metadata.table.size(); ++client) {
    const state::Client& saved = run.clients(static_cast<int>(client));
    if (saved.name().empty()) continue;  // it has not joined
    if (Status status = read_client(saved, client, metadata.table); !status) return status.error();
  }
  return metadata;
}

std::string write_late_join(ClientId client, const ClientInfo& info, bool by_part) {
  state::Client saved;
  write_client(info, by_part, saved);
  saved.set_number(client);
  return saved.SerializeAsString();
}

bool read_late_join(std::string_view record, ClientTable& table) {
  state::Client saved;
  return saved.ParseFromArray(record.data(), static_cast<int>(record.size())) && saved.has_number() &&
         saved.number() < table.size() && !saved.name().empty() && read_client(saved, saved.number(), table);
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
