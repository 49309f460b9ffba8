#pragma once

#include <optional>
#include <vector>

#include "algorithms/core/context.h"
#include "algorithms/core/message.h"
#include "compressors/payload.h"

namespace gradwire {

// The server's copies of one d-vector per client, advanced by the same arithmetic as the client's own. They
// restore a client that lost its state. The server has them only if run_context.keep_client_state_replicas is
// set. Each row is allocated at its first use.
template <class Real>
class Mirror {
 public:
  explicit Mirror(const RunContext<Real>& run_context)
      : rows_(run_context.keep_client_state_replicas ? run_context.n : 0) {}

  void add(const UplinkView<Real>& up, std::size_t k, Real scale) {
    if (rows_.empty()) return;
    Vec<Real>& row = rows_[up.client];
    if (row.empty()) row.resize(up.parts[k].dim);
    add_decoded<Real>(up.parts[k], scale, row);
  }

  // Returns the resync message for a client that lost its vector, or nullopt if no copies are kept. The
  // message has no parts if no reply of the client was used; its vector is then 0.
  std::optional<Downlink<Real>> restore(ClientId i, std::uint32_t round) const {
    if (rows_.empty()) return std::nullopt;
    Downlink<Real> down;
    down.round = round;
    if (!rows_[i].empty()) down.parts = {Payload<Real>::dense(rows_[i])};
    return down;
  }

  std::vector<Vec<Real>>& rows() { return rows_; }
  const std::vector<Vec<Real>>& rows() const { return rows_; }

 private:
  std::vector<Vec<Real>> rows_;
};

// Sets the client's vector from the message of Mirror::restore().
template <class Real>
void adopt_vector(const Downlink<Real>& resync, std::size_t d, Vec<Real>& v) {
  v.assign(d, Real(0));
  if (resync.parts.size() > 0) add_decoded<Real>(resync.parts[0], Real(1), v);
}

}  // namespace gradwire
