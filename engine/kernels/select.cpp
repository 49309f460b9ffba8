#include "engine/kernels/select.h"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace gradwire {

#define GRADWIRE_DECLARE_TABLES(isa)           \
  namespace isa {                              \
  extern const Kernels<float> float_table;     \
  extern const Kernels<double> double_table;   \
  template <class Real>                        \
  const Kernels<Real>* table() {               \
    if constexpr (std::is_same_v<Real, float>) \
      return &float_table;                     \
    else                                       \
      return &double_table;                    \
  }                                            \
  }

GRADWIRE_DECLARE_TABLES(portable)
#ifdef GRADWIRE_HAS_avx2
GRADWIRE_DECLARE_TABLES(avx2)
#endif
#ifdef GRADWIRE_HAS_avx512
GRADWIRE_DECLARE_TABLES(avx512)
#endif
#ifdef GRADWIRE_HAS_neon
GRADWIRE_DECLARE_TABLES(neon)
#endif

#undef GRADWIRE_DECLARE_TABLES

namespace {

template <class Real>
std::vector<const Kernels<Real>*> find_kernels() {
  std::vector<const Kernels<Real>*> found = {portable::table<Real>()};
#ifdef __x86_64__
  // Check the instruction sets for which kernels are compiled (x86-64-v3 and v4), and whether the system
  // saves their registers.
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
#endif
#ifdef GRADWIRE_HAS_avx2
  if (v3) found.push_back(avx2::table<Real>());
#endif
#ifdef GRADWIRE_HAS_avx512
  if (v4) found.push_back(avx512::table<Real>());
#endif
#ifdef GRADWIRE_HAS_neon
  found.push_back(neon::table<Real>());
#endif
  return found;
}

template <class Real>
const Kernels<Real>& choose_kernels() {
  const auto all = available_kernels<Real>();
  const char* const variable = std::getenv("GRADWIRE_KERNELS");
  const std::string wanted = variable == nullptr ? "" : variable;
  if (wanted.empty()) return *all.back();
  if (wanted == "baseline") return *all.front();
  std::string names;
  for (const Kernels<Real>* kernels : all) {
    if (wanted == kernels->name) return *kernels;
    names += (names.empty() ? "" : ", ") + std::string(kernels->name);
  }
  throw std::runtime_error("GRADWIRE_KERNELS=" + wanted + " but this processor runs " + names);
}

}  // namespace

template <class Real>
std::span<const Kernels<Real>* const> available_kernels() {
  static const std::vector<const Kernels<Real>*> kernels = find_kernels<Real>();
  return kernels;
}

template <class Real>
const Kernels<Real>& kernels_of(KernelSet set) {
  if (set == KernelSet::kPortable) return *available_kernels<Real>().front();
  static const Kernels<Real>& best = choose_kernels<Real>();
  return best;
}

const char* kernels_name(KernelSet set) { return kernels_of<float>(set).name; }

template std::span<const Kernels<float>* const> available_kernels();
template std::span<const Kernels<double>* const> available_kernels();
template const Kernels<float>& kernels_of(KernelSet);
template const Kernels<double>& kernels_of(KernelSet);

}  // namespace gradwire
