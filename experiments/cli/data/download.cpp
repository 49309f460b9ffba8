// Implements download() with libcurl.
#include "experiments/cli/data/download.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <curl/curl.h>
#include <memory>
#include <string_view>
#include <unistd.h>

#include "gradwire/version.h"
#include "report/build_info.h"

namespace gradwire {
namespace {

constexpr long kConnectSeconds = 15;
constexpr long kSlowSeconds = 30, kSlowBytesPerSecond = 100;  // a slower transfer fails
constexpr long kMostRedirections = 5;
constexpr long kOk = 200, kPartial = 206, kNothingMore = 416;

struct Transfer {
  const Download& what;
  CURL* curl;
  std::uint64_t done;      // bytes of the file
  std::string range;       // Content-Range of the response
  bool has_begun = false;  // true once the body has begun
  std::string trouble;     // the reason if this side aborted the transfer
};

bool begin_body(Transfer& t) {
  long code = 0;
  curl_easy_getinfo(t.curl, CURLINFO_RESPONSE_CODE, &code);
  t.has_begun = true;
  if (code == kPartial && t.range.starts_with("bytes " + std::to_string(t.done) + "-")) return true;
  if (code == kPartial) {
    t.trouble = "the server did not send the requested range";
    return false;
  }
  t.done = 0;  // the server sends the whole file
  if (::ftruncate(t.what.file, 0) == 0 && ::lseek(t.what.file, 0, SEEK_SET) == 0) return true;
  t.trouble = std::strerror(errno);
  return false;
}

std::size_t take_body(char* bytes, std::size_t, std::size_t size, void* transfer) {
  Transfer& t = *static_cast<Transfer*>(transfer);
  if (!t.has_begun && !begin_body(t)) return 0;
  if (size > t.what.max_size - t.done) {
    t.trouble = "it has more than " + std::to_string(t.what.max_size) + " bytes";
    return 0;
  }
  for (std::size_t at = 0; at < size;) {
    const ssize_t written = ::write(t.what.file, bytes + at, size - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      t.trouble = std::string("it cannot be written: ") + std::strerror(errno);
      return 0;
    }
    at += static_cast<std::size_t>(written);
  }
  t.done += size;
  return size;
}

std::size_t take_header(char* bytes, std::size_t, std::size_t size, void* transfer) {
  constexpr std::string_view kName = "content-range: ";
  std::string& range = static_cast<Transfer*>(transfer)->range;
  const std::string_view line(bytes, size);
  if (line.starts_with("HTTP/")) range.clear();  // another response begins, for example after a redirection
  if (size > kName.size() && ::strncasecmp(bytes, kName.data(), kName.size()) == 0)
    range = line.substr(kName.size(), 64);
  return size;
}

int take_progress(void* transfer, curl_off_t size, curl_off_t done, curl_off_t, curl_off_t) {
  const Transfer& t = *static_cast<Transfer*>(transfer);
  if (t.what.stop != nullptr && t.what.stop->load()) return 1;
  const std::uint64_t before = t.done - std::min<std::uint64_t>(t.done, static_cast<std::uint64_t>(done));
  if (t.what.on_progress && t.has_begun)
    t.what.on_progress(t.done, size > 0 ? before + static_cast<std::uint64_t>(size) : 0);
  return 0;
}

void restrict_protocols(CURL* curl, bool may_be_http) {
#if LIBCURL_VERSION_NUM >= 0x075500
  const char* const protocols = may_be_http ? "http,https" : "https";
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, protocols);
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
#else
  const long protocols = may_be_http ? CURLPROTO_HTTP | CURLPROTO_HTTPS : CURLPROTO_HTTPS;
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS, protocols);
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, protocols);
#endif
}

}  // namespace

Status download(const Download& what) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), curl_easy_cleanup);
  if (ready != CURLE_OK || curl == nullptr) return Error{what.url + ": libcurl does not start"};
  Transfer t{what, curl.get(), what.have, {}, false, {}};
  char said[CURL_ERROR_SIZE] = {};
  const auto set = [&](CURLoption option, auto value) { curl_easy_setopt(curl.get(), option, value); };
  const std::string range = std::to_string(what.have) + "-", agent = "gradwire/" + std::string(version());
  set(CURLOPT_URL, what.url.c_str());
  restrict_protocols(curl.get(), what.may_be_http);
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, kMostRedirections);
  set(CURLOPT_FAILONERROR, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(CURLOPT_LOW_SPEED_TIME, kSlowSeconds);
  set(CURLOPT_LOW_SPEED_LIMIT, kSlowBytesPerSecond);
  set(CURLOPT_USERAGENT, agent.c_str());
  if (what.have > 0) set(CURLOPT_RANGE, range.c_str());
  set(CURLOPT_ERRORBUFFER, said);
  set(CURLOPT_WRITEFUNCTION, take_body);
  set(CURLOPT_WRITEDATA, &t);
  set(CURLOPT_HEADERFUNCTION, take_header);
  set(CURLOPT_HEADERDATA, &t);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, take_progress);
  set(CURLOPT_XFERINFODATA, &t);
  const CURLcode result = curl_easy_perform(curl.get());
  long code = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &code);
  if (result == CURLE_HTTP_RETURNED_ERROR && code == kNothingMore && what.have > 0) return Unit{};
  if (result == CURLE_OK && code != kOk && code != kPartial)
    return Error{what.url + ": the server answers " + std::to_string(code)};
  if (result == CURLE_OK) return Unit{};
  if (result == CURLE_ABORTED_BY_CALLBACK) return Error{what.url + ": stopped"};
  const std::string reason = !t.trouble.empty() ? t.trouble
                             : said[0] != 0     ? said
                                                : curl_easy_strerror(result);
  return Error{what.url + ": " + reason};
}

}  // namespace gradwire
