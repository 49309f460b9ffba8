// A client apart from its connections: its name, keys, journal and session, and when it connects again.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "fl_client/client.h"
#include "fl_client/client_journal.h"
#include "fl_client/client_session.h"
#include "fl_client/own_tls.h"
#include "proto/wire/back_off.h"

namespace gradwire {

class Membership {
 public:
  using Clock = std::chrono::steady_clock;

  // Opens the folders of the state and the identity. `settings` must outlive it. Throws BadInput (one line)
  // or std::runtime_error. `sends_chunks` says whether parts of an answer can be sent while it is computed.
  explicit Membership(const ClientSettings& settings, bool sends_chunks,
                      Clock::time_point now = Clock::now());
  ~Membership();

  ClientSession& session() const { return *session_; }
  bool uses_tls() const { return tls_.has_value(); }
  // Returns the client's end of TLS for a new connection. REQUIRES: uses_tls(), and no earlier one exists.
  std::unique_ptr<StreamFilter> tls_to(const std::string& host);

  // Takes the end of a connection, or, with `was_connected` false, of the attempt to make one; kForeign says
  // that the server belongs to another authority. Returns how long to wait before the next one, or nullopt if
  // the run is over. Throws ClientRefused or ClientError if the client gives up. REQUIRES: the connection is
  // closed.
  std::optional<std::chrono::milliseconds> ended(const ClientEnding& ending, bool was_connected,
                                                 ErrorKind kind, Clock::time_point now = Clock::now());

 private:
  void log(LogLine line) const {
    if (settings_.log) settings_.log(line);
  }

  const ClientSettings& settings_;
  std::optional<ClientFolder> folder_;
  std::optional<ClientJournal> journal_;
  std::unique_ptr<ClientSession> session_;
  std::optional<OwnTls> tls_;
  BackOff back_off_;
  Clock::time_point last_contact_, warned_since_;  // a contact that was lost warns once
  int foreign_ = 0;                                // servers in a row
  bool was_welcome_ = false;
};

}  // namespace gradwire
