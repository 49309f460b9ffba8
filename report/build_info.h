// Version and build of this program. Equal bits are promised for equal build strings.
#pragma once

#include <string>
#include <string_view>

namespace gradwire {

std::string_view version();  // "0.2.0"

// Version, compiler, and the instruction set that the kernels were built for: "0.2.0 gcc-12.2.0
// x86-64+avx2+fma".
std::string build_info();

}  // namespace gradwire
