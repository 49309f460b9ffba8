// A tape in the caller's buffer, backward in the caller's scratch, parts recorded by several threads, and
// outputs whose derivatives are known.
#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "engine/tape/eager_tape.h"
#include "gradwire/tape.h"
#include "tests/engine/tape/forbid_malloc.h"

namespace gradwire {
namespace {

// Records every kind of operation: with one and two operands, scattered ones, ranges, and inner products with
// a bias.
template <class T>
typename EagerTape<T>::Var record(EagerTape<T>& tape, const typename EagerTape<T>::Range& p, double shift) {
  const std::array<T, 3> data = {T(1 + shift), T(-2), T(0.5)};
  const auto x = tape.leaves(data);
  const auto weights = p.subrange(0, 3);
  const auto h = tanh(inner_product_with_bias(weights, x, p[3])) * T(0.5);
  const auto shares = softmax(tape.range(3, [&](std::size_t i) { return x[i] * p[i]; }));
  const auto spread = variance(std::array{p[0], p[1], h, shares[2]}) + reduce_mul(p[2], h, shares[0]);
  return sqr(spread + reduce_mean(weights)) + log_sum_exp(p) - tape.constant(T(2)) * h;
}

template <class T>
void set_parameters(EagerTape<T>& tape) {
  for (std::size_t j = 0; j < tape.parameter_values().size(); ++j)
    tape.parameter_values()[j] = T(0.3) * T(static_cast<double>(j)) - T(0.4);
}

TapeSize size_of_record() {
  return tape_size<double>(4, [](EagerTape<double>& tape) {
    set_parameters(tape);
    record(tape, tape.parameters(), 0);
    record(tape, tape.parameters(), 1);
  });
}

std::vector<double> gradient_of(EagerTape<double>& tape) {
  tape.zero_parameter_gradients();
  const auto start = tape.checkpoint();
  for (const double shift : {0.0, 1.0}) {
    const auto first = record(tape, tape.parameters(), shift);
    backward(first + record(tape, tape.parameters(), shift));
    tape.rewind(start);
  }
  const auto gradients = tape.parameter_gradients();
  return {gradients.begin(), gradients.end()};
}

TEST(TapeInABuffer, GivesTheSameBitsAtEveryAddress) {
  EagerTape<double> plain(4);
  set_parameters(plain);
  const std::vector<double> expected = gradient_of(plain);
  TapeSize size = size_of_record();
  size.scalars += 1;  // for the sum of two recordings
  std::vector<std::byte> memory(EagerTape<double>::bytes(size) + 64);
  for (const std::size_t offset : {0, 1, 7, 64}) {
    EagerTape<double> tape(size, std::span(memory).subspan(offset, EagerTape<double>::bytes(size)));
    set_parameters(tape);
    EXPECT_EQ(gradient_of(tape), expected) << offset;
  }
}

TEST(TapeInABuffer, NeitherAllocatesNorThrows) {
  TapeSize size = size_of_record();
  size.scalars += 1;
  std::vector<std::byte> memory(EagerTape<double>::bytes(size));
  std::vector<double> scratch(size.parameters + size.scalars + 8);
  double sum = 0;
  {
    const NoMalloc none;
    EagerTape<double> tape(size, memory);
    set_parameters(tape);
    for (int step = 0; step < 3; ++step) {
      const auto start = tape.checkpoint();
      const auto first = record(tape, tape.parameters(), 0);
      const auto middle = tape.checkpoint();
      record(tape, tape.parameters(), 1);
      tape.rewind(middle);
      const auto root = first + record(tape, tape.parameters(), 1);
      backward(root);
      tape.backward(root, scratch);
      const std::array outputs{root, first};
      const std::array slopes{1.0, 2.0};
      tape.backward_from(outputs, slopes);
      sum += tape.gradient(tape.parameters()[0], scratch);
      tape.rewind(start);
    }
  }
  EXPECT_NE(sum, 0);
}

TEST(TapeInABuffer, ThrowsWhenFullAndKeepsItsRecords) {
  const TapeSize size{.parameters = 1, .scalars = 3};
  std::vector<std::byte> memory(EagerTape<double>::bytes(size));
  EagerTape<double> tape(size, memory);
  tape.parameter_values()[0] = 2;
  const auto p = tape.parameters()[0];
  const auto a = p * p, b = a * p, c = b * b;
  EXPECT_THROW(c + a, std::length_error);
  EXPECT_THROW(tape.leaves(std::vector<double>{1}), std::length_error);
  EXPECT_THROW(reduce_mul(a, b, c), std::length_error);
  backward(c);
  EXPECT_EQ(tape.parameter_gradients()[0], 6 * 32);
  EXPECT_THROW(EagerTape<double>(size, std::span(memory).first(memory.size() - 1)), std::logic_error);
  EXPECT_THROW(EagerTape<double>::bytes({.scalars = std::size_t{1} << 40}), std::length_error);
  EXPECT_THROW(EagerTape<double>::bytes({.parameters = ~std::size_t{0} - 8}), std::length_error);
}

TEST(TapeInABuffer, RewindsHigherManyTimesWithoutMemory) {
  const TapeSize size{.scalars = 100};
  std::vector<std::byte> memory(EagerTape<double>::bytes(size));
  EagerTape<double> tape(size, memory);
  auto start = tape.checkpoint();
  for (int k = 0; k < 90; ++k) tape.variable(k);
  const auto old = tape.variable(7);
  const auto end = tape.checkpoint();
  for (int k = 0; k < 40; ++k) {  // after the first round, each rewind drops one record
    tape.rewind(start);
    tape.variable(k);
    tape.variable(k);
    start = tape.checkpoint();
    tape.variable(k);
  }
  const auto a = tape.variable(3);
  backward(a * a);
  EXPECT_EQ(a.grad(), 6);
  EXPECT_THROW(static_cast<void>(old.grad()), std::logic_error);
  EXPECT_THROW(tape.rewind(end), std::logic_error);
}

TEST(TapeScratch, MatchesBackwardAndKeepsTape) {
  EagerTape<double> tape(4);
  set_parameters(tape);
  const auto first = record(tape, tape.parameters(), 0), second = record(tape, tape.parameters(), 1);
  backward(first);
  const std::vector<double> before(tape.parameter_gradients().begin(), tape.parameter_gradients().end());
  std::vector<double> scratch(tape.scratch_size(), 77), other(tape.scratch_size());
  // Two threads at once read one tape.
  std::thread other_thread([&] { tape.backward(second, other, 2); });
  tape.backward(first, scratch);
  other_thread.join();
  const auto got = tape.gradients(tape.parameters(), scratch);
  EXPECT_EQ(std::vector<double>(got.begin(), got.end()), before);
  EXPECT_EQ(tape.gradient(first, scratch), 1);
  EXPECT_EQ(tape.gradient(second, scratch), 0) << "recorded after the root";
  tape.zero_parameter_gradients();
  backward(second, 2.0);
  for (std::size_t j = 0; j < 4; ++j)
    EXPECT_EQ(tape.gradient(tape.parameters()[j], other), tape.parameter_gradients()[j]);
  EXPECT_THROW(tape.backward(first, std::span(scratch).first(5)), std::logic_error);
  EXPECT_THROW(tape.gradient(first, std::span(scratch).first(5)), std::logic_error);
}

TEST(TapeOutputs, NeedNoRootIfDerivativesAreKnown) {
  EagerTape<double> tape(4), with_root(4);
  set_parameters(tape);
  set_parameters(with_root);
  const auto a = record(tape, tape.parameters(), 0), b = record(tape, tape.parameters(), 1);
  const std::array outputs{a, b};
  const std::array slopes{3.0, -0.5};
  tape.backward_from(outputs, slopes);
  const auto c = record(with_root, with_root.parameters(), 0);
  const auto d = record(with_root, with_root.parameters(), 1);
  backward(3.0 * c - 0.5 * d);
  for (std::size_t j = 0; j < 4; ++j)
    EXPECT_DOUBLE_EQ(tape.parameter_gradients()[j], with_root.parameter_gradients()[j]);
  EXPECT_THROW(tape.backward_from(outputs, std::span(slopes).first(1)), std::logic_error);
  tape.backward_from({}, {});
}

TEST(TapeParts, RecordedByThreadsMatchBitsOfOneThread) {
  EagerTape<double> alone(4);
  set_parameters(alone);
  const auto first = record(alone, alone.parameters(), 0), second = record(alone, alone.parameters(), 1);
  const auto third = record(alone, alone.parameters(), 2);
  backward(first * second + third);

  EagerTape<double> whole(4);
  set_parameters(whole);
  std::vector<std::unique_ptr<EagerTape<double>>> parts;
  std::vector<EagerTape<double>::Var> roots(3);
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < 3; ++k) parts.push_back(std::make_unique<EagerTape<double>>(4));
  for (std::size_t k = 0; k < 3; ++k)
    threads.emplace_back([&, k] {
      const auto x = whole.values(whole.parameters());
      std::copy(x.begin(), x.end(), parts[k]->parameter_values().begin());
      roots[k] = record(*parts[k], parts[k]->parameters(), static_cast<double>(k));
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<EagerTape<double>::Var> joined;
  for (std::size_t k = 0; k < 3; ++k) joined.push_back(whole.join(*parts[k], whole.parameters())(roots[k]));
  const auto root = joined[0] * joined[1] + joined[2];
  EXPECT_EQ(root.value(), (first * second + third).value());
  backward(root);
  for (std::size_t j = 0; j < 4; ++j)
    EXPECT_EQ(whole.parameter_gradients()[j], alone.parameter_gradients()[j]);
  EXPECT_EQ(joined[1].grad(), first.value());
}

TEST(TapeParts, AcceptComputedInputs) {
  EagerTape<double> flat, part(4);
  const auto a = flat.leaves(std::vector<double>{0.1, 0.2, 0.3, 0.4});
  const auto squares = flat.range(4, [&](std::size_t i) { return sqr(a[i]); });
  const auto x = flat.values(squares);
  std::copy(x.begin(), x.end(), part.parameter_values().begin());
  const auto root = record(part, part.parameters(), 0);
  const auto joined = flat.join(part, squares)(root);
  backward(joined);
  const std::vector<double> through(flat.gradients(a).begin(), flat.gradients(a).end());
  backward(root);
  for (std::size_t j = 0; j < 4; ++j)
    EXPECT_DOUBLE_EQ(through[j], part.parameter_gradients()[j] * 2 * a[j].value());
}

TEST(TapeParts, RejectWrongTapeOrSize) {
  EagerTape<double> whole(4), part(3);
  EXPECT_THROW(whole.join(part, whole.parameters()), std::logic_error);
  EXPECT_THROW(whole.join(whole, whole.parameters()), std::logic_error);
  EXPECT_THROW(part.join(whole, whole.parameters()), std::logic_error);
  const auto joined = whole.join(part, whole.parameters().subrange(1, 3));
  EXPECT_THROW(joined(whole.variable(1)), std::logic_error);
}

TEST(PublicTapeMemory, SecondPassAllocatesNothing) {
  Tape tape(2);
  const auto start = tape.checkpoint();
  const auto pass = [&] {
    Tape::Var sum = tape.parameter(0);
    for (int i = 0; i < 1000; ++i) sum += tanh(tape.variable(i) * tape.parameter(1));
    backward(log_sum_exp({sum, sum * 2}) + inner_product({sum, sum}, {tape.parameter(0), sum}));
    tape.rewind(start);
  };
  pass();
  const NoMalloc guard;
  pass();
}

}  // namespace
}  // namespace gradwire
