// The sums and the map of problem.normalize as messages of a handshake.
#include "proto/wire/feature_messages.h"

#include <cmath>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <vector>

#include "proto/wire/control_frame.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

// Returns the messages in consecutive frames.
template <class Message>
std::vector<Message> messages_in(const std::string& frames, FrameType type) {
  std::vector<Message> found;
  for (std::size_t at = 0; at < frames.size();) {
    const auto bytes = std::as_bytes(std::span(frames)).subspan(at);
    const auto prefix = read_prefix(bytes.template first<kPrefixBytes>(), 0);
    if (!prefix || prefix->type != type) {
      ADD_FAILURE() << "frame " << found.size();
      return found;
    }
    EXPECT_TRUE(parse_control(bytes.subspan(kPrefixBytes, prefix->header_len), found.emplace_back()));
    at += kPrefixBytes + prefix->header_len;
  }
  return found;
}

ClientSums sums_of_size(std::uint32_t features) {
  ClientSums sums{.columns = 2 * features + 1, .samples = 1000, .features = {}};
  for (std::uint32_t k = 0; k < features; ++k)
    sums.features.push_back({2 * k + 1, k + 1, 0.1 * k - 3, std::sqrt(k)});
  return sums;
}

TEST(FeatureMessages, CarriesSumsOfAnyLengthInPieces) {
  for (const std::uint32_t size : {0u, 1u, 2047u, 2048u, 2049u, 10'000u}) {
    SCOPED_TRACE(size);
    const ClientSums sums = sums_of_size(size);
    wire::Join join;
    join.set_columns(static_cast<std::uint32_t>(sums.columns));
    for (int label = 0; label < 8000; ++label) join.add_labels(label);  // the longest description
    const auto joins = messages_in<wire::Join>(sums_frames(join, sums), FrameType::kJoin);
    ASSERT_GE(joins.size(), 2u);
    EXPECT_EQ(joins[0].labels_size(), 8000);
    EXPECT_EQ(joins[1].labels_size(), 0);
    ClientSums read{.columns = sums.columns, .samples = sums.samples, .features = {}};
    for (const wire::Join& piece : joins) {
      const Result<bool> complete = take_sums(piece.sums(), read);
      ASSERT_TRUE(complete) << complete.error().message;
      EXPECT_EQ(*complete, &piece == &joins.back());
    }
    EXPECT_EQ(read, sums);
  }
}

TEST(FeatureMessages, RefusesSumsThatDoNotFitTogether) {
  const auto take = [](const auto& change) {
    wire::FeatureSums piece;
    for (std::uint32_t feature : {2u, 5u}) {
      piece.add_feature(feature);
      piece.add_count(1);
      piece.add_first(1);
      piece.add_second(1);
    }
    change(piece);
    ClientSums sums{.columns = 6, .samples = 3, .features = {{1, 1, 1, 1}}};
    const Result<bool> taken = take_sums(piece, sums);
    if (!taken) {
      EXPECT_TRUE(taken.error().message.starts_with("Join: ")) << taken.error().message;
    }
    return taken.has_value();
  };
  EXPECT_TRUE(take([](wire::FeatureSums&) {}));
  EXPECT_FALSE(take([](wire::FeatureSums& piece) { piece.add_feature(5); }));
  EXPECT_FALSE(take([](wire::FeatureSums& piece) { piece.add_second(5); }));
  EXPECT_FALSE(take([](wire::FeatureSums& piece) { piece.clear_count(); }));
  EXPECT_FALSE(take([](wire::FeatureSums& piece) { piece.set_feature(1, 6); }));
  EXPECT_FALSE(take([](wire::FeatureSums& piece) { piece.set_feature(1, 2); }));
  EXPECT_FALSE(take([](wire::FeatureSums& piece) { piece.set_feature(0, 1); })) << "in an earlier piece";
}

Normalization map_of_size(std::size_t features) {
  Normalization map{Normalize::kStandard, {}, {}, features / 2};
  for (std::size_t k = 0; k < features; ++k) {
    map.shift.push_back(0.1 * static_cast<double>(k) - 3);
    map.scale.push_back(1 / (1.0 + static_cast<double>(k)));
  }
  return map;
}

TEST(FeatureMessages, CarriesAMapOfAnyLengthInPieces) {
  for (const std::size_t size : {0u, 1u, 3072u, 3073u, 20'000u}) {
    SCOPED_TRACE(size);
    const Normalization map = map_of_size(size);
    const auto welcomes = messages_in<wire::Welcome>(scaling_frames(map, 7), FrameType::kWelcome);
    Normalization read{Normalize::kStandard, {}, {}, 0};
    for (const wire::Welcome& piece : welcomes) {
      EXPECT_EQ(piece.client(), 7u) << "relays read it";
      const Result<bool> complete = take_scaling(piece.scaling(), read);
      ASSERT_TRUE(complete) << complete.error().message;
      EXPECT_EQ(*complete, &piece == &welcomes.back());
    }
    EXPECT_EQ(read, map);
    const Result<Normalization> saved = unpack_scaling(pack_scaling(map), Normalize::kStandard);
    ASSERT_TRUE(saved);
    EXPECT_EQ(*saved, map);
  }
}

TEST(FeatureMessages, RefusesADamagedMap) {
  const auto take = [](const auto& change) {
    Normalization map = map_of_size(2);
    wire::FeatureScaling piece;
    piece.add_shift(1);
    piece.add_scale(2);
    change(piece, map);
    return take_scaling(piece, map).has_value();
  };
  using Piece = wire::FeatureScaling;
  EXPECT_TRUE(take([](Piece&, Normalization&) {}));
  EXPECT_FALSE(take([](Piece& piece, Normalization&) { piece.add_shift(1); }));
  EXPECT_FALSE(take([](Piece& piece, Normalization&) { piece.set_shift(0, std::nan("")); }));
  for (const double scale : {0.0, -1.0, HUGE_VAL, static_cast<double>(NAN)})
    EXPECT_FALSE(take([&](Piece& piece, Normalization&) { piece.set_scale(0, scale); })) << scale;
  EXPECT_FALSE(take([](Piece& piece, Normalization&) { piece.set_sparse(1); })) << "a first piece twice";
  EXPECT_FALSE(take([](Piece&, Normalization& map) { map = {}; })) << "the first piece is missing";
  EXPECT_FALSE(unpack_scaling("\x0a\xff", Normalize::kStandard));
}

}  // namespace
}  // namespace gradwire
