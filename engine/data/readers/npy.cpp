#include "engine/data/readers/npy.h"

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "base/array_format.h"
#include "base/word_list.h"
#include "engine/data/readers/bytes.h"
#include "engine/data/readers/delimited.h"
#include "engine/data/readers/lines.h"
#include "engine/data/readers/table_head.h"
#include "engine/data/readers/zip.h"

namespace gradwire {
namespace {

NpyArray array_of(std::string_view bytes, const std::string& name) {
  if (!bytes.starts_with(kNpyMagic))
    throw DataError(name + ": is not a file of numpy.save; save one array of numbers with numpy.save");
  const Result<NpyArray> array = read_npy_array(std::as_bytes(std::span(bytes)));
  if (!array) throw DataError(name + ": " + array.error().message);
  return *array;
}

double finite(double number, const std::string& name, std::uint64_t row) {
  if (std::isfinite(number)) return number;
  throw DataError(name + ": row " + std::to_string(row) +
                  ", counted from 0, has a number that is not finite; "
                  "remove or replace it");
}

// Returns the first entry with one of the names, in any case.
const ZipEntry* find_array(const std::vector<ZipEntry>& entries, std::span<const std::string_view> names) {
  for (const std::string_view name : names)
    for (const ZipEntry& entry : entries)
      if (equal_in_any_case(entry.name, name)) return &entry;
  return nullptr;
}

}  // namespace

Dataset samples_of_arrays(std::string_view x_bytes, const std::string& x_name, std::string_view y_bytes,
                          const std::string& y_name, const KeepRow& keep) {
  const NpyArray x = array_of(x_bytes, x_name), y = array_of(y_bytes, y_name);
  if (x.dimensions < 2 || x.count == 0)
    throw DataError(x_name + ": needs a row of features for each sample; save an array of two dimensions");
  if (x.fortran_order && x.dimensions > 2)
    throw DataError(x_name + ": holds an array in Fortran order; save numpy.ascontiguousarray(x)");
  if (y.count != y.rows || y.dimensions == 0)
    throw DataError(y_name +
                    ": needs one label for each sample, but has several; save class numbers, as in "
                    "y.argmax(1)");
  if (x.rows != y.rows)
    throw DataError(x_name + ": has " + std::to_string(x.rows) + " rows, but " + y_name + " has " +
                    std::to_string(y.rows) + " labels; save one label for each row");
  const std::uint64_t columns = x.count / x.rows;
  if (columns > std::numeric_limits<std::uint32_t>::max() - 1)
    throw DataError(x_name + ": has too many features for each sample; save a row for each sample");
  Dataset data;
  data.columns = columns;
  for (std::uint64_t r = 0; r < x.rows; ++r) {
    data.label.push_back(finite(y.number(r), y_name, r));
    for (std::uint64_t j = 0; (!keep || keep(r)) && j < columns; ++j) {
      const double value = finite(x.number(x.fortran_order ? j * x.rows + r : r * columns + j), x_name, r);
      if (value == 0) continue;
      data.column.push_back(static_cast<std::uint32_t>(j));
      data.value.push_back(value);
    }
    data.row_start.push_back(data.column.size());
  }
  return data;
}

Dataset read_npy_pair(const std::filesystem::path& x, const std::filesystem::path& y, const KeepRow& keep) {
  return samples_of_arrays(read_file_bytes(x), x.string(), read_file_bytes(y), y.string(), keep);
}

Dataset samples_of_npz(std::string_view bytes, const std::string& file, const KeepRow& keep, SampleUse use) {
  constexpr std::array<std::string_view, 2> kTestX = {"x_test.npy", "x.npy"},
                                            kTestY = {"y_test.npy", "y.npy"};
  constexpr std::array<std::string_view, 2> kX = {"x.npy", "x_train.npy"}, kY = {"y.npy", "y_train.npy"};
  const std::vector<ZipEntry> entries = list_zip(bytes, file);
  const auto take = [&](std::span<const std::string_view> training, std::span<const std::string_view> test,
                        const char* name) {
    const ZipEntry* const found = find_array(entries, use == SampleUse::kTest ? test : training);
    if (found != nullptr) return *found;
    std::vector<std::string> names;
    for (const ZipEntry& entry : entries) names.push_back(gradwire::quoted(entry.name));
    throw DataError(file + ": has no array " + name + "; it has " + some_of(names) +
                    "; save it with numpy.savez(file, X=X, y=y)");
  };
  const ZipEntry x = take(kX, kTestX, "X"), y = take(kY, kTestY, "y");
  return samples_of_arrays(read_zip_entry(bytes, x, file), file + ", " + x.name,
                           read_zip_entry(bytes, y, file), file + ", " + y.name, keep);
}

Dataset read_npz(const std::filesystem::path& path, const KeepRow& keep, SampleUse use) {
  return samples_of_npz(read_packed_bytes(path), path.string(), keep, use);
}

}  // namespace gradwire
