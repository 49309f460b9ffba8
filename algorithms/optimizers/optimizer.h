// The optimizer of a client's local training: "sgd", "sgd:momentum=0.9", "adam:...", "microadam:...". All of
// them support decoupled weight decay (arXiv:1711.05101) and clipping:
//
//   g ← g min(1, c/‖g‖)   (c = clip_norm > 0),   y ← (1 − γ λ) y   (λ = weight_decay),   then the rule's step
//
// g is the direction that the algorithm's listing multiplies by γ_l; it includes the corrections of FedProx
// and SCAFFOLD. To add a rule, write a header like those included here and add its name to the list below.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "algorithms/optimizers/adam.h"
#include "algorithms/optimizers/microadam.h"
#include "algorithms/optimizers/sgd.h"
#include "base/field.h"
#include "compressors/payload.h"

namespace gradwire {

using OptimizerRule = std::variant<Sgd, Adam, MicroAdam>;

// Reads "NAME" or "NAME:KEY=VALUE,..." for vectors of length d; d = 0 only checks the spelling. Throws
// ConfigError(path) that suggests the nearest known word.
OptimizerRule parse_optimizer(const std::string& path, std::string_view spec, std::size_t d);
// Returns the rule in canonical form, with counts as numbers instead of percentages.
std::string to_spec(const OptimizerRule& rule);

struct OptimizerHelp {
  std::string name, parameters, summary;
};
std::vector<OptimizerHelp> optimizer_help();

// The optimizer settings in an algorithm's parameters.
struct OptimizerSettings {
  std::string rule = "sgd";
  double weight_decay = 0, clip_norm = 0;

  static constexpr const char* kKey = "algorithm.local_optimizer";
  static void fields(auto& self, auto&& visit) {
    visit("local_optimizer", self.rule,
          "optimizer of the client's steps: sgd | sgd:momentum=0.9 | adam | microadam, with settings as in "
          "microadam:k=1%; its state starts at zero in each round",
          Constraints{.check = check_rule});
    visit("local_weight_decay", self.weight_decay,
          "lambda: each local step first shrinks y by the factor 1 - gamma_l lambda");
    visit("local_clip_norm", self.clip_norm,
          "largest norm of a local step's direction; longer ones are scaled down; 0 means no limit");
  }
  // Returns whether the local steps are y - gamma g, as theory assumes.
  bool is_plain() const;
  // Spells the rule out for vectors of length d. Throws ConfigError.
  void resolve(std::size_t d);

 private:
  static void check_rule(const std::string& path, const std::string& text);
};

// The optimizer of a client's local steps.
class LocalOptimizer {
 public:
  // Throws ConfigError if the rule does not fit vectors of length d.
  LocalOptimizer(const OptimizerSettings& settings, std::size_t d);

  // Moves y by local step k = 0, 1, ... of a round along g, and overwrites g. Step 0 starts with a fresh
  // state. REQUIRES: all steps of a round use the same scratch, and its vectors from kOptimizerVec on stay
  // unchanged in between.
  template <class Real>
  void step(std::uint32_t k, Real gamma, Vec<Real>& g, Vec<Real>& y, Scratch<Real>& scratch) const {
    if (clip_norm_ > 0) clip(g);
    if (weight_decay_ > 0) {
      const Real factor = Real(1 - static_cast<double>(gamma) * weight_decay_);
      for (Real& v : y) v *= factor;
    }
    std::visit([&](const auto& rule) { rule.step(k, gamma, g, y, scratch); }, rule_);
  }

 private:
  template <class Real>
  void clip(Vec<Real>& g) const {
    double square = 0;
    for (const Real v : g) square += static_cast<double>(v) * static_cast<double>(v);
    const double norm = std::sqrt(square);
    if (!(norm > clip_norm_) || !std::isfinite(norm)) return;  // a value that is not finite must stay visible
    const Real factor = Real(clip_norm_ / norm);
    for (Real& v : g) v *= factor;
  }

  OptimizerRule rule_;
  double weight_decay_, clip_norm_;
};

}  // namespace gradwire
