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

#if defined(__x86_64__)
GRADWIRE_DECLARE_TABLES(baseline)
GRADWIRE_DECLARE_TABLES(avx2)
GRADWIRE_DECLARE_TABLES(avx512)
#elif defined(__aarch64__)
GRADWIRE_DECLARE_TABLES(neon)
#else
GRADWIRE_DECLARE_TABLES(baseline)
#endif

#undef GRADWIRE_DECLARE_TABLES

namespace {

template <class Real>
std::vector<const Kernels<Real>*> find_kernels() {
#if defined(__x86_64__)
  std::vector<const Kernels<Real>*> found;
  // Check the instruction sets for which kernels are compiled (x86-64-v3 and v4), and whether the system
  // saves their registers.
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  found.push_back(baseline::table<Real>());
  if (v3) found.push_back(avx2::table<Real>());
  if (v4) found.push_back(avx512::table<Real>());
  return found;
#elif defined(__aarch64__)
  return {neon::table<Real>()};
#else
  return {baseline::table<Real>()};
#endif
}

template <class Real>
const Kernels<Real>& choose_kernels() {
  const auto all = available_kernels<Real>();
  const char* const wanted = std::getenv("GRADWIRE_KERNELS");
  if (wanted == nullptr || *wanted == '\0') return *all.back();
  std::string names;
  for (const Kernels<Real>* kernels : all) {
    if (std::string(wanted) == kernels->name) return *kernels;
    names += (names.empty() ? "" : ", ") + std::string(kernels->name);
  }
  throw std::runtime_error("GRADWIRE_KERNELS=" + std::string(wanted) + " but this processor runs " + names);
}

}  // namespace

template <class Real>
std::span<const Kernels<Real>* const> available_kernels() {
  static const std::vector<const Kernels<Real>*> kernels = find_kernels<Real>();
  return kernels;
}

template <class Real>
const Kernels<Real>& best_kernels() {
  static const Kernels<Real>& kernels = choose_kernels<Real>();
  return kernels;
}

const char* kernels_name() { return best_kernels<float>().name; }

template std::span<const Kernels<float>* const> available_kernels();
template std::span<const Kernels<double>* const> available_kernels();
template const Kernels<float>& best_kernels();
template const Kernels<double>& best_kernels();

}  // namespace gradwire
