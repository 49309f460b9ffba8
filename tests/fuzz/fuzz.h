// Targets of the fuzzer: functions that take any bytes of a peer, a file or a user, and throw if the program
// breaks one of its promises. tools/fuzz lets libFuzzer search for such bytes. fuzz_test.cpp gives the
// targets the bytes found so far, in every build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gradwire::fuzz {

using Bytes = std::vector<std::byte>;
using Input = std::span<const std::byte>;

struct Target {
  std::string_view name;  // also the name of its corpus, corpus/NAME.hex
  bool (*run)(Input);     // returns true if the input was accepted
  // Returns the first inputs. The real encoders make them, as in correct peers, and the target accepts them.
  std::vector<Bytes> (*seeds)();
};
std::span<const Target> targets();

// Throws if a bug was found.
inline void check(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

// A reader of an input, from its front. After the end, it returns zeros and empty spans.
class Cursor {
 public:
  explicit Cursor(Input input) : rest_(input) {}
  bool at_end() const { return rest_.empty(); }
  std::uint8_t u8() {
    const Input one = bytes(1);
    return one.empty() ? 0 : static_cast<std::uint8_t>(one[0]);
  }
  std::uint32_t u16() {
    const std::uint32_t low = u8();
    return low | static_cast<std::uint32_t>(u8()) << 8;
  }
  // Returns at most this many bytes.
  Input bytes(std::size_t most) {
    const Input front = rest_.first(most < rest_.size() ? most : rest_.size());
    rest_ = rest_.subspan(front.size());
    return front;
  }
  Input rest() { return bytes(rest_.size()); }

 private:
  Input rest_;
};

inline std::string_view text_of(Input bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
// Write inputs for Cursor. put_sized() writes a length for u16() and that many bytes for bytes().
inline void put_u8(Bytes& to, unsigned value) { to.push_back(static_cast<std::byte>(value)); }
inline void put_u16(Bytes& to, std::size_t value) {
  put_u8(to, value & 0xff);
  put_u8(to, value >> 8 & 0xff);
}
inline void put_sized(Bytes& to, Input bytes) {
  put_u16(to, bytes.size());
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// ---- the targets, by the file that has them ----

// wire_fuzz.cpp
bool run_frame(Input);
std::vector<Bytes> frame_seeds();
bool run_reply(Input);
std::vector<Bytes> reply_seeds();
bool run_request(Input);
std::vector<Bytes> request_seeds();

// handshake_fuzz.cpp
bool run_chunks(Input);
std::vector<Bytes> chunks_seeds();
bool run_handshake(Input);
std::vector<Bytes> handshake_seeds();

// messages_fuzz.cpp
bool run_messages(Input);
std::vector<Bytes> messages_seeds();

// files_fuzz.cpp
bool run_experiment(Input);
std::vector<Bytes> experiment_seeds();
bool run_libsvm(Input);
std::vector<Bytes> libsvm_seeds();
bool run_csv(Input);
std::vector<Bytes> csv_seeds();
bool run_arrays(Input);
std::vector<Bytes> arrays_seeds();
bool run_idx(Input);
std::vector<Bytes> idx_seeds();
bool run_numbers(Input);
std::vector<Bytes> numbers_seeds();
bool run_words(Input);
std::vector<Bytes> words_seeds();

// identity_fuzz.cpp
bool run_identity(Input);
std::vector<Bytes> identity_seeds();

// store_fuzz.cpp
bool run_snapshot(Input);
std::vector<Bytes> snapshot_seeds();
bool run_journal(Input);
std::vector<Bytes> journal_seeds();

// server_fuzz.cpp
bool run_server(Input);
std::vector<Bytes> server_seeds();
bool run_login(Input);
std::vector<Bytes> login_seeds();
bool run_relay(Input);
std::vector<Bytes> relay_seeds();

}  // namespace gradwire::fuzz
