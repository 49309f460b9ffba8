// The registry: names, parameters, checks and theory of all algorithms, for both precisions at once.
#include "algorithms/algorithms.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "algorithms/all.h"
#include "algorithms/core/options.h"
#include "algorithms/support/down_compressor.h"
#include "base/config_error.h"
#include "base/suggest.h"
#include "compressors/support.h"
#include "gradwire/oracle.h"

namespace gradwire {
namespace {

struct Entry {
  AlgorithmInfo info;
  std::function<bool(const AlgorithmSpec&)>
      uses_theory;  // true if theory must give a step size or another parameter
  std::function<bool(const AlgorithmSpec&)> step_is_theory;
  std::vector<std::string> step_keys;  // the parameters that are step sizes
  std::function<NeededConstants(const AlgorithmSpec&)> needs;
  std::function<AlgorithmSpec(const AlgorithmSpec&, const Theory&, Warnings&)> resolve;
  std::function<Lyapunov(const AlgorithmSpec&, const Theory&)>
      lyapunov;  // empty if no Lyapunov function is known
  std::function<std::vector<IdleParameter>(const AlgorithmSpec&)> idle;
};

bool unset(const StepSize& s) { return !s.value; }
bool unset(const std::optional<double>& v) { return !v; }
template <class T>
bool unset(const T&) {
  return false;
}

std::vector<IdleParameter> idle_fields(const AlgorithmSpec& spec, std::span<const Field> fields,
                                       std::span<const Field> defaults) {
  std::vector<IdleParameter> idle;
  for (std::size_t k = 0; k < fields.size(); ++k) {
    const auto is_given = [&](const auto& p) { return p.first == fields[k].key; };
    const std::string_view by = fields[k].constraints.idle_by;
    if (by.empty() || std::none_of(spec.parameters.begin(), spec.parameters.end(), is_given)) continue;
    const auto at = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.key == by; });
    if (at == fields.end()) throw std::logic_error("idle_by does not name a parameter: " + std::string(by));
    idle.push_back({std::string(fields[k].key), std::string(by), at->get(),
                    fields[k].text() == defaults[k].text(), fields[k].constraints.monitored});
  }
  return idle;
}

template <class Params>
Entry entry() {
  Entry e;
  e.info.traits = Params::traits;
  Params defaults;
  for (const Field& field : fields_of(defaults))
    e.info.parameters.push_back({std::string(field.key), field.text(), std::string(field.meaning),
                                 std::string(field.constraints.old_key)});
  Params::fields(defaults, [&](std::string_view key, const auto& member, auto&&...) {
    if constexpr (std::is_same_v<std::decay_t<decltype(member)>, StepSize>) e.step_keys.emplace_back(key);
  });
  e.uses_theory = [](const AlgorithmSpec& spec) {
    bool any = false;
    const auto params = parse_params<Params>(spec);
    Params::fields(params, [&](std::string_view, const auto& member, auto&&...) { any |= unset(member); });
    return any;
  };
  e.step_is_theory = [](const AlgorithmSpec& spec) {
    bool any = false;
    const auto params = parse_params<Params>(spec);
    Params::fields(params, [&](std::string_view, const auto& member, auto&&...) {
      if constexpr (std::is_same_v<std::decay_t<decltype(member)>, StepSize>) any |= unset(member);
    });
    return any;
  };
  // By default an algorithm needs the smoothness constants for its step size; needs() overrides this.
  e.needs = [](const AlgorithmSpec& spec) {
    NeededConstants constants;
    const auto params = parse_params<Params>(spec);
    if constexpr (requires { params.needs(constants); }) {
      params.needs(constants);
    } else if (!params.step_size.value) {
      constants.smoothness = "algorithm.step_size";
    }
    Params::fields(params, [&](std::string_view name, const auto& member, auto&&...) {
      if constexpr (std::is_same_v<std::decay_t<decltype(member)>, PlConstant>)
        if (member.asked && !member.value) constants.convexity = "algorithm." + std::string(name);
    });
    return constants;
  };
  e.resolve = [](const AlgorithmSpec& spec, const Theory& theory, Warnings& warnings) {
    Params params = parse_params<Params>(spec);
    params.resolve(theory, warnings);
    AlgorithmSpec resolved = spec;
    store_params(params, resolved);
    return resolved;
  };
  e.idle = [](const AlgorithmSpec& spec) {
    Params params = parse_params<Params>(spec), defaults;
    return idle_fields(spec, fields_of(params), fields_of(defaults));
  };
  if constexpr (requires(Params params, const Theory& theory) { params.lyapunov(theory); })
    e.lyapunov = [](const AlgorithmSpec& spec, const Theory& theory) {
      return parse_params<Params>(spec).lyapunov(theory);
    };
  return e;
}

