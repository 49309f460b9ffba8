#include "proto/lean/message.h"

#include <bit>
#include <climits>
#include <cstring>

namespace gradwire::lean {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers of fixed width are copied as they are");

enum WireType : std::uint32_t { kVarint = 0, kWide = 1, kLength = 2, kGroup = 3, kGroupEnd = 4, kNarrow = 5 };

// Limits of protobuf: the longest string or inner message, and the number of messages and groups in each
// other. Only groups reach it, because no message can contain itself.
constexpr std::uint64_t kMaxLength = INT_MAX - 16;
constexpr int kMaxDepth = 100;

bool is_repeated(Kind kind) { return kind >= Kind::kPackedFixed32; }

// The wire type in which a field is written.
WireType wire_type(Kind kind) {
  switch (kind) {
    case Kind::kBool:
    case Kind::kEnum:
    case Kind::kUint32: return kVarint;
    case Kind::kFixed32: return kNarrow;
    case Kind::kFixed64: return kWide;
    default: return kLength;
  }
}

// Readers also take packed lists as single numbers.
bool accepts(Kind kind, std::uint32_t type) {
  return type == wire_type(kind) || (kind == Kind::kPackedFixed32 && type == kNarrow) ||
         (kind == Kind::kPackedDouble && type == kWide);
}

std::size_t varint_size(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}
void put_varint(std::uint64_t value, char* to) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to = static_cast<char>(value);
}
void append_varint(std::uint64_t value, std::string& to) {
  to.resize(to.size() + varint_size(value));
  put_varint(value, to.data() + to.size() - varint_size(value));
}

// Copies any number of bytes. Calls memmove() because GCC makes a slow instruction of memcpy() at -Os.
void copy_bytes(void* to, const void* from, std::size_t bytes) { std::memmove(to, from, bytes); }

// Writes a message from its last byte to its first, because the length of an inner message comes before it.
// Only counts the bytes if there is no buffer.
class Writer {
 public:
  explicit Writer(char* end) : end_(end) {}

  std::size_t size() const { return size_; }
  void write(const Message& message) {
    write_raw(Access::unknown(message).data(), Access::unknown(message).size());
    const std::span<const Field> fields = message.Fields();
    for (std::size_t k = fields.size(); k-- > 0;) {
      if (is_repeated(fields[k].kind))
        write_list(message, fields[k]);
      else if (Access::has(message, fields[k]))
        write_value(message, fields[k]);
    }
  }

 private:
  // Returns where the next bytes go, or null if they are only counted.
  char* room(std::size_t bytes) {
    size_ += bytes;
    return end_ == nullptr ? nullptr : end_ - size_;
  }
  void write_raw(const void* from, std::size_t bytes) {
    if (char* const to = room(bytes); to != nullptr) copy_bytes(to, from, bytes);
  }
  template <std::size_t kBytes>
  void write_fixed(const void* from) {
    if (char* const to = room(kBytes); to != nullptr) std::memcpy(to, from, kBytes);
  }
  void write_varint(std::uint64_t value) {
    if (char* const to = room(varint_size(value)); to != nullptr) put_varint(value, to);
  }
  void write_tag(const Field& field) { write_varint(field.number << 3 | wire_type(field.kind)); }
  void write_bytes(const Field& field, const void* from, std::size_t bytes) {
    write_raw(from, bytes);
    write_varint(bytes);
    write_tag(field);
  }
  void write_message(const Field& field, const Message& message) {
    const std::size_t before = size_;
    write(message);
    write_varint(size_ - before);
    write_tag(field);
  }

  void write_value(const Message& message, const Field& field) {
    switch (field.kind) {
      case Kind::kBool: write_varint(Access::value<bool>(message, field) ? 1 : 0); break;
      case Kind::kEnum: {
        int value = 0;
        std::memcpy(&value, &Access::value<char>(message, field), sizeof value);
        write_varint(static_cast<std::uint64_t>(std::int64_t{value}));
        break;
      }
      case Kind::kUint32: write_varint(Access::value<std::uint32_t>(message, field)); break;
      case Kind::kFixed32: write_fixed<4>(&Access::value<char>(message, field)); break;
      case Kind::kFixed64: write_fixed<8>(&Access::value<char>(message, field)); break;
      case Kind::kBytes: {
        const auto& text = Access::value<std::string>(message, field);
        return write_bytes(field, text.data(), text.size());
      }
      default: return write_message(field, Access::value<Message>(message, field));
    }
    write_tag(field);
  }

