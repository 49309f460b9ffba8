#include "compressors/compressor.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "compressors/config_error.h"
#include "compressors/nearest.h"

namespace gradwire {
namespace {

constexpr const char* kKey = "algorithm.compressor";

[[noreturn]] void fail(const std::string& message) { throw ConfigError(kKey, message); }

std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  return "'" + std::string(text.substr(0, kLongest)) + (text.size() > kLongest ? "...'" : "'");
}

template <class F, std::size_t... I>
void each_type(F&& f, std::index_sequence<I...>) {
  (f(std::variant_alternative_t<I, Compressor>{}), ...);
}
template <class F>
void each_type(F&& f) {
  each_type(std::forward<F>(f), std::make_index_sequence<std::variant_size_v<Compressor>>{});
}

void read(std::string_view text, std::string_view name, std::string_view key, Count& out) {
  const bool percent = text.ends_with('%');
  const std::string_view digits = percent ? text.substr(0, text.size() - 1) : text;
  const std::string where = std::string(name) + ": " + std::string(key) + " = " + quoted(text);
  if (percent) {
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || !(value / 100 > 0 && value <= 100))
      fail(where + " is no share above 0% and at most 100%");
    out = {0, value / 100};
    return;
  }
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value == 0)
    fail(where + " is neither a count of at least 1 nor a share like 1%");
  out = {value, 0};
}

void read(std::string_view text, std::string_view name, std::string_view key, Clients& out) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0)
    fail(std::string(name) + ": " + std::string(key) + " = " + quoted(text) +
         " is no number of clients; leave it out, the run's is taken");
  out = {value};
}

void read(std::string_view text, std::string_view name, std::string_view key, bool& out) {
  if (text != "true" && text != "false")
    fail(std::string(name) + ": " + std::string(key) + " = " + quoted(text) + " is neither true nor false");
  out = text == "true";
}

std::string write(const Count& c) {
  if (c.share == 0) return std::to_string(c.count);
  // 15 digits give back what people write (0.29 * 100 is not 29); all of them where those do not suffice.
  char text[32];
  const double percent = c.share * 100;
  const char* end = std::to_chars(text, text + sizeof text, percent, std::chars_format::general, 15).ptr;
  double back = 0;
  std::from_chars(text, end, back);
  if (back / 100 != c.share) end = std::to_chars(text, text + sizeof text, percent).ptr;
  return std::string(static_cast<const char*>(text), end) + "%";
}
std::string write(const Clients& n) { return n.count == 0 ? "" : std::to_string(n.count); }
std::string write(bool value) { return value ? "true" : "false"; }

struct Run {
  std::size_t d;
  std::uint32_t n;
};

void bind(Count& k, const Run& run, std::string_view name) {
  const std::size_t d = run.d;
  if (k.share > 0) {
    const double wanted = std::max(1.0, std::floor(k.share * static_cast<double>(d) + 0.5));
    k = {static_cast<std::uint32_t>(std::min(wanted, static_cast<double>(d))), 0};
  }
  if (k.count > d)
    fail(std::string(name) + ": k = " + std::to_string(k.count) + " is larger than the dimension " +
         std::to_string(d));
}
void bind(Clients& n, const Run& run, std::string_view name) {
  if (n.count == 0) n.count = run.n;
  if (run.n > 1 && n.count != run.n)
    fail(std::string(name) + ": n = " + std::to_string(n.count) + ", but the run has " +
         std::to_string(run.n) + " clients; leave n out");
}
void bind(bool, const Run&, std::string_view) {}

template <class C>
std::vector<std::string> field_names() {
  std::vector<std::string> names;
  C c;
  C::fields(c, [&](std::string_view key, auto&) { names.emplace_back(key); });
  return names;
}

template <class C>
void set_field(C& c, std::string_view item) {
  const std::size_t equals = item.find('=');
  const std::string_view key = item.substr(0, equals);
  bool found = false;
  C::fields(c, [&](std::string_view field, auto& member) {
    if (field != key) return;
    found = true;
    if (equals == std::string_view::npos)
      fail(std::string(C::name) + ": " + quoted(key) + " needs a value, as in " + std::string(key) + "=...");
    read(item.substr(equals + 1), C::name, key, member);
  });
  if (!found) {
    const auto known = field_names<C>();
    fail(std::string(C::name) + " has no parameter " + quoted(key) +
         (known.empty() ? "; it takes none" : suggest(key, known)));
  }
}

