#include "plotting/plot_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "algorithms/algorithms.h"

namespace gradwire {
namespace {

// Names that are not their letters in capitals with hyphens.
constexpr auto kAlgorithms = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"coded_gd", "coded GD"},
    {"delay_adaptive_asgd", "delay-adaptive ASGD"},
    {"ef21_plus", "EF21+"},
    {"fedadagrad", "FedAdagrad"},
    {"fedadam", "FedAdam"},
    {"fedavg", "FedAvg"},
    {"fedbuff", "FedBuff"},
    {"fednl", "FedNL"},
    {"fedprox", "FedProx"},
    {"fedyogi", "FedYogi"},
    {"frecon", "FRECON"},
    {"fwd_grad", "forward gradients"},
    {"mindflayer", "MindFlayer"},
    {"nesterov", "Nesterov"},
    {"proxskip", "ProxSkip"},
    {"rennala", "Rennala"},
    {"ringleader", "Ringleader"},
    {"ringmaster", "Ringmaster"},
});
constexpr auto kCompressors = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"permk", "PermK"},
    {"qsgd", "QSGD"},
    {"randk", "Rand"},
    {"randseqk", "RandSeq"},
    {"rankk", "Rank"},
    {"rankr", "Rank"},
    {"terngrad", "TernGrad"},
    {"topk", "Top"},
    {"toplek", "TopLE"},
    {"natural_dithering", "natural dithering"},
});

template <class Names>
std::string_view find(const Names& names, std::string_view name) {
  for (const auto& [key, title] : names)
    if (key == name) return title;
  return {};
}

bool is_of_name(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

}  // namespace

std::string algorithm_title(std::string_view name) {
  if (const std::string_view title = find(kAlgorithms, name); !title.empty()) return std::string(title);
  std::string text(name);
  const auto known = all_algorithms();
  if (std::none_of(known.begin(), known.end(), [&](const AlgorithmInfo& a) { return a.traits.name == name; }))
    return text;
  for (char& c : text) c = c == '_' ? '-' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string compressor_title(std::string_view spec) {
  std::string text;
  while (!spec.empty()) {
    std::size_t end = 0;
    while (end < spec.size() && is_of_name(spec[end])) ++end;
    if (end == 0) {
      text += spec.front();
      if (spec.front() == ',') text += ' ';
      spec.remove_prefix(1);
      continue;
    }
    const std::string_view name = spec.substr(0, end), title = find(kCompressors, name);
    text += title.empty() ? name : title;
    spec.remove_prefix(end);
    // A compressor's first parameter is the number of coordinates, or the rank.
    if (!title.empty() && (spec.starts_with(":k=") || spec.starts_with(":r="))) {
      text += '-';
      spec.remove_prefix(3);
    } else if (spec.starts_with(':')) {
      text += ' ';
      spec.remove_prefix(1);
    }
  }
  return text;
}

}  // namespace gradwire
