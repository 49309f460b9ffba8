#include "report/build_info.h"

#include "gradwire/version.h"

namespace gradwire {
namespace {

std::string compiler() {
#if defined(__clang__)
  return "clang-" + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) + "." +
         std::to_string(__clang_patchlevel__);
#elif defined(__GNUC__)
  return "gcc-" + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__) + "." +
         std::to_string(__GNUC_PATCHLEVEL__);
#else
  return "unknown-compiler";
#endif
}

std::string instruction_set() {
#if defined(__x86_64__)
  std::string name = "x86-64";
#elif defined(__aarch64__)
  std::string name = "aarch64";
#elif defined(__arm__)
  std::string name = "armv7";
#elif defined(__riscv) && __riscv_xlen == 64
  std::string name = "riscv64";
#else
  std::string name = "other";
#endif
#if defined(__AVX512F__)
  name += "+avx512f";
#endif
#if defined(__AVX2__)
  name += "+avx2";
#endif
#if defined(__FMA__)
  name += "+fma";
#endif
#if defined(__ARM_FEATURE_SVE)
  name += "+sve";
#endif
  return name;
}

}  // namespace

std::string_view version() { return GRADWIRE_VERSION; }

std::string build_info() { return std::string(version()) + " " + compiler() + " " + instruction_set(); }

}  // namespace gradwire
