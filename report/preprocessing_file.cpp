#include "report/preprocessing_file.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "report/json.h"

namespace gradwire {
namespace {

// Returns a text, or an array of its bytes if it is not UTF-8, which JSON requires.
Json text_json(const std::string& text) {
  try {
    Json json = text;
    (void)json.dump();
    return json;
  } catch (const Json::exception&) {
    Json bytes = Json::array();
    for (const char c : text) bytes.push_back(static_cast<int>(static_cast<unsigned char>(c)));
    return bytes;
  }
}

std::string text_of(const Json& json) {
  if (!json.is_array()) return json.get<std::string>();
  std::string text;
  for (const int byte : json.get<std::vector<int>>()) text += static_cast<char>(byte);
  return text;
}

Json column_json(const TableEncoding::Column& column) {
  Json texts = Json::array();
  for (const std::string& text : column.texts) texts.push_back(text_json(text));
  return {{"name", text_json(column.name)}, {"texts", std::move(texts)}, {"mean", column.mean}};
}

TableEncoding::Column column_of(const Json& json) {
  TableEncoding::Column column;
  column.name = text_of(json.at("name"));
  for (const Json& text : json.at("texts")) column.texts.push_back(text_of(text));
  column.mean = json.at("mean").get<double>();
  std::vector<std::string> texts = column.texts;
  std::ranges::sort(texts);
  if (std::ranges::adjacent_find(texts) != texts.end()) throw DataError("a text is there twice");
  return column;
}

TableEncoding encoding_of(const Json& json) {
  TableEncoding encoding;
  encoding.label = column_of(json.at("label"));
  for (const Json& feature : json.at("features")) encoding.features.push_back(column_of(feature));
  encoding.label_place = text_of(json.at("label_place"));
  return encoding;
}

Json normalization_json(const Normalization& map) {
  return {
      {"kind", normalize_word(map.kind)}, {"shift", map.shift}, {"scale", map.scale}, {"sparse", map.sparse}};
}

Normalization normalization_of(const Json& json) {
  Normalization map;
  const auto kind = json.at("kind").get<std::string>();
  for (const Normalize known : {Normalize::kStandard, Normalize::kMinMax, Normalize::kUnitRows})
    if (kind == normalize_word(known)) map.kind = known;
  map.shift = json.at("shift").get<std::vector<double>>();
  map.scale = json.at("scale").get<std::vector<double>>();
  map.sparse = json.at("sparse").get<std::size_t>();
  if (map.kind == Normalize::kNone || map.shift.size() != map.scale.size() ||
      !std::ranges::all_of(map.scale, [](double scale) { return scale > 0 && std::isfinite(scale); }))
    throw DataError("the normalisation is not one");
  return map;
}

}  // namespace

std::string preprocessing_json(const ExperimentSpec& experiment, const Preprocessing& preprocessing) {
  const RowsData* const rows = rows_of(experiment.problem);
  const TableEncoding* const encoding = preprocessing.encoding.get();
  Json json = Json::object();
  if (encoding != nullptr && rows != nullptr &&
      (encoding->has_texts() || rows->missing == MissingValues::kMean)) {
    Json features = Json::array();
    for (const TableEncoding::Column& column : encoding->features) features.push_back(column_json(column));
    json["table"] = {{"label", column_json(encoding->label)},
                     {"label_place", text_json(encoding->label_place)},
                     {"features", std::move(features)}};
  }
  if (preprocessing.normalization != nullptr)
    json["normalize"] = normalization_json(*preprocessing.normalization);
  return json.empty() ? "" : json_text(json);
}

std::optional<Preprocessing> preprocessing_in(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kPreprocessingFile;
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  try {
    const Json json = Json::parse(in);
    if (!json.is_object()) throw DataError("it is not an object");
    Preprocessing found;
    if (json.contains("table"))
      found.encoding = std::make_shared<const TableEncoding>(encoding_of(json.at("table")));
    if (json.contains("normalize"))
      found.normalization = std::make_shared<const Normalization>(normalization_of(json.at("normalize")));
    return found;
  } catch (const Json::exception&) {
    throw DataError(file.string() + ": is damaged; copy it again from the folder of the run");
  } catch (const DataError& error) {
    throw DataError(file.string() + ": is damaged: " + error.what() +
                    "; copy it again from the folder of the run");
  }
}

}  // namespace gradwire
