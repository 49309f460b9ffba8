// The sections of the experiment file except [problem] (engine/problems/). Each is a struct of fields
// (base/field.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "algorithms/core/spec.h"
#include "base/byte_size.h"
#include "base/field.h"
#include "engine/data/client_dataset.h"
#include "engine/kernels/select.h"
#include "rounds/norm_limit.h"

namespace gradwire {

template <class Real>
struct CustomAlgorithm;  // algorithms/core/client_server.h

enum class Precision : std::uint8_t { kFp64, kFp32 };
inline std::span<const std::string_view> words_of(Precision) {
  static constexpr auto words = std::to_array<std::string_view>({"fp64", "fp32"});
  return words;
}
inline std::span<const std::string_view> words_of(PartitionKind) {
  static constexpr auto words =
      std::to_array<std::string_view>({"contiguous", "iid", "by_label", "dirichlet", "by_role"});
  return words;
}
inline std::span<const std::string_view> words_of(ReplicaPlacement) {
  static constexpr auto words = std::to_array<std::string_view>({"ring", "groups"});
  return words;
}
enum class Weighting : std::uint8_t { kEqual, kSamples };
inline std::span<const std::string_view> words_of(Weighting) {
  static constexpr auto words = std::to_array<std::string_view>({"equal", "samples"});
  return words;
}
enum class GradNorm : std::uint8_t { kAuto, kEvery, kFirstAndLast, kNone };
inline std::span<const std::string_view> words_of(GradNorm) {
  static constexpr auto words = std::to_array<std::string_view>({"auto", "every", "first_and_last", "none"});
  return words;
}
enum class Survives : std::uint8_t { kAuto, kProcess, kPower };
inline std::span<const std::string_view> words_of(Survives) {
  static constexpr auto words = std::to_array<std::string_view>({"auto", "process", "power"});
  return words;
}

inline std::span<const std::string_view> words_of(KernelSet) {
  static constexpr auto words = std::to_array<std::string_view>({"best", "portable"});
  return words;
}

enum class ClientMetrics : std::uint8_t { kAuto, kNone, kLast, kAll };
inline std::span<const std::string_view> words_of(ClientMetrics) {
  static constexpr auto words = std::to_array<std::string_view>({"auto", "none", "last", "all"});
  return words;
}
inline std::span<const std::string_view> words_of(NormAction) {
  static constexpr auto words = std::to_array<std::string_view>({"reject", "halve", "warn"});
  return words;
}

inline constexpr std::array<std::string_view, 1> kFull = {"full"}, kAuto = {"auto"};
inline constexpr std::array<std::string_view, 2> kTlsVersions = {"TLS1.3", "TLS1.2"};
inline constexpr std::array<std::string_view, 2> kAutoOrOff = {"auto", "off"};

// Throw ConfigError(path) if the value is not allowed.
void check_name(const std::string& path, const std::string& name);
void check_x0(const std::string& path, const std::string& x0);
void check_latency(const std::string& path, const std::string& latency);

struct ClientsSection {
  std::uint32_t count = 10;
  PartitionKind partition = PartitionKind::kContiguous;
  double dirichlet_alpha = 0.3;
  std::uint32_t samples_per_client = 0;  // 0 if `partition` divides the samples
  std::uint32_t replication = 1;
  ReplicaPlacement placement = ReplicaPlacement::kRing;
  double participation = 1;
  Weighting weights = Weighting::kEqual;
  std::string latency;  // for parse_client_latency(); empty if there is no virtual clock

