// What a server counts while it works, for whoever watches it: plain numbers that any thread may read at any
// time. Counting takes no lock and no memory. All counts are of this process: they begin with 0.
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

// How often something took how long.
class TimeHistogram {
 public:
  // Upper limits of the buckets, seconds; one more bucket holds what took longer.
  static constexpr std::array kLimits{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                      0.25,   0.5,     1.0,    2.5,   5.0,    10.0,  25.0, 50.0,  100.0};
  static constexpr std::size_t kBuckets = kLimits.size() + 1;

  // A time that is negative or not a number counts as 0.
  void observe(double seconds);
  std::uint64_t in_bucket(std::size_t bucket) const { return counts_[bucket].value(); }
  double sum_seconds() const { return 1e-9 * static_cast<double>(nanoseconds_.value()); }

 private:
  std::array<Counter, kBuckets> counts_;
  Counter nanoseconds_;
};

// Counters, one for each value of an enumeration that ends with kCount.
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

// Why a connection ended, or was not taken.
enum class Ending : std::uint8_t {
  kByPeer,         // it closed the connection, or the network failed
  kNoDescriptors,  // no file descriptors were left
  kEvicted,        // it made room: too many connections did not say who they are
  kFromOneOrigin,  // too many connections from its address
  kBanned,         // it has misbehaved too often
  kNotGradwire,    // it does not speak gradwire
  kNoTls,          // in plain text, too old a version, or a certificate that one of the two does not trust
  kTooLate,        // no Hello, Proof or Join in time
  kWrongVersion,   // of the protocol
  kNotAdmitted,    // its login was refused
  kRevoked,        // its identity was
  kUnwanted,       // the run has no place for it, or it does not fit the run
  kReplaced,       // a newer connection of the same client
  kBadMessage,     // a message that was damaged, out of place or not as it must be
  kTooSlow,        // it sent or read too slowly
  kSilent,         // no sign of life
  kCount
};
const char* name_of(Ending ending);  // for labels, in lower case

// Why the run did not use a reply of a client.
enum class Rejection : std::uint8_t {
  kLate,       // the round was over
  kRepeated,   // the same again
  kMalformed,  // it was not as the algorithm's replies must be
  kNotFinite,  // a number of it was not finite
  kNorm,       // it was larger than the experiment allows
  kNotUsed,    // the algorithm refused it
  kCount
};
const char* name_of(Rejection rejection);  // for labels, in lower case

const char* name_of(FrameType type);  // as in docs/wire.md: "Hello"; for any value

// Whole messages in one direction.
class FrameCounts {
 public:
  static constexpr std::size_t kKinds = 14;  // values of FrameType; 0 stands for those that are not known
  void add(FrameType type, std::uint64_t bytes) {
    const std::size_t kind = static_cast<std::size_t>(type) < kKinds ? static_cast<std::size_t>(type) : 0;
    frames_[kind].add();
    bytes_[kind].add(bytes);
  }
  // Whole frames one after the other; the payload of the last may lie elsewhere.
  void add_all(std::span<const std::byte> heads);
  std::uint64_t frames(std::size_t kind) const { return frames_[kind].value(); }
  std::uint64_t bytes(std::size_t kind) const { return bytes_[kind].value(); }  // with prefix and header

 private:
  std::array<Counter, kKinds> frames_, bytes_;
};

struct ServerMetrics {
  void reject(Rejection why) { rejections.add(why); }
  void end(Ending why) { endings.add(why); }

  // Connections.
  Counter accepted;  // sockets
  CounterOf<Ending> endings;
  Gauge<std::uint64_t> open;  // sockets, also of peers that have not said who they are
  FrameCounts received, sent;
  // Queues: bytes that wait until peers take them, as of the last tick; bytes of replies that wait for the
  // end of their round.
  Gauge<std::uint64_t> bytes_to_write, bytes_staged;
  Gauge<std::uint64_t> has_server;  // of a relay: 1 while it has its server, else 0

  // Clients and their replies.
  Gauge<std::uint64_t> clients;  // of the run
  Gauge<std::uint64_t> connected;
  CounterOf<Rejection> rejections;
  TimeHistogram reply_time;  // from the request, as it is handed to the connection, to the whole reply

  // Rounds. Of the run with its earlier processes: round, rounds, bytes_up and bytes_down (as in
  // metrics.csv).
  Gauge<std::uint64_t> round, rounds, bytes_up, bytes_down;
  Counter rounds_done, replies_used;
  TimeHistogram round_time, commit_time;  // of a round with its evaluation; of making it durable
  // Of the last evaluation; not a number: there is none.
  Gauge<double> loss{std::numeric_limits<double>::quiet_NaN()};
  Gauge<double> accuracy{std::numeric_limits<double>::quiet_NaN()};
};

}  // namespace gradwire
