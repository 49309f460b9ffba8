#include "algorithms/support/down_compressor.h"

namespace gradwire {

Compressor parse_down(const std::string& spec, std::size_t d) {
  try {
    if (std::holds_alternative<RankR>(parse_compressor(spec, 0)))
      throw ConfigError(std::string(kDownKey),
                        "rankr approximates Hessians, but this is a vector; use rankk");
    return parse_compressor(spec, d, 1);
  } catch (const ConfigError& error) {
    throw ConfigError(std::string(kDownKey), error.what());
  }
}

std::string contractive_advice(const std::string& spec, const CompressorConstants& q) {
  return q.unbiased ? "; write scaled(" + spec + "), or use topk" : "; use topk";
}

CompressorConstants resolve_contractive_down(std::string& spec, const Theory& theory) {
  const Compressor down = parse_down(spec, theory.d);
  const CompressorConstants q = constants(down, theory.d, 1);
  if (!(q.alpha > 0))
    throw ConfigError(std::string(kDownKey), "a contractive compressor is needed, and " + spec +
                                                 " is not one in dimension " + std::to_string(theory.d) +
                                                 contractive_advice(spec, q));
  spec = to_spec(down);
  return q;
}

}  // namespace gradwire
