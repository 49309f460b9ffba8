#include "plotting/plot_tikz.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/value.h"
#include "plotting/plot_panel.h"
#include "plotting/plot_width.h"

namespace gradwire {
namespace {

constexpr double kTikzSides = 52;  // points between panels, for ticks and labels
constexpr double kTikzColumnWidth = 1;
constexpr std::size_t kMarks = 6;

// Returns the mark of PGFPlots for a marker of CurveStyle.
std::string mark_of(std::string_view marker) {
  if (marker == "o") return "mark=*";
  if (marker == "s") return "mark=square*";
  if (marker == "^") return "mark=triangle*";
  if (marker == "v") return "mark=triangle*, mark options={rotate=180, solid, fill=white}";
  if (marker == "D") return "mark=diamond*";
  if (marker == "P") return "mark=pentagon*";
  if (marker == "X") return "mark=otimes*";
  return "mark=oplus*";
}

// Turns "6 2.5" into "dash pattern=on 6pt off 2.5pt".
std::string dashes_of(std::string_view dashes) {
  if (dashes.empty()) return "solid";
  std::string text = "dash pattern=";
  bool on = true;
  for (std::size_t at = 0; at < dashes.size(); on = !on) {
    const std::size_t end = std::min(dashes.find(' ', at), dashes.size());
    text += std::string(on ? "on " : "off ") + std::string(dashes.substr(at, end - at)) + "pt ";
    at = end + 1;
  }
  text.pop_back();
  return text;
}

std::string name_of(const char* what, std::size_t panel, std::size_t curve) {
  return what + std::to_string(panel + 1) + "_" + std::to_string(curve + 1);
}

std::string data_cell(double value) { return std::isfinite(value) ? rounded_text(value, 6) : "nan"; }

// Table with columns of different lengths. Missing cells are nan, which PGFPlots skips.
struct TikzTable {
  std::vector<std::string> names;
  std::vector<std::vector<double>> columns;

  void add(const std::string& x, const std::string& y, const PanelLayout& layout,
           const std::vector<std::vector<Point>>& pieces) {
    names.push_back(x);
    names.push_back(y);
    std::vector<double> xs, ys;
    for (const auto& piece : pieces) {
      if (!xs.empty()) {  // a gap
        xs.push_back(std::numeric_limits<double>::quiet_NaN());
        ys.push_back(std::numeric_limits<double>::quiet_NaN());
      }
      for (const Point& p : piece) {
        xs.push_back(layout.x_at(p.x));
        ys.push_back(layout.y_at(p.y));
      }
    }
    columns.push_back(std::move(xs));
    columns.push_back(std::move(ys));
  }

  std::string text() const {
    std::string out = "% written by gradwire";
    std::size_t rows = 0;
    for (const auto& column : columns) rows = std::max(rows, column.size());
    for (std::size_t c = 0; c < names.size(); ++c) out += (c == 0 ? "\n" : " ") + names[c];
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t c = 0; c < columns.size(); ++c)
        out += (c == 0 ? "\n" : " ") +
               (row < columns[c].size() ? data_cell(columns[c][row]) : std::string("nan"));
    return out + "\n";
  }
};

// `stem` is the name of the page without .tex.
std::string tikz_head(const Figure& figure, const std::string& stem, const PanelSize& size,
                      std::size_t rows) {
  // A figure of a given width has the letters of a caption.
  const std::string font = figure.width > 0 ? "\\footnotesize" : "\\small";
  std::string tex =
      "% Written by gradwire; you may edit it. pdflatex needs pgfplots (TeX Live: collection-pictures; "
      "Debian and\n"
      "% Ubuntu: texlive-pictures, and texlive-latex-extra for the class standalone).\n"
      "% In a paper: \\usepackage{standalone,pgfplots} \\usepgfplotslibrary{groupplots} and \\input{" +
      stem + "}; in another folder\n% \\pgfplotsset{table/search path={FOLDER}} and \\input{FOLDER/" + stem +
      "}.\n"
      "\\documentclass[border=" +
      (figure.width > 0 ? "0pt" : "3pt") +
      "]{standalone}\n\\usepackage{pgfplots}\n\\usepgfplotslibrary{groupplots}\n"
      "\\pgfplotsset{compat=1.16}\n\\begin{document}\n";
  for (std::size_t c = 0; c < figure.curves.size(); ++c)
    tex += "\\definecolor{curve" + std::to_string(c + 1) + "}{HTML}{" +
           std::string(curve_style(c).color.substr(1)) + "}\n";
  // The legend is above the first panel and takes no space from it.
  return tex + "\\begin{tikzpicture}\n\\begin{groupplot}[\n  group style={group size=" +
         std::to_string(size.columns) + " by " + std::to_string(rows) +
         ", horizontal sep=" + data_cell(kTikzSides * size.scale) +
         "pt, vertical sep=" + (figure.by.empty() ? "46pt" : "64pt") +
         "},\n  width=" + data_cell(size.width) + "pt, height=" + data_cell(size.height) +
         "pt, scale only axis, " + (figure.width > 0 ? "font=" + font + ", " : "") +
         "grid=major, "
         "grid style={black!11, line width=0.4pt},\n  tick align=outside, tick pos=left, "
         "unbounded coords=jump, enlargelimits=false,\n  every axis plot/.append style={line width=1pt, "
         "mark size=2pt},\n  legend style={draw=none, at={(0,1.03)}, anchor=south west, legend cell "
         "align=left, "
         "font=" +
         font +
         ", /tikz/every even column/.append style={column sep=8pt}},\n  "
         "/pgf/number format/1000 sep={\\,},\n  legend columns=" +
         std::to_string(std::min<std::size_t>(figure.curves.size(), 2 * size.columns)) + "]\n";
}

std::string axis_limits(const PanelLayout& layout) {
  return "xmin=" + data_cell(layout.x().low()) + ", xmax=" + data_cell(layout.x().high()) +
         ", ymin=" + data_cell(layout.y().low()) + ", ymax=" + data_cell(layout.y().high());
}

}  // namespace

