#include "plotting/svg_text.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <initializer_list>

namespace gradwire::svg {
namespace {

constexpr double kMarkerSize = 3.1;  // half of its width

std::string closed(Point at, std::initializer_list<Point> corners) {
  std::string text;
  Point last = at;
  for (const Point& c : corners) {
    const Point p{at.x + kMarkerSize * c.x, at.y + kMarkerSize * c.y};
    text +=
        text.empty() ? "M" + num(p.x) + " " + num(p.y) : "l" + num(p.x - last.x) + " " + num(p.y - last.y);
    last = p;
  }
  return text + "z";
}

std::string star(Point at) {
  std::string text;
  for (int k = 0; k < 10; ++k) {
    const double radius = kMarkerSize * (k % 2 == 0 ? 1.45 : 0.62), angle = k * 0.6283185307179586;
    text += (k == 0 ? "M" : "L") + num(at.x + radius * std::sin(angle)) + " " +
            num(at.y - radius * std::cos(angle));
  }
  return text + "z";
}

// Appends a number, with a space unless a minus sign separates it from the previous character.
void add_number(std::string& text, long value) {
  const char last = text.back();
  if (value >= 0 && last >= '0' && last <= '9') text += ' ';
  text += std::to_string(value);
}

}  // namespace

std::string num(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.2f", value);
  std::string s = text.data();
  s.erase(s.find_last_not_of('0') + 1);
  if (s.ends_with('.')) s.pop_back();
  return s == "-0" ? "0" : s;
}

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  }
  return out;
}

// Raises text by dy, which every viewer supports, and lowers the rest again.
std::string raise(std::string_view text) {
  const std::size_t at = text.find("^{");
  if (at == std::string_view::npos) return escape(text);
  const std::size_t end = text.find('}', at);
  std::string exponent(text.substr(at + 2, end - at - 2));
  if (exponent.starts_with('-')) exponent.replace(0, 1, "\u2212");
  const std::string rest = escape(text.substr(end + 1));
  return escape(text.substr(0, at)) + "<tspan dy=\"-4\" font-size=\"" + num(kSmallFont * 0.75) + "\">" +
         exponent + "</tspan>" + (rest.empty() ? "" : "<tspan dy=\"4\">" + rest + "</tspan>");
}

double text_width(std::string_view text, double font) {
  double width = 0;
  for (const char c : text) {
    if ((c & 0xC0) == 0x80) continue;  // not the first byte of a character
    const bool narrow = std::string_view("iljtf.,:;'| ()[]/").find(c) != std::string_view::npos;
    const bool wide = std::string_view("mwMW@%").find(c) != std::string_view::npos || (c >= 'A' && c <= 'Z');
    const bool digit = (c >= '0' && c <= '9') || c == '=' || c == '*';
    width += font * (narrow ? 0.35 : wide ? 0.8 : digit ? 0.65 : 0.6);
  }
  return width;
}

std::string fit(std::string_view text, double font, double width) {
  if (text_width(text, font) <= width) return std::string(text);
  while (!text.empty() && text_width(text, font) + font > width) {
    do {
      text.remove_suffix(1);
    } while (!text.empty() && (text.back() & 0xC0) == 0x80);
  }
  // Removes the first byte of a character that was cut.
  if (!text.empty() && (text.back() & 0x80) != 0) text.remove_suffix(1);
  return std::string(text) + "\u2026";
}

std::string fit_label(std::string_view text, double font, double width) {
  const std::size_t comma = text.rfind(", ");
  if (text_width(text, font) <= width || comma == text.npos) return fit(text, font, width);
  const std::string_view last = text.substr(comma + 2);
  const double left = width - text_width(last, font);
  return left < 2 * font ? fit(last, font, width)
                         : fit(text.substr(0, comma), font, left) + std::string(last);
}

std::string line(Point a, Point b, std::string_view attributes) {
  return "<line x1=\"" + num(a.x) + "\" y1=\"" + num(a.y) + "\" x2=\"" + num(b.x) + "\" y2=\"" + num(b.y) +
         "\" " + std::string(attributes) + "/>\n";
}

std::string text_at(Point p, std::string_view anchor, double size, const std::string& content,
                    std::string_view more) {
  return "<text x=\"" + num(p.x) + "\" y=\"" + num(p.y) + "\" text-anchor=\"" + std::string(anchor) +
         "\" font-size=\"" + num(size) + "\"" + std::string(more) + ">" + content + "</text>\n";
}

std::string path_data(const std::vector<Point>& points) {
  std::string text;
  long x = 0, y = 0;
  for (const Point& p : points) {
    const long next_x = std::lround(10 * p.x), next_y = std::lround(10 * p.y);
    if (text.empty()) {
      text = "M" + std::to_string(next_x);
      add_number(text, next_y);
      text += 'l';
    } else if (next_x != x || next_y != y) {
      add_number(text, next_x - x);
      add_number(text, next_y - y);
    }
    x = next_x;
    y = next_y;
  }
  return text.ends_with('l') ? "" : text;
}

std::string marker_data(std::string_view marker, Point p) {
  if (marker == "o") {
    const std::string r = num(kMarkerSize), d = num(2 * kMarkerSize);
    return "M" + num(p.x - kMarkerSize) + " " + num(p.y) + "a" + r + " " + r + " 0 1 0 " + d + " 0a" + r +
           " " + r + " 0 1 0-" + d + " 0z";
  }
  if (marker == "s") return closed(p, {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}});
  if (marker == "^") return closed(p, {{0, -1.2}, {1.15, 0.9}, {-1.15, 0.9}});
  if (marker == "v") return closed(p, {{0, 1.2}, {1.15, -0.9}, {-1.15, -0.9}});
  if (marker == "D") return closed(p, {{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}});
  if (marker == "*") return star(p);
  if (marker == "P") {
    const double a = 0.4, b = 1.15;
    return closed(p, {{-a, -b},
                      {a, -b},
                      {a, -a},
                      {b, -a},
                      {b, a},
                      {a, a},
                      {a, b},
                      {-a, b},
                      {-a, a},
                      {-b, a},
                      {-b, -a},
                      {-a, -a}});
  }
  const double a = 0.5, b = 1.1;
  return closed(p, {{0, -a},
                    {b - a, -b},
                    {b, a - b},
                    {a, 0},
                    {b, b - a},
                    {b - a, b},
                    {0, a},
                    {a - b, b},
                    {-b, b - a},
                    {-a, 0},
                    {-b, a - b},
                    {a - b, -b}});
}

}  // namespace gradwire::svg
