// UCI handwritten digits, compiled into the library: 1,797 images of 8x8 pixels. data/README.md has origin
// and licence.
#pragma once

#include <string_view>

#include "engine/data/dataset.h"

namespace gradwire {

// 64 columns, pixels 0..16 divided by 16, labels 0..9.
Dataset read_digits();

// The bytes of data/digits.csv.gz; defined by a file that the build generates.
std::string_view embedded_digits();

}  // namespace gradwire