  static void fields(auto& self, auto&& visit) {
    visit("count", self.count, "n, the number of clients", {.low = 1, .high = 1e6});
    visit("partition", self.partition,
          "how clients divide the samples: in their order, shuffled (`iid`), sorted by label, with shares of "
          "each label drawn from a Dirichlet distribution, or each role of a play with what it says "
          "(`by_role`)");
    visit("dirichlet_alpha", self.dirichlet_alpha,
          "`dirichlet`: the concentration; smaller values make clients differ more",
          {.low_open = true,
           .quiet = self.partition != PartitionKind::kDirichlet,
           .idle_by = idle_if(self.partition != PartitionKind::kDirichlet, "partition")});
    visit("samples_per_client", self.samples_per_client,
          "number of samples of each client, drawn from all that are not held out; two clients may hold the "
          "same sample, and there may be more clients than samples",
          {.note = "none (0): `partition` divides the samples", .quiet = true});
    visit("replication", self.replication,
          "number of clients that hold each part of the data (r + 1 for `coded_gd`)",
          {.low = 1, .high = 1000, .quiet = true, .old_key = "copies"});
    visit("placement", self.placement,
          "the parts of a client if `replication` is above 1: its own part and those of the next clients "
          "(`ring`), or all parts of its group of `replication` clients (`groups`)",
          {.quiet = true, .idle_by = idle_if(self.replication == 1, "replication")});
    visit("participation", self.participation,
          "share of the clients that a round asks: a uniform sample of round(share n), at least 1",
          {.high = 1, .low_open = true});
    visit("weights", self.weights,
          "weights of the clients in f and in the algorithm's means: 1/n each, or in proportion to their "
          "numbers of samples");
    visit("latency", self.latency,
          "simulations: the time of a request to client i = 0, 1, ... on a virtual clock: a number, `sqrt` "
          "(the root of i + 1), `linear` (i + 1), `lognormal:SIGMA` or `pareto:ALPHA` (drawn for each "
          "request, mean 1), a product such as `0.1*sqrt*pareto:1.5`, or `file:PATH` with one line for each "
          "client: the times of its requests in order, which then repeat; with `+fail:P` at the end, a "
          "request never returns with probability P; metrics.csv then has virtual seconds",
          {.or_number = true,
           .note = "none; asynchronous algorithms: 1",
           .quiet = true,
           .place = RunIn::kMemory,
           .check = check_latency,
           .old_key = "seconds"});
  }
};

struct AlgorithmSection {
  std::string name;
  std::string compressor = "identity";
  std::string step_size;    // empty for the algorithm's default
  std::uint32_t batch = 0;  // 0 for full gradients
  Options parameters;       // the algorithm's own keys, in the order of the file
  // Parts of the program that runs the experiment, which are no keys. Null if `name` and `compressor` are in
  // the lists.
  std::shared_ptr<const CustomAlgorithm<float>> custom_fp32 = nullptr;
  std::shared_ptr<const CustomAlgorithm<double>> custom_fp64 = nullptr;
  std::shared_ptr<const CompressorInterface> custom_compressor = nullptr;

  static void fields(auto& self, auto&& visit) {
    visit("name", self.name, "an algorithm; `gradwire list algorithms` names them", {.note = "required"});
    visit("compressor", self.compressor,
          "`NAME` or `NAME:KEY=VALUE,...`; `gradwire list compressors` names them; a count may be a share of "
          "d, as in `1%`");
    visit("step_size", self.step_size, "`theory`, `theory*8` or a number above 0",
          {.or_number = true, .note = "the algorithm's", .quiet = true});
    visit("batch", self.batch, "samples per stochastic gradient; `full`: all samples of the client",
          {.low = 1, .words = kFull, .or_integer = true});
  }
};

// The loss that ends a run. Empty if no loss does.
struct LossTarget {
  std::optional<double> value;
};
template <>
struct TextCodec<LossTarget> {
  static bool read(std::string_view text, LossTarget& out);
  static std::string write(const LossTarget& target);
  static constexpr std::string_view expected = "\"none\" or a number";
};

struct RunSection {
  std::uint32_t rounds = 100;
  std::uint32_t evaluate_every = 1;  // 0 for never
  double stop_at_grad_norm_sq = 0;   // 0 for never
  LossTarget stop_at_loss;
  double stop_at_accuracy = 0;  // 0 for never
  std::uint32_t patience = 0;   // evaluations; 0 for no limit
  std::string x0;               // never empty in a loaded experiment
  bool monitor = false;
  ClientMetrics client_metrics = ClientMetrics::kAuto;
  KernelSet kernels = KernelSet::kBest;