template <template <class> class... M>
std::vector<Entry> entries(AlgorithmList<M...>) {
  return {entry<typename M<double>::Params>()...};
}

// The algorithm of a program (RunContext::custom_algorithm). It is not in the list.
struct CustomParams {
  static constexpr AlgorithmTraits traits{
      .name = kCustomName,
      .summary = "the algorithm of the program",
      .reference = "docs/api.md",
      .compressor_class = CompressorClass::kEither,
      .stochastic = true,
      .client_state = ClientState::kPrivate,
  };
  StepSize step_size;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma, for the algorithm to use");
  }
  void needs(NeededConstants&) const {}
  void resolve(const Theory&, Warnings&) {
    if (!step_size.value)
      throw ConfigError("algorithm.step_size", "gradwire knows no theory of 'custom'; give a number");
  }
};

const std::vector<Entry>& all_entries() {
  static const std::vector<Entry> all = entries(AllAlgorithms{});
  return all;
}

const Entry& find_entry(std::string_view name) {
  static const Entry custom = entry<CustomParams>();
  if (name == kCustomName) return custom;
  std::vector<std::string> known;
  for (const Entry& e : all_entries()) {
    if (e.info.traits.name == name) return e;
    known.emplace_back(e.info.traits.name);
  }
  throw ConfigError("algorithm.name", "unknown algorithm '" + std::string(name) + "'" + suggest(name, known));
}

constexpr const char* kCompressorKey = "algorithm.compressor";

[[noreturn]] void refuse(const std::string& message) { throw ConfigError(kCompressorKey, message); }

// Returns whether the compressor is that of a program, which may be missing.
bool names_custom_compressor(const AlgorithmSpec& spec) {
  return spec.compressor == kCustomName || spec.compressor.starts_with(std::string(kCustomName) + ":");
}

// Rejects a biased compressor if theory requires unbiased ones, or warns about it.
void check_unbiased(const Entry& e, const AlgorithmSpec& spec, Warnings& warnings) {
  const std::string name(e.info.traits.name);
  const std::string what = name + " needs an unbiased compressor, but " + spec.compressor + " is not";
  if (e.info.traits.strict) refuse(what + "; use randk, randseqk or natural here, or ef21 with this one");
  if (e.uses_theory(spec))
    refuse(
        what +
        "; give numbers for step_size and all other parameters, or use randk, randseqk or natural, or ef21");
  warnings.push_back(what + "; no theorem covers this run");
}

void check_matrix(const Entry& e, const Compressor& compressor) {
  const CompressorClass takes = e.info.traits.compressor_class;
  const bool is_biased_fine = takes == CompressorClass::kContractive || takes == CompressorClass::kEither;
  if (std::holds_alternative<RankR>(compressor) && !e.info.traits.needs_hessian)
    refuse(std::string("rankr approximates Hessians: use it with fednl") +
           (is_biased_fine ? "; for vectors there is rankk" : ""));
}

void check_partial_gradient(const AlgorithmTraits& traits, const AlgorithmSpec& spec,
                            const Compressor& compressor) {
  for (const auto& [key, text] : spec.parameters) {
    if (key != GradientParams::kPartial || text != "true") continue;
    if (traits.compressor_class == CompressorClass::kIdentity)
      throw ConfigError("algorithm." + key, spec.name +
                                                " sends and computes whole gradients; for partial_gradient "
                                                "use dcgd with randk or randseqk, or leave it out");
    if (!draws_support(compressor))
      throw ConfigError("algorithm." + key,
                        "partial_gradient needs a compressor that draws its coordinates: randk, randseqk or "
                        "their rounded forms, such as natural(randk:k=1%); " +
                            spec.compressor + " reads all coordinates");
  }
}

void check_backprop_fraction(const AlgorithmSpec& spec) {
  const double share = backprop_fraction_of(spec);
  if (!(share > 0 && share <= 1))
    throw ConfigError("algorithm." + std::string(GradientParams::kBackpropFraction),
                      "a share above 0 and at most 1 is needed");
}

void check_class(const Entry& e, const AlgorithmSpec& spec, const Compressor& compressor, std::size_t d,
                 Warnings& warnings) {
  check_matrix(e, compressor);
  const AlgorithmTraits& traits = e.info.traits;
  check_partial_gradient(traits, spec, compressor);
  check_backprop_fraction(spec);
  if (traits.asynchronous && std::holds_alternative<PermK>(compressor))
    refuse("permk splits the coordinates among the replies of a round, but " + std::string(traits.name) +
           " uses each reply separately; use randk");
  const bool identity = is_identity(compressor);
  const CompressorConstants q = constants(compressor, d);
  if (traits.compressor_class == CompressorClass::kIdentity && !identity)
    refuse(std::string(traits.name) + " compresses nothing, so its compressor must be identity; for " +
           spec.compressor + " use " + (q.unbiased ? "dcgd, diana or marina" : "ef21"));
  if (identity) return;
  if (traits.compressor_class == CompressorClass::kUnbiased && !q.unbiased) check_unbiased(e, spec, warnings);
  if (traits.compressor_class == CompressorClass::kContractive && !(q.alpha > 0))
    refuse(std::string(traits.name) + " needs a contractive compressor, but " + spec.compressor +
           " is not one in dimension " + std::to_string(d) + contractive_advice(spec.compressor, q));
  if (traits.compressor_class == CompressorClass::kEither && !q.unbiased && !(q.alpha > 0))
    refuse(std::string(traits.name) + " needs an unbiased or a contractive compressor, but " +
           spec.compressor + " is neither");
}

