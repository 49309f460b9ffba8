#include "engine/problems/network_problem.h"

#include <algorithm>
#include <string>

#include "base/byte_size.h"
#include "base/config_error.h"

namespace gradwire {
namespace {

constexpr std::size_t kMaxClasses = 65'536;  // more distinct labels probably come from a regression

// Returns the size in KB, rounded up, so that it is enough as a setting.
std::string kilobytes(std::uint64_t bytes) { return std::to_string((bytes + 1023) / 1024); }

std::string too_small(const BudgetTooSmall& error) {
  return "activation_budget is too small for this model: it needs \"" + kilobytes(error.least()) + "KB\"";
}

}  // namespace

bool TextCodec<ActivationBudget>::read(std::string_view text, ActivationBudget& out) {
  if (text == "none" || text == "sqrt") {
    out = text == "none" ? ActivationBudget() : ActivationBudget::sqrt();
    return true;
  }
  const auto size = read_byte_size(text);
  if (size) out = ActivationBudget(*size);
  return size.has_value();
}

std::string TextCodec<ActivationBudget>::write(const ActivationBudget& budget) {
  if (budget.is_none()) return "none";
  if (budget.is_sqrt()) return "sqrt";
  return byte_size_text(budget.bytes());
}

void refuse_budget(const BudgetTooSmall& error) { throw DataError("problem." + too_small(error)); }

void refuse_budget_setting(const BudgetTooSmall& error) {
  throw ConfigError("problem.activation_budget", too_small(error));
}

std::string no_saving_warning(std::uint64_t kept, std::uint64_t exact) {
  if (kept < exact) return "";
  return "problem.activation_dtype = \"bfloat16\" saves no memory in this model: a microbatch takes " +
         kilobytes(kept) + " KB, but only " + kilobytes(exact) + " KB with exact activations; leave it out";
}

void check_range(const char* key, std::size_t value, double high) {
  if (value >= 1 && static_cast<double>(value) <= high) return;
  throw DataError("problem." + std::string(key) + " = " + std::to_string(value) + " is not between 1 and " +
                  std::to_string(static_cast<std::size_t>(high)));
}

void check_widths(const char* key, const std::vector<std::uint32_t>& widths) {
  if (widths.size() > kMaxListLength) {
    throw DataError("problem." + std::string(key) + " has " + std::to_string(widths.size()) +
                    " layers; at most " + std::to_string(kMaxListLength));
  }
  for (const std::uint32_t width : widths) {
    if (width >= 1 && width <= kMaxWidth) continue;
    throw DataError("problem." + std::string(key) + ": a layer of width " + std::to_string(width) +
                    "; every width is between 1 and " + std::to_string(static_cast<std::size_t>(kMaxWidth)));
  }
}

void check_activation(Activation activation) {
  if (static_cast<std::size_t>(activation) >= words_of(activation).size())
    throw DataError("problem.activation must be tanh, relu, sigmoid or gelu");
}

void check_classes(std::string_view kind, const DataSchema& schema) {
  if (schema.labels.size() >= 2 && schema.labels.size() <= kMaxClasses) return;
  throw DataError("kind = \"" + std::string(kind) + "\" needs 2 to " + std::to_string(kMaxClasses) +
                  " distinct labels but the data has " + labels_found(schema) + other_label(schema));
}

void check_alphabet(const DataSchema& schema, std::size_t fewest) {
  const auto ascending = [](char a, char b) {
    return static_cast<unsigned char>(a) >= static_cast<unsigned char>(b);
  };
  const std::string& letters = schema.alphabet;
  if (std::adjacent_find(letters.begin(), letters.end(), ascending) != letters.end())
    throw DataError("the alphabet that the clients agreed on is not ascending");
  if (letters.size() < fewest) {
    throw DataError("the text has " + std::to_string(letters.size()) + " distinct letters; the model needs " +
                    std::to_string(fewest) + " or more");
  }
}

}  // namespace gradwire
