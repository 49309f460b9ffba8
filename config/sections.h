// The sections of the experiment file beside [problem] (engine/problems/), each a struct of fields:
// base/field.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "algorithms/core/spec.h"
#include "base/byte_size.h"
#include "base/field.h"
#include "engine/data/client_dataset.h"
#include "rounds/norm_limit.h"

namespace gradwire {

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
enum class GradNorm : std::uint8_t { kAuto, kEvery, kEnds, kNone };
inline std::span<const std::string_view> words_of(GradNorm) {
  static constexpr auto words = std::to_array<std::string_view>({"auto", "every", "ends", "none"});
  return words;
}
enum class Survives : std::uint8_t { kAuto, kProcess, kPower };
inline std::span<const std::string_view> words_of(Survives) {
  static constexpr auto words = std::to_array<std::string_view>({"auto", "process", "power"});
  return words;
}

enum class ClientMetrics : std::uint8_t { kAuto, kNone, kLast, kAll };
inline std::span<const std::string_view> words_of(ClientMetrics) {
  static constexpr auto words = std::to_array<std::string_view>({"auto", "none", "last", "all"});
  return words;
}
inline std::span<const std::string_view> words_of(NormAction) {
  static constexpr auto words = std::to_array<std::string_view>({"reject", "clip", "warn"});
  return words;
}

inline constexpr std::array<std::string_view, 1> kFull = {"full"}, kAuto = {"auto"};
inline constexpr std::array<std::string_view, 2> kTlsVersions = {"TLS1.3", "TLS1.2"};
inline constexpr std::array<std::string_view, 2> kAutoOrOff = {"auto", "off"};

// These throw ConfigError(path).
void check_name(const std::string& path, const std::string& name);
void check_x0(const std::string& path, const std::string& x0);
void check_seconds(const std::string& path, const std::string& seconds);

struct ClientsSection {
  std::uint32_t count = 10;
  PartitionKind partition = PartitionKind::kContiguous;
  double dirichlet_alpha = 0.3;
  std::uint32_t samples_per_client = 0;  // 0: `partition` divides the samples
  std::uint32_t replication = 1;
  ReplicaPlacement placement = ReplicaPlacement::kRing;
  double participation = 1;
  Weighting weights = Weighting::kEqual;
  std::string seconds;  // parse_client_seconds(); empty: no virtual clock

  static void fields(auto& self, auto&& visit) {
    visit("count", self.count, "n, the number of clients", {.low = 1, .high = 1e6});
    visit("partition", self.partition,
          "how samples become clients: in their order, shuffled, sorted by label, with shares of each label "
          "drawn from a Dirichlet distribution, or each role of a play with what it says");
    visit("dirichlet_alpha", self.dirichlet_alpha,
          "dirichlet: concentration; the smaller, the more clients differ",
          {.low_open = true,
           .quiet = self.partition != PartitionKind::kDirichlet,
           .idle_by = idle_if(self.partition != PartitionKind::kDirichlet, "partition")});
    visit("samples_per_client", self.samples_per_client,
          "each client holds so many samples, drawn from all that are not held out: two clients may hold the "
          "same, and there may be more clients than samples",
          {.note = "none (0): `partition` divides the samples", .quiet = true});
    visit("copies", self.replication, "clients that hold each part of the data (r + 1 for `coded_gd`)",
          {.low = 1, .high = 1000, .quiet = true});
    visit("placement", self.placement,
          "with copies: a client holds its own part and those of the next clients, or all parts of its group "
          "of `copies` clients",
          {.quiet = true, .idle_by = idle_if(self.replication == 1, "copies")});
    visit("participation", self.participation,
          "share of the clients asked in a round: a uniform sample of round(share n), at least 1",
          {.high = 1, .low_open = true});
    visit("weights", self.weights,
          "of the clients in f and in the algorithm's means: 1/n each, or by their number of samples");
    visit(
        "seconds", self.seconds,
        "simulations: what a request takes client i = 0, 1, ... on a virtual clock: a number, `sqrt` (the "
        "root "
        "of i + 1), `linear` (i + 1), `lognormal:SIGMA` or `pareto:ALPHA` (drawn for each request, mean 1), "
        "products as `0.1*sqrt*pareto:1.5`, or `file:PATH`, a line for each client with what its requests "
        "take, "
        "one after the other and then again; `+fail:P` behind it: a request takes for ever with probability "
        "P; "
        "metrics.csv then has virtual seconds",
        {.or_number = true,
         .note = "none; asynchronous algorithms: 1",
         .quiet = true,
         .place = RunIn::kMemory,
         .check = check_seconds});
  }
};

struct AlgorithmSection {
  std::string name;
  std::string compressor = "identity";
  std::string step_size;    // empty: the algorithm's default
  std::uint32_t batch = 0;  // 0: full gradients
  Options parameters;       // the algorithm's own keys, in the order of the file

