// The client's side of the protocol, over any connection: a state machine that takes frames and has no
// sockets, clocks or threads. A session outlives its connections.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "base/log.h"
#include "fl_client/link.h"
#include "gradwire/client.h"
#include "gradwire/oracle.h"
#include "proto/security/login.h"
#include "proto/wire/frame.h"
#include "samples/client_data.h"

namespace gradwire {

class ClientJournal;

struct ClientIdentity {
  std::string name;           // the same on every connection
  std::uint64_t process = 0;  // different in every process
  ClientData data;
  Log log;
  std::optional<Credentials> credentials{};  // for `name`; empty if the client cannot authenticate
  WorkSharing sharing{};                     // threads for the gradient of a large batch
  std::optional<OracleFactory> oracle{};     // the program's own, in place of `data`
  std::stop_token stop{};                    // stops the oracle for good
  std::function<void()> on_accepted{};       // called once the server has accepted the client; may be empty
};

// The end of one connection.
struct ClientEnding {
  bool shutdown = false;
  std::string why;                           // empty after a shutdown
  std::chrono::milliseconds retry_after{0};  // the client must not reconnect earlier
};

class UploadChunks;

class ClientSession {
 public:
  // `journal` is null if nothing survives this process; otherwise it must outlive the session.
  ClientSession(ClientIdentity identity, ClientJournal* journal);
  ~ClientSession();

  // Starts a connection. Returns the first frame to write.
  std::string hello();
  // Returns the maximal payload size of the next frame in bytes.
  std::uint64_t max_payload() const;
  // Processes a frame whose head was read. Throws ClientError or ClientRefused if the server refuses the
  // client for good, DataError if this client's data cannot be used, and exceptions of the program's oracle.
  // Tells the server of its own errors: the reason, or only the type of the exception.
  std::optional<ClientEnding> take(Link& link, const Prefix& prefix, std::span<const std::byte> header);
  // Returns whether the last request is not answered yet. If more frames have arrived, take() them first,
  // because one of them may supersede the request.
  bool asked() const;
  // Compute the answer in three steps. While one thread is in compute(), another may call take().
  // finish_answer() sends the answer, unless a newer request has arrived or the link is lost (null).
  std::optional<ClientEnding> begin_answer();
  void compute();
  std::optional<ClientEnding> finish_answer(Link* link);
  // Tells the server that compute() threw the exception that is being handled. The message has only its type,
  // because its text may quote data.
  static void tell_exception(Link& link);
  // Returns the chunks of the answer that may be sent between begin_answer() and finish_answer(), or null if
  // none may.
  UploadChunks* chunks();
  // Stops a compute() that runs on another thread; it throws OracleStopped. REQUIRES: the session is about to
  // end.
  void stop();
  // Stops compute() only if a newer request has arrived and the algorithm's clients keep no state. The
  // session continues.
  void stop_if_superseded();

  // Return whether the server has accepted the client on this connection, and whether the client has sent an
  // answer on it.
  bool welcome() const;
  bool answered() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
