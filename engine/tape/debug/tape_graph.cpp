#include "engine/tape/debug/tape_graph.h"

#include "base/value.h"

namespace gradwire {
namespace {

// Returns the value with four digits, which is enough for a reader.
std::string brief(double value) { return rounded_text(value, 4); }

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

// Escapes line ends, so that a name fits the one line of its node.
std::string in_one_line(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : std::string(1, c);
  return out;
}

// Returns the Graphviz id of a slot.
std::string id(std::uint32_t slot) { return "n" + std::to_string(slot); }

}  // namespace

std::string to_text(const TapeGraph& graph) {
  std::string out;
  for (const TapeGraph::GraphNode& node : graph.nodes) {
    out += std::to_string(node.slot) + " " + (node.name.empty() ? "-" : in_one_line(node.name)) + " " +
           node.kind;
    if (node.value) out += " value " + brief(*node.value);
    out += " gradient " + brief(node.gradient);
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      out += (i == 0 ? " = " : " + ") + brief(node.operands[i].derivative) + " * " +
             std::to_string(node.operands[i].from);
    out += '\n';
  }
  return out;
}

std::string to_dot(const TapeGraph& graph) {
  std::string out = "digraph tape {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (const TapeGraph::GraphNode& node : graph.nodes) {
    out += "  " + id(node.slot) + " [label=\"" +
           escaped(node.name.empty() ? node.kind + " " + std::to_string(node.slot) : node.name);
    if (node.value) out += "\\nvalue " + brief(*node.value);
    out += "\\ngradient " + brief(node.gradient) + "\"";
    if (node.kind != "operation" && node.kind != "reduction") out += ", style=rounded";
    out += "];\n";
    for (const TapeGraph::Edge& edge : node.operands)
      out += "  " + id(edge.from) + " -> " + id(node.slot) + " [label=\"" + brief(edge.derivative) + "\"];\n";
  }
  return out + "}\n";
}

}  // namespace gradwire