  static void fields(auto& self, auto&& visit) {
    visit("rounds", self.rounds, "number of rounds", {.may_change = true});
    visit("evaluate_every", self.evaluate_every,
          "rounds from one row of metrics.csv to the next; 0 turns evaluation off", {.may_change = true});
    visit("stop_at_grad_norm_sq", self.stop_at_grad_norm_sq,
          "the run ends if an evaluation finds a squared gradient norm of at most this; 0 turns this off",
          {.may_change = true});
    visit("stop_at_loss", self.stop_at_loss, "the run ends if an evaluation finds a loss of at most this",
          {.quiet = true, .may_change = true, .sent_if_set = true});
    visit("stop_at_accuracy", self.stop_at_accuracy,
          "the run ends if an evaluation finds an accuracy of at least this; 0 turns this off",
          {.high = 1, .quiet = true, .may_change = true, .sent_if_set = true});
    visit("patience", self.patience,
          "the run ends if this many evaluations in a row find no new minimum of the loss; 0 turns this off",
          {.quiet = true, .may_change = true, .sent_if_set = true});
    visit("x0", self.x0,
          "the start point: `zeros`, `normal`, `model` (the initial parameters of the model) or `file:PATH` "
          "(d lines with a number each, a model.bin, a .npy or a .gwn)",
          {.note = "`zeros`; networks: `model`", .quiet = true, .check = check_x0});
    visit("monitor", self.monitor,
          "simulations: adds the Lyapunov function of the algorithm's theorem and its bound to metrics.csv; "
          "the run reports when the function exceeds the bound",
          {.quiet = true});
    visit("client_metrics", self.client_metrics,
          "the evaluations whose loss and accuracy of each client go to clients.csv: none, the last, or all; "
          "`auto`: the last, or none if there are more than 10,000 clients",
          {.quiet = true,
           .may_change = true,
           .sent_if_set = true,
           .idle_by = idle_if(self.evaluate_every == 0, "evaluate_every")});
    visit("kernels", self.kernels,
          "the arithmetic of networks and Hessians: `best` of each processor, or `portable`, which gives the "
          "same bits on every architecture",
          {.quiet = true, .sent_if_set = true});
  }
};

struct EvaluationSection {
  GradNorm grad_norm = GradNorm::kAuto;
  bool accuracy = true;
  double clients = 1;

  static void fields(auto& self, auto&& visit) {
    visit("grad_norm", self.grad_norm,
          "the rows of metrics.csv that have grad_norm_sq, for which every client sends its whole gradient: "
          "every row, the first and the last (`first_and_last`), or none; `auto`: every row, but "
          "`first_and_last` for a gradwire-server that you start yourself, unless stop_at_grad_norm_sq is "
          "above 0",
          {.quiet = true, .may_change = true, .renamed_word = {"ends", "first_and_last"}});
    visit("accuracy", self.accuracy, "whether clients that have test samples measure accuracy on them",
          {.quiet = true});
    visit("clients", self.clients,
          "share of the clients that evaluations ask: a uniform sample of round(share n), at least 1, the "
          "same in all rows; loss, gradient norm and accuracy are those of this sample",
          {.high = 1, .low_open = true, .quiet = true, .may_change = true});
  }
};

struct ServerSection {
  double quorum = 1;
  double over_selection = 0;
  std::uint32_t deadline_ms = 60'000;
  std::string zstd = "auto";                   // "auto", "off" or a level
  bool overlap = false;                        // clients send while they compute
  std::string client_state_replicas = "auto";  // "auto", "true" or "false"
  Survives durability = Survives::kAuto;
  std::uint32_t join_deadline_ms = 86'400'000;
  double start_share = 1;
  std::string tls_min = "TLS1.3";  // or "TLS1.2"
  double norm_limit = 0;           // 0 for no limit
  NormAction norm_action = NormAction::kReject;
  std::uint32_t quarantine_s = 3600;          // 0 for no bans
  std::uint32_t connections_per_address = 0;  // 0 if only the limit for all addresses applies
  std::uint32_t min_bytes_per_second = 4096;
  std::uint32_t heartbeat_ms = 15'000;
  ByteSize staging_budget{512u << 20};
  bool zerocopy = false;