// Checks batch and participation.
void check_sampling(const AlgorithmTraits& traits, const AlgorithmSpec& spec) {
  if (spec.batch > 0 && !traits.stochastic)
    throw ConfigError("algorithm.batch",
                      spec.name + " works with full gradients; leave batch out or write \"full\"");
  if (!(spec.participation > 0 && spec.participation <= 1))
    throw ConfigError("clients.participation", "a share above 0 and at most 1 is needed");
  if (spec.participation < 1 && !traits.partial)
    throw ConfigError(
        "clients.participation",
        spec.name +
            (traits.asynchronous ? " keeps every client at work" : " needs every client in every round") +
            "; write participation = 1");
}

}  // namespace

std::span<const AlgorithmInfo> all_algorithms() {
  static const std::vector<AlgorithmInfo> infos = [] {
    std::vector<AlgorithmInfo> list;
    for (const Entry& e : all_entries()) list.push_back(e.info);
    return list;
  }();
  return infos;
}

const AlgorithmInfo& find_algorithm(std::string_view name) { return find_entry(name).info; }

double backprop_fraction_of(const AlgorithmSpec& spec) {
  for (const auto& [key, text] : spec.parameters) {
    double share = 1;
    if (key == GradientParams::kBackpropFraction &&
        std::from_chars(text.data(), text.data() + text.size(), share).ec == std::errc())
      return share;
  }
  return 1;
}

void check_algorithm(const AlgorithmSpec& spec) {
  const Entry& e = find_entry(spec.name);
  e.uses_theory(spec);  // reads every parameter
  if (names_custom_compressor(spec)) return check_sampling(e.info.traits, spec);
  check_matrix(e, parse_compressor(spec.compressor, 0));
  if (e.info.traits.compressor_class != CompressorClass::kContractive) {
    Warnings later;
    check_class(e, spec, parse_compressor(spec.compressor, kMaxDim), kMaxDim, later);
  }
  check_sampling(e.info.traits, spec);
}

std::size_t compressed_dim(std::string_view algorithm, std::size_t d) {
  if (!find_entry(algorithm).info.traits.needs_hessian) return d;
  constexpr std::size_t kMaxHessianDim = 20'000;  // 1.6 GB per client in double
  if (d > kMaxHessianDim)
    throw ConfigError("algorithm.name", std::string(algorithm) +
                                            " keeps a Hessian per client, which is too large for " +
                                            std::to_string(d) + " parameters; at most " +
                                            std::to_string(kMaxHessianDim) + " are supported");
  return upper_size(d);
}

Compressor uplink_compressor(const AlgorithmSpec& spec, std::size_t d, std::uint32_t n) {
  if (spec.custom_compressor != nullptr) return CustomCompressor{spec.custom_compressor};
  if (names_custom_compressor(spec))
    throw ConfigError(kCompressorKey,
                      "'" + spec.compressor + "' needs a program that brings the compressor (docs/api.md)");
  return parse_compressor(spec.compressor, compressed_dim(spec.name, d), n);
}

std::optional<Compressor> downlink_compressor(const AlgorithmSpec& spec, std::size_t d) {
  for (const auto& [key, text] : spec.parameters)
    if (key == "compressor_down") return parse_down(text, d);
  return std::nullopt;
}

NeededConstants needed_constants(const AlgorithmSpec& spec) { return find_entry(spec.name).needs(spec); }

