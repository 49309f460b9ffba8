// Tests of server metrics: histogram buckets, consecutive frames, names of labels.
#include "fl_server/net/server_metrics.h"

#include <cmath>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace gradwire {
namespace {

std::string whole_frame(FrameType type, const std::string& header, const std::string& payload) {
  const auto prefix = write_prefix(type, std::as_bytes(std::span(header)), payload.size(), 0);
  return std::string(reinterpret_cast<const char*>(prefix.data()), prefix.size()) + header + payload;
}

std::uint64_t frames_of(const FrameCounts& counts, FrameType type) {
  return counts.frames(static_cast<std::size_t>(type));
}

std::uint64_t bytes_of(const FrameCounts& counts, FrameType type) {
  return counts.bytes(static_cast<std::size_t>(type));
}

TEST(ServerMetrics, PutsATimeIntoTheFirstBucketWhoseLimitIsNotBelowIt) {
  TimeHistogram times;
  times.observe(0.001);   // equal to a limit: counted in the bucket of that limit
  times.observe(0.0011);  // in the next bucket
  times.observe(1e9);     // beyond all limits
  EXPECT_EQ(TimeHistogram::kLimits[3], 0.001);
  EXPECT_EQ(times.in_bucket(3), 1u);
  EXPECT_EQ(times.in_bucket(4), 1u);
  EXPECT_EQ(times.in_bucket(TimeHistogram::kBuckets - 1), 1u);
  EXPECT_NEAR(times.sum_seconds(), 1e9 + 0.0021, 1);
}

TEST(ServerMetrics, CountsInvalidTimesAsZero) {
  TimeHistogram times;
  times.observe(-1);
  times.observe(std::nan(""));
  EXPECT_EQ(times.in_bucket(0), 2u);
  EXPECT_EQ(times.sum_seconds(), 0);
}

TEST(ServerMetrics, CountsEachFrameInABufferByItsType) {
  FrameCounts counts;
  const std::string received = whole_frame(FrameType::kReceived, "abc", "");
  std::string round = whole_frame(FrameType::kRound, "defgh", std::string(1000, 'x'));
  round.resize(kPrefixBytes + 5);  // its payload is elsewhere
  const std::string both = received + received + round;
  counts.add_all(std::as_bytes(std::span(both)));
  EXPECT_EQ(frames_of(counts, FrameType::kReceived), 2u);
  EXPECT_EQ(bytes_of(counts, FrameType::kReceived), 2 * (kPrefixBytes + 3));
  EXPECT_EQ(frames_of(counts, FrameType::kRound), 1u);
  EXPECT_EQ(bytes_of(counts, FrameType::kRound), kPrefixBytes + 5 + 1000);
}

TEST(ServerMetrics, StopsCountingAtBytesThatAreNotAFrame) {
  FrameCounts counts;
  const std::string garbage = whole_frame(FrameType::kHello, "abc", "") + std::string(100, 'x');
  counts.add_all(std::as_bytes(std::span(garbage)));
  EXPECT_EQ(frames_of(counts, FrameType::kHello), 1u);
  counts.add(static_cast<FrameType>(200), 7);
  EXPECT_EQ(counts.bytes(0), 7u) << "unknown types have a counter of their own";
}

template <class Kind>
std::set<std::string> names() {
  std::set<std::string> all;
  for (std::size_t i = 0; i < CounterOf<Kind>::kSize; ++i) all.insert(name_of(static_cast<Kind>(i)));
  return all;
}

TEST(ServerMetrics, HasANameForEveryReason) {
  EXPECT_EQ(names<Ending>().size(), CounterOf<Ending>::kSize);
  EXPECT_EQ(names<Rejection>().size(), CounterOf<Rejection>::kSize);
  EXPECT_EQ(names<Ending>().count("unknown") + names<Rejection>().count("unknown"), 0u);
}

TEST(ServerMetrics, LosesNoCountsOfConcurrentThreads) {
  ServerMetrics server_metrics;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        server_metrics.reject(Rejection::kLate);
        server_metrics.round_time.observe(0.5);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(server_metrics.rejections.value(Rejection::kLate), 4000u);
  EXPECT_EQ(server_metrics.rejections.sum(), 4000u);
  EXPECT_NEAR(server_metrics.round_time.sum_seconds(), 2000, 1e-6);
}

}  // namespace
}  // namespace gradwire
