// What one client says and does on its connections to the server, whatever carries the bytes: a state machine
// fed with frames, without sockets, clocks or threads. Outlives connections.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/log.h"
#include "fl_client/link.h"
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
  std::optional<Credentials> credentials{};  // of that name; nothing: it cannot prove who it is
};

// How one connection ended.
struct ClientEnding {
  bool shutdown = false;
  std::string why;                           // if it was no shutdown
  std::chrono::milliseconds retry_after{0};  // the client must not reconnect earlier
};

class UploadChunks;

class ClientSession {
 public:
  // memory: null when nothing survives this process; else it must outlive the session.
  ClientSession(ClientIdentity identity, ClientJournal* journal);
  ~ClientSession();

  // To be called when a connection begins; returns the first frame to write.
  std::string hello();
  // The most bytes that the payload of the next frame may have.
  std::uint64_t max_payload() const;
  // Takes in a frame whose head was read. Throws ClientError when the server refuses the client for good,
  // DataError when this client's data cannot be used.
  std::optional<ClientEnding> take(Link& link, const Prefix& prefix, std::span<const std::byte> header);
  // The last request is not answered yet. If more frames have arrived, take() them first: one of them may
  // supersede the request.
  bool asked() const;
  // The answer, in steps: while one thread is in compute(), another may call take(). finish_answer() sends
  // the answer, unless a newer request has arrived or the link is lost (null).
  std::optional<ClientEnding> begin_answer();
  void compute();
  std::optional<ClientEnding> finish_answer(Link* link);
  // Between begin_answer() and finish_answer(): what may be sent of the answer, while it is computed or
  // later; null: nothing.
  UploadChunks* pieces();
  // Stops a compute() that runs on another thread: it throws OracleStopped. REQUIRES: the session is
  // about to end.
  void stop();
  // The same where a newer request than that has arrived and the algorithm's clients keep no state; the
  // session goes on.
  void stop_if_superseded();

  // On this connection: the server has accepted the client; the client has sent an answer.
  bool welcome() const;
  bool answered() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
