#include "engine/tape/debug/tape_graph.h"

#include <array>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/data_files.h"

namespace gradwire {
namespace {

// With names off, an object that holds them is not a byte larger.
template <bool on>
struct Model {
  double weight = 0;
  [[no_unique_address]] DebugNames<on> names;
};
static_assert(sizeof(Model<false>) == sizeof(double));
static_assert(sizeof(Model<true>) > sizeof(double));

template <bool on>
TapeGraph example(EagerTape<double>& tape, DebugNames<on>& names) {
  tape.parameter_values()[0] = 3;
  tape.parameter_values()[1] = -1;
  const auto p = tape.parameters();
  const auto x = tape.leaves(std::vector<double>{2, 5});
  const auto a = tape.variable(4);
  const auto product = inner_product_with_bias(p, x, a);
  const auto loss = product * a;
  names(p, "weight");
  names(a, "a");
  names(loss, "the \"loss\"");
  backward(loss);
  return graph_of(tape, names);
}

TEST(TapeGraph, ListsEveryRecordWithItsDerivatives) {
  EagerTape<double> tape(2);
  DebugNames<true> names;
  EXPECT_EQ(to_text(example(tape, names)),
            "8 weight[0] parameter value 3 gradient 8\n"
            "9 weight[1] parameter value -1 gradient 20\n"
            "10 - leaf value 2 gradient 12\n"
            "11 - leaf value 5 gradient -4\n"
            "12 a variable value 4 gradient 9\n"
            "13 - reduction gradient 4 = 2 * 8 + 5 * 9 + 3 * 10 + -1 * 11 + 1 * 12\n"
            "14 the \"loss\" operation value 20 gradient 1 = 4 * 13 + 5 * 12\n");
}

TEST(TapeGraph, WritesOneLinePerNodeForAnyName) {
  EagerTape<double> tape(0);
  DebugNames<true> names;
  names(tape.variable(1), "one\nname\r\n");
  EXPECT_EQ(to_text(graph_of(tape, names)), "8 one\\nname\\r\\n variable value 1 gradient 0\n");
}

TEST(TapeGraph, HasNoNamesAfterRewindAndClear) {
  EagerTape<double> tape(0);
  DebugNames<true> names;
  const auto start = tape.checkpoint();
  names(tape.variable(1), "old");
  tape.rewind(start);
  names.clear();
  tape.variable(2);
  EXPECT_EQ(graph_of(tape, names).nodes.at(0).name, "");
  DebugNames<false>().clear();
}

TEST(TapeGraph, HasSameNodesWithoutNames) {
  EagerTape<double> tape(2), named(2);
  DebugNames<false> off;
  DebugNames<true> on;
  const TapeGraph bare = example(tape, off), full = example(named, on);
  ASSERT_EQ(bare.nodes.size(), full.nodes.size());
  for (std::size_t k = 0; k < bare.nodes.size(); ++k) {
    EXPECT_EQ(bare.nodes[k].gradient, full.nodes[k].gradient);
    EXPECT_EQ(bare.nodes[k].operands.size(), full.nodes[k].operands.size());
    EXPECT_EQ(bare.nodes[k].name, "");
  }
}

// The gradient of each node is the sum of derivative times gradient over the nodes that read it. So no arrow
// is missing or wrong.
TEST(TapeGraph, ArrowsExplainGradientsOfEveryKindOfRecord) {
  EagerTape<double> tape(3);
  for (std::size_t j = 0; j < 3; ++j) tape.parameter_values()[j] = 0.5 + 0.25 * static_cast<double>(j);
  const auto p = tape.parameters();
  const auto a = tape.variable(1.5);
  const auto h = tape.range(3, [&](std::size_t i) { return p[i] * a; });
  const auto spread = variance(h) + reduce_mean(p, h) + reduce_mul(h) + reduce_sum_of_squares(p);
  const auto shares = softmax(h);
  backward(spread * log_sum_exp(std::array{p[0], a, shares[1]}) + inner_product(p, h));
  const TapeGraph graph = graph_of(tape);
  std::vector<double> gradient(graph.nodes.back().slot + 1);
  gradient.back() = 1;
  for (std::size_t k = graph.nodes.size(); k-- > 0;)
    for (const auto& edge : graph.nodes[k].operands)
      gradient[edge.from] += edge.derivative * gradient[graph.nodes[k].slot];
  for (const auto& node : graph.nodes) EXPECT_NEAR(node.gradient, gradient[node.slot], 1e-12) << node.slot;
}

TEST(TapeGraph, GraphvizReadsIt) {
  EagerTape<double> tape(2);
  DebugNames<true> names;
  const std::string dot = to_dot(example(tape, names));
  EXPECT_NE(dot.find("n13 -> n14 [label=\"4\"]"), std::string::npos) << dot;
  EXPECT_NE(dot.find("the \\\"loss\\\"\\nvalue 20\\ngradient 1"), std::string::npos) << dot;
  if (std::system("dot -V > /dev/null 2>&1") != 0) GTEST_SKIP() << "no Graphviz here";
  const TemporaryFolder folder;
  const std::string file = folder.write("tape.dot", dot).string();
  EXPECT_EQ(std::system(("dot -Tsvg '" + file + "' > '" + file + ".svg'").c_str()), 0);
}

}  // namespace
}  // namespace gradwire
