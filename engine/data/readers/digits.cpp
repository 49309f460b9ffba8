#include "engine/data/readers/digits.h"

#include "engine/data/readers/bytes.h"
#include "engine/data/readers/csv.h"

namespace gradwire {

Dataset read_digits() {
  constexpr double kLargestPixel = 16;
  const std::string name = "digits (built in)";
  Dataset data = parse_csv(inflate_prefix(embedded_digits(), name, kMaxFileBytes), name);
  for (double& pixel : data.value) pixel /= kLargestPixel;
  data.encoding = nullptr;  // users do not choose columns of it
  return data;
}

}  // namespace gradwire
