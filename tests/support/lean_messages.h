// Compares the two coders of each message: the one of the programs, which is protobuf's unless
// GRADWIRE_LEAN_MESSAGES is on, and the one of proto/lean.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/random.h"
#include "proto/lean/message.h"
#include "proto/wire/wire.pb.h"
#include "proto/wire/wire_lean.pb.h"
#include "proto/wire/wire_message.h"
#include "storage/state.pb.h"
#include "storage/state_lean.pb.h"

namespace gradwire {

// One message in both coders.
struct MessagePair {
  std::unique_ptr<WireMessage> wire;
  std::unique_ptr<lean::Message> lean;

  // Reads `bytes` with both and writes both again. Returns how they differ, or an empty string.
  std::string difference(std::string_view bytes) {
    accepted = wire->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
    if (lean->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) != accepted)
      return accepted ? "only proto/lean refuses the bytes" : "only proto/lean accepts the bytes";
    if (!accepted) return "";
    written = wire->SerializeAsString();
    if (lean->SerializeAsString() != written) return "other bytes are written";
    return lean->ByteSizeLong() == written.size() ? "" : "another size is computed";
  }

  bool accepted = false;  // the verdict of the last call
  std::string written;    // the bytes of the last message that was accepted
};

using MakeMessagePair = MessagePair (*)();

template <class Wire, class Lean>
MessagePair make_message_pair() {
  return {std::make_unique<Wire>(), std::make_unique<Lean>(), false, {}};
}

// All messages of wire.proto and state.proto.
inline constexpr std::array<MakeMessagePair, 20> kMessageTypes{
    make_message_pair<wire::Setting, lean_wire::Setting>,
    make_message_pair<wire::Experiment, lean_wire::Experiment>,
    make_message_pair<wire::Hello, lean_wire::Hello>,
    make_message_pair<wire::Challenge, lean_wire::Challenge>,
    make_message_pair<wire::Proof, lean_wire::Proof>,
    make_message_pair<wire::Welcome, lean_wire::Welcome>,
    make_message_pair<wire::FeatureSums, lean_wire::FeatureSums>,
    make_message_pair<wire::FeatureScaling, lean_wire::FeatureScaling>,
    make_message_pair<wire::Join, lean_wire::Join>,
    make_message_pair<wire::Start, lean_wire::Start>,
    make_message_pair<wire::Relay, lean_wire::Relay>,
    make_message_pair<wire::ErrorMessage, lean_wire::ErrorMessage>,
    make_message_pair<wire::Part, lean_wire::Part>,
    make_message_pair<wire::Body, lean_wire::Body>,
    make_message_pair<wire::Round, lean_wire::Round>,
    make_message_pair<wire::Reply, lean_wire::Reply>,
    make_message_pair<wire::Piece, lean_wire::Piece>,
    make_message_pair<wire::Received, lean_wire::Received>,
    make_message_pair<state::Client, lean_state::Client>,
    make_message_pair<state::Run, lean_state::Run>,
};

// Fills a message with random values.
class MessageFiller {
 public:
  explicit MessageFiller(Random& random) : random_(random) {}

  // Sets about half of the fields. REQUIRES: the message is empty.
  void fill(lean::Message& message) {
    for (const lean::Field& field : message.Fields())
      if (random_.below(2) == 0) fill(message, field);
  }

 private:
  void fill(lean::Message& message, const lean::Field& field) {
    using lean::Access, lean::Kind, lean::RepeatedField;
    switch (field.kind) {
      case Kind::kPackedFixed32: return fill(Access::value<RepeatedField<std::uint32_t>>(message, field));
      case Kind::kPackedDouble: return fill(Access::value<RepeatedField<double>>(message, field));
      case Kind::kStrings: return fill_all(Access::value<lean::RepeatedStrings>(message, field));
      case Kind::kMessages: return fill_all(Access::value<lean::MessageList>(message, field));
      case Kind::kBytes: fill(Access::value<std::string>(message, field)); break;
      case Kind::kMessage: fill(Access::value<lean::Message>(message, field)); break;
      default: {
        std::uint64_t number = random_.next() >> random_.below(64);
        if (field.kind == Kind::kBool) number %= 2;
        if (field.kind == Kind::kEnum) number %= field.values;
        const std::size_t bytes = field.kind == Kind::kBool ? 1 : field.kind == Kind::kFixed64 ? 8 : 4;
        std::memcpy(&Access::value<char>(message, field), &number, bytes);
      }
    }
    Access::mark(message, field);
  }
  void fill(std::string& text) {
    text.resize(length());
    for (char& c : text) c = static_cast<char>(random_.next());
  }
  template <class T>
  void fill(lean::RepeatedField<T>& list) {
    for (std::size_t left = length(); left > 0; --left) {
      T value;
      const std::uint64_t bits = random_.next();
      std::memcpy(&value, &bits, sizeof value);
      list.Add(value);
    }
  }
  template <class List>
  void fill_all(List& list) {
    for (std::uint64_t left = random_.below(4); left > 0; --left) fill(*list.Add());
  }
  // Returns a length that mostly is short, but sometimes needs two or three bytes.
  std::size_t length() {
    const std::uint64_t choice = random_.below(500);
    return random_.below(choice == 0 ? 20'000 : choice < 50 ? 200 : 20);
  }

  Random& random_;
};

// Returns the bytes of a random message.
inline std::string random_message(MakeMessagePair make, Random& random) {
  const MessagePair pair = make();
  MessageFiller(random).fill(*pair.lean);
  return pair.lean->SerializeAsString();
}

}  // namespace gradwire
