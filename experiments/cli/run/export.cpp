#include "experiments/cli/run/export.h"

#include <bit>
#include <stdexcept>
#include <vector>

#include "base/array_format.h"
#include "engine/files/number_file.h"
#include "report/results_dir.h"

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

}  // namespace

std::string export_model(const std::filesystem::path& model, const std::filesystem::path& out) {
  const std::string ending = out.extension().string();
  if (ending != ".npy" && ending != ".raw")
    throw UsageError(out.string() + ": the name must end in .npy (for NumPy) or .raw (raw numbers)");
  const Result<FileBytes> bytes = FileBytes::open(model);
  if (!bytes) throw UsageError(bytes.error().message);
  const Result<NumbersView> view = read_numbers(bytes->bytes());
  if (!view) throw UsageError(file_error(model, view.error()).message);
  switch (view->type) {
    case NumberType::kFp32: write_numbers<float>(*view, out, ending == ".npy"); break;
    case NumberType::kFp64: write_numbers<double>(*view, out, ending == ".npy"); break;
    default:
      throw UsageError(model.string() + ": contains numbers of type " + std::string(name_of(view->type)) +
                       "; a model has fp32 or fp64");
  }
  return out.string() + ": " + std::to_string(view->count) + " numbers, " + std::string(name_of(view->type));
}

}  // namespace gradwire