  template <class T>
  void write_packed(const RepeatedField<T>& list, const Field& field) {
    if (!list.empty()) write_bytes(field, list.data(), static_cast<std::size_t>(list.size()) * sizeof(T));
  }
  void write_list(const Message& message, const Field& field) {
    switch (field.kind) {
      case Kind::kPackedFixed32:
        return write_packed(Access::value<RepeatedField<std::uint32_t>>(message, field), field);
      case Kind::kPackedDouble:
        return write_packed(Access::value<RepeatedField<double>>(message, field), field);
      case Kind::kStrings: {
        const auto& list = Access::value<RepeatedStrings>(message, field);
        for (int k = list.size(); k-- > 0;) write_bytes(field, list[k].data(), list[k].size());
        return;
      }
      default: {
        const auto& list = Access::value<MessageList>(message, field);
        for (int k = list.size(); k-- > 0;) write_message(field, list[k]);
      }
    }
  }

  char* end_;
  std::size_t size_ = 0;
};

// Reads a message from its first byte to its last. All functions return false if the bytes are damaged.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  bool read(Message& message) {
    const std::span<const Field> fields = message.Fields();
    std::size_t next = 0;  // fields mostly come by number, so the search starts at the last one found
    while (at_ != end_) {
      std::uint32_t tag = 0;
      if (!read_tag(tag)) return false;
      const Field* field = nullptr;
      for (std::size_t k = 0; k < fields.size() && field == nullptr; ++k) {
        if (fields[next].number == tag >> 3)
          field = &fields[next];
        else if (++next == fields.size())
          next = 0;
      }
      const bool is_known = field != nullptr && accepts(field->kind, tag & 7);
      if (!(is_known ? read_field(message, *field, tag & 7) : read_unknown(tag, Access::unknown(message))))
        return false;
    }
    return true;
  }

 private:
  // Bits above 64 are lost.
  bool read_varint(std::uint64_t& value, unsigned most_bytes = 10) {
    value = 0;
    for (unsigned k = 0; k < most_bytes && at_ != end_; ++k) {
      const std::uint64_t byte = static_cast<unsigned char>(*at_++);
      value |= (byte & 0x7F) << (7 * k);
      if (byte < 0x80) return true;
    }
    return false;
  }
  // A tag is a varint of at most five bytes. Its bits above 32 are lost.
  bool read_tag(std::uint32_t& tag) {
    std::uint64_t value = 0;
    if (!read_varint(value, 5)) return false;
    tag = static_cast<std::uint32_t>(value);
    return tag >> 3 != 0;
  }
  // A length is a varint of at most five bytes.
  bool read_length(std::size_t& length) {
    std::uint64_t value = 0;
    if (!read_varint(value, 5) || value > kMaxLength) return false;
    length = static_cast<std::size_t>(value);
    return length <= rest();
  }
  std::size_t rest() const { return static_cast<std::size_t>(end_ - at_); }
  template <std::size_t kBytes>
  bool read_fixed(void* to) {
    if (kBytes > rest()) return false;
    std::memcpy(to, at_, kBytes);
    at_ += kBytes;
    return true;
  }

  bool read_field(Message& message, const Field& field, std::uint32_t type) {
    switch (field.kind) {
      case Kind::kPackedFixed32:
        return read_numbers(Access::value<RepeatedField<std::uint32_t>>(message, field), type);
      case Kind::kPackedDouble:
        return read_numbers(Access::value<RepeatedField<double>>(message, field), type);
      case Kind::kStrings: return read_string(*Access::value<RepeatedStrings>(message, field).Add());
      case Kind::kMessages: return read_message(*Access::value<MessageList>(message, field).Add());
      case Kind::kBool:
      case Kind::kEnum:
      case Kind::kUint32: return read_number(message, field);
      default: break;
    }
    Access::mark(message, field);
    switch (field.kind) {
      case Kind::kFixed32: return read_fixed<4>(&Access::value<char>(message, field));
      case Kind::kFixed64: return read_fixed<8>(&Access::value<char>(message, field));
      case Kind::kBytes: return read_string(Access::value<std::string>(message, field));
      default: return read_message(Access::value<Message>(message, field));
    }
  }

  // Reads a number that is a varint. A value that an enum does not have counts as an unknown field.
  bool read_number(Message& message, const Field& field) {
    std::uint64_t value = 0;
    if (!read_varint(value)) return false;
    const auto low = static_cast<std::uint32_t>(value);
    if (field.kind == Kind::kEnum && low >= field.values) {
      append_varint(std::uint64_t{field.number} << 3, Access::unknown(message));
      append_varint(value, Access::unknown(message));
      return true;
    }
    Access::mark(message, field);
    if (field.kind == Kind::kBool)
      Access::value<bool>(message, field) = value != 0;
    else
      std::memcpy(&Access::value<char>(message, field), &low, sizeof low);
    return true;
  }
  template <class T>
  bool read_numbers(RepeatedField<T>& list, std::uint32_t type) {
    std::size_t bytes = sizeof(T);
    if (type == kLength && !read_length(bytes)) return false;
    if (bytes % sizeof(T) != 0 || bytes > rest()) return false;
    if (bytes > 0) copy_bytes(list.Extend(bytes / sizeof(T)), at_, bytes);
    at_ += bytes;
    return true;
  }
  bool read_string(std::string& text) {
    std::size_t length = 0;
    if (!read_length(length)) return false;
    text.assign(at_, length);
    at_ += length;
    return true;
  }
  // Adds to a message that is already there.
  bool read_message(Message& message) {
    std::size_t length = 0;
    if (!read_length(length)) return false;
    const char* const end = std::exchange(end_, at_ + length);
    ++depth_;
    const bool good = read(message);
    --depth_;
    end_ = end;
    return good;
  }

  // Appends a field that the message does not have. Varints are written in their shortest form.
  bool read_unknown(std::uint32_t tag, std::string& to) {
    append_varint(tag, to);
    std::uint64_t value = 0;
    std::size_t bytes = 0;
    switch (tag & 7) {
      case kVarint:
        if (!read_varint(value)) return false;
        append_varint(value, to);
        return true;
      case kWide: bytes = 8; break;
      case kNarrow: bytes = 4; break;
      case kLength:
        if (!read_length(bytes)) return false;
        append_varint(bytes, to);
        break;
      case kGroup: return read_group(tag, to);
      default: return false;
    }
    if (bytes > rest()) return false;
    to.append(at_, bytes);
    at_ += bytes;
    return true;
  }
  bool read_group(std::uint32_t start, std::string& to) {
    if (depth_++ == kMaxDepth) return false;
    std::uint32_t tag = 0;
    while (read_tag(tag)) {
      if ((tag & 7) == kGroupEnd) {
        --depth_;
        append_varint(tag, to);
        return tag == start + 1;
      }
      if (!read_unknown(tag, to)) return false;
    }
    return false;
  }

  const char* at_;
  const char* end_;
  int depth_ = 0;  // messages and groups around the current one
};

