#include "proto/security/private_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/folder_disk.h"

namespace gradwire {
namespace {

[[noreturn]] void fail_file(const std::filesystem::path& file) {
  throw std::runtime_error(file.string() + ": " + std::strerror(errno));
}

std::filesystem::path draft_of(const std::filesystem::path& file) { return file.string() + ".new"; }

void write_draft(const std::filesystem::path& draft, std::string_view text) {
  ::unlink(draft.c_str());  // left by a process that was killed here
  const int fd = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) fail_file(draft);
  const bool written =
      ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(fd) == 0;
  const int error = errno;
  ::close(fd);
  if (written) return;
  ::unlink(draft.c_str());
  errno = error;
  fail_file(draft);
}

void sync_folder_of(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  throw_if_failed(FolderDisk(folder).sync_folder());
}

// Renames, but fails if `to` exists; some file systems cannot do that in one step.
bool rename_to_new(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  if (::access(to.c_str(), F_OK) != 0) return ::rename(from.c_str(), to.c_str()) == 0;
  errno = EEXIST;
  return false;
}

}  // namespace

void create_private(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path draft = draft_of(file);
  write_draft(draft, text);
  if (!rename_to_new(draft, file)) {
    const int error = errno;
    ::unlink(draft.c_str());
    errno = error;
    fail_file(file);
  }
  sync_folder_of(file);
}

void replace_private(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path draft = draft_of(file);
  write_draft(draft, text);
  if (::rename(draft.c_str(), file.c_str()) != 0) fail_file(file);
  sync_folder_of(file);
}

Result<std::optional<std::string>> read_plain(const std::filesystem::path& file, std::size_t most) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return std::optional<std::string>();
  struct stat about {};
  std::string text(most, '\0');
  ssize_t size = -1;
  const bool is_file = fd >= 0 && ::fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
  if (is_file) size = ::read(fd, text.data(), text.size());
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (fd >= 0 && !is_file) return Error{file.string() + ": is not a file"};
  if (size < 0) return Error{file.string() + ": " + std::strerror(error), ErrorKind::kSystem};
  text.resize(static_cast<std::size_t>(size));
  return std::optional(std::move(text));
}

Status check_private(const std::filesystem::path& file) {
  struct stat about {};
  if (::stat(file.c_str(), &about) != 0) return Error{file.string() + ": " + std::strerror(errno)};
  if (!S_ISREG(about.st_mode)) return Error{file.string() + ": is not a file"};
  if ((about.st_mode & 077) != 0)
    return Error{file.string() + ": other users may read this key; fix this with chmod 600 " + file.string()};
  return Unit{};
}

}  // namespace gradwire
