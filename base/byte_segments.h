// A byte string for scatter-gather output. Long parts are referenced, not copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/serialize.h"

namespace gradwire {

class ByteSegments {
 public:
  static constexpr std::size_t kLeastViewed = 4096;  // bytes; copying shorter parts is faster

  void clear() {
    copied_.clear();
    viewed_.clear();
  }
  void copy(std::string_view bytes) { copied_ += bytes; }
  // Appends `bytes`. Long parts are not copied: their bytes must stay unchanged until clear().
  void view(std::string_view bytes) {
    if (bytes.size() < kLeastViewed) return copy(bytes);
    viewed_.push_back({copied_.size(), bytes});
  }
  void view(std::span<const std::byte> bytes) {
    view(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  // Appends a number as its bytes in memory.
  template <class T>
  requires std::is_arithmetic_v<T>
  void put(const T& value) { copied_.append(reinterpret_cast<const char*>(&value), sizeof value); }

  // Returns all bytes in order. The views are valid until the next call of this object.
  std::span<const std::string_view> views() {
    views_.clear();
    const std::string_view copied = copied_;
    std::size_t from = 0;
    for (const Viewed& v : viewed_) {
      if (v.after > from) views_.push_back(copied.substr(from, v.after - from));
      views_.push_back(v.bytes);
      from = v.after;
    }
    if (from < copied.size()) views_.push_back(copied.substr(from));
    return views_;
  }

 private:
  struct Viewed {
    std::size_t after;  // the number of bytes of copied_ before this part
    std::string_view bytes;
  };
  std::string copied_;
  std::vector<Viewed> viewed_;
  std::vector<std::string_view> views_;
};

// Writes the same bytes as a Saver, without a copy of long vectors.
class InPlaceSaver : public FieldBytes<InPlaceSaver> {
 public:
  explicit InPlaceSaver(ByteSegments& to) : to_(to) {}
  void number(std::string_view bytes) { to_.copy(bytes); }
  void numbers(std::string_view bytes) { to_.view(bytes); }

 private:
  ByteSegments& to_;
};

}  // namespace gradwire
