// Target for the coder of proto/lean, which must understand any bytes as protobuf does.
#include <cstddef>

#include "tests/fuzz/fuzz.h"
#include "tests/support/lean_messages.h"

namespace gradwire::fuzz {

// The first byte chooses the type of the message.
bool run_messages(Input input) {
  Cursor cursor(input);
  MessagePair pair = kMessageTypes[cursor.u8() % kMessageTypes.size()]();
  const std::string difference = pair.difference(text_of(cursor.rest()));
  check(difference.empty(), difference.c_str());
  return pair.accepted;
}
std::vector<Bytes> messages_seeds() {
  std::vector<Bytes> seeds;
  Random random(1, "messages");
  for (std::size_t type = 0; type < kMessageTypes.size(); ++type) {
    Bytes& seed = seeds.emplace_back();
    put_u8(seed, static_cast<unsigned>(type));
    const Bytes bytes = bytes_of(random_message(kMessageTypes[type], random));
    seed.insert(seed.end(), bytes.begin(), bytes.end());
  }
  return seeds;
}

}  // namespace gradwire::fuzz
