// The traits that a loop, a tool or a table asks an algorithm for.
#pragma once

#include <cstdint>
#include <string_view>

namespace gradwire {

// Kinds of client state, by who else can rebuild it (flags).
enum class ClientState : std::uint8_t {
  kNone = 0,
  kMirrored = 1,      // a function of the client's own used replies: the server can keep a mirror
  kRecomputable = 2,  // a gradient at a point that the server has
  kPrivate = 4,       // nobody else can rebuild it
  kReplica = 8,       // a function of the broadcasts
};
constexpr ClientState operator|(ClientState a, ClientState b) {
  return static_cast<ClientState>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr bool has(ClientState set, ClientState kind) {
  return (static_cast<std::uint8_t>(set) & static_cast<std::uint8_t>(kind)) != 0;
}

// Which compressors an algorithm's theory is about.
enum class CompressorClass : std::uint8_t { kIdentity, kUnbiased, kContractive, kEither };

struct AlgorithmTraits {
  std::string_view name;
  std::string_view summary;    // one line
  std::string_view reference;  // paper, arXiv number
  CompressorClass compressor_class = CompressorClass::kIdentity;
  bool strict = false;             // a compressor of another class is refused even with a numeric step size
  bool needs_all_replies = false;  // every client of the cohort must reply
  bool partial = true;             // participation < 1 is allowed
  bool stochastic = false;         // accepts `batch`
  bool asynchronous = false;
  ClientState client_state = ClientState::kNone;
  bool theory_knows_sampling = false;  // its step size also holds for participation < 1
  bool theory_knows_batches = false;   // its step size also holds for batches
  bool theory_knows_quorum = false;    // its step size also holds where the slowest are missing
  std::uint32_t flag_bits_up = 0;      // bits of each reply besides its payloads
  // With equal weights, the server algorithm needs only the sum of each part over the replies of a round, and
  // their number: any of the replies may arrive as one sum and empty parts (takes_sums() of algorithms.h).
  bool adds_replies = false;
  bool needs_hessian = false;  // oracles must have Hessians; clients compress their upper triangle
  // Clients say what is final of a reply while they compute the rest, where the compressor lets them
  // (ScaledEntries): server.overlap.
  bool shows_early = false;
};

}  // namespace gradwire
