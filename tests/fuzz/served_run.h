// A server with two correct clients, on simulated streams, disk and clock. A fuzzer chooses the bytes that an
// attacker sends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "config/experiment_file.h"
#include "config/settings.h"
#include "fl_server/plan_of_joins.h"
#include "fl_server/relay/relay.h"
#include "fl_server/run_metadata.h"
#include "fl_server/sessions/session_manager.h"
#include "fl_server/sessions/tcp_transport.h"
#include "proto/wire/codec_context.h"
#include "storage/run_store.h"
#include "tests/fuzz/fuzz.h"
#include "tests/simulated/lazy_background.h"
#include "tests/simulated/simulated_peer.h"

namespace gradwire::fuzz {

inline constexpr std::uint32_t kRealClients = 2;
inline constexpr std::uint32_t kServedRounds = 5;

inline const LoadedExperiment& served_experiment() {
  static const LoadedExperiment loaded = parse_experiment(
      "[problem]\nkind = \"quadratic\"\ndim = 8\n[clients]\ncount = 2\n[algorithm]\nname = \"ef21\"\n"
      "compressor = \"topk:k=2\"\nstep_size = 0.1\n[run]\nrounds = 5\n",
      "f.toml");
  return loaded;
}

// The connections of an attacker. A script is a list of steps; the first byte selects each step:
//   0  opens a new connection in place of number u8 % 3
//   1  sends u16 bytes on the current connection
//   2  sends a frame with correct checksums: type u8, channel u8, header (u16 bytes), payload (u16 bytes)
//   3  waits for u8 / 4 seconds
//   4  closes the current connection
class Attacker {
 public:
  Attacker(SimulatedTime& time, Random& random, const StreamFaults& link_faults,
           CurrentServer& current_server, Input script)
      : time_(time),
        random_(random),
        link_faults_(link_faults),
        current_server_(current_server),
        script_(script) {}
  ~Attacker() {
    for (auto& wire : wires_)
      if (wire) wire->close(Wire::kClient);
  }
  void begin() {
    time_.in(0.01, [this] { step(); });
  }

 private:
  void step() {
    double seconds = 0.02;
    if (script_.at_end() || current_server_.server == nullptr) return;
    auto& wire = wires_[at_];
    switch (script_.u8() % 5) {
      case 0: {
        at_ = script_.u8() % 3;
        auto& next = wires_[at_];
        if (next) next->close(Wire::kClient);
        next = std::make_shared<Wire>(time_, random_, link_faults_);
        next->told[Wire::kClient] = [end = next.get()] { end->read(Wire::kClient, SIZE_MAX); };
        current_server_.server->connect(next);
        break;
      }
      case 1: say(script_.bytes(script_.u16())); break;
      case 2: {
        const auto type = static_cast<FrameType>(script_.u8());
        const std::uint32_t channel = script_.u8();
        const Input header = script_.bytes(script_.u16());
        const Input payload = script_.bytes(script_.u16());
        say(write_prefix(type, header, payload.size(), crc32c(payload), channel));
        say(header);
        say(payload);
        break;
      }
      case 3: seconds = 0.25 * script_.u8(); break;
      default:
        if (wire) wire->close(Wire::kClient);
        wire.reset();
    }
    time_.in(seconds, [this] { step(); });
  }
  void say(Input bytes) {
    if (wires_[at_]) wires_[at_]->write(Wire::kClient, text_of(bytes));
  }

  SimulatedTime& time_;
  Random& random_;
  const StreamFaults& link_faults_;
  CurrentServer& current_server_;
  Cursor script_;
  std::shared_ptr<Wire> wires_[3];
  std::size_t at_ = 0;
};

struct Served {
  std::vector<std::string> states;  // state of the server algorithm after each committed round
  std::string why_not;              // the error of the run; empty if it ended well
};

// Serves a script. With `early`, the attacker connects before the clients have joined. With `by_relay`, one
// client and the attacker connect through a relay.
inline Served serve(Input script, bool early, Disk& disk, bool by_relay = false) {
  const LoadedExperiment& loaded = served_experiment();
  Served served;
  SimulatedTime time;
  Random random(1, "served");
  const StreamFaults link_faults{.delay_seconds = 0.001};
  const PeerHabits habits;
  CurrentServer current_server, site;
  std::vector<std::unique_ptr<SimulatedPeer>> peers;
  for (std::uint32_t c = 0; c < kRealClients; ++c)
    peers.push_back(std::make_unique<SimulatedPeer>(time, random, link_faults, habits,
                                                    by_relay && c == 0 ? site : current_server,
                                                    "honest-" + std::to_string(c), 7 + c));
  RelayOptions relay_options;
  relay_options.upstream = "server:1";
  relay_options.jitter_seed = 3;
  std::unique_ptr<RelayRun> relay;
  if (by_relay) {
    auto sockets = std::make_unique<SimulatedSockets>(time, random, link_faults, site);
    sockets->upstream = &current_server;
    relay = make_relay(relay_options, std::move(sockets));
    relay->start();
  }
  Attacker unauthenticated(time, random, link_faults, by_relay ? site : current_server, script);
  try {
    SessionManagerOptions options;
    options.clients = kRealClients;
    options.experiment = pack_experiment(loaded.experiment);
    options.table = ClientTable(kRealClients);
    options.most_for_relay_bytes = 1 << 20;
    SessionManager session_manager(
        options, std::make_unique<SimulatedSockets>(time, random, link_faults, current_server));
    if (early) unauthenticated.begin();
    session_manager.gather(std::chrono::minutes(5));
    const RunPlan plan = plan_of_joins(loaded, session_manager.table());
    const RunMetadata metadata{plan.asked, plan.experiment, start_frame(plan, 5), session_manager.table()};
    const auto run_context = make_run_context<double>(plan, Role::kServer);
    const auto algorithm = make_server<double>(run_context);
    RunProgress progress;
    LazyBackground background;
    Journal journal(disk, Durability::kProcess);
    RunStore<double> store(journal, background, codec_context(*run_context, {}), *algorithm, progress,
                           save_metadata(metadata),
                           SnapshotPolicy{.records = 2, .bytes_beyond_state = 1 << 20});
    store.begin();
    TcpTransport<double> transport(session_manager, codec_context(*run_context, {}), metadata.start,
                                   takes_sums(*run_context));
    if (!early) unauthenticated.begin();
    RoundLimits limits;
    limits.rounds = kServedRounds;
    limits.evaluate_every = 2;
    limits.deadline_seconds = 30;
    limits.attempts = 3;
    LoopHooks<double> hooks;
    hooks.before_apply = [&] { store.before_apply(); };
    hooks.on_commit = [&](const RoundCommit<double>& commit) {
      store.commit(commit);
      served.states.push_back(algorithm->save());
    };
    const Outcome outcome = run_rounds<double>(*algorithm, traits_of(*run_context), *run_context, transport,
                                               progress, limits, hooks);
    if (outcome != Outcome::kFinished) served.why_not = "the run did not finish";
    if (!session_manager.finish(std::chrono::seconds(20)))
      served.why_not = "not all clients heard the shutdown";
  } catch (const std::logic_error&) {
    throw;
  } catch (const std::runtime_error& error) {
    served.why_not = error.what();
  }
  return served;
}

}  // namespace gradwire::fuzz
