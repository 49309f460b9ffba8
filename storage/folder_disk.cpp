#include "storage/folder_disk.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace gradwire {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kMode = 0644;
// A symbolic link in the folder is refused, and opening a pipe must not wait for its reader.
constexpr int kToWrite = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
constexpr std::size_t kSegmentsPerCall = 64;
constexpr int kLockAttempts = 5;
constexpr useconds_t kLockPauseUs = 10'000;
constexpr std::size_t kLongestCall = std::size_t{1} << 30;  // Linux takes at most 2 GiB at once

// Returns the text of errno and the remedy.
std::string reason() {
  const std::string text = std::strerror(errno);
  switch (errno) {
    case ENOSPC:
    case EFBIG:
    case EDQUOT: return text + "; make room, then start again";
    case EROFS:
    case EACCES: return text + "; make it writable for this user, then start again";
    case EMFILE:
    case ENFILE: return text + "; raise 'ulimit -n', then start again";
    case ELOOP: return "it is a symbolic link; remove the link, then start again";
    case ENXIO: return "it is a pipe; remove it, then start again";
    default: return text;
  }
}

bool write_all(int fd, Disk::Segments segments) {
  std::size_t at = 0, offset = 0;  // the first unwritten byte: its segment and offset
  while (at < segments.size()) {
    std::array<iovec, kSegmentsPerCall> vectors;
    std::size_t count = 0, bytes = 0;
    for (std::size_t k = at; k < segments.size() && count < kSegmentsPerCall && bytes < kLongestCall; ++k) {
      const std::string_view rest = segments[k].substr(k == at ? offset : 0);
      const std::size_t size = std::min(rest.size(), kLongestCall - bytes);
      vectors[count++] = {const_cast<char*>(rest.data()), size};
      bytes += size;
    }
    const ssize_t wrote = ::writev(fd, vectors.data(), static_cast<int>(count));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    auto left = static_cast<std::size_t>(wrote);
    while (at < segments.size() && left >= segments[at].size() - offset) {
      left -= segments[at].size() - offset;
      ++at;
      offset = 0;
    }
    offset += left;
  }
  return true;
}

}  // namespace

