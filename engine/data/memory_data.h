// The content of a Data (gradwire/data.h).
#pragma once

#include <string>

#include "engine/data/dataset.h"

namespace gradwire {

struct DataContent {
  Dataset samples;         // empty for a text
  std::string text, name;  // as given to Data::text()
};

}  // namespace gradwire
