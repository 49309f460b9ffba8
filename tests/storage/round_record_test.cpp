#include "storage/round_record.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "proto/wire/codec_context.h"
#include "rounds/runtime.h"
#include "simulation/encoded_link.h"
#include "tests/algorithms/every_algorithm.h"
#include "tests/algorithms/federation.h"

namespace gradwire {
namespace {

using testing::Federation;

std::string joined(std::span<const std::string_view> segments) {
  std::string all;
  for (const std::string_view segment : segments) all += segment;
  return all;
}

TEST(RoundRecords, StoreTheRepliesOrTheStateWhicheverIsShorter) {
  const Federation<double> federation(5, 9);
  const auto run_context = federation.run_context(testing::spec_of("gd"));
  const CodecContext context = codec_context(*run_context, {});
  for (const std::size_t state_bytes : {std::size_t{0}, std::size_t{1} << 20}) {
    FaultSimulation<double> clients(run_context, federation.oracle_pointers(), {});
    auto server = make_server<double>(run_context), replayed = make_server<double>(run_context);
    RunProgress progress, copy;
    copy.committed.resize(5);
    RoundRecords<double> records(context), reader(context);
    LoopHooks<double> hooks;
    hooks.on_commit = [&](const RoundCommit<double>& commit) {
      const std::string record = joined(records.encode(commit, *server, state_bytes));
      EXPECT_EQ(record[0], state_bytes == 0 ? 2 : 1);
      ASSERT_TRUE(reader.replay(record, *replayed, copy));
      EXPECT_EQ(replayed->save(), server->save());
      EXPECT_EQ(save_progress(copy), save_progress(progress));
    };
    RoundLimits limits;
    limits.rounds = 5;
    run_rounds<double>(*server, find_algorithm("gd").traits, *run_context, clients, progress, limits, hooks);
  }
}

// Calls on_commit for each commit of a run whose replies came over a wire, with the bytes of the replies.
template <class OnCommit>
void rounds_of_frames(const Federation<double>& federation,
                      std::shared_ptr<const RunContext<double>> run_context, const CodecContext& context,
                      OnCommit on_commit) {
  FaultSimulation<double> clients(run_context, federation.oracle_pointers(), {});
  auto server = make_server<double>(run_context);
  RunProgress progress;
  Codec<double> codec(context);
  std::vector<std::unique_ptr<EncodedLink<double>>> links;
  for (std::uint32_t c = 0; c < run_context->n; ++c)
    links.push_back(std::make_unique<EncodedLink<double>>(context, true));
  LoopHooks<double> hooks;
  hooks.on_commit = [&](const RoundCommit<double>& commit) {
    std::vector<Frame> frames;
    for (const UplinkView<double>& up : commit.replies) {
      links[up.client]->up(codec.encode(up), up.client);
      frames.push_back(links[up.client]->frame());
    }
    on_commit(RoundCommit<double>{commit.progress, commit.replies, commit.used, frames}, *server);
  };
  RoundLimits limits;
  limits.rounds = 5;
  run_rounds<double>(*server, traits_of(*run_context), *run_context, clients, progress, limits, hooks);
}

TEST(RoundRecords, AreTheSameForReceivedAndEncodedReplies) {
  const Federation<double> federation(5, 2000);
  for (const char* compressor : {"identity", "natural", "randk:k=7", "randseqk:k=900", "qsgd:s=4,p=2"}) {
    const auto run_context = federation.run_context(testing::spec_of("dcgd", compressor));
    const CodecContext context = codec_context(*run_context, {ZstdMode::Kind::kOff, 0});
    RoundRecords<double> records(context), fresh(context);
    rounds_of_frames(federation, run_context, context,
                     [&](const RoundCommit<double>& commit, const ServerAlgorithm<double>& server) {
                       const std::string as_they_came = joined(records.encode(commit, server, 1 << 20));
                       const RoundCommit<double> without{commit.progress, commit.replies, commit.used};
                       EXPECT_TRUE(as_they_came == joined(fresh.encode(without, server, 1 << 20)))
                           << compressor;
                     });
  }
}

TEST(RoundRecords, ViewTheStateWithoutCopiesForEveryAlgorithm) {
  constexpr std::size_t kDim = 3;
  const Federation<double> federation(3, kDim);
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    const auto run_context = federation.run_context(testing::spec_for(algorithm));
    const auto server = make_server<double>(run_context);
    ByteSegments segments;
    server->save_in_place(segments);
    EXPECT_TRUE(joined(segments.views()) == server->save()) << algorithm.traits.name;
  }
}

TEST(RoundRecords, CopyNoVectorOfALongStateOrLongReplies) {
  const Federation<double> federation(2, 5000);
  const auto run_context = federation.run_context(testing::spec_of("gd"));
  const CodecContext context = codec_context(*run_context, {});
  FaultSimulation<double> clients(run_context, federation.oracle_pointers(), {});
  auto server = make_server<double>(run_context);
  RunProgress progress;
  RoundRecords<double> records(context);
  LoopHooks<double> hooks;
  hooks.on_commit = [&](const RoundCommit<double>& commit) {
    const auto has = [](std::span<const std::string_view> segments, const double* vector) {
      return std::ranges::any_of(
          segments, [&](std::string_view p) { return static_cast<const void*>(p.data()) == vector; });
    };
    EXPECT_TRUE(has(records.encode(commit, *server, 0), server->model().data()));
    const auto replies = records.encode(commit, *server, 1 << 20);
    for (const auto& up : commit.replies) EXPECT_TRUE(has(replies, up.parts[0].values.data()));
  };
  RoundLimits limits;
  limits.rounds = 2;
  run_rounds<double>(*server, traits_of(*run_context), *run_context, clients, progress, limits, hooks);
  EXPECT_EQ(progress.round, 2u);
}

TEST(RoundRecords, StayCompressedForCompressedRepliesAndReplayToTheSameState) {
  const Federation<double> federation(5, 2000);
  const auto run_context = federation.run_context(testing::spec_of("dcgd", "natural"));
  const CodecContext context = codec_context(*run_context, {ZstdMode::Kind::kLevel, 3});
  auto replayed = make_server<double>(run_context);
  RunProgress copy;
  copy.committed.resize(5);
  RoundRecords<double> records(context), fresh(context), reader(context);
  int rounds = 0;
  rounds_of_frames(federation, run_context, context,
                   [&](const RoundCommit<double>& commit, const ServerAlgorithm<double>& server) {
                     const std::string record = joined(records.encode(commit, server, 1 << 20));
                     const RoundCommit<double> without{commit.progress, commit.replies, commit.used};
                     EXPECT_LT(record.size(), joined(fresh.encode(without, server, 1 << 20)).size());
                     ASSERT_TRUE(reader.replay(record, *replayed, copy));
                     EXPECT_EQ(replayed->save(), server.save());
                     EXPECT_EQ(save_progress(copy), save_progress(commit.progress));
                     ++rounds;
                   });
  EXPECT_EQ(rounds, 5);
}

TEST(RoundRecords, CommitNoReplyThatTheAlgorithmDidNotUse) {
  const Federation<double> federation(2, 9);
  const auto run_context =
      federation.run_context(testing::spec_of("ringmaster", "identity", {{"delay_threshold", "1"}}, "0.1"));
  auto server = make_server<double>(run_context), replayed = make_server<double>(run_context);
  const Downlink<double> body = server->broadcast();
  RoundRecords<double> records(codec_context(*run_context, {}));
  RunProgress progress, copy;
  progress.committed.resize(2);
  copy.committed.resize(2);
  Scratch<double> scratch;
  for (ClientId client = 0; client < 2; ++client) {
    ClientRuntime<double> runtime(run_context, client, *federation.oracles[client]);
    const Request<double> request{RequestKind::kRound, client + 1u, 0, &body, nullptr};
    const UplinkView<double> reply = *runtime.handle(request, scratch);
    const bool used = server->apply(std::span(&reply, 1));
    EXPECT_EQ(used, client == 0) << "the second gradient is one step too old";
    progress.request_id = client + 1;
    progress.round = client + 1;
    if (used) progress.committed[client] = reply.request_id;
    const std::string record =
        joined(records.encode(RoundCommit<double>{progress, std::span(&reply, 1), used}, *server, 1 << 20));
    ASSERT_TRUE(records.replay(record, *replayed, copy));
    EXPECT_EQ(replayed->save(), server->save());
    EXPECT_EQ(save_progress(copy), save_progress(progress));
  }
}

TEST(RoundRecords, RejectOtherRunsAndTruncation) {
  const Federation<double> federation(5, 9);
  const auto run_context = federation.run_context(testing::spec_of("ef21", "topk:k=2"));
  FaultSimulation<double> clients(run_context, federation.oracle_pointers(), {});
  auto server = make_server<double>(run_context);
  RunProgress progress;
  RoundRecords<double> records(codec_context(*run_context, {}));
  std::string record;
  LoopHooks<double> hooks;
  hooks.on_commit = [&](const RoundCommit<double>& commit) {
    record = joined(records.encode(commit, *server, 1 << 20));
  };
  RoundLimits limits;
  limits.rounds = 1;
  run_rounds<double>(*server, find_algorithm("ef21").traits, *run_context, clients, progress, limits, hooks);
  for (std::size_t size = 0; size < record.size(); ++size) {
    auto other = make_server<double>(run_context);
    RunProgress fresh;
    fresh.committed.resize(5);
    EXPECT_FALSE(records.replay(std::string_view(record).substr(0, size), *other, fresh)) << size;
  }
  auto other = make_server<double>(run_context);
  RunProgress later;
  later.committed.resize(5);
  later.round = 1;
  EXPECT_FALSE(records.replay(record, *other, later)) << "a round that is in the state already";
}

}  // namespace
}  // namespace gradwire
