// UCI handwritten digits, compiled into the library: 1,797 images of 8x8 pixels. data/README.md has the
// origin and licence.
#pragma once

#include <string_view>

#include "engine/data/dataset.h"

namespace gradwire {

// Returns 64 columns (pixels 0..16 divided by 16), labels 0..9.
Dataset read_digits();

// Returns the bytes of data/digits.csv.gz. A file that the build generates defines this function.
std::string_view embedded_digits();

}  // namespace gradwire
