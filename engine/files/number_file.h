// Files of numbers: values, gradients, parameters, a range of a tape, or what else lies side by side. The
// formats are those of base/array_format.h.
//
//   const Status saved = save_numbers<double>("x.gwn", tape.parameter_values());
//   const Status loaded = load_numbers<double>("x.gwn", tape.parameter_values());
//
// A file is written under another name, then renamed: readers see the old contents or the new ones, and where
// something fails, the old ones are still there and no other file is left. Nothing waits for the disk: a loss
// of power soon after may leave a file that is damaged, which loading notices (except for raw numbers and
// .npy); what must survive one is written by write_whole() (storage/atomic_file.h). The file is a new one:
// a symbolic link of that name is replaced, not what it leads to, and the permissions are those of a file
// that is made, 0666 less the umask, whatever the old ones were. An error is one line that begins with the
// name of the file.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "base/array_format.h"
#include "base/result.h"

namespace gradwire {

// The whole file in memory: read when it is small, else mapped, so that the system reads a page when somebody
// looks at it. A file that another program makes shorter meanwhile ends this program with SIGBUS; what
// save_numbers() replaces is safe, since the old contents live until nobody uses them.
class FileBytes {
 public:
  static Result<FileBytes> open(const std::filesystem::path& file);
  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&& other) noexcept;
  ~FileBytes();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  FileBytes(const std::byte* data, std::size_t size, bool mapped)
      : data_(data), size_(size), mapped_(mapped) {}

  const std::byte* data_;
  std::size_t size_;
  bool mapped_;  // else from new[]
};

// Numbers of T that stay in their file.
template <class T>
class MappedNumbers {
 public:
  // Fails also where the bytes of numbers stand in the order of other processors: load_numbers() turns them.
  static Result<MappedNumbers> open(const std::filesystem::path& file);

  std::span<const T> numbers() const { return numbers_; }

 private:
  MappedNumbers(FileBytes bytes, std::span<const T> numbers) : bytes_(std::move(bytes)), numbers_(numbers) {}

  FileBytes bytes_;
  std::span<const T> numbers_;
};

// T: float, double, Float16, BFloat16 and, where the compiler has it, Float128.
template <class T>
Status save_numbers(const std::filesystem::path& file, std::span<const T> x);
// The numbers alone.
template <class T>
Status save_raw_numbers(const std::filesystem::path& file, std::span<const T> x);
// One dimension; for numpy.load.
template <class T>
Status save_npy(const std::filesystem::path& file, std::span<const T> x);

// From a file of save_numbers, save_npy, numpy.save, or a model.bin. The file must hold x.size() numbers of
// type T; else, or where it is damaged, x stays as it was.
template <class T>
Status load_numbers(const std::filesystem::path& file, std::span<T> x);
// From a file of x.size() numbers and nothing else.
template <class T>
Status load_raw_numbers(const std::filesystem::path& file, std::span<T> x);

// The bytes of both pieces under that name, in one step as above.
Status replace_file(const std::filesystem::path& file, std::span<const std::byte> front,
                    std::span<const std::byte> back);

// What the templates are made of.
Error file_error(const std::filesystem::path& file, const Error& error);
enum class NumberFormat { kOurs, kRaw, kNpy };
Status save_typed(const std::filesystem::path& file, NumberFormat format, NumberType type,
                  std::span<const std::byte> numbers);
Status load_typed(const std::filesystem::path& file, bool raw, NumberType type, std::span<std::byte> to);

template <class T>
Status save_numbers(const std::filesystem::path& file, std::span<const T> x) {
  return save_typed(file, NumberFormat::kOurs, kNumberType<T>, std::as_bytes(x));
}
template <class T>
Status save_raw_numbers(const std::filesystem::path& file, std::span<const T> x) {
  return save_typed(file, NumberFormat::kRaw, kNumberType<T>, std::as_bytes(x));
}
template <class T>
Status save_npy(const std::filesystem::path& file, std::span<const T> x) {
  return save_typed(file, NumberFormat::kNpy, kNumberType<T>, std::as_bytes(x));
}
template <class T>
Status load_numbers(const std::filesystem::path& file, std::span<T> x) {
  return load_typed(file, false, kNumberType<T>, std::as_writable_bytes(x));
}
template <class T>
Status load_raw_numbers(const std::filesystem::path& file, std::span<T> x) {
  return load_typed(file, true, kNumberType<T>, std::as_writable_bytes(x));
}

template <class T>
Result<MappedNumbers<T>> MappedNumbers<T>::open(const std::filesystem::path& file) {
  Result<FileBytes> bytes = FileBytes::open(file);
  if (!bytes) return bytes.error();
  const Result<NumbersView> view = read_numbers(bytes->bytes());
  if (!view) return file_error(file, view.error());
  if (Status fits = check_numbers(*view, kNumberType<T>, view->count); !fits)
    return file_error(file, fits.error());
  const std::byte* first = view->bytes.data();
  if (view->foreign_order || reinterpret_cast<std::uintptr_t>(first) % alignof(T) != 0)
    return file_error(file, {"holds numbers that do not lie as in memory; use load_numbers"});
  const std::span<const T> numbers(reinterpret_cast<const T*>(first), view->count);
  return MappedNumbers(std::move(*bytes), numbers);
}

}  // namespace gradwire
