#include "engine/files/number_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

namespace gradwire {
namespace {

constexpr mode_t kMode = 0666;                 // minus the bits of the umask
constexpr std::size_t kSmallBytes = 4096;      // up to this size reading is faster than mapping
constexpr std::size_t kLongestCall = 1 << 30;  // Linux takes at most 2 GiB at once
constexpr int kDrafts = 100;

class OpenedFile {
 public:
  explicit OpenedFile(int fd) : fd_(fd) {}
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;
  ~OpenedFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool good() const { return fd_ >= 0; }
  int get() const { return fd_; }
  // Closes the file. Some file systems only report here that a write failed.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

Error system_error(const std::filesystem::path& file, const char* what) {
  return {file.string() + ": cannot be " + what + ": " + std::strerror(errno), ErrorKind::kSystem};
}

bool write_both(int fd, std::span<const std::byte> front, std::span<const std::byte> back) {
  while (!front.empty() || !back.empty()) {
    const std::span<const std::byte> part = back.first(std::min(back.size(), kLongestCall));
    const std::array<iovec, 2> segments{{{const_cast<std::byte*>(front.data()), front.size()},
                                         {const_cast<std::byte*>(part.data()), part.size()}}};
    const ssize_t wrote = ::writev(fd, segments.data(), static_cast<int>(segments.size()));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    const auto done = static_cast<std::size_t>(wrote);
    const std::size_t of_front = std::min(done, front.size());
    front = front.subspan(of_front);
    back = back.subspan(done - of_front);
  }
  return true;
}

// Renames `draft` to `file` atomically. It exchanges the two names and removes the old contents: on ext4 this
// takes a tenth of the time of a rename, which writes the new contents to the disk at once.
bool take_name(const char* draft, const char* file) {
#ifdef RENAME_EXCHANGE
  if (::renameat2(AT_FDCWD, draft, AT_FDCWD, file, RENAME_EXCHANGE) == 0) {
    if (::unlink(draft) == 0) return true;
    const int reason = errno;  // `file` is a folder
    ::renameat2(AT_FDCWD, draft, AT_FDCWD, file, RENAME_EXCHANGE);
    errno = reason;
    return false;
  }
#endif
  return ::rename(draft, file) == 0;  // `file` does not exist, or the file system cannot exchange names
}

// Reads at most to.size() bytes, fewer if the file ends. Returns false if the file cannot be read.
bool read_some(int fd, std::span<std::byte> to, std::size_t& got) {
  for (got = 0; got < to.size();) {
    const ssize_t more = ::read(fd, to.data() + got, std::min(to.size() - got, kLongestCall));
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return false;
    if (more == 0) break;
    got += static_cast<std::size_t>(more);
  }
  return true;
}

// Calls use(bytes of the file) and returns its result.
template <class Use>
Status with_bytes(const std::filesystem::path& file, Use use) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const OpenedFile opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<std::byte, kSmallBytes> small;
  std::size_t got = 0;
  if (!opened.good() || !read_some(opened.get(), small, got)) return system_error(file, "read");
  if (got < small.size()) return use(std::span<const std::byte>(small).first(got));
  const Result<FileBytes> bytes = FileBytes::open(file);
  if (!bytes) return bytes.error();
  return use(bytes->bytes());
}

}  // namespace

Result<FileBytes> FileBytes::open(const std::filesystem::path& file) {
  const OpenedFile opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!opened.good() || ::fstat(opened.get(), &status) != 0) return system_error(file, "read");
  if (!S_ISREG(status.st_mode)) return Error{file.string() + ": is not a regular file; name a file"};
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > kSmallBytes) {
    void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, opened.get(), 0);
    if (at == MAP_FAILED) return system_error(file, "mapped into memory");
    return FileBytes(static_cast<const std::byte*>(at), size, true);
  }
  auto bytes = std::make_unique<std::byte[]>(std::max<std::size_t>(size, 1));
  std::size_t got = 0;
  if (!read_some(opened.get(), {bytes.get(), size}, got)) return system_error(file, "read");
  return FileBytes(bytes.release(), got, false);
}

FileBytes::FileBytes(FileBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(other.mapped_) {}

FileBytes& FileBytes::operator=(FileBytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

FileBytes::~FileBytes() {
  if (mapped_ && data_ != nullptr) {
    ::munmap(const_cast<std::byte*>(data_), size_);
  } else {
    delete[] data_;
  }
}

Status replace_file(const std::filesystem::path& file, std::span<const std::byte> front,
                    std::span<const std::byte> back) {
  // The name is unique among writers of the same file, and differs from drafts of killed processes.
  std::string draft = file.string() + ".new";
  const std::size_t length = draft.size();
  int fd = -1;
  for (int k = 1; k <= kDrafts; ++k) {
    fd = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
    if (fd >= 0 || errno != EEXIST) break;
    draft.resize(length);
    draft += std::to_string(k);
  }
  if (fd < 0) return system_error(file, "written");  // the draft was not created
  OpenedFile opened(fd);
  // Always call close(), so that the file is closed when it is removed.
  const bool written = write_both(opened.get(), front, back);
  const int reason = errno;
  const bool closed = opened.close();
  if (written && closed && take_name(draft.c_str(), file.c_str())) return Unit{};
  if (!written) errno = reason;
  const Error error = system_error(file, "written");
  ::unlink(draft.c_str());
  return error;
}

Error file_error(const std::filesystem::path& file, const Error& error) {
  return {file.string() + ": " + error.message, error.kind};
}

Status save_typed(const std::filesystem::path& file, NumberFormat format, NumberType type,
                  std::span<const std::byte> numbers) {
  switch (format) {
    case NumberFormat::kRaw: return replace_file(file, {}, numbers);
    case NumberFormat::kNpy: {
      const Result<NumbersHeader> header = npy_header(type, numbers.size() / bytes_per_number(type));
      return header ? replace_file(file, header->span(), numbers) : file_error(file, header.error());
    }
    case NumberFormat::kOurs: break;
  }
  return replace_file(file, numbers_header(type, numbers).span(), numbers);
}

Status load_typed(const std::filesystem::path& file, bool raw, NumberType type, std::span<std::byte> to) {
  return with_bytes(file, [&](std::span<const std::byte> bytes) -> Status {
    const Result<NumbersView> view = raw ? read_raw_numbers(bytes, type) : read_numbers(bytes);
    if (!view) return file_error(file, view.error());
    if (Status fits = check_numbers(*view, type, to.size() / bytes_per_number(type)); !fits)
      return file_error(file, fits.error());
    copy_numbers(*view, to);
    return Unit{};
  });
}

}  // namespace gradwire
