#include <functional>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/tape.h"

namespace gradwire {
namespace {

using V = Var<double>;

void expect_misuse(const std::function<void()>& f, const std::string& text) {
  try {
    f();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(TapeMisuse, DefaultHandlesBelongToNoTape) {
  Tape<double> tape;
  const V a = tape.leaf(1), none;
  const VarRange<double> empty;
  for (const auto& f : std::vector<std::function<void()>>{
           [&] { none + a; }, [&] { a + none; }, [&] { none + 1; }, [&] { exp(none); },
           [&] { tape.backward(none); }, [&] { static_cast<void>(tape.gradient(none)); },
           [&] { tanh(empty); }, [&] { inner_product(empty, empty); }, [&] { tape.tanh(empty); },
           [&] {
             tape.pack(std::vector<V>{a, none});
           }}) {
    expect_misuse(f, "belongs to no tape");
  }
}

TEST(TapeMisuse, TwoTapesDoNotMix) {
  Tape<double> tape(2), other(2);
  const V a = tape.leaf(1), b = other.leaf(1);
  for (const auto& f : std::vector<std::function<void()>>{
           [&] { a* b; }, [&] { tape.backward(b); }, [&] { static_cast<void>(tape.gradient(b)); },
           [&] { inner_product(tape.parameters(), other.parameters()); },
           [&] {
             tape.pack(std::vector<V>{a, b});
           }}) {
    expect_misuse(f, "two tapes");
  }
}

TEST(TapeMisuse, UseAfterRewindIsNoticed) {
  Tape<double> tape;
  const auto start = tape.checkpoint();
  const V a = tape.leaf(1);
  const auto range = tape.leaves(std::vector<double>{1, 2});
  const auto later = tape.checkpoint();
  tape.rewind(start);
  expect_misuse([&] { sqr(a); }, "rewound");
  expect_misuse([&] { tape.backward(a); }, "rewound");
  expect_misuse([&] { tanh(range); }, "rewound");
  expect_misuse([&] { range[0]; }, "rewound");
  expect_misuse([&] { tape.rewind(later); }, "checkpoint");
  expect_misuse([&] { tape.rewind({}); }, "checkpoint");
}

TEST(TapeMisuse, ShapesMustFit) {
  Tape<double> tape(6);
  const auto p = tape.parameters();
  const std::vector<std::uint32_t> index = {0, 3};
  const std::vector<double> value = {1, 2};
  expect_misuse([&] { affine(p.subrange(0, 4), p.subrange(4, 2), p.subrange(0, 3)); },
                "4 weights do not map 3");
  expect_misuse(
      [&] {
        affine(p.subrange(0, 4), p.subrange(4, 2), SparseInput<double>{index, value});
      },
      "index 3");
  expect_misuse(
      [&] {
        affine(p.subrange(0, 4), p.subrange(4, 0), SparseInput<double>{index, value});
      },
      "weights");
  expect_misuse([&] { inner_product(p.subrange(0, 2), p.subrange(0, 3)); }, "inner_product of 2 and 3");
  expect_misuse([&] { softmax_cross_entropy(p, 6); }, "label 6 of 6");
  expect_misuse([&] { p.subrange(5, 2); }, "leaves the range");
  expect_misuse([&] { p[6]; }, "index 6 of 6");
}

}  // namespace
}  // namespace gradwire
