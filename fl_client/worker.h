// One client in one run, after the handshake: its oracle, its protocol state, and the codec. A worker
// outlives its connections.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "config/run_plan.h"
#include "engine/problems/problem.h"
#include "fl_client/own_oracle.h"
#include "gradwire/oracle.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"

namespace gradwire {

class ClientJournal;
class UploadChunks;

class Worker {
 public:
  virtual ~Worker() = default;

  virtual std::uint64_t max_payload() const = 0;
  // Forgets the order of requests, because a new connection begins.
  virtual void begin_connection() = 0;
  enum class Received : std::uint8_t { kRequest, kShutdown };
  // Receive a Round frame in two steps, which supersedes a request that was not taken up yet: the head names
  // the places of the payload, and the payload is then there. An error ends the connection. Another thread
  // may compute meanwhile.
  virtual Result<std::span<const std::span<std::byte>>> receive_head(const Prefix& prefix,
                                                                     std::span<const std::byte> header) = 0;
  virtual Result<Received> receive_payload() = 0;
  // Returns the request id of the last received request.
  virtual std::uint64_t request_id() const = 0;
  // Returns whether the last received request shows that the server has lost rounds of this client. True once
  // for each loss. REQUIRES: no computation is in progress.
  virtual bool finds_older_server() = 0;
  // Take up the last received request, compute its answer, send it (or not), and put it away, in this order.
  // answer() returns what to send, which stays until put_away(); null if there is nothing.
  // `may_send_chunks` says whether the server accepts chunks of the answer (chunks()).
  virtual Status take_up(bool may_send_chunks) = 0;
  virtual void compute() = 0;
  virtual const Encoded* answer() = 0;
  virtual void answer_sent() = 0;
  virtual void put_away() = 0;
  // Returns the chunks of the answer that may be sent while it is computed, or null.
  virtual UploadChunks* chunks() = 0;
  // Makes compute() on another thread end soon, by OracleStopped. The next take_up() lifts the stop.
  virtual void stop() = 0;
  // Returns whether a newer request has arrived while the answer is computed, and stopping the computation
  // leaves no trace in the client's state.
  virtual bool is_superseded() const = 0;
  // Returns whether the client's oracle divides large batches among the threads of make_worker().
  virtual bool shares_work() const = 0;
  // Returns the number of rounds answered so far.
  virtual std::uint64_t answered() const = 0;
  // The number of payload bytes in these answers, and the number of them that were sent in chunks.
  struct Sent {
    std::uint64_t bytes = 0, in_chunks = 0;
  };
  virtual Sent sent() const = 0;
};

struct WorkerOptions {
  // With a journal, which must outlive the worker, it continues where an earlier process stopped in the run
  // that the Start message `run` names. Otherwise it starts from the beginning.
  ClientJournal* journal = nullptr;
  std::string run = {};
  WorkSharing sharing = {};
  OwnOracle oracle = {};      // for problem.kind = "custom", in the precision of the plan
  std::stop_token stop = {};  // stops the oracle for good
};

// Makes a worker for the plan of plan_of_start(). Throws ConfigError, DataError or std::runtime_error, or
// OracleStopped while it repeats the answers of a journal.
std::unique_ptr<Worker> make_worker(const RunPlan& plan, ClientDataset part, std::uint32_t client,
                                    WorkerOptions options = {});

}  // namespace gradwire
