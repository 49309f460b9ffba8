#include "compressors/compressor.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "base/config_error.h"
#include "base/field.h"
#include "base/spec_text.h"
#include "base/suggest.h"
#include "compressors/compress_finite.h"
#include "compressors/norms.h"

namespace gradwire {
namespace {

constexpr const char* kKey = "algorithm.compressor";

[[noreturn]] void fail(const std::string& message) { throw ConfigError(kKey, message); }

template <class F, class... C>
void each_type(F&& f, CompressorList<C...>) {
  (f(C{}), ...);
}
template <class F>
void each_type(F&& f) {
  each_type(std::forward<F>(f), SimpleCompressors{});
}

struct Run {
  std::size_t d;
  std::uint32_t n;
};

void bind(Count& k, const Run& run, std::string_view name) {
  k.resolve(run.d);
  if (k.count > run.d)
    fail(std::string(name) + ": k = " + std::to_string(k.count) + " is larger than the dimension " +
         std::to_string(run.d));
}
void bind(Clients& n, const Run& run, std::string_view name) {
  if (n.count == 0) n.count = run.n;
  if (run.n > 1 && n.count != run.n)
    fail(std::string(name) + ": n = " + std::to_string(n.count) + " does not match the run, which has " +
         std::to_string(run.n) + " clients; leave n out");
}
void bind(Rows& rows, const Run& run, std::string_view name) {
  if (rows.count == 0) {
    auto r = static_cast<std::uint32_t>(std::sqrt(static_cast<double>(run.d)));
    while (run.d % r != 0) --r;
    rows.count = r;
  }
  if (run.d != kMaxDim && run.d % rows.count != 0)
    fail(std::string(name) + ": rows = " + std::to_string(rows.count) + " does not divide the dimension " +
         std::to_string(run.d));
}
template <class Other>
void bind(Other&, const Run&, std::string_view) {}

// Returns true if the count is known and fits. parse_compressor with d > 0 guarantees this.
bool fits(const Count& k, std::size_t d) { return k.share == 0 && k.count != 0 && k.count <= d; }
bool fits(const Clients& n, std::size_t) { return n.count != 0; }
template <class Other>
bool fits(const Other&, std::size_t) {
  return true;
}

template <class C>
bool is_resolved([[maybe_unused]] const C& c, [[maybe_unused]] std::size_t d) {
  bool all = true;
  if constexpr (requires { C::fields(c, [](auto&&...) {}); })
    C::fields(c, [&](std::string_view, const auto& member, auto&&...) { all &= fits(member, d); });
  if constexpr (requires { c.resolved(d); }) all &= c.resolved(d);
  return all;
}

template <class C>
void require_resolved(const C& c, std::size_t d) {
  if (!is_resolved(c, d))
    throw std::logic_error("a compressor parameter is not resolved for this vector length");
}

template <class C>
C parse_fields(std::string_view parameters, const Run& run) {
  C c;
  read_settings(kKey, C::name, fields_of(c), parameters);
  if (run.d == 0) return c;
  C::fields(c, [&](std::string_view, auto& member, auto&&...) { bind(member, run, C::name); });
  if constexpr (requires { C::unfit; }) {
    if (!is_resolved(c, run.d)) fail(std::string(C::name) + ": " + std::string(C::unfit));
  }
  return c;
}

Compressor parse_simple(std::string_view spec, const Run& run) {
  const NamedSpec thing = split_spec(kKey, spec);
  const std::string_view name = thing.name;
  Compressor result;
  bool found = false;
  std::vector<std::string> known;
  each_type([&]<class C>(C) {
    known.emplace_back(C::name);
    if (name != C::name) return;
    found = true;
    result = parse_fields<C>(thing.settings, run);
  });
  for (const std::string_view composed : {Scaled::name, Induced::name}) {
    known.emplace_back(composed);
    if (name == composed)
      fail(std::string(name) + " needs inner compressors: write " + std::string(name) +
           (composed == Scaled::name ? "(C)" : "(C1,C2)"));
  }
  if (!found && name.find('=') != std::string_view::npos)
    fail("unknown compressor " + quoted_spec(name) + "; write parameters as NAME:KEY=VALUE, as in topk:k=2");
  if (!found) fail("unknown compressor " + quoted_spec(name) + suggest(name, known));
  return result;
}

// Splits the arguments between parentheses. Commas separate arguments, but a comma before KEY=VALUE separates
// parameters.
std::vector<std::string_view> split_arguments(std::string_view text) {
  std::vector<std::string_view> arguments;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t j = 0; j <= text.size(); ++j) {
    if (j < text.size()) {
      depth += text[j] == '(' ? 1 : text[j] == ')' ? -1 : 0;
      if (text[j] != ',' || depth != 0) continue;
      const std::string_view rest = text.substr(j + 1);
      const std::size_t stop = rest.find_first_of("=:(,");
      if (stop != std::string_view::npos && rest[stop] == '=') continue;
    }
    arguments.push_back(text.substr(begin, j - begin));
    begin = j + 1;
  }
  return arguments;
}

Compressor parse(std::string_view spec, const Run& run, int depth) {
  constexpr int kDeepest = 4;
  const std::size_t open = spec.find('(');
  if (open == std::string_view::npos && !spec.ends_with(')')) return parse_simple(spec, run);
  if (open == std::string_view::npos || !spec.ends_with(')'))
    fail(quoted_spec(spec) + ": the parentheses do not match; write OUTER(INNER)");
  if (depth == kDeepest) fail(quoted_spec(spec) + ": the compressors are nested too deeply");
  const std::string_view head = spec.substr(0, open);
  const auto arguments = split_arguments(spec.substr(open + 1, spec.size() - open - 2));
  const std::size_t wanted = head == Induced::name ? 2 : 1;
  if (arguments.size() != wanted)
    fail(quoted_spec(spec) + ": " + quoted_spec(head) + " takes " +
         (wanted == 2 ? "two compressors" : "one compressor"));
  std::vector<Compressor> parts;
  if (head != Scaled::name && head != Induced::name) parts.push_back(parse_simple(head, run));
  for (const std::string_view argument : arguments) parts.push_back(parse(argument, run, depth + 1));
  const auto made = [&](auto composed) -> Compressor {
    composed.parts = std::move(parts);
    composed.check(run.d, run.n);
    return composed;
  };
  if (head == Scaled::name) return made(Scaled{});
  if (head == Induced::name) return made(Induced{});
  return made(Composed{});
}

template <class C>
std::string simple_spec(C c) {
  return spec_text(C::name, fields_of(c));
}

}  // namespace

