// The client's side of the protocol, over any connection: a state machine without sockets, clocks and
// threads. It takes the head of a frame, names the places where it wants the payload, and is told when bytes
// have arrived. It names the bytes to send, and is told when they have left. A session outlives its
// connections.
//
//   session.begin_connection(on_pace);
//   send outgoing(), and call left(), until it is empty
//   for each frame:
//     take_head(prefix, header); read wanted(), and call arrived(), until it is empty; send as above
//     if asked() and no frame waits: begin_answer(), compute(), finish_answer(); send as above
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
  bool sends_chunks = true;                  // parts of an answer can be sent while it is computed
};

// The end of one connection.
struct ClientEnding {
  bool shutdown = false;
  std::string why;                           // empty after a shutdown
  std::chrono::milliseconds retry_after{0};  // the client must not reconnect earlier
};

// The pace of a connection, as the server's experiment sets it.
struct Pace {
  std::chrono::milliseconds heartbeat{0};  // each end sends something at least once in this time
  std::uint64_t bytes_per_second = 0;  // messages of the server may take the time that they need at this rate
};

class UploadChunks;

class ClientSession {
 public:
  // `journal` is null if nothing survives this process; otherwise it must outlive the session.
  ClientSession(ClientIdentity identity, ClientJournal* journal);
  ~ClientSession();

  // Begins a connection. Calls on_pace() once the server has accepted the client, before the session reads
  // the client's data, which may take long.
  void begin_connection(std::function<void(const Pace&)> on_pace);
  // Drops the bytes that were not sent. Call it when a connection ends.
  void end_connection();

  // Returns the maximal payload size of the next frame in bytes.
  std::uint64_t max_payload() const;
  // Takes the head of the next frame, and then its payload: wanted() is the place of the next bytes, and
  // empty once the frame is whole. These functions return an ending, or throw ClientError or ClientRefused if
  // the server refuses the client for good, DataError if this client's data cannot be used, and exceptions of
  // the program's oracle. Send the outgoing bytes even then: they tell the server of this client's own
  // errors, by the reason or only by the type of the exception. REQUIRES of take_head(): wanted() is empty.
  std::optional<ClientEnding> take_head(const Prefix& prefix, std::span<const std::byte> header);
  std::span<std::byte> wanted() const;
  std::optional<ClientEnding> arrived(std::size_t bytes);
  // Returns the next bytes to send; empty if there are none. The view is valid until the next call of another
  // function, except of those that another thread may call during compute().
  std::span<const std::span<const std::byte>> outgoing();
  void left(std::size_t bytes);

  // Returns whether the last request can be answered now: it was not answered yet, no other frame is
  // arriving, and the last answer has left. If more frames have arrived, take them first, because one of them
  // may supersede the request.
  bool asked() const;
  // Compute the answer in three steps. While one thread is in compute(), another may take frames and send the
  // outgoing bytes. finish_answer() adds the answer to them, unless a newer request has arrived or the
  // connection is lost.
  std::optional<ClientEnding> begin_answer();
  void compute();
  std::optional<ClientEnding> finish_answer(bool is_connected);
  // Tells the server that compute() threw the exception that is being handled. The message has only its type,
  // because its text may quote data.
  void tell_exception();
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
  // Return how many answers of this client came too late, and how many it has sent, in the run so far.
  std::uint64_t late() const;
  std::uint64_t sent() const;

 private:
  // Calls f(), and tells the server about what it throws.
  template <class F>
  std::optional<ClientEnding> telling_errors(F&& f);

  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