// Gives a field that is present its default value.
void clear_field(Message& message, const Field& field) {
  switch (field.kind) {
    case Kind::kBool: Access::value<bool>(message, field) = false; break;
    case Kind::kEnum:
    case Kind::kUint32:
    case Kind::kFixed32: std::memset(&Access::value<char>(message, field), 0, 4); break;
    case Kind::kFixed64: std::memset(&Access::value<char>(message, field), 0, 8); break;
    case Kind::kBytes: Access::value<std::string>(message, field).clear(); break;
    case Kind::kMessage: Access::value<Message>(message, field).Clear(); break;
    case Kind::kPackedFixed32: Access::value<RepeatedField<std::uint32_t>>(message, field).Clear(); break;
    case Kind::kPackedDouble: Access::value<RepeatedField<double>>(message, field).Clear(); break;
    case Kind::kStrings: Access::value<RepeatedStrings>(message, field).Clear(); break;
    case Kind::kMessages: Access::value<MessageList>(message, field).Clear(); break;
  }
}

}  // namespace

void Message::Clear() {
  for (const Field& field : Fields())
    if (is_repeated(field.kind) || has(field.bit)) clear_field(*this, field);
  presence_ = 0;
  unknown_.clear();
}

std::size_t Message::ByteSizeLong() const {
  Writer counter(nullptr);
  counter.write(*this);
  return counter.size();
}

bool Message::AppendToString(std::string* to) const {
  const std::size_t size = ByteSizeLong();
  if (size > INT_MAX) return false;
  to->resize(to->size() + size);
  Writer(to->data() + to->size()).write(*this);
  return true;
}

bool Message::SerializeToString(std::string* to) const {
  to->clear();
  return AppendToString(to);
}

std::string Message::SerializeAsString() const {
  std::string bytes;
  AppendToString(&bytes);
  return bytes;
}

bool Message::ParseFromArray(const void* data, int size) {
  return ParseFromString({static_cast<const char*>(data), static_cast<std::size_t>(size)});
}

bool Message::ParseFromString(std::string_view bytes) {
  Clear();
  return bytes.size() <= INT_MAX && Reader(bytes).read(*this);
}

}  // namespace gradwire::lean