  static void fields(auto& self, auto&& visit) {
    visit("name", self.name, "an algorithm, see `gradwire list`", {.note = "required"});
    visit("compressor", self.compressor,
          "`NAME` or `NAME:KEY=VALUE,...`, see `gradwire list`; a count may be a share, as `1%`");
    visit("step_size", self.step_size, "`theory`, `theory*8` or a number above 0",
          {.or_number = true, .note = "the algorithm's", .quiet = true});
    visit("batch", self.batch, "samples per stochastic gradient; full: all of the client's",
          {.low = 1, .words = kFull, .or_integer = true});
  }
};

// A loss that ends a run. Empty: no loss does.
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
  std::uint32_t evaluate_every = 1;  // 0: never
  double stop_at_grad_norm_sq = 0;   // 0: never
  LossTarget stop_at_loss;
  double stop_at_accuracy = 0;  // 0: never
  std::uint32_t patience = 0;   // evaluations; 0: without end
  std::string x0;               // in an experiment that was loaded it is never empty
  bool monitor = false;
  ClientMetrics client_metrics = ClientMetrics::kAuto;

  static void fields(auto& self, auto&& visit) {
    visit("rounds", self.rounds, "number of rounds", {.may_change = true});
    visit("evaluate_every", self.evaluate_every,
          "rounds from one line of metrics.csv to the next; 0: no evaluation", {.may_change = true});
    visit("stop_at_grad_norm_sq", self.stop_at_grad_norm_sq,
          "an evaluation with a squared gradient norm this small ends the run; 0: none does",
          {.may_change = true});
    visit("stop_at_loss", self.stop_at_loss, "an evaluation with a loss this small ends the run",
          {.quiet = true, .may_change = true, .sent_if_set = true});
    visit("stop_at_accuracy", self.stop_at_accuracy,
          "an evaluation with an accuracy this large ends the run; 0: none does",
          {.high = 1, .quiet = true, .may_change = true, .sent_if_set = true});
    visit("patience", self.patience,
          "the run ends when the loss has had no new minimum in so many evaluations, one after the other; 0: "
          "it does not",
          {.quiet = true, .may_change = true, .sent_if_set = true});
    visit("x0", self.x0,
          "`zeros`, `normal`, `model` (the model's own start) or `file:PATH` (d lines with a number "
          "each, a model.bin, a .npy or a .gwn)",
          {.note = "`zeros`; networks: `model`", .quiet = true, .check = check_x0});
    visit("monitor", self.monitor,
          "simulations: metrics.csv has the Lyapunov function of the algorithm's theorem and its bound, and "
          "the "
          "run "
          "says when it crosses the bound",
          {.quiet = true});
    visit("client_metrics", self.client_metrics,
          "the evaluations whose loss and accuracy of each client go to clients.csv: none, the last, or all; "
          "`auto`: the last, with more than 10,000 clients none",
          {.quiet = true,
           .may_change = true,
           .sent_if_set = true,
           .idle_by = idle_if(self.evaluate_every == 0, "evaluate_every")});
  }
};

struct EvaluationSection {
  GradNorm grad_norm = GradNorm::kAuto;
  bool accuracy = true;
  double clients = 1;

  static void fields(auto& self, auto&& visit) {
    visit("grad_norm", self.grad_norm,
          "the lines of metrics.csv that have grad_norm_sq, for which every client sends its whole gradient: "
          "every one, the first and the last (`ends`), or none; `auto`: every, but of a gradwire-server that "
          "is started by itself `ends`, unless stop_at_grad_norm_sq is above 0",
          {.quiet = true, .may_change = true});
    visit("accuracy", self.accuracy, "whether clients that have test samples classify them", {.quiet = true});
    visit("clients", self.clients,
          "share of the clients that are asked: a uniform sample of round(share n), at least 1, the same in "
          "all lines; loss, gradient norm and accuracy are then theirs",
          {.high = 1, .low_open = true, .quiet = true, .may_change = true});
  }
};

struct ServerSection {
  double quorum = 1;
  double over_selection = 0;
  std::uint32_t deadline_ms = 60'000;
  std::string zstd = "auto";     // "auto", "off" or a level
  bool overlap = false;          // of computing and sending
  std::string mirrors = "auto";  // "auto", "true" or "false"
  Survives durability = Survives::kAuto;
  std::uint32_t join_deadline_ms = 86'400'000;
  std::string tls_min = "TLS1.3";  // or "TLS1.2"
  double norm_limit = 0;           // 0: none
  NormAction norm_action = NormAction::kReject;
  std::uint32_t quarantine_s = 3600;          // 0: nobody is kept out
  std::uint32_t connections_per_address = 0;  // 0: no limit but that of all
  std::uint32_t min_bytes_per_second = 4096;
  ByteSize staging_budget{512u << 20};
  bool zerocopy = false;

