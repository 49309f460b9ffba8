#include "experiments/cli/run/export.h"

#include <bit>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "base/array_format.h"
#include "base/value.h"
#include "engine/files/number_file.h"
#include "experiments/cli/run/finished_run.h"
#include "experiments/cli/run/model_data.h"
#include "report/csv_field.h"
#include "report/preprocessing_file.h"
#include "report/results_dir.h"
#include "report/summary.h"

namespace gradwire {
namespace {

static_assert(std::endian::native == std::endian::little, "a .raw is little-endian");

void throw_if_failed_to(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

template <class Real>
void write_numbers(const NumbersView& view, const std::filesystem::path& out, bool is_npy) {
  std::vector<Real> x(view.count);
  copy_numbers(view, std::as_writable_bytes(std::span(x)));
  const std::span<const Real> numbers(x);
  throw_if_failed_to(is_npy ? save_npy(out, numbers) : save_raw_numbers(out, numbers));
}

// The features of a linear model.
struct LinearFeatures {
  std::size_t count = 0;
  std::vector<std::string> names;            // empty if unknown
  std::shared_ptr<const Normalization> map;  // null if they are not normalised
};

// Returns nullopt if the folder of the model does not say that it is a linear model of this size.
std::optional<LinearFeatures> linear_features(const std::filesystem::path& model, std::size_t parameters) {
  const std::filesystem::path folder = model.parent_path();
  for (const std::string_view kind : {"logistic", "least_squares"})
    if (const auto schema = schema_in_summary(folder, kind))
      if (schema->columns == parameters || schema->columns + 1 == parameters)
        return LinearFeatures{schema->columns, schema->feature_names,
                              preprocessing_in(folder).value_or(Preprocessing()).normalization};
  return std::nullopt;
}

// Returns the coefficients and the bias for features before their normalisation. Empty if these are the same.
std::vector<double> in_original_units(const LinearFeatures& features, std::span<const double> x) {
  if (features.map == nullptr || features.map->shift.empty()) return {};
  std::vector<double> original(features.count + 1);
  if (x.size() > features.count) original.back() = x.back();
  for (std::size_t j = 0; j < features.count; ++j) {
    const bool is_mapped = j < features.map->shift.size();
    original[j] = x[j] / (is_mapped ? features.map->scale[j] : 1);
    original.back() -= original[j] * (is_mapped ? features.map->shift[j] : 0);
  }
  return original;
}

// Returns a line for each parameter: its name and its number, and if features are normalised, the number
// before that.
std::string table_of(const std::filesystem::path& model, std::vector<double> x) {
  const auto features = linear_features(model, x.size()).value_or(LinearFeatures{});
  const std::vector<double> original = in_original_units(features, x);
  if (!original.empty()) x.resize(original.size());  // without a bias, one follows from the shifts
  std::string text = original.empty() ? "parameter,value\n" : "parameter,value,in_original_units\n";
  for (std::size_t k = 0; k < x.size(); ++k) {
    const bool is_bias = features.count > 0 && k == features.count;
    text += (is_bias                     ? "bias"
             : k < features.names.size() ? csv_field(features.names[k])
                                         : std::to_string(k + 1)) +
            "," + number_text(x[k]) + (original.empty() ? "" : "," + number_text(original[k])) + "\n";
  }
  return text;
}

template <class Real>
std::string text_of(const std::filesystem::path& model, const NumbersView& view, bool is_table) {
  std::vector<Real> x(view.count);
  copy_numbers(view, std::as_writable_bytes(std::span(x)));
  std::vector<double> numbers(x.begin(), x.end());
  if (is_table) return table_of(model, std::move(numbers));
  std::string text;
  for (const double number : numbers) text += number_text(number) + "\n";
  return text;
}

}  // namespace

std::string export_model(const std::filesystem::path& given, const std::filesystem::path& out) {
  const std::filesystem::path model = model_file(given);
  const std::string ending = out.extension().string();
  const bool is_text = ending == ".csv" || ending == ".txt";
  if (ending != ".npy" && ending != ".raw" && !is_text)
    throw UsageError(out.string() +
                     ": the name must end in .npy (for NumPy), .csv (names and numbers), .txt (a number in "
                     "each line) or .raw (raw numbers)");
  const Result<FileBytes> bytes = FileBytes::open(model);
  if (!bytes) throw UsageError(bytes.error().message);
  const Result<NumbersView> view = read_numbers(bytes->bytes());
  if (!view) throw UsageError(file_error(model, view.error()).message);
  const auto write = [&]<class Real>(Real) {
    if (is_text)
      write_text(out, text_of<Real>(model, *view, ending == ".csv"));
    else
      write_numbers<Real>(*view, out, ending == ".npy");
  };
  switch (view->type) {
    case NumberType::kFp32: write(0.0F); break;
    case NumberType::kFp64: write(0.0); break;
    default:
      throw UsageError(model.string() + ": contains numbers of type " + std::string(name_of(view->type)) +
                       "; a model has fp32 or fp64");
  }
  return out.string() + ": " + std::to_string(view->count) + " numbers, " + std::string(name_of(view->type));
}

}  // namespace gradwire
