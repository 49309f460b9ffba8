// The metrics of a server: plain numbers that any thread may read at any time. Counting takes no lock and
// allocates nothing. All counts start at 0 in each process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "proto/wire/frame.h"

namespace gradwire {

class Counter {
 public:
  void add(std::uint64_t more = 1) { value_.fetch_add(more, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

template <class T>
class Gauge {
 public:
  constexpr explicit Gauge(T value = {}) : value_(value) {}
  void set(T value) { value_.store(value, std::memory_order_relaxed); }
  T value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<T> value_;
};

// A histogram of durations.
class TimeHistogram {
 public:
  // Upper limits of the buckets, in seconds. One more bucket holds all longer durations.
  static constexpr std::array kLimits{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                      0.25,   0.5,     1.0,    2.5,   5.0,    10.0,  25.0, 50.0,  100.0};
  static constexpr std::size_t kBuckets = kLimits.size() + 1;

  // Counts a duration in seconds. A negative value or NaN counts as 0.
  void observe(double seconds);
  std::uint64_t in_bucket(std::size_t bucket) const { return counts_[bucket].value(); }
  double sum_seconds() const { return 1e-9 * static_cast<double>(nanoseconds_.value()); }

 private:
  std::array<Counter, kBuckets> counts_;
  Counter nanoseconds_;
};

// A counter for each value of an enumeration that ends with kCount.
template <class Kind>
class CounterOf {
 public:
  static constexpr std::size_t kSize = static_cast<std::size_t>(Kind::kCount);
  void add(Kind kind, std::uint64_t more = 1) { counts_[static_cast<std::size_t>(kind)].add(more); }
  std::uint64_t value(Kind kind) const { return counts_[static_cast<std::size_t>(kind)].value(); }
  std::uint64_t sum() const {
    std::uint64_t all = 0;
    for (const Counter& count : counts_) all += count.value();
    return all;
  }

 private:
  std::array<Counter, kSize> counts_;
};

// The reason why a connection ended or was refused.
enum class Ending : std::uint8_t {
  kByPeer,         // the peer closed the connection, or the network failed
  kNoDescriptors,  // no file descriptors were left
  kEvicted,        // closed to make room: too many unauthenticated connections
  kFromOneOrigin,  // too many connections from its address
  kBanned,         // the peer is banned
  kNotGradwire,    // the peer does not speak gradwire
  kNoTls,          // plain text, a TLS version that is too old, or a certificate that an end does not trust
  kTooLate,        // no Hello, Proof or Join in time
  kWrongVersion,   // another version of the protocol
  kNotAdmitted,    // the login was refused
  kRevoked,        // the identity was revoked
  kUnwanted,       // the run has no place for the peer, or the peer does not fit the run
  kReplaced,       // replaced by a newer connection of the same client
  kBadMessage,     // a message that is damaged, out of order or malformed
  kTooSlow,        // the peer sent or read too slowly
  kSilent,         // no heartbeat
  kCount
};
const char* name_of(Ending ending);  // the value of a label, in lower case

// The reason why the run did not use a reply of a client.
enum class Rejection : std::uint8_t {
  kLate,       // the round had ended
  kRepeated,   // a repeated reply
  kMalformed,  // not a valid reply of the algorithm
  kNotFinite,  // a number is not finite
  kNorm,       // the norm exceeds the limit of the experiment
  kNotUsed,    // the algorithm refused it
  kCount
};
const char* name_of(Rejection rejection);  // the value of a label, in lower case

// Returns the name in docs/reference/wire.md, as in "Hello", or "unknown" for other values.
const char* name_of(FrameType type);

// Counts of whole messages in one direction.
class FrameCounts {
 public:
  static constexpr std::size_t kKinds = 14;  // values of FrameType; 0 stands for unknown ones
  void add(FrameType type, std::uint64_t bytes) {
    const std::size_t kind = static_cast<std::size_t>(type) < kKinds ? static_cast<std::size_t>(type) : 0;
    frames_[kind].add();
    bytes_[kind].add(bytes);
  }
  // Counts consecutive whole frames. The payload of the last one may be elsewhere.
  void add_all(std::span<const std::byte> heads);
  std::uint64_t frames(std::size_t kind) const { return frames_[kind].value(); }
  std::uint64_t bytes(std::size_t kind) const { return bytes_[kind].value(); }  // including prefix and header

 private:
  std::array<Counter, kKinds> frames_, bytes_;
};

struct ServerMetrics {
  void reject(Rejection why) { rejections.add(why); }
  void end(Ending why) { endings.add(why); }

  // Connections.
  Counter accepted;  // sockets
  CounterOf<Ending> endings;
  Gauge<std::uint64_t> open;  // sockets, including unauthenticated ones
  FrameCounts received, sent;
  // Queues. bytes_to_write: bytes that wait for peers to read them, as of the last tick. bytes_staged: the
  // bytes of replies that wait for the end of their round.
  Gauge<std::uint64_t> bytes_to_write, bytes_staged;
  Gauge<std::uint64_t> has_server;  // 1 while a relay is connected to its server, else 0

  // Clients and their replies.
  Gauge<std::uint64_t> clients;  // n of the run
  Gauge<std::uint64_t> connected;
  CounterOf<Rejection> rejections;
  TimeHistogram reply_time;  // from passing the request to the connection until the whole reply has arrived

  // Rounds. round, rounds, bytes_up and bytes_down include earlier processes of the run (as in metrics.csv).
  Gauge<std::uint64_t> round, rounds, bytes_up, bytes_down;
  Counter rounds_done, replies_used;
  // A round that waits for clients (fl_server/stall_report.h). Times are seconds since 1970; all are 0 if the
  // run is not stalled.
  Gauge<double> stalled_since, gives_up_at;
  Gauge<std::uint64_t> stalled_clients;
  TimeHistogram round_time, commit_time;  // for a round with its evaluation; for making it durable
  // Results of the last evaluation. NaN if there is none.
  Gauge<double> loss{std::numeric_limits<double>::quiet_NaN()};
  Gauge<double> accuracy{std::numeric_limits<double>::quiet_NaN()};
};

}  // namespace gradwire
