// A server for one client in the same process, which asks it for a few answers. It has no algorithm: it sends
// messages of the right shape, and reads only the kind of the answers.
#pragma once

#include <memory>

#include "config/run_plan.h"

namespace gradwire {

class DryServer {
 public:
  virtual ~DryServer() = default;
  // Returns the client's end of the connection, or -1 after the first call: a client that lost it has failed.
  virtual int connect() = 0;
  // Reads and writes what can be read and written now.
  virtual void step() = 0;
};

// Makes a server for the plan, which must outlive it. Throws BadInput if no message has a shape that the
// client accepts.
std::unique_ptr<DryServer> make_dry_server(const RunPlan& plan);

}  // namespace gradwire
