#include "api/reading.h"

#include "engine/data/readers/source.h"

namespace gradwire {

Reading reading_of(const std::optional<Data>& data, const std::optional<Data>& test) {
  if (!data && !test) return {};
  Reading reading;
  reading.rows = [data, test](std::string_view source, const std::filesystem::path& base,
                              const SyntheticSpec& synthetic, std::size_t dim, const KeepRow& keep,
                              SampleUse use, const TableReading& table) {
    const std::optional<Data>& given = use == SampleUse::kTest ? test : data;
    if (source != kGivenSource || !given) return read_source(source, base, synthetic, dim, keep, use, table);
    return read_given(given->content(), dim, table);
  };
  return reading;
}

}  // namespace gradwire
