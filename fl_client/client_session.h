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

#include "fl_client/link.h"
#include "fl_client/local_problem.h"
#include "proto/frame.h"
#include "proto/log.h"

namespace gradwire {

class ClientMemory;

struct ClientIdentity {
  std::string name;           // the same on every connection
  std::uint64_t process = 0;  // another one in every process
  DataChoice data;            // paths relative to the working directory
  Log log;
};

// How one connection ended.
struct ClientEnding {
  bool goodbye = false;
  std::string why;                           // else
  std::chrono::milliseconds retry_after{0};  // the server does not want to see us earlier
};

class ClientSession {
 public:
  // memory: null when nothing survives this process; else it must outlive the session.
  ClientSession(ClientIdentity identity, ClientMemory* memory);
  ~ClientSession();

  // A connection begins; what to write first.
  std::string hello();
  // Of the next frame.
  std::uint64_t max_payload() const;
  // Takes in a frame whose head was read. Throws ClientError when the server says no for good, DataError when
  // this client's data cannot be used.
  std::optional<ClientEnding> take(Link& link, const Prefix& prefix, std::span<const std::byte> header);
  // The last request is still to be answered. When more has come already it may be superseded: take that
  // first.
  bool asked() const;
  // The answer, in steps: while one thread is in compute(), another may call take(). finish_answer() sends it
  // unless more was asked meanwhile, or there is no link any more (null).
  std::optional<ClientEnding> begin_answer();
  void compute();
  std::optional<ClientEnding> finish_answer(Link* link);
  // Makes an end of a compute() on another thread: it throws. REQUIRES: the session ends.
  void stop();

  // On this connection: the server let us in; an answer was sent.
  bool welcome() const;
  bool answered() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
