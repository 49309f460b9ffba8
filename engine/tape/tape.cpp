#include "gradwire/tape.h"

#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/tape/eager_tape.h"

namespace gradwire {

// The tape of a Tape. It computes with handles of its own (Inner); a Tape::Var has the same content.
struct TapeCore : EagerTape<double> {
  using Inner = gradwire::Var<EagerTape<double>>;
  using EagerTape::EagerTape;

  GRADWIRE_INLINE static Inner inner(const Tape::Var& x) { return {x.core_, x.value_, TapePlace{x.place_}}; }
  GRADWIRE_INLINE static Tape::Var outer(const Inner& x) {
    return {static_cast<TapeCore*>(x.owner()), x.value(), x.place().word};
  }

  // Returns the handles of a list, in the memory that the tape has for list number `list`.
  static std::span<const Inner> inner(const Tape::Vars& x, std::size_t list = 0) {
    if (x.list().empty()) return {};
    TapeCore* const core = x.list().front().core_;
    if (core == nullptr) throw_no_tape();
    std::vector<Inner>& all = core->lists_[list];
    all.clear();
    for (const Tape::Var& each : x.list()) all.push_back(inner(each));
    return all;
  }

 private:
  std::vector<Inner> lists_[2];
};

namespace {

using V = Tape::Var;
using Vs = Tape::Vars;
using CoreCheckpoint = EagerTape<double>::Checkpoint;

GRADWIRE_INLINE TapeCore::Inner in(const V& x) { return TapeCore::inner(x); }
GRADWIRE_INLINE std::span<const TapeCore::Inner> in(const Vs& x) { return TapeCore::inner(x); }
GRADWIRE_INLINE V out(const TapeCore::Inner& x) { return TapeCore::outer(x); }

}  // namespace

Tape::Tape(std::size_t parameters) : core_(std::make_unique<TapeCore>(parameters)) {}
Tape::Tape(Tape&& other) noexcept = default;
Tape& Tape::operator=(Tape&& other) noexcept = default;
Tape::~Tape() = default;

TapeCore& Tape::core() const {
  if (core_ == nullptr) throw std::logic_error("a Tape was used after it moved");
  return *core_;
}

std::span<double> Tape::parameter_values() { return core().parameter_values(); }
std::span<const double> Tape::parameter_gradients() const { return core().parameter_gradients(); }
void Tape::zero_parameter_gradients() { core().zero_parameter_gradients(); }
V Tape::parameter(std::size_t j) {
  const auto all = core().parameters();
  if (j >= all.size())
    throw std::logic_error("parameter " + std::to_string(j) + " of a tape of " + std::to_string(all.size()) +
                           " parameters");
  return out(all[j]);
}
std::vector<V> Tape::parameters() {
  const auto all = core().parameters();
  std::vector<V> result(all.size());
  for (std::size_t j = 0; j < result.size(); ++j) result[j] = out(all[j]);
  return result;
}

V Tape::variable(double value) { return out(core().variable(value)); }
std::vector<V> Tape::variables(std::span<const double> values) {
  std::vector<V> result;
  for (const double value : values) result.push_back(variable(value));
  return result;
}
V Tape::constant(double value) { return out(core().constant(value)); }

void Tape::backward(const V& root, double seed) { core().backward(in(root), seed); }
void backward(const V& root, double seed) { backward(in(root), seed); }
double Tape::Var::grad() const { return in(*this).grad(); }

static_assert(sizeof(CoreCheckpoint) == sizeof(Tape::Checkpoint));
Tape::Checkpoint Tape::checkpoint() const {
  Checkpoint result;
  result.state_ = std::bit_cast<decltype(result.state_)>(core().checkpoint());
  return result;
}
void Tape::rewind(const Checkpoint& to) { core().rewind(std::bit_cast<CoreCheckpoint>(to.state_)); }

V operator+(const V& a, const V& b) { return out(in(a) + in(b)); }
V operator+(const V& a, double k) { return out(in(a) + k); }
V operator+(double k, const V& a) { return out(k + in(a)); }
V operator-(const V& a, const V& b) { return out(in(a)-in(b)); }
V operator-(const V& a, double k) { return out(in(a)-k); }
V operator-(double k, const V& a) { return out(k - in(a)); }
V operator*(const V& a, const V& b) { return out(in(a)*in(b)); }
V operator*(const V& a, double k) { return out(in(a)*k); }
V operator*(double k, const V& a) { return out(k * in(a)); }
V operator/(const V& a, const V& b) { return out(in(a) / in(b)); }
V operator/(const V& a, double k) { return out(in(a) / k); }
V operator/(double k, const V& a) { return out(k / in(a)); }
V operator-(const V& a) { return out(-in(a)); }

V relu(const V& a) { return out(relu(in(a))); }
V abs(const V& a) { return out(abs(in(a))); }
V tanh(const V& a) { return out(tanh(in(a))); }
V sigmoid(const V& a) { return out(sigmoid(in(a))); }
V exp(const V& a) { return out(exp(in(a))); }
V log(const V& a) { return out(log(in(a))); }
V negative_log(const V& a) { return out(negative_log(in(a))); }
V sin(const V& a) { return out(sin(in(a))); }
V cos(const V& a) { return out(cos(in(a))); }
V inv(const V& a) { return out(inv(in(a))); }
V sqr(const V& a) { return out(sqr(in(a))); }
V pow3(const V& a) { return out(pow3(in(a))); }
V sqrt(const V& a) { return out(sqrt(in(a))); }
V inv_sqrt(const V& a) { return out(inv_sqrt(in(a))); }
V pow(const V& a, const V& b) { return out(pow(in(a), in(b))); }
V pow(const V& a, double k) { return out(pow(in(a), k)); }
V pow(double k, const V& b) { return out(pow(k, in(b))); }
V max(const V& a, const V& b) { return out(max(in(a), in(b))); }
V max(const V& a, double k) { return out(max(in(a), k)); }
V max(double k, const V& a) { return out(max(k, in(a))); }
V min(const V& a, const V& b) { return out(min(in(a), in(b))); }
V min(const V& a, double k) { return out(min(in(a), k)); }
V min(double k, const V& a) { return out(min(k, in(a))); }
V mean(const V& a, const V& b) { return out(mean(in(a), in(b))); }
V negative_mean(const V& a, const V& b) { return out(negative_mean(in(a), in(b))); }
V add_squares(const V& a, const V& b) { return out(add_squares(in(a), in(b))); }
V mean_squares(const V& a, const V& b) { return out(mean_squares(in(a), in(b))); }

V reduce_sum(Vs x) { return out(reduce_sum(in(x))); }
V reduce_sub(Vs x) { return out(reduce_sub(in(x))); }
V reduce_mul(Vs x) { return out(reduce_mul(in(x))); }
V reduce_mean(Vs x) { return out(reduce_mean(in(x))); }
V reduce_negative_mean(Vs x) { return out(reduce_negative_mean(in(x))); }
V reduce_sum_of_squares(Vs x) { return out(reduce_sum_of_squares(in(x))); }
V reduce_mean_squares(Vs x) { return out(reduce_mean_squares(in(x))); }
TapeMeans reduce_mean_and_mean_squares(Vs x) {
  const auto both = reduce_mean_and_mean_squares(in(x));
  return {out(both.mean), out(both.mean_squares)};
}
V variance_biased(Vs x) { return out(variance_biased(in(x))); }
V variance(Vs x) { return out(variance(in(x))); }
V log_sum_exp(Vs x) { return out(log_sum_exp(in(x))); }

void softmax(Vs x, std::span<V> shares) {
  if (x.list().size() != shares.size())
    throw std::logic_error("softmax: the numbers of shares and arguments differ");
  const auto list = in(x);
  const auto all = log_sum_exp_of(list);
  for (std::size_t i = 0; i < list.size(); ++i) shares[i] = out(all.share(list[i]));
}
std::vector<V> softmax(Vs x) {
  std::vector<V> shares(x.list().size());
  softmax(x, shares);
  return shares;
}

V inner_product(Vs a, Vs b) { return out(inner_product(in(a), TapeCore::inner(b, 1))); }
V inner_product_with_bias(Vs a, Vs b, const V& bias) {
  return out(inner_product_with_bias(in(a), TapeCore::inner(b, 1), in(bias)));
}

}  // namespace gradwire
