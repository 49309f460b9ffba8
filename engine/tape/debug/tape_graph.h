// The records of a tape as a graph: as text, or for Graphviz (dot -Tsvg).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/tape/debug/names.h"
#include "engine/tape/eager_tape.h"

namespace gradwire {

struct TapeGraph {
  struct Edge {
    std::uint32_t from;  // operand
    double derivative;   // derivative of the node by the operand, as recorded
  };
  struct GraphNode {
    std::uint32_t slot;
    std::string kind;             // "parameter", "leaf", "variable", "operation", "reduction"
    std::string name;             // empty if it has none
    std::optional<double> value;  // for parameters, ranges and named nodes
    double gradient = 0;          // from the last backward()
    std::vector<Edge> operands;
  };
  std::vector<GraphNode> nodes;  // in the order of recording, parameters first
};

// Returns one line per node: slot, name (a newline in it as \n), kind, value, gradient, and "derivative *
// operand" for each operand.
std::string to_text(const TapeGraph& graph);
// Returns a Graphviz graph of nodes with their names, values and gradients. Each arrow points from operand to
// result and shows the derivative.
std::string to_dot(const TapeGraph& graph);

// Reads the internals of a tape; only for graph_of().
template <class Tape>
struct TapeReader {
  using Operation = typename Tape::Operation;
  using Kind = typename Tape::Kind;

  const Tape& tape;

  std::vector<TapeGraph::Edge> operands(const Operation& op) const {
    std::vector<TapeGraph::Edge> edges;
    const auto add = [&](std::uint32_t slot, double derivative) { edges.push_back({slot, derivative}); };
    const auto value = [&](std::uint32_t slot) { return static_cast<double>(tape.value_[slot]); };
    std::size_t d = op.derivative;
    for (std::uint32_t k = op.index; k < op.index_end;) {
      const std::uint32_t first = tape.index_[k];
      if (op.kind == Kind::kScattered) {
        add(first, static_cast<double>(tape.derivative_[d++]));
        ++k;
      } else if (op.kind == Kind::kInnerProduct) {
        const std::uint32_t second = tape.index_[k + 1], size = tape.index_[k + 2];
        for (std::uint32_t j = 0; j < size; ++j) add(first + j, value(second + j));
        for (std::uint32_t j = 0; j < size; ++j) add(second + j, value(first + j));
        k += 3;
      } else {
        const std::uint32_t size = tape.index_[k + 1];
        for (std::uint32_t j = 0; j < size; ++j) {
          const double linear =
              static_cast<double>(op.alpha) + static_cast<double>(op.beta) * value(first + j);
          add(first + j, op.kind == Kind::kRanges  ? static_cast<double>(tape.derivative_[d++])
                         : op.kind == Kind::kEqual ? static_cast<double>(op.alpha)
                                                   : linear);
        }
        k += 2;
      }
    }
    if (op.bias >= Tape::kDeadSlots) add(op.bias, 1);
    return edges;
  }

  template <class Names>
  TapeGraph graph(const Names& names) const {
    TapeGraph graph;
    const auto add = [&](std::uint32_t slot, const char* kind) -> TapeGraph::GraphNode& {
      const auto named = names.of(slot);
      graph.nodes.push_back({slot,
                             kind,
                             std::string(named.name),
                             named.there ? std::optional(named.value) : std::nullopt,
                             static_cast<double>(tape.gradient_[slot]),
                             {}});
      return graph.nodes.back();
    };
    for (std::uint32_t slot = Tape::kDeadSlots; slot < tape.first_; ++slot)
      add(slot, "parameter").value = static_cast<double>(tape.value_[slot]);
    std::uint32_t k = 0;  // index of the next Operation
    for (std::uint32_t slot = tape.first_; slot < tape.used_.slots;) {
      if (k < tape.used_.operations && tape.operation_[k].slot == slot) {
        const Operation& op = tape.operation_[k++];
        const bool leaves = op.kind == Kind::kLeaves;
        for (std::uint32_t j = 0; j < op.slots; ++j, ++slot) {
          TapeGraph::GraphNode& node = add(slot, leaves ? "leaf" : "reduction");
          if (leaves) node.value = static_cast<double>(tape.value_[slot]);
          node.operands = operands(op);
        }
        continue;
      }
      const auto& entry = tape.entry_[slot];
      const auto a = static_cast<std::uint32_t>(entry.links),
                 b = static_cast<std::uint32_t>(entry.links >> 32);
      const bool one = a >= Tape::kDeadSlots, two = b >= Tape::kDeadSlots;
      TapeGraph::GraphNode& node = add(slot++, one || two ? "operation" : "variable");
      if (one) node.operands.push_back({a, static_cast<double>(entry.da)});
      if (two) node.operands.push_back({b, static_cast<double>(entry.db)});
    }
    return graph;
  }
};

// Returns the graph of a tape. REQUIRES: numbers of T convert to double.
template <class T, bool on = false>
TapeGraph graph_of(const EagerTape<T>& tape, const DebugNames<on>& names = {}) {
  return TapeReader<EagerTape<T>>{tape}.graph(names);
}

}  // namespace gradwire