template <class C>
C parse_fields(std::string_view parameters, const Run& run) {
  C c;
  std::vector<std::string_view> given;
  while (!parameters.empty()) {
    const std::size_t comma = parameters.find(',');
    const std::string_view item = parameters.substr(0, comma), key = item.substr(0, item.find('='));
    set_field(c, item);
    if (std::find(given.begin(), given.end(), key) != given.end())
      fail(std::string(C::name) + ": " + quoted(key) + " is given twice");
    given.push_back(key);
    if (comma != std::string_view::npos && comma + 1 == parameters.size())
      fail(std::string(C::name) + ": the list of parameters ends with a comma");
    parameters = comma == std::string_view::npos ? std::string_view{} : parameters.substr(comma + 1);
  }
  if (run.d > 0) C::fields(c, [&](std::string_view, auto& member) { bind(member, run, C::name); });
  return c;
}

// Counts must be known by now: parse_compressor with d > 0 has seen to it.
template <class C>
void require_resolved([[maybe_unused]] const C& c, [[maybe_unused]] std::size_t d) {
  if constexpr (requires { c.k; }) {
    if (c.k.share != 0 || c.k.count == 0 || c.k.count > d)
      throw std::logic_error("the k of a compressor was not resolved for vectors of this length");
  }
  if constexpr (requires { c.n.count; }) {
    if (c.n.count == 0) throw std::logic_error("the number of clients of a compressor was not resolved");
  }
}

}  // namespace

Compressor parse_compressor(std::string_view spec, std::size_t d, std::uint32_t n) {
  const std::size_t colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  if (colon != std::string_view::npos && colon + 1 == spec.size())
    fail(quoted(spec) + " ends with a colon; leave it out, or write NAME:KEY=VALUE");
  Compressor result;
  bool found = false;
  std::vector<std::string> known;
  each_type([&]<class C>(C) {
    known.emplace_back(C::name);
    if (name != C::name) return;
    found = true;
    const auto parameters = colon == std::string_view::npos ? std::string_view{} : spec.substr(colon + 1);
    result = parse_fields<C>(parameters, {d, n});
  });
  if (!found) fail("unknown compressor " + quoted(name) + suggest(name, known));
  return result;
}

std::string to_spec(const Compressor& compressor) {
  return std::visit(
      []<class C>(const C& c) {
        std::string text(C::name);
        char separator = ':';
        C::fields(c, [&](std::string_view key, const auto& member) {
          if (write(member).empty()) return;
          text += separator + std::string(key) + "=" + write(member);
          separator = ',';
        });
        return text;
      },
      compressor);
}

Quality quality(const Compressor& compressor, std::size_t d, std::uint32_t n) {
  return std::visit(
      [d, n](const auto& c) {
        require_resolved(c, d);
        if constexpr (requires { c.joint(d, n); }) {
          return c.joint(d, n);
        } else {
          return c.quality(d).independent(n);
        }
      },
      compressor);
}

template <class Real>
const Payload<Real>& compress(const Compressor& compressor, Vec<Real>& v, const StreamKey& key,
                              Scratch<Real>& scratch, Store<Real>& to) {
  return std::visit(
      [&](const auto& c) -> const Payload<Real>& {
        require_resolved(c, v.size());
        return c(v, key, scratch, to);
      },
      compressor);
}

bool redraw_support(const Compressor& compressor, Shape shape, std::size_t count, std::uint32_t dim,
                    const StreamKey& key, std::vector<std::uint32_t>& indices, std::uint32_t& first) {
  BlockMemo memo;
  return redraw_support(compressor, shape, count, dim, key, indices, first, memo);
}

bool redraw_support(const Compressor& compressor, Shape shape, std::size_t count, std::uint32_t dim,
                    const StreamKey& key, std::vector<std::uint32_t>& indices, std::uint32_t& first,
                    BlockMemo& memo) {
  return std::visit(
      [&](const auto& c) {
        if constexpr (requires { c.redraw(shape, count, dim, key, indices, first); }) {
          return count <= dim && c.redraw(shape, count, dim, key, indices, first);
        } else if constexpr (requires { c.redraw(shape, count, dim, key, indices, first, memo); }) {
          return count <= dim && c.redraw(shape, count, dim, key, indices, first, memo);
        } else {
          return false;
        }
      },
      compressor);
}

std::vector<CompressorHelp> compressor_help() {
  std::vector<CompressorHelp> help;
  each_type([&]<class C>(C c) {
    std::string parameters;
    C::fields(c, [&](std::string_view key, const auto& member) {
      if (write(member).empty()) return;
      parameters += (parameters.empty() ? "" : ",") + std::string(key) + "=" + write(member);
    });
    help.push_back({std::string(C::name), parameters, std::string(C::summary), std::string(C::quality_text)});
  });
  return help;
}

template const Payload<float>& compress(const Compressor&, Vec<float>&, const StreamKey&, Scratch<float>&,
                                        Store<float>&);
template const Payload<double>& compress(const Compressor&, Vec<double>&, const StreamKey&, Scratch<double>&,
                                         Store<double>&);

}  // namespace gradwire