  static void fields(auto& self, auto&& visit) {
    visit("quorum", self.quorum, "share of a round's clients whose replies end the round",
          {.high = 1, .low_open = true, .may_change = true});
    visit("over_selection", self.over_selection,
          "share of additional clients that a round asks, so that it does not wait for the slowest; the "
          "round still ends after quorum of the original number of clients, those that reply first",
          {.may_change = true});
    visit("deadline_ms", self.deadline_ms,
          "milliseconds until the server asks a client again that has not replied",
          {.low = 1, .may_change = true});
    visit("zstd", self.zstd,
          "compression of payloads of 1 KB or more: if a trial saves 5 %, never, or at this level",
          {.low = 1, .high = 19, .words = kAutoOrOff, .or_integer = true});
    visit("overlap", self.overlap,
          "over TCP: clients send the final values of a compressed gradient while they compute the rest, if "
          "algorithm and compressor allow it (docs/reference/wire.md); needs zstd = \"off\"",
          {.place = RunIn::kNetwork});
    visit("client_state_replicas", self.client_state_replicas,
          "the server keeps a replica of each client's state, to restore clients that lost it; `auto`: over "
          "a network, and if faults.state_loss or crashes is above 0 or run.monitor is true",
          {.words = kAuto, .or_flag = true, .old_key = "mirrors"});
    visit("durability", self.durability,
          "what a committed round survives: a crash of the server, or also a power failure (slower: every "
          "round waits for the disk); `auto`: \"power\" if the server could not give a client its state "
          "back, else \"process\"",
          {.may_change = true, .place = RunIn::kNetwork});
    visit("join_deadline_ms", self.join_deadline_ms,
          "milliseconds that a server waits for its clients after its start: until all (or start_share of "
          "them) have joined, or, in a resumed run, until as many are back as its first request needs",
          {.low = 1, .may_change = true, .place = RunIn::kNetwork});
    visit("start_share", self.start_share,
          "share of the clients whose joins begin the run; the others may join later. It must be above "
          "quorum, and the run must need nothing of the clients that are missing",
          {.high = 1,
           .low_open = true,
           .quiet = true,
           .may_change = true,
           .sent_if_set = true,
           .place = RunIn::kNetwork});
    visit("tls_min", self.tls_min,
          "the oldest version of TLS that clients may use, if the server has an --identity",
          {.words = kTlsVersions, .may_change = true, .place = RunIn::kNetwork});
    visit("norm_limit", self.norm_limit,
          "the largest Euclidean norm of a reply, over all of its parts; 0 turns this off",
          {.quiet = true, .may_change = true});
    visit("norm_action", self.norm_action,
          "what happens to a reply beyond norm_limit: the server counts it as missing, halves it until it is "
          "within the limit (only for algorithms whose clients have no state that follows their replies), or "
          "uses it; the log says so",
          {.quiet = true,
           .may_change = true,
           .idle_by = idle_if(self.norm_limit == 0, "norm_limit"),
           .renamed_word = {"clip", "halve"}});
    visit("quarantine_s", self.quarantine_s,
          "longest ban, in seconds, of a peer that breaks the protocol repeatedly: the third violation bans "
          "it for one second, each further one for twice as long; 0 turns bans off",
          {.quiet = true, .may_change = true, .place = RunIn::kNetwork});
    visit("connections_per_address", self.connections_per_address,
          "simultaneous connections from one address (IPv6: one /64 network); 0: as many as from all "
          "addresses",
          {.quiet = true, .may_change = true, .place = RunIn::kNetwork});
    visit("min_bytes_per_second", self.min_bytes_per_second,
          "the server closes a connection that delivers less of a message than this for half a minute, or "
          "accepts less of one for a minute; clients allow their server the same time",
          {.low = 1, .quiet = true, .may_change = true, .place = RunIn::kNetwork});
    visit("heartbeat_ms", self.heartbeat_ms,
          "milliseconds after which server and clients send a sign of life if they sent nothing else; a peer "
          "that is silent for three times as long is disconnected",
          {.low = 500,  // relays look at their connections every 250 ms
           .high = 600'000,
           .quiet = true,
           .may_change = true,
           .sent_if_set = true,
           .place = RunIn::kNetwork});
    visit("staging_budget", self.staging_budget,
          "bytes of replies that may arrive at the same time, from all clients; the server reads further "
          "replies only if there is room",
          {.quiet = true, .may_change = true, .place = RunIn::kNetwork});
    visit("zerocopy", self.zerocopy,
          "the kernel sends long requests without copying them (MSG_ZEROCOPY), and one buffer serves all "
          "clients; for fast networks, without TLS; if the kernel copies anyway, as to clients on this "
          "machine, the server continues without it",
          {.quiet = true, .may_change = true, .place = RunIn::kNetwork});
  }
};

struct FaultsSection {
  double lost_replies = 0, lost_requests = 0, duplicates = 0, crashes = 0, state_loss = 0;
  bool shuffle = false;

  static void fields(auto& self, auto&& visit) {
    const Constraints share{.high = 1, .high_open = true, .quiet = true, .place = RunIn::kMemory};
    visit("lost_replies", self.lost_replies, "share of the replies that are lost", share);
    visit("lost_requests", self.lost_requests, "share of the requests that are lost", share);
    visit("duplicates", self.duplicates, "share of the messages that arrive twice", share);
    visit("crashes", self.crashes, "chance that a client crashes and forgets its last proposal", share);
    Constraints renamed = share;
    renamed.old_key = "wiped";
    visit("state_loss", self.state_loss, "chance that a client loses all of its state", renamed);
    visit("shuffle", self.shuffle, "replies arrive in random order",
          {.quiet = true, .place = RunIn::kMemory});
  }
};

}  // namespace gradwire
