// Files of numbers: values, gradients, parameters, a range of a tape, or any other array. base/array_format.h
// describes the formats.
//
//   const Status saved = save_numbers<double>("x.gwn", x);
//   const Status loaded = load_numbers<double>("x.gwn", x);
//
// A file is written under another name, then renamed. So readers see the old or the new contents. If an error
// occurs, the old contents stay and no other file remains.
//
// Nothing waits for the disk, so a power loss soon afterwards may leave a damaged file. Loading detects this,
// except for raw numbers and .npy. Use write_whole() (storage/atomic_file.h) for files that must survive a
// power loss.
//
// The file is always a new one with the permissions 0666 minus the umask. A symbolic link of that name is
// replaced, not its target. An error is one line that begins with the name of the file.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "base/array_format.h"
#include "base/result.h"

namespace gradwire {

// The bytes of a file in memory. A small file is read; a larger one is mapped, so the system loads each page
// when it is used. If another program shortens the file meanwhile, SIGBUS ends this program. Replacement by
// save_numbers() is safe, because the old contents live as long as they are mapped.
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
  bool mapped_;  // false if the bytes come from new[]
};

// Numbers of T that stay in their file.
template <class T>
class MappedNumbers {
 public:
  // Opens a file. Also fails if the numbers have the byte order of other processors; load_numbers() converts
  // them.
  static Result<MappedNumbers> open(const std::filesystem::path& file);

  std::span<const T> numbers() const { return numbers_; }

 private:
  MappedNumbers(FileBytes bytes, std::span<const T> numbers) : bytes_(std::move(bytes)), numbers_(numbers) {}

  FileBytes bytes_;
  std::span<const T> numbers_;
};

// Saves numbers. T: float, double, Float16, BFloat16, and Float128 if the compiler has it.
template <class T>
Status save_numbers(const std::filesystem::path& file, std::span<const T> x);
// Saves the numbers without a header.
template <class T>
Status save_raw_numbers(const std::filesystem::path& file, std::span<const T> x);
// Saves an array of one dimension for numpy.load.
template <class T>
Status save_npy(const std::filesystem::path& file, std::span<const T> x);

// Loads a file of save_numbers, save_npy or numpy.save, or a model.bin. The file must hold x.size()
// numbers of type T. If it does not, or if it is damaged, x is unchanged.
template <class T>
Status load_numbers(const std::filesystem::path& file, std::span<T> x);
// Loads a file that holds only x.size() numbers.
template <class T>
Status load_raw_numbers(const std::filesystem::path& file, std::span<T> x);

// Writes the bytes of both parts to the file, atomically as described above.
Status replace_file(const std::filesystem::path& file, std::span<const std::byte> front,
                    std::span<const std::byte> back);

// Helpers of the templates.
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
    return file_error(file, {"holds numbers in another byte order than memory; use load_numbers"});
  const std::span<const T> numbers(reinterpret_cast<const T*>(first), view->count);
  return MappedNumbers(std::move(*bytes), numbers);
}

}  // namespace gradwire
