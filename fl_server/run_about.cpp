#include "fl_server/run_about.h"

#include <sstream>
#include <utility>

#include "fl_server/net/join.h"
#include "proto/config/experiment.pb.h"
#include "proto/store/state.pb.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

// What may change from one process of a run to the next; the rest decides the bits of the results.
void copy_settings(const proto::Experiment& from, proto::Experiment& to) {
  to.mutable_server()->set_quorum(from.server().quorum());
  to.mutable_server()->set_over_selection(from.server().over_selection());
  to.mutable_server()->set_deadline_ms(from.server().deadline_ms());
  to.mutable_server()->set_durability(from.server().durability());
  to.mutable_server()->set_join_deadline_ms(from.server().join_deadline_ms());
  to.mutable_run()->set_rounds(from.run().rounds());
  to.mutable_run()->set_evaluate_every(from.run().evaluate_every());
  to.mutable_run()->set_stop_at_grad_norm_sq(from.run().stop_at_grad_norm_sq());
}

// "key = value" of the first line in which the two files differ; empty: they do not.
std::string first_difference(const std::string& now, const std::string& before) {
  std::istringstream a(now), b(before);
  std::string line, other;
  while (std::getline(a, line)) {
    if (!std::getline(b, other)) other.clear();
    if (line != other) return line.empty() ? other : line;
  }
  return std::getline(b, other) ? other : "";
}

}  // namespace

std::string save_about(const proto::Experiment& asked, const proto::Experiment& resolved,
                       const std::string& start, const ClientTable& table) {
  state::Run run;
  run.set_asked(asked.SerializeAsString());
  run.set_experiment(resolved.SerializeAsString());
  run.set_start(start);
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
  return run.SerializeAsString();
}

Result<RunAbout> load_about(std::string_view bytes) {
  state::Run run;
  RunAbout about;
  if (!run.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      !about.asked.ParseFromString(run.asked()) || !about.resolved.ParseFromString(run.experiment()) ||
      run.start().empty() ||
      about.resolved.clients().count() != static_cast<std::uint32_t>(run.clients_size()))
    return Error{"what it says of its run cannot be read"};
  about.start = run.start();
  about.table = ClientTable(static_cast<std::uint32_t>(run.clients_size()));
  for (int k = 0; k < run.clients_size(); ++k) {
    const state::Client& saved = run.clients(k);
    ClientInfo info;
    info.name = saved.name();
    info.build = saved.build();
    info.kernels = saved.kernels();
    info.pid = saved.pid();
    wire::Join join;
    if (!join.ParseFromString(saved.join()))
      return Error{"what it says of client " + std::to_string(k) + " cannot be read"};
    Result<ClientInfo> read = read_join(join, std::move(info));
    if (!read) return read.error();
    if (Status status = about.table.restore(static_cast<ClientId>(k), std::move(*read), saved.by_part());
        !status)
      return status.error();
  }
  return about;
}

void take_settings(const proto::Experiment& now, RunAbout& about, const std::string& folder) {
  copy_settings(now, about.asked);
  const std::string line = first_difference(to_toml(now), to_toml(about.asked));
  if (!line.empty())
    throw ExperimentError("--state " + folder + ": holds a run of another experiment, which differs in '" +
                          line +
                          "'; give it the experiment that it was started with, or choose another folder");
  copy_settings(now, about.resolved);
}

}  // namespace gradwire