  static void fields(auto& self, auto&& visit) {
    visit("quorum", self.quorum, "share of a round's clients whose replies end it",
          {.high = 1, .low_open = true, .may_change = true});
    visit(
        "over_selection", self.over_selection,
        "share of clients asked beyond those that participation says, so that a round need not wait for the "
        "slowest: it still uses quorum of the first number, those who answer first",
        {.may_change = true});
    visit("deadline_ms", self.deadline_ms, "milliseconds until whoever is missing is asked again",
          {.low = 1, .may_change = true});
    visit("zstd", self.zstd,
          "compress payloads of 1 KB or more: where a trial gains 5 %, never, or at this level",
          {.low = 1, .high = 19, .words = kAutoOrOff, .or_integer = true});
    visit("overlap", self.overlap,
          "over TCP: clients send what is final of a compressed gradient while they compute the rest, where "
          "algorithm and compressor allow it (docs/wire.md); needs zstd = \"off\"",
          {.place = RunIn::kNetwork});
    visit("mirrors", self.mirrors,
          "the server keeps a copy of each client's state, to restore clients that lost it; "
          "`auto`: over a network, and when faults.wiped is above 0",
          {.words = kAuto, .or_flag = true});
    visit("durability", self.durability,
          "what a committed round survives: the death of the server, or also a loss of power (slower: "
          "every round waits for the disk); `auto`: \"power\" where the server could not give a client its "
          "state back, else \"process\"",
          {.may_change = true, .place = RunIn::kNetwork});
    visit("join_deadline_ms", self.join_deadline_ms,
          "milliseconds that a server which is started waits for its clients: until all have joined, or, "
          "in a run that goes on, until as many are back as its first request needs",
          {.low = 1, .may_change = true, .place = RunIn::kNetwork});
    visit("tls_min", self.tls_min,
          "the oldest version of TLS that clients may speak, where the server has an --identity",
          {.words = kTlsVersions, .may_change = true, .place = RunIn::kNetwork});
    visit("norm_limit", self.norm_limit,
          "the largest Euclidean norm of a reply, all of its parts together; 0: none",
          {.quiet = true, .may_change = true});
    visit(
        "norm_action", self.norm_action,
        "what becomes of a reply beyond norm_limit: it counts as missing, it is halved until it is within "
        "(algorithms whose clients have no state that follows their replies), or it is used; the log says so",
        {.quiet = true, .may_change = true, .idle_by = idle_if(self.norm_limit == 0, "norm_limit")});
    visit("quarantine_s", self.quarantine_s,
          "seconds that a peer which misbehaves again and again is kept out at most: from its third offence "
          "on, a second at first, then twice as long each time; 0: nobody is kept out",
          {.quiet = true, .may_change = true, .place = RunIn::kNetwork});
    visit("connections_per_address", self.connections_per_address,
          "connections from one address (of IPv6 one /64) at a time; 0: as many as from all addresses",
          {.quiet = true, .may_change = true, .place = RunIn::kNetwork});
    visit(
        "min_bytes_per_second", self.min_bytes_per_second,
        "a connection is closed that brings less of a message than this for half a minute, or takes less of "
        "one for a minute",
        {.low = 1, .quiet = true, .may_change = true, .place = RunIn::kNetwork});
    visit("staging_budget", self.staging_budget,
          "bytes of replies that may arrive at the same time, from all clients; the server reads no further "
          "reply until there is room for it",
          {.quiet = true, .may_change = true, .place = RunIn::kNetwork});
    visit(
        "zerocopy", self.zerocopy,
        "the system sends long requests from where they lie (MSG_ZEROCOPY), with one copy for all clients in "
        "place of one for each; for fast networks, without TLS. Where the system copies all the same, as to "
        "clients on this machine, the server goes on as without",
        {.quiet = true, .may_change = true, .place = RunIn::kNetwork});
  }
};

struct FaultsSection {
  double lost_replies = 0, lost_requests = 0, duplicates = 0, crashes = 0, wiped = 0;
  bool shuffle = false;

  static void fields(auto& self, auto&& visit) {
    const Constraints share{.high = 1, .high_open = true, .quiet = true, .place = RunIn::kMemory};
    visit("lost_replies", self.lost_replies, "share of the replies that are lost", share);
    visit("lost_requests", self.lost_requests, "share of the requests that are lost", share);
    visit("duplicates", self.duplicates, "share of the messages that arrive twice", share);
    visit("crashes", self.crashes, "chance that a client crashes and forgets its last proposal", share);
    visit("wiped", self.wiped, "chance that a client comes back with nothing", share);
    visit("shuffle", self.shuffle, "replies arrive in random order",
          {.quiet = true, .place = RunIn::kMemory});
  }
};

}  // namespace gradwire