namespace {

Theory with_compressor(const AlgorithmSpec& spec, const Compressor& compressor, const Theory& theory) {
  Theory with = theory;
  with.compressor =
      constants(compressor, compressed_dim(spec.name, theory.d), theory.n).weighted(theory.skew());
  with.batch = spec.batch;
  with.participation = spec.participation;
  return with;
}

AlgorithmSpec resolve_around(const Compressor& compressor, const AlgorithmSpec& spec, const Theory& theory,
                             Warnings& warnings) {
  const Entry& e = find_entry(spec.name);
  check_class(e, spec, compressor, compressed_dim(spec.name, theory.d), warnings);
  const Theory with_constants = with_compressor(spec, compressor, theory);
  if (e.step_is_theory(spec)) {
    const AlgorithmTraits& traits = e.info.traits;
    if (spec.participation < 1 && !traits.theory_knows_sampling)
      warnings.push_back(spec.name + ": the theorem of the step size assumes that every client takes part");
    if (theory.quorum < 1 && !traits.needs_all_replies && !traits.asynchronous && !traits.theory_knows_quorum)
      warnings.push_back(spec.name +
                         ": the theorem of the step size assumes that the replies of a round are a uniform "
                         "sample; with server.quorum below 1 they are those of the fastest clients");
    if (spec.batch > 0 && !traits.theory_knows_batches)
      warnings.push_back(spec.name + ": the theorem of the step size assumes full gradients");
    if (backprop_fraction_of(spec) < 1)
      warnings.push_back(spec.name +
                         ": the theorem of the step size assumes gradients along all paths; gradients along "
                         "the share algorithm.backprop_fraction have more variance");
  }
  AlgorithmSpec resolved = e.resolve(spec, with_constants, warnings);
  if (spec.custom_compressor == nullptr) resolved.compressor = to_spec(compressor);
  return resolved;
}

}  // namespace

std::vector<IdleParameter> idle_parameters(const AlgorithmSpec& spec) {
  return find_entry(spec.name).idle(spec);
}

AlgorithmSpec resolve(const AlgorithmSpec& spec, const Theory& theory, Warnings& warnings) {
  check_algorithm(spec);
  return resolve_around(uplink_compressor(spec, theory.d, theory.n), spec, theory, warnings);
}

AlgorithmSpec resolve(const AlgorithmSpec& spec, const Compressor& compressor, const Theory& theory,
                      Warnings& warnings) {
  check_sampling(find_entry(spec.name).info.traits, spec);
  AlgorithmSpec named = spec;
  named.compressor = to_spec(compressor);
  return resolve_around(compressor, named, theory, warnings);
}

namespace {

// Returns the text of a step size, which is `step_size` or a parameter. REQUIRES: the spec is resolved.
std::string& step_text(AlgorithmSpec& resolved, std::string_view key) {
  if (key == "step_size") return resolved.step_size;
  return std::find_if(resolved.parameters.begin(), resolved.parameters.end(),
                      [&](const auto& p) { return p.first == key; })
      ->second;
}

}  // namespace

std::vector<TheoryStep> theory_steps(const AlgorithmSpec& resolved, const Theory& theory) {
  const Entry& e = find_entry(resolved.name);
  const Theory with = with_compressor(resolved, uplink_compressor(resolved, theory.d, theory.n), theory);
  if (e.info.traits.compressor_class == CompressorClass::kUnbiased && !with.compressor.unbiased) return {};
  std::vector<TheoryStep> steps;
  for (const std::string& key : e.step_keys) {
    AlgorithmSpec spec = resolved;
    const double value = std::stod(step_text(spec, key));
    step_text(spec, key) = "theory";
    try {
      Warnings unused;
      spec = e.resolve(spec, with, unused);
      steps.push_back({key, value, std::stod(step_text(spec, key))});
    } catch (const ConfigError&) {
      // Theory has no step size for these parameters.
    }
  }
  return steps;
}

Monitored monitored(const AlgorithmSpec& resolved, const Theory& theory) {
  const Entry& e = find_entry(resolved.name);
  if (!e.lyapunov) {
    std::string known;
    for (const Entry& other : all_entries())
      if (other.lyapunov) known += (known.empty() ? "" : ", ") + std::string(other.info.traits.name);
    refuse_monitor("no Lyapunov function of " + resolved.name + " is known, only of " + known);
  }
  const AlgorithmTraits& traits = e.info.traits;
  const std::string of = "the theorem of " + resolved.name + " is about ";
  if (resolved.batch > 0 && !traits.theory_knows_batches) refuse_monitor(of + "full gradients");
  if (backprop_fraction_of(resolved) < 1) refuse_monitor(of + "gradients along all paths");
  if (resolved.participation < 1 && traits.partial) refuse_monitor(of + "all clients in every round");
  if (theory.quorum < 1 && !traits.theory_knows_quorum) refuse_monitor(of + "replies of all clients");
  const Theory with = with_compressor(resolved, uplink_compressor(resolved, theory.d, theory.n), theory);
  if (traits.compressor_class == CompressorClass::kUnbiased && !with.compressor.unbiased)
    refuse_monitor(of + "unbiased compressors");
  Monitored result;
  result.lyapunov = e.lyapunov(resolved, with);
  result.step = std::stod(resolved.step_size);
  if (theory.smoothness != nullptr) {
    AlgorithmSpec by_theory = resolved;
    by_theory.step_size = "theory";
    Warnings unused;
    result.theory_step = std::stod(e.resolve(by_theory, with, unused).step_size);
  }
  return result;
}

}  // namespace gradwire