TikzFigure draw_tikz(const Figure& figure, const std::string& dat_name) {
  PanelSize size = panel_size(figure, kTikzSides);
  size.width *= size.scale;
  size.height *= size.scale;
  const std::size_t count = figure.panels.size(), in_a_row = size.columns;
  TikzTable table;
  std::string tex =
      tikz_head(figure, dat_name.substr(0, dat_name.rfind('.')), size, (count + in_a_row - 1) / in_a_row);
  for (std::size_t p = 0; p < count; ++p) {
    const PlotPanel& panel = figure.panels[p];
    const PanelLayout layout(panel, {0, 0, size.width, size.height});
    tex += "\\nextgroupplot[" + (panel.title.empty() ? "" : "title={" + tex_escape(panel.title) + "}, ") +
           "xlabel={" + panel.x_tex + "}, ylabel={" + panel.y_tex + "}, " + axis_limits(layout) +
           (panel.log_x ? ", xmode=log" : "") + (panel.log_y ? ", ymode=log" : "") + "]\n";
    std::string bands, lines;
    for (std::size_t c = 0; c < figure.curves.size(); ++c) {
      const CurveStyle style = curve_style(c);
      const std::string color = "curve" + std::to_string(c + 1);
      const auto plot = [&](const std::string& options, const char* x, const char* y) {
        return "\\addplot[" + options + "] table[x=" + name_of(x, p, c) + ", y=" + name_of(y, p, c) + "] {" +
               dat_name + "}";
      };
      if (const auto outline = layout.bands(panel.series[c], kTikzColumnWidth); !outline.empty()) {
        table.add(name_of("bx", p, c), name_of("by", p, c), layout, outline);
        bands += plot("draw=none, fill=" + color + ", fill opacity=0.2, mark=none, forget plot", "bx", "by") +
                 " -- cycle;\n";
      }
      if (c < panel.bounds.size()) {
        std::vector<std::vector<Point>> bound;
        for (const auto& piece : layout.pieces(panel.bounds[c]))
          bound.push_back(drop_straight(thin_out(piece, kTikzColumnWidth), kStraight));
        table.add(name_of("tx", p, c), name_of("ty", p, c), layout, bound);
        lines += plot(color + ", dashed, line width=0.5pt, mark=none, forget plot", "tx", "ty") + ";\n";
      }
      std::vector<std::vector<Point>> pieces;
      std::size_t points = 0;
      for (const auto& piece : layout.pieces(panel.series[c])) {
        pieces.push_back(drop_straight(thin_out(piece, kTikzColumnWidth), kStraight));
        points += pieces.back().size();
      }
      table.add(name_of("x", p, c), name_of("y", p, c), layout, pieces);
      lines += plot(color + ", " + dashes_of(style.dashes) + ", mark options={solid, fill=white}, " +
                        mark_of(style.marker) +
                        ", mark repeat=" + std::to_string(std::max<std::size_t>(1, points / kMarks)),
                    "x", "y") +
               ";\n";
      if (p == 0) lines += "\\addlegendentry{" + tex_escape(figure.curves[c].label) + "}\n";
    }
    tex += bands + lines;
  }
  tex += "\\end{groupplot}\n";
  if (!figure.note.empty())
    tex += "\\node[anchor=north west, inner sep=0pt, yshift=-4pt, align=left, text width=" +
           data_cell(figure.width > 0 ? figure.width
                                      : (size.width + kTikzSides) * static_cast<double>(in_a_row)) +
           "bp, font=\\footnotesize, text=black!65] at (current bounding box.south west) {" +
           tex_escape(figure.note) + "};\n";
  tex += "\\end{tikzpicture}\n";
  return {tex + "\\end{document}\n", table.text()};
}

}  // namespace gradwire
