#include "experiments/cli/data/fetch.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "experiments/cli/data/checked_bytes.h"
#include "experiments/cli/data/download.h"
#include "storage/atomic_file.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;  // limit for a file, packed and unpacked
constexpr std::size_t kDigitsOfSum = 64;

// An open file that this process has locked.
class OwnedFile {
 public:
  static Result<OwnedFile> open(const fs::path& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) return Error{path.string() + ": " + std::strerror(errno), ErrorKind::kSystem};
    OwnedFile owned(file);
    if (::flock(file, LOCK_EX | LOCK_NB) != 0)
      return Error{path.string() + ": another process fetches it", ErrorKind::kSystem};
    return owned;
  }
  OwnedFile(OwnedFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  ~OwnedFile() {
    if (file_ >= 0) ::close(file_);
  }
  int get() const { return file_; }
  std::uint64_t size() const {
    struct stat about {};
    return ::fstat(file_, &about) == 0 ? static_cast<std::uint64_t>(about.st_size) : 0;
  }
  Status replace(std::string_view bytes) {
    if (::ftruncate(file_, 0) != 0 || ::lseek(file_, 0, SEEK_SET) != 0)
      return Error{std::strerror(errno), ErrorKind::kSystem};
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return Error{std::strerror(errno), ErrorKind::kSystem};
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return Unit{};
  }

 private:
  explicit OwnedFile(int file) : file_(file) {}
  int file_;
};

std::string url_of(const DataFile& file, const std::string& mirror) {
  if (mirror.empty()) return std::string(file.url);
  const std::string_view name = file.name.substr(file.name.rfind('/') + 1);
  return mirror + (mirror.ends_with('/') ? "" : "/") + std::string(name) + (file.is_bzip2() ? ".bz2" : "");
}

fs::path with_suffix(const fs::path& target, const char* ending) { return target.string() + ending; }

// Returns the checksum that the file must have, or "" for any.
std::string expected_sum(const DataFile& file, const fs::path& target) {
  if (!file.sha256.empty()) return std::string(file.sha256);
  std::ifstream in(with_suffix(target, ".sha256"));
  std::string sum(kDigitsOfSum, '\0');
  in.read(sum.data(), kDigitsOfSum);
  return in ? sum : "";
}

// The fetch of one file of a data set.
class Fetching {
 public:
  Fetching(const DataFile& file, const FetchRequest& request)
      : file_(file),
        request_(request),
        url_(url_of(file, request.mirror)),
        target_(request.folder / file.name) {}

  Status run() {
    if (std::error_code error; fs::exists(target_, error)) return check_target();
    std::error_code error;
    fs::create_directories(target_.parent_path(), error);
    if (error) return Error{target_.parent_path().string() + ": " + error.message(), ErrorKind::kSystem};
    part_ = with_suffix(target_, ".part");
    Result<OwnedFile> opened = OwnedFile::open(part_);
    if (!opened) return opened.error();
    const bool was_begun = opened->size() > 0;
    if (was_begun) request_.say(name() + ": continues after " + std::to_string(opened->size()) + " bytes");
    Status done = once(*opened);
    if (!done && was_begun && done.error().kind != ErrorKind::kSystem) {
      // The old bytes may have come from another file.
      request_.say(name() + ": " + done.error().message + "; starting over");
      if (Status emptied = opened->replace(""); !emptied) return emptied;
      done = once(*opened);
    }
    if (opened->size() == 0 || (!done && done.error().kind != ErrorKind::kSystem)) fs::remove(part_, error);
    // An empty folder would look like a data set.
    if (!done && target_.parent_path() != request_.folder) fs::remove(target_.parent_path(), error);
    return done;
  }

 private:
  std::string name() const { return std::string(file_.name); }

  Status check_target() {
    const int file = ::open(target_.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return Error{target_.string() + ": " + std::strerror(errno), ErrorKind::kSystem};
    const Result<std::string> sum = sha256_of(file);
    ::close(file);
    if (!sum) return Error{target_.string() + ": " + sum.error().message, ErrorKind::kSystem};
    const std::string expected = expected_sum(file_, target_);
    if (!expected.empty() && *sum != expected)
      return Error{target_.string() + ": exists with the checksum " + *sum + ", not " + expected +
                       "; remove it to fetch it again",
                   ErrorKind::kSystem};
    request_.say(name() + ": exists already, " + target_.string());
    return Unit{};
  }

  // Downloads, unpacks and checks the file, and gives it its name. An error that is not of ErrorKind::kSystem
  // is about the received bytes.
  Status once(OwnedFile& part) {
    Download what;
    what.url = url_;
    what.may_be_http = !request_.mirror.empty();
    what.file = part.get();
    what.have = part.size();
    what.max_size = kMostBytes;
    what.stop = request_.stop;
    what.on_progress = [this](std::uint64_t done, std::uint64_t size) {
      if (request_.on_progress) request_.on_progress(name(), done, size);
    };
    if (::lseek(part.get(), 0, SEEK_END) < 0)
      return Error{part_.string() + ": " + std::strerror(errno), ErrorKind::kSystem};
    if (Status came = download(what); !came) return Error{came.error().message, ErrorKind::kSystem};
    if (file_.is_bzip2()) {
      const Result<std::string> plain = unpack_bzip2(part.get(), kMostBytes);
      if (!plain) return Error{url_ + ": " + plain.error().message, plain.error().kind};
      if (Status put = part.replace(*plain); !put)
        return Error{part_.string() + ": " + put.error().message, ErrorKind::kSystem};
    }
    const Result<std::string> sum = sha256_of(part.get());
    if (!sum) return Error{part_.string() + ": " + sum.error().message, ErrorKind::kSystem};
    const std::string expected = expected_sum(file_, target_);
    if (!expected.empty() && *sum != expected)
      return Error{url_ + ": the download has the checksum " + *sum + ", not " + expected};
    if (::fsync(part.get()) != 0)
      return Error{part_.string() + ": " + std::strerror(errno), ErrorKind::kSystem};
    if (expected.empty())
      write_whole(with_suffix(target_, ".sha256"), *sum + "  " + target_.filename().string() + "\n");
    std::error_code error;
    fs::rename(part_, target_, error);
    if (error) return Error{target_.string() + ": " + error.message(), ErrorKind::kSystem};
    request_.say(name() + ": fetched, " + std::to_string(part.size()) + " bytes, " + target_.string() +
                 (expected.empty() ? "; its checksum was not known, and is now stored next to it" : ""));
    return Unit{};
  }

  const DataFile& file_;
  const FetchRequest& request_;
  const std::string url_;
  const fs::path target_;
  fs::path part_;
};

}  // namespace

void fetch_data_set(const DataSet& set, const FetchRequest& request) {
  for (const DataFile& file : set.files) {
    if (const Status done = Fetching(file, request).run(); !done) {
      const std::string packed = file.is_bzip2() ? " (unpacked by bunzip2)" : "";
      throw std::runtime_error(done.error().message + "; by hand: put " + url_of(file, "") + packed + " as " +
                               (request.folder / file.name).string() + ", or as " + std::string(file.name) +
                               " into a folder of $GRADWIRE_DATA");
    }
  }
}

}  // namespace gradwire
