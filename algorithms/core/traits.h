// Traits of an algorithm, for loops, tools and tables.
#pragma once

#include <cstdint>
#include <string_view>

namespace gradwire {

// Kinds of client state (flags), by who can rebuild it if the client loses it.
enum class ClientState : std::uint8_t {
  kNone = 0,
  kMirrored = 1,      // a function of the client's used replies: the server can keep a replica
  kRecomputable = 2,  // a gradient at a point that the server knows
  kPrivate = 4,       // only the client has it
  kReplica = 8,       // a function of the broadcasts
};
constexpr ClientState operator|(ClientState a, ClientState b) {
  return static_cast<ClientState>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr bool has(ClientState set, ClientState kind) {
  return (static_cast<std::uint8_t>(set) & static_cast<std::uint8_t>(kind)) != 0;
}

// The compressors that the algorithm's theory covers.
enum class CompressorClass : std::uint8_t { kIdentity, kUnbiased, kContractive, kEither };

struct AlgorithmTraits {
  std::string_view name;
  std::string_view summary;    // one line
  std::string_view reference;  // paper, arXiv number
  CompressorClass compressor_class = CompressorClass::kIdentity;
  bool strict = false;             // compressors of other classes are rejected even with a numeric step size
  bool needs_all_replies = false;  // every client of the cohort must reply
  bool partial = true;             // participation < 1 is allowed
  bool stochastic = false;         // accepts `batch`
  bool asynchronous = false;
  ClientState client_state = ClientState::kNone;
  bool theory_knows_sampling = false;  // its step size also holds for participation < 1
  bool theory_knows_batches = false;   // its step size also holds for batches
  bool theory_knows_quorum = false;    // its step size also holds if the slowest replies are missing
  std::uint32_t flag_bits_up = 0;      // bits of each reply in addition to its payloads
  // True if, with equal weights, the server only needs the number of replies of a round and the sum of each
  // part over them. Replies may then arrive as one sum and empty parts (takes_sums() in algorithms.h).
  bool adds_replies = false;
  bool needs_hessian = false;  // oracles must have Hessians; clients compress their upper triangle
  // True if clients report the final values of a reply while they compute the rest (server.overlap). The
  // compressor must support it (ScaledEntries).
  bool shows_early = false;
};

}  // namespace gradwire
