// Clients of gradwire.h with the functions of tests/api/network/network_fixture.h.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <poll.h>
#include <string>
#include <thread>

#include "c_api/gradwire.h"
#include "tests/api/network/network_fixture.h"

namespace gradwire {

// The function of one client, as callbacks.
template <class Real>
struct CallerRows {
  explicit CallerRows(std::uint32_t part) : rows(part, kDim, 5 + 3 * part) {}

  gradwire_oracle oracle() {
    gradwire_oracle calls{};
    calls.struct_size = sizeof calls;
    calls.user = this;
    calls.sample_count = rows.sample_count();
    calls.begin = [](void* user, const gradwire_run_info* run) {
      static_cast<CallerRows*>(user)->run = *run;
      return static_cast<CallerRows*>(user)->begin_result;
    };
    const auto gradient = [](void* user, const Real* x, std::size_t d, const std::uint32_t* batch,
                             std::size_t n, Real* to, double* loss) -> std::int32_t {
      auto& self = *static_cast<CallerRows*>(user);
      *loss = self.rows.loss_and_gradient({x, d}, Batch(batch, n), {to, d});
      return self.on_gradient ? self.on_gradient(*loss) : 0;
    };
    if constexpr (sizeof(Real) == sizeof(float))
      calls.gradient_f32 = gradient;
    else
      calls.gradient_f64 = gradient;
    return calls;
  }

  Rows<Real> rows;
  gradwire_run_info run{};
  std::int32_t begin_result = 0;
  std::function<std::int32_t(double& loss)> on_gradient;
};

// `server` must live as long as the options are used.
inline gradwire_options options_for(const char* server) {
  gradwire_options options{};
  options.struct_size = sizeof options;
  options.server = server;
  return options;
}

// A client with its error. Null if it could not be made.
class CClient {
 public:
  CClient(const gradwire_options& options, const gradwire_oracle& oracle)
      : status(gradwire_create(&options, &oracle, &client, why.data(), why.size())) {}
  ~CClient() { gradwire_destroy(client); }
  CClient(const CClient&) = delete;
  CClient& operator=(const CClient&) = delete;

  std::string message() const { return client == nullptr ? why.data() : gradwire_message(client); }
  gradwire_progress progress() const {
    gradwire_progress now{};
    now.struct_size = sizeof now;
    EXPECT_EQ(gradwire_progress_of(client, &now), GRADWIRE_OK);
    return now;
  }
  // Runs by steps, as a program with a loop of its own does.
  gradwire_status run_by_steps() {
    gradwire_wait next{};
    next.struct_size = sizeof next;
    gradwire_status last = GRADWIRE_OK;
    while ((last = gradwire_step(client, &next)) == GRADWIRE_OK) {
      pollfd ready{next.fd, POLLIN, 0};
      ::poll(&ready, 1, next.timeout_ms);
    }
    return last;
  }

  gradwire_client* client = nullptr;
  std::array<char, 400> why{};
  const gradwire_status status;
};

// A run of one client that sets what a test needs.
class OneCClient : public ::testing::Test {
 protected:
  void start(const KeyValues& more = {}) {
    KeyValues keys = {{"algorithm.name", "gd"}, {"algorithm.step_size", 0.2}, {"clients.count", 1}};
    keys.insert(keys.end(), more.begin(), more.end());
    server.emplace(custom(keys), ServerOptions{.state = folder.path() / "state", .log = lines.log()});
    address = server->address();
  }

  const TemporaryFolder folder;
  Lines lines;
  std::optional<Server> server;
  std::string address;
  CallerRows<double> rows{0};
};

}  // namespace gradwire
