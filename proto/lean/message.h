// Messages in the wire format of protobuf, without its runtime, for small static clients. From a .proto file,
// generate_messages.py makes classes with protobuf's accessors and a table of the fields of each. One coder
// serves all tables. It writes the bytes that protobuf 3.21 writes, and accepts the bytes that protobuf
// accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradwire::lean {

// The type of a field, and its type in C++.
enum class Kind : std::uint8_t {
  kBool,           // bool
  kEnum,           // an enum over int with the values 0, 1, ...
  kUint32,         // std::uint32_t
  kFixed32,        // std::uint32_t
  kFixed64,        // std::uint64_t or double
  kBytes,          // std::string
  kMessage,        // a class derived from Message
  kPackedFixed32,  // RepeatedField<std::uint32_t>
  kPackedDouble,   // RepeatedField<double>
  kStrings,        // RepeatedStrings
  kMessages,       // a class derived from MessageList
};

// A row of the table of a message.
struct Field {
  std::uint16_t number;
  std::uint16_t offset;  // bytes from the start of the message to the value
  Kind kind;
  std::uint8_t bit;     // number of its presence bit; 0 if the field is repeated
  std::uint8_t values;  // number of values of an enum, else 0
};

class Message {
 public:
  virtual ~Message() = default;

  // Returns the fields by number, ascending.
  virtual std::span<const Field> Fields() const = 0;

  // Removes all fields, but keeps the memory of strings and lists for later.
  void Clear();
  std::size_t ByteSizeLong() const;
  // Fail only if the message is longer than INT_MAX bytes. Fields that the reader did not know are written
  // after all others.
  bool AppendToString(std::string* to) const;
  bool SerializeToString(std::string* to) const;
  std::string SerializeAsString() const;
  // Return false if the bytes are damaged; the contents of the message are then not specified.
  bool ParseFromArray(const void* data, int size);
  bool ParseFromString(std::string_view bytes);

 protected:
  Message() = default;
  Message(const Message&) = default;
  Message(Message&&) = default;
  Message& operator=(const Message&) = default;
  Message& operator=(Message&&) = default;

  bool has(unsigned bit) const { return (presence_ >> bit & 1) != 0; }
  void mark(unsigned bit) { presence_ |= std::uint32_t{1} << bit; }
  void unmark(unsigned bit) { presence_ &= ~(std::uint32_t{1} << bit); }

 private:
  friend struct Access;
  std::uint32_t presence_ = 0;
  std::string unknown_;  // encoded fields that are not in the table
};

// Access to a field by its row. The coder uses it, and tests that fill messages of any type.
struct Access {
  template <class T>
  static T& value(Message& message, const Field& field) {
    return *reinterpret_cast<T*>(reinterpret_cast<char*>(&message) + field.offset);
  }
  template <class T>
  static const T& value(const Message& message, const Field& field) {
    return *reinterpret_cast<const T*>(reinterpret_cast<const char*>(&message) + field.offset);
  }
  static bool has(const Message& message, const Field& field) { return message.has(field.bit); }
  static void mark(Message& message, const Field& field) { message.mark(field.bit); }
  static std::string& unknown(Message& message) { return message.unknown_; }
  static const std::string& unknown(const Message& message) { return message.unknown_; }
};

// A packed list of numbers.
template <class T>
class RepeatedField {
 public:
  int size() const { return static_cast<int>(items_.size()); }
  bool empty() const { return items_.empty(); }
  const T* data() const { return items_.data(); }
  const T* begin() const { return items_.data(); }
  const T* end() const { return items_.data() + items_.size(); }
  const T& operator[](int k) const { return items_[static_cast<std::size_t>(k)]; }
  void Set(int k, T value) { items_[static_cast<std::size_t>(k)] = value; }
  void Add(T value) { items_.push_back(value); }
  template <class From>
  void Assign(From begin, From end) {
    items_.assign(begin, end);
  }
  void Clear() { items_.clear(); }
  // Makes room for more numbers and returns where they go.
  T* Extend(std::size_t count) {
    items_.resize(items_.size() + count);
    return items_.data() + items_.size() - count;
  }

 private:
  std::vector<T> items_;
};

// A repeated field of messages, as the coder sees it.
class MessageList {
 public:
  virtual int size() const = 0;
  virtual const Message& operator[](int k) const = 0;
  virtual Message* Add() = 0;
  virtual void Clear() = 0;

 protected:
  ~MessageList() = default;
};

inline void clear(std::string& text) { text.clear(); }
inline void clear(Message& message) { message.Clear(); }

// A list of strings or messages. They keep their addresses, and after Clear() their memory: Add() reuses it.
template <class T, class Interface>
class RepeatedPtrField final : public Interface {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = const T&;
    Iterator() = default;
    explicit Iterator(const std::unique_ptr<T>* at) : at_(at) {}
    const T& operator*() const { return **at_; }
    const T* operator->() const { return at_->get(); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    bool operator==(const Iterator&) const = default;

   private:
    const std::unique_ptr<T>* at_ = nullptr;
  };

  RepeatedPtrField() = default;
  RepeatedPtrField(const RepeatedPtrField& other) {
    for (const T& item : other) *Add() = item;
  }
  RepeatedPtrField(RepeatedPtrField&& other) noexcept
      : items_(std::move(other.items_)), size_(std::exchange(other.size_, 0)) {}
  RepeatedPtrField& operator=(RepeatedPtrField other) noexcept {
    items_.swap(other.items_);
    size_ = other.size_;
    return *this;
  }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Iterator begin() const { return Iterator(items_.data()); }
  Iterator end() const { return Iterator(items_.data() + size_); }
  const T& operator[](int k) const { return *items_[static_cast<std::size_t>(k)]; }
  T* Mutable(int k) { return items_[static_cast<std::size_t>(k)].get(); }
  T* Add() {
    if (static_cast<std::size_t>(size_) == items_.size()) items_.push_back(std::make_unique<T>());
    return Mutable(size_++);
  }
  void Clear() {
    while (size_ > 0) clear(*Mutable(--size_));
  }

 private:
  std::vector<std::unique_ptr<T>> items_;
  int size_ = 0;  // the elements after these are cleared
};

struct NoInterface {};
using RepeatedStrings = RepeatedPtrField<std::string, NoInterface>;
template <class T>
using RepeatedMessages = RepeatedPtrField<T, MessageList>;

}  // namespace gradwire::lean