Compressor parse_compressor(std::string_view spec, std::size_t d, std::uint32_t n) {
  return parse(spec, {d, n}, 0);
}

std::string to_spec(const Compressor& compressor) {
  return compressor.visit([]<class C>(const C& c) {
    if constexpr (requires { c.parts; }) {
      // OUTER(INNER) takes its name from its first part.
      const bool over = std::is_same_v<C, Composed>;
      std::string text = over ? to_spec(c.parts[0]) : std::string(C::name);
      for (std::size_t j = over ? 1 : 0; j < c.parts.size(); ++j)
        text += (text.back() == '(' || j == (over ? 1 : 0) ? "(" : ",") + to_spec(c.parts[j]);
      return text + ")";
    } else if constexpr (requires { c.spec(); }) {
      return c.spec();
    } else {
      return simple_spec(c);
    }
  });
}

CompressorConstants constants(const Compressor& compressor, std::size_t d, std::uint32_t n) {
  return compressor.visit([d, n](const auto& c) {
    require_resolved(c, d);
    if constexpr (requires { c.joint(d, n); }) {
      return c.joint(d, n);
    } else {
      return c.constants(d).independent(n);
    }
  });
}

template <class Real>
const Payload<Real>& compress(const Compressor& compressor, Vec<Real>& v, const RngKey& key,
                              Scratch<Real>& scratch, PayloadBuffer<Real>& to) {
  // Rounding would turn a NaN into a number, and a sparse compressor could drop it. So send all entries; then
  // the receiver notices the NaN.
  const bool sends_all = std::holds_alternative<Identity>(compressor);
  return sends_all || all_finite<Real>(v) ? compress_finite(compressor, v, key, scratch, to) : to.whole(v);
}