class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  bool good() const { return fd_ >= 0; }
  int get() const { return fd_; }
  // Closes the file. Errors matter: some file systems report a failed write only here.
  bool close() { return ::close(release()) == 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

FolderDisk::FolderDisk(fs::path folder) : folder_(std::move(folder)) {}

Error FolderDisk::failed(const std::string& name, const char* what) const {
  return {(folder_ / name).string() + ": cannot be " + what + ": " + reason(), ErrorKind::kSystem};
}

Status FolderDisk::check_folder() {
  struct stat now {};
  const bool is_there = ::stat(folder_.c_str(), &now) == 0;
  const std::pair<std::uint64_t, std::uint64_t> found(now.st_dev, now.st_ino);
  const std::lock_guard lock(opening_);
  if (!identity_ && is_there) identity_ = found;
  if (!identity_ || (is_there && *identity_ == found)) return Unit{};
  return Error{folder_.string() +
                   ": is no longer the same folder (unmounted, moved or removed?); restore it, then "
                   "start again: the run resumes",
               ErrorKind::kSystem};
}

int FolderDisk::open_draft(const std::string& name) const {
  const std::string file = folder_ / name;
  const int fd = ::open(file.c_str(), kToWrite | O_TRUNC, kMode);
  if (fd >= 0 || errno != ELOOP || ::unlink(file.c_str()) != 0) return fd;
  return ::open(file.c_str(), kToWrite | O_EXCL, kMode);
}

Result<std::vector<std::string>> FolderDisk::list() {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error))
    if (at->is_regular_file(error)) names.push_back(at->path().filename().string());
  if (error) {
    errno = error.value();
    return failed({}, "read");
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> FolderDisk::read(const std::string& name) {
  const OpenFile file(::open((folder_ / name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file.good() || ::fstat(file.get(), &status) != 0) return failed(name, "read");
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t more = ::read(file.get(), bytes.data() + got, std::min(bytes.size() - got, kLongestCall));
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return failed(name, "read");
    if (more == 0) break;
    got += static_cast<std::size_t>(more);
  }
  bytes.resize(got);
  return bytes;
}

Status FolderDisk::write(const std::string& name, Segments segments) {
  if (Status same = check_folder(); !same) return same;
  OpenFile file(open_draft(name));
  if (!file.good() || !write_all(file.get(), segments) || !file.close()) return failed(name, "written");
  return Unit{};
}

Status FolderDisk::write_chunks(const std::string& name, const std::function<std::string_view()>& next) {
  if (Status same = check_folder(); !same) return same;
  OpenFile file(open_draft(name));
  if (!file.good()) return failed(name, "written");
  for (std::string_view chunk = next(); !chunk.empty(); chunk = next())
    if (!write_all(file.get(), std::span(&chunk, 1))) return failed(name, "written");
  return file.close() ? Status(Unit{}) : failed(name, "written");
}

std::shared_ptr<const OpenFile> FolderDisk::open_log(const std::string& name) const {
  const std::lock_guard lock(opening_);
  return open_name_ == name ? open_ : nullptr;
}

Status FolderDisk::append(const std::string& name, Segments segments) {
  if (Status same = check_folder(); !same) return same;
  std::shared_ptr<const OpenFile> file = open_log(name);
  if (!file) {
    file = std::make_shared<const OpenFile>(::open((folder_ / name).c_str(), kToWrite | O_APPEND, kMode));
    if (!file->good()) return failed(name, "written");
    const std::lock_guard lock(opening_);
    open_name_ = name;
    open_ = file;
  }
  if (!write_all(file->get(), segments)) return failed(name, "written");
  return Unit{};
}

Status FolderDisk::sync(const std::string& name) {
  if (const auto file = open_log(name))
    return ::fdatasync(file->get()) == 0 ? Status(Unit{}) : failed(name, "made durable");
  const OpenFile file(::open((folder_ / name).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.good() || ::fsync(file.get()) != 0) return failed(name, "made durable");
  return Unit{};
}

Status FolderDisk::sync_folder() {
  const OpenFile file(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.good() || ::fsync(file.get()) != 0) return failed(".", "made durable");
  return Unit{};
}

void FolderDisk::close_log(const std::string& name) {
  const std::lock_guard lock(opening_);
  if (open_name_ == name) open_.reset();
}

Status FolderDisk::rename(const std::string& from, const std::string& to) {
  close_log(from);
  if (Status same = check_folder(); !same) return same;
  if (::rename((folder_ / from).c_str(), (folder_ / to).c_str()) != 0) return failed(from, "renamed");
  return Unit{};
}

Status FolderDisk::remove(const std::string& name) {
  close_log(name);
  if (Status same = check_folder(); !same) return same;
  if (::unlink((folder_ / name).c_str()) != 0 && errno != ENOENT) return failed(name, "removed");
  return Unit{};
}

bool make_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return true;
  const fs::path whole = fs::absolute(folder, error).lexically_normal();
  const fs::path above = (whole.has_filename() ? whole : whole.parent_path()).parent_path();
  if (above == whole || !make_folder(above)) return false;
  fs::create_directory(folder, error);
  const int why = error.value();
  if (!fs::is_directory(folder, error)) {
    errno = why != 0 ? why : ENOTDIR;
    return false;
  }
  (void)FolderDisk(above)
      .sync_folder();  // ignores errors: the folder may be unreadable for us, or cannot be synced
  return true;
}

namespace {

// Returns whether the open file still has that name, so no other process has removed it.
bool is_still_there(int fd, const std::string& file) {
  struct stat open_file = {}, named = {};
  return ::fstat(fd, &open_file) == 0 && ::stat(file.c_str(), &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

// Throws std::runtime_error if the process lacks file descriptors, and std::invalid_argument if the folder is
// unusable.
[[noreturn]] void fail(const std::string& what) {
  const bool lacks_descriptors = errno == EMFILE || errno == ENFILE;
  const std::string text = what + reason();
  if (lacks_descriptors) throw std::runtime_error(text);
  throw std::invalid_argument(text);
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder) {
  const std::string file = (folder / "lock").string();
  const auto in_use = [&folder] {
    return std::runtime_error(folder.string() + ": is in use by process " +
                              lock_holder(folder).value_or("unknown") +
                              "; stop that process, or choose another folder");
  };
  // Lock the folder itself, because its file may be removed by mistake. Some file systems can lock only
  // files.
  OpenFile itself(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!itself.good()) fail(folder.string() + ": cannot be opened: ");
  bool is_held = false;
  for (int attempt = 0; attempt < kLockAttempts && !is_held; ++attempt) {
    if (attempt > 0) ::usleep(kLockPauseUs);
    is_held = ::flock(itself.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  }
  if (!is_held) throw in_use();
  // Try again: lock_holder() of another process may hold the lock for a moment, or the holder is removing the
  // file.
  for (int attempt = 0; attempt < kLockAttempts && fd_ < 0; ++attempt) {
    if (attempt > 0) ::usleep(kLockPauseUs);
    const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kMode);
    if (fd < 0) fail(file + ": cannot be created: ");
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && is_still_there(fd, file)) {
      fd_ = fd;
    } else {
      ::close(fd);
    }
  }
  if (fd_ < 0) throw in_use();
  folder_fd_ = itself.release();
  const std::string own = std::to_string(::getpid());
  if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, own.data(), own.size(), 0) < 0) {
    // The lock is held in any case; only its owner's number cannot be shown.
  }
}

std::optional<std::string> lock_holder(const fs::path& folder) {
  const OpenFile itself(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool is_held = itself.good() && ::flock(itself.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  const OpenFile file(::open((folder / "lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.good()) return is_held ? std::optional<std::string>("unknown") : std::nullopt;
  if (!is_held && ::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;
  std::array<char, 32> holder{};
  const ssize_t size = ::pread(file.get(), holder.data(), holder.size() - 1, 0);
  return size > 0 ? std::string(holder.data()) : std::string("unknown");
}

FolderLock::~FolderLock() {
  ::close(fd_);
  ::close(folder_fd_);
}

}  // namespace gradwire
