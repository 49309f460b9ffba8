#include "plotting/plot_column.h"

#include <algorithm>

#include "base/synonyms.h"

namespace gradwire {

std::span<const PlotColumn> x_columns() {
  static const std::vector<PlotColumn> columns = {
      {"bits", {"bits_up"}, "communicated bits per client (uplink)", "communicated bits per client (uplink)"},
      {"total_bits",
       {"bits_up", "bits_down"},
       "communicated bits per client (both ways)",
       "communicated bits per client (both ways)"},
      {"paper_bits",
       {"bits_up_paper"},
       "bits per client as papers count (uplink)",
       "bits per client as papers count (uplink)"},
      {"rounds", {"round"}, "rounds", "rounds"},
      {"bytes", {"bytes_up"}, "sent by all clients ({})", "sent by all clients ({})", true},
      {"total_bytes",
       {"bytes_up", "bytes_down"},
       "sent in both directions ({})",
       "sent in both directions ({})",
       true},
      {"grad_calls", {"grad_calls"}, "gradients of samples per client", "gradients of samples per client"},
      {"seconds", {"seconds"}, "time (s)", "time (s)"},
      {"sim_seconds", {"sim_seconds"}, "simulated time (s)", "simulated time (s)"},
  };
  return columns;
}

std::span<const PlotColumn> y_columns() {
  static const std::vector<PlotColumn> columns = {
      {"grad_norm_sq", {"grad_norm_sq"}, "‖∇f(x)‖²", "$\\|\\nabla f(x)\\|^2$"},
      {"loss", {"loss"}, "loss f(x)", "loss $f(x)$"},
      {"gap", {"loss"}, "f(x) − f*", "$f(x) - f^\\star$", false, true},
      {"accuracy", {"accuracy"}, "test accuracy (%)", "test accuracy (\\%)"},
      {.name = "lyapunov",
       .csv = {"lyapunov"},
       .label = "Lyapunov function Ψ",
       .tex = "Lyapunov function $\\Psi$",
       .bound = "lyapunov_bound"},
  };
  return columns;
}

const PlotColumn* find_column(std::span<const PlotColumn> columns, std::string_view name) {
  std::vector<std::string> names;
  for (const PlotColumn& column : columns) names.emplace_back(column.name);
  const auto meant = meant_name(name, names);
  const auto at = std::find_if(columns.begin(), columns.end(), [&](const PlotColumn& column) {
    return meant ? column.name == meant->name : column.csv == std::vector<std::string>{std::string(name)};
  });
  return at == columns.end() ? nullptr : &*at;
}

PlotColumn other_column(const std::string& csv) {
  std::string label = csv;
  std::replace(label.begin(), label.end(), '_', ' ');
  return {csv, {csv}, label, tex_escape(label)};
}

std::string tex_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\': out += "\\textbackslash{}"; break;
      case '~': out += "\\textasciitilde{}"; break;
      case '^': out += "\\textasciicircum{}"; break;
      case '{':
      case '}':
      case '$':
      case '&':
      case '#':
      case '%':
      case '_': out += '\\'; [[fallthrough]];
      default:
        if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
  }
  return out;
}

}  // namespace gradwire
