// The whole client protocol around one client algorithm: the same in simulation and in gradwire-client. No
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

// Makes a client algorithm safe against lost, repeated and superseded requests and lost commits: a proposal
// becomes permanent only when the server says that it has used it; a request id that is asked twice gets the
// same reply twice.
template <class Real>
class ClientRuntime {
 public:
  // The oracle must outlive the runtime.
  ClientRuntime(std::shared_ptr<const RunContext<Real>> run_context, ClientId client, Oracle<Real>& oracle);

  // Whether a request from a peer has the parts that handle() reads. In-process requests need no check.
  bool accepts(const Request<Real>& request) const;
  // Whether the server names an older reply as used than it has named before: it has lost rounds.
  bool is_ahead_of(const Request<Real>& request) const { return request.committed < committed_; }

  // Forgets the order of request ids: the requests that follow come over another connection, perhaps from a
  // server whose folder was restored from an older copy.
  void expect_any_request_id() { newest_ = 0; }

  // Who is told of the values of the replies that follow while they are computed; null: nobody.
  void show_early(EarlyValues<Real>* to) { early_ = to; }

  // The answer to `request`; null when there is none (shutdown, or a request older than one already seen). It
  // views this runtime until the next newer request id.
  const Uplink<Real>* handle(const Request<Real>& request, Scratch<Real>& scratch);

  // True: answers and their request ids, in order, determine the client's state. A process that continues an
  // earlier one calls, for each answer, settle() with the request id that its request named as committed,
  // then recall(). The parts must stay unchanged until the next settle() or handle() of a newer request id.
  // An answer that was computed from another state than the present one is no proposal: that state is lost.
  bool follows_replies() const { return algorithm_->follows_replies(); }
  void recall(std::uint64_t committed, const UplinkView<Real>& answered);
  // True: `request` replaces the state by one that does not follow from earlier answers.
  bool jumps(const Request<Real>& request) const {
    return request.resync != nullptr || (request.committed == 0 && committed_ != 0);
  }

  // The server has used the answer to `request_id`: commits it, as the next request would.
  void settle(std::uint64_t request_id);
  // As after a crash that kept the disk: forgets what was proposed but not committed.
  void drop_proposal();
  // Forgets the last evaluation and frees its memory: two vectors of length d.
  void forget_evaluation();
  // The function of this client is now behind another oracle.
  void bind(Oracle<Real>& oracle) { oracle_.bind(oracle); }
  // The same, and somebody else has evaluated it: MemoOracle::remember().
  void bind(Oracle<Real>& oracle, const Evaluated<Real>& known) {
    oracle_.bind(oracle);
    oracle_.remember(known);
  }
  // Becomes the runtime of `client`, whose function is behind `oracle`, with the state of `kept` (null: none
  // is needed), which its reply to `committed` has left. REQUIRES: swap_out() followed the last swap_in().
  void swap_in(ClientId client, std::uint64_t committed, Oracle<Real>& oracle, const Evaluated<Real>& known,
               const KeptState<Real>* kept);
  // After swap_in() with a state that is not the client's: it has said so to the request `request_id`, which
  // now comes again with what restores it.
  void lacked_state(std::uint64_t request_id);
  // Gives the state back. A proposal that is not settled is lost.
  void swap_out(const KeptState<Real>* kept);
  // Becomes the runtime of another client, as if made anew. REQUIRES: the algorithm keeps no client state.
  void rebind(ClientId client, Oracle<Real>& oracle);
  std::uint64_t committed() const {
    return committed_;
  }  // request id of the last reply that became permanent

  // The committed state: all that must survive a restart.
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
