// One client's part in one run, once all have agreed: its oracle, its protocol state, and the codec around
// them. Outlives connections.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "config/run_plan.h"
#include "engine/problems/problem.h"
#include "fl_client/link.h"
#include "proto/wire/frame.h"

namespace gradwire {

class ClientJournal;
class UploadChunks;

class Worker {
 public:
  virtual ~Worker() = default;

  virtual std::uint64_t max_payload() const = 0;
  // Forgets the order of requests: those of another connection follow.
  virtual void begin_connection() = 0;
  enum class Received : std::uint8_t { kRequest, kShutdown };
  // Takes in the Round frame with this head; it supersedes a request that was not taken up yet. An error ends
  // the connection. May be called while another thread computes.
  virtual Result<Received> receive(Link& from, const Prefix& prefix, std::span<const std::byte> header) = 0;
  // Of the request received last.
  virtual std::uint64_t request_id() const = 0;
  // Whether the request received last shows that the server has lost rounds that this client took part in.
  // True once for each loss. REQUIRES: nothing is computed.
  virtual bool finds_server_behind() = 0;
  // The request received last is answered in steps: it is taken up, the answer is computed, then sent or not,
  // and put away.
  // may_send_chunks: the server takes pieces of the answer (pieces()).
  virtual Status take_up(bool may_send_chunks) = 0;
  virtual void compute() = 0;
  virtual Status send(Link& to) = 0;
  virtual void put_away() = 0;
  // What may be sent of the answer while it is computed; null: nothing.
  virtual UploadChunks* pieces() = 0;
  // Called while another thread computes: compute() ends soon, by OracleStopped; take_up() begins anew.
  virtual void stop() = 0;
  // Of the answer that is being computed: a request with a newer request id has arrived, and an answer that
  // is stopped half way leaves nothing behind.
  virtual bool is_superseded() const = 0;
  // Rounds answered so far.
  virtual std::uint64_t answered() const = 0;
  // Payload bytes of these answers, and how many of them went in pieces.
  struct Sent {
    std::uint64_t bytes = 0, in_pieces = 0;
  };
  virtual Sent sent() const = 0;
};

// `plan`: of plan_of_start(). With a memory (which must outlive the worker) the worker continues where an
// earlier process stopped in the run that the Start message `run` names; null: it starts from the beginning.
// Throws ConfigError, DataError or std::runtime_error.
std::unique_ptr<Worker> make_worker(const RunPlan& plan, const ClientDataset& part, std::uint32_t client,
                                    ClientJournal* journal = nullptr, const std::string& run = "");

}  // namespace gradwire
