// The client's side of the protocol around one client algorithm, for simulations and gradwire-client. Does no
// I/O.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "algorithms/algorithms.h"
#include "rounds/memo_oracle.h"

namespace gradwire {

// Protects a client algorithm against lost, repeated and superseded requests and lost commits. The new state
// that a reply proposes becomes permanent only once the server says that it used the reply. A repeated
// request id gets the same reply.
template <class Real>
class ClientRuntime {
 public:
  // The oracle must outlive the runtime.
  ClientRuntime(std::shared_ptr<const RunContext<Real>> run_context, ClientId client, Oracle<Real>& oracle);

  // Returns whether a request from a peer has the parts that handle() reads. In-process requests need no
  // check.
  bool accepts(const Request<Real>& request) const;
  // Returns whether the request names an older reply as used than an earlier request did. If so, the server
  // has lost rounds.
  bool is_ahead_of(const Request<Real>& request) const { return request.committed < committed_; }

  // Accepts any request id next, even one below those seen before. Call it for a new connection, because the
  // server's folder may have been restored from an older copy.
  void expect_any_request_id() { newest_ = 0; }

  // Sets the receiver of early values, which gets the values of later replies while they are computed. Null
  // disables this.
  void show_early(EarlyValues<Real>* to) { early_ = to; }

  // Returns the answer to `request`, or null for a shutdown and for a request older than one already seen.
  // The answer views this runtime until the next newer request id.
  const Uplink<Real>* handle(const Request<Real>& request, Scratch<Real>& scratch);

  // Returns whether the answers and their request ids, in order, determine the client's state. If so, a
  // resumed process replays each answer: it calls settle() and recall() with the request id that the answer's
  // request named as committed. The parts must stay unchanged until the next settle() or handle() of a newer
  // request id. recall() takes an answer as a proposal only if the present state is the one that computed it.
  bool follows_replies() const { return algorithm_->follows_replies(); }
  void recall(std::uint64_t committed, const UplinkView<Real>& answered);
  // Returns whether `request` replaces the client's state by one that earlier answers do not determine.
  bool jumps(const Request<Real>& request) const {
    return request.resync != nullptr || (request.committed == 0 && committed_ != 0);
  }

  // Commits the answer to `request_id`, because the server has used it. handle() does the same with the
  // `committed` of a request.
  void settle(std::uint64_t request_id);
  // Drops the proposal that is not committed, like a crash after which the disk is intact.
  void drop_proposal();
  // Forgets the last evaluation and frees its memory: two vectors of length d.
  void forget_evaluation();
  // Replaces the oracle by another one of the same function.
  void bind(Oracle<Real>& oracle) { oracle_.bind(oracle); }
  // Does the same, and remembers an evaluation that was computed elsewhere: see MemoOracle::remember().
  void bind(Oracle<Real>& oracle, const Evaluated<Real>& known) {
    oracle_.bind(oracle);
    oracle_.remember(known);
  }
  // Makes this the runtime of `client`, with the oracle of that client's function. `kept` has the client's
  // state after its reply to `committed`, or is null if no state is needed. REQUIRES: swap_out() followed the
  // last swap_in().
  void swap_in(ClientId client, std::uint64_t committed, Oracle<Real>& oracle, const Evaluated<Real>& known,
               const KeptState<Real>* kept);
  // Records, after swap_in() with a wrong state, that the client answered `request_id` with kNeedsState. The
  // next handle() then gets the same request with a resync.
  void lacked_state(std::uint64_t request_id);
  // Moves the state back into `kept`. Drops a proposal that is not settled.
  void swap_out(const KeptState<Real>* kept);
  // Makes this a new runtime of `client`. REQUIRES: the algorithm keeps no client state.
  void rebind(ClientId client, Oracle<Real>& oracle);
  // Returns the request id of the last reply that became permanent.
  std::uint64_t committed() const { return committed_; }

  // Saves the committed state: all that must survive a restart.
  std::string save() const;
  bool load(std::string_view bytes);

  const ClientAlgorithm<Real>& algorithm() const { return *algorithm_; }

 private:
  const Uplink<Real>* evaluate(const Request<Real>& request);
  const Uplink<Real>* reply(const Request<Real>& request, Scratch<Real>& scratch);

  std::shared_ptr<const RunContext<Real>> run_context_;
  ClientId client_;
  MemoOracle<Real> oracle_;
  std::unique_ptr<ClientAlgorithm<Real>> algorithm_;
  bool stateless_, asynchronous_;
  EarlyValues<Real>* early_ = nullptr;
  std::uint64_t committed_ = 0;
  std::uint64_t newest_ = 0;  // request id of the newest request; an older one is late
  bool pending_ = false;      // last_ is a proposal that waits for its commit
  Uplink<Real> last_;         // the latest answer to a round
  Uplink<Real> evaluation_;   // the latest answer to an evaluation
};

}  // namespace gradwire
