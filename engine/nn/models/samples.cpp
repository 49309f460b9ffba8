#include "engine/nn/models/samples.h"

#include <algorithm>
#include <string>

namespace gradwire {

std::vector<Token> class_numbers(const Dataset& data, std::span<const double> labels) {
  std::vector<Token> numbers;
  numbers.reserve(data.rows());
  for (const double label : data.label) {
    const auto at = std::lower_bound(labels.begin(), labels.end(), label);
    if (at == labels.end() || *at != label) {
      throw DataError("a sample has the label " + std::to_string(label) + ", which is not one of the " +
                      std::to_string(labels.size()) + " labels that the clients agreed on");
    }
    numbers.push_back(static_cast<Token>(at - labels.begin()));
  }
  return numbers;
}

}  // namespace gradwire
