#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/report/json_string.h"

namespace gradwire {

// Writes one JSON value, indented by two spaces. Misuse (a member without a name, an end too many) throws
// std::logic_error.
class JsonWriter {
 public:
  void begin_object();
  void end_object();
  void begin_array();
  void end_array();
  void key(std::string_view name);  // of the member that follows

  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool truth);
  void value(double number);  // the shortest text that reads back to the same bits; not finite: null
  void value(std::uint64_t number);
  void value(std::uint32_t number) { value(std::uint64_t{number}); }
  void null();

  template <class T>
  void member(std::string_view name, const T& v) {
    key(name);
    value(v);
  }

  // The text with a newline at its end. REQUIRES: everything that was begun has ended.
  std::string take();

 private:
  void before_value();
  void begin(char bracket, bool object);
  void end(char bracket, bool object);

  struct Level {
    bool object;
    bool empty = true;
  };
  std::string text_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

}  // namespace gradwire
