#include "proto/secure/private_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <unistd.h>

#include "proto/secure/openssl.h"

namespace gradwire {
namespace {

[[noreturn]] void fail_file(const std::filesystem::path& file) {
  throw std::runtime_error(file.string() + ": " + std::strerror(errno));
}

}  // namespace

void create_private(const std::filesystem::path& file, std::string_view text) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) fail_file(file);
  const bool written =
      ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(fd) == 0;
  const int error = errno;
  ::close(fd);
  if (written) return;
  ::unlink(file.c_str());
  errno = error;
  fail_file(file);
}

void replace_private(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path fresh = file.string() + ".new";
  ::unlink(fresh.c_str());  // of a process that was killed here
  create_private(fresh, text);
  if (::rename(fresh.c_str(), file.c_str()) != 0) fail_file(file);
}

std::string pem_of(EVP_PKEY* key) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  char* text = nullptr;
  if (!out || PEM_write_bio_PKCS8PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    throw std::runtime_error("the key cannot be written: " + openssl_reason());
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace gradwire