template <class Real>
const Payload<Real>& compress_finite(const Compressor& compressor, Vec<Real>& v, const RngKey& key,
                                     Scratch<Real>& scratch, PayloadBuffer<Real>& to) {
  return compressor.visit([&](const auto& c) -> const Payload<Real>& {
    require_resolved(c, v.size());
    return c(v, key, scratch, to);
  });
}

bool redraw_support(const Compressor& compressor, Shape shape, std::size_t count, std::uint32_t dim,
                    const RngKey& key, std::vector<std::uint32_t>& indices, std::uint32_t& first) {
  BlockMemo memo;
  return redraw_support(compressor, shape, count, dim, key, indices, first, memo);
}

bool redraw_support(const Compressor& compressor, Shape shape, std::size_t count, std::uint32_t dim,
                    const RngKey& key, std::vector<std::uint32_t>& indices, std::uint32_t& first,
                    BlockMemo& memo) {
  return compressor.visit([&]<class C>(const C& c) {
    if constexpr (requires { c.redraw(shape, count, dim, key, indices, first); }) {
      return count <= dim && c.redraw(shape, count, dim, key, indices, first);
    } else if constexpr (requires { c.redraw(shape, count, dim, key, indices, first, memo); }) {
      return count <= dim && c.redraw(shape, count, dim, key, indices, first, memo);
    } else if constexpr (requires { c.parts; }) {
      const Compressor& support = c.parts[std::is_same_v<C, Composed> ? 1 : 0];
      return redraw_support(support, shape, count, dim, key, indices, first, memo);
    } else {
      return false;
    }
  });
}

const Compressor* chain_link(const Compressor& c, std::size_t link) {
  if (const auto* scaled = std::get_if<Scaled>(&c)) return chain_link(scaled->parts[0], link);
  if (const auto* induced = std::get_if<Induced>(&c)) return link < 2 ? &induced->parts[link] : nullptr;
  return link == 0 ? &c : nullptr;
}

std::vector<CompressorHelp> compressor_help() {
  std::vector<CompressorHelp> help;
  each_type([&]<class C>(C c) {
    const std::string spec = simple_spec(c);
    const std::size_t colon = spec.find(':');
    help.push_back({std::string(C::name), colon == std::string::npos ? "" : spec.substr(colon + 1),
                    std::string(C::summary), std::string(C::constants_text)});
  });
  const auto composed = [&]<class C>(C, const char* spelled) {
    help.push_back({spelled, "", std::string(C::summary), std::string(C::constants_text), true});
  };
  composed(Composed{}, "OUTER(INNER)");
  composed(Scaled{}, "scaled(C)");
  composed(Induced{}, "induced(C1,C2)");
  return help;
}

template const Payload<float>& compress_finite(const Compressor&, Vec<float>&, const RngKey&, Scratch<float>&,
                                               PayloadBuffer<float>&);
template const Payload<double>& compress_finite(const Compressor&, Vec<double>&, const RngKey&,
                                                Scratch<double>&, PayloadBuffer<double>&);
template const Payload<float>& compress(const Compressor&, Vec<float>&, const RngKey&, Scratch<float>&,
                                        PayloadBuffer<float>&);
template const Payload<double>& compress(const Compressor&, Vec<double>&, const RngKey&, Scratch<double>&,
                                         PayloadBuffer<double>&);

}  // namespace gradwire
