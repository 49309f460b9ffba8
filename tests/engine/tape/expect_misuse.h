// Expects an error about the misuse of a tape.
#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>

namespace gradwire {

inline void expect_misuse(const std::function<void()>& f, const std::string& text) {
  try {
    f();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

}  // namespace gradwire
