// Whether a text is one JSON value, by RFC 8259 (it does not check numbers like 01 and surrogate pairs).
#pragma once

#include <cctype>
#include <cstdlib>
#include <string>

namespace gradwire {

class JsonCheck {
 public:
  static bool is_object(const std::string& text) {
    JsonCheck check(text);
    check.space();
    const bool object = *check.at_ == '{';
    return object && check.value(0) && (check.space(), *check.at_ == '\0') &&
           check.at_ == text.c_str() + text.size();
  }

 private:
  static constexpr int kDeepest = 100;

  explicit JsonCheck(const std::string& text) : at_(text.c_str()) {}

  void space() {
    while (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r') ++at_;
  }
  bool take(const char* word) {
    const std::string expected = word;
    if (std::string(at_).compare(0, expected.size(), expected) != 0) return false;
    at_ += expected.size();
    return true;
  }
  bool string() {
    if (*at_++ != '"') return false;
    for (; *at_ != '"'; ++at_) {
      if (static_cast<unsigned char>(*at_) < 0x20) return false;
      if (*at_ != '\\') continue;
      ++at_;
      if (*at_ == 'u') {
        for (int k = 0; k < 4; ++k)
          if (!std::isxdigit(static_cast<unsigned char>(*++at_))) return false;
      } else if (*at_ == '\0' || std::string("\"\\/bfnrt").find(*at_) == std::string::npos) {
        return false;
      }
    }
    ++at_;
    return true;
  }
  bool number() {
    if (*at_ != '-' && !std::isdigit(static_cast<unsigned char>(*at_))) return false;
    char* end = nullptr;
    std::strtod(at_, &end);
    const bool any = end != at_ && std::isdigit(static_cast<unsigned char>(end[-1]));
    at_ = end;
    return any;
  }
  // The members of an object or the elements of an array, up to the bracket that ends them.
  bool list(char close, bool named, int depth) {
    ++at_;
    space();
    if (*at_ == close) return ++at_, true;
    for (;;) {
      space();
      if (named && !(string() && (space(), *at_ == ':') && ++at_)) return false;
      if (!value(depth + 1)) return false;
      space();
      if (*at_ == close) return ++at_, true;
      if (*at_++ != ',') return false;
    }
  }
  bool value(int depth) {
    if (depth > kDeepest) return false;
    space();
    switch (*at_) {
      case '{': return list('}', true, depth);
      case '[': return list(']', false, depth);
      case '"': return string();
      case 't': return take("true");
      case 'f': return take("false");
      case 'n': return take("null");
      default: return number();
    }
  }

  const char* at_;
};

}  // namespace gradwire
