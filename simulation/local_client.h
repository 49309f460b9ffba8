// A client in this process with its injected faults; the simulated transports share it.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/serialize.h"
#include "engine/client_objectives.h"
#include "proto/wire/codec.h"
#include "rounds/round_loop.h"
#include "rounds/runtime.h"
#include "rounds/transport.h"
#include "simulation/encoded_link.h"
#include "simulation/faults.h"

namespace gradwire {

// Objects that one thread needs to run clients.
template <class Real>
struct LocalWorker {
  std::unique_ptr<RebindableOracle<Real>> oracle;  // bound to the client at work
  Scratch<Real> scratch;
  std::unique_ptr<Codec<Real>> codec;
};

// Turns zstd off for messages that stay in memory, so that counting their bytes does not compress them.
inline ZstdMode zstd_of(const ZstdMode& asked, bool encoded) {
  return encoded ? asked : ZstdMode{.kind = ZstdMode::Kind::kOff};
}

template <class Real>
std::vector<LocalWorker<Real>> make_workers(const ClientObjectives<Real>& functions, std::size_t count,
                                            const CodecContext& context) {
  std::vector<LocalWorker<Real>> workers(count);
  for (LocalWorker<Real>& worker : workers) {
    worker.oracle = functions.oracle();
    worker.codec = std::make_unique<Codec<Real>>(context);
  }
  return workers;
}
template <class Real>
std::vector<RebindableOracle<Real>*> oracles_of(const std::vector<LocalWorker<Real>>& workers) {
  std::vector<RebindableOracle<Real>*> oracles;
  for (const LocalWorker<Real>& worker : workers) oracles.push_back(worker.oracle.get());
  return oracles;
}

// Returns the bytes that an evaluation would send to each client and receive from it.
template <class Real>
EvaluationBytes evaluation_bytes(Codec<Real>& codec, const Downlink<Real>& body, RequestKind kind) {
  Uplink<Real> answer;
  if (kind == RequestKind::kEvaluate) answer.parts = body.parts;  // as long as a gradient
  EvaluationBytes bytes;
  bytes.request = Codec<Real>::request_bytes(codec.body_bytes(body), 0);
  bytes.answer = codec.encoded_bytes(answer);
  answer.tested = 1;
  bytes.counts = codec.encoded_bytes(answer) - bytes.answer;
  return bytes;
}

template <class Real>
struct LocalClient {
  std::unique_ptr<ClientRuntime<Real>> runtime;
  std::unique_ptr<ClientRuntime<Real>>
      previous_runtime;                     // the one before a state loss; its reply may still be in flight
  std::unique_ptr<EncodedLink<Real>> link;  // null if messages are not encoded
  // Saved state that a crash before the next request restores. Empty unless a snapshot since the last request
  // made a reply permanent.
  std::string before_commit;

  LocalClient(std::shared_ptr<const RunContext<Real>> run_context, ClientId client, Oracle<Real>& oracle)
      : runtime(std::make_unique<ClientRuntime<Real>>(std::move(run_context), client, oracle)) {}

  // Applies the faults that hit the client's process before it gets a request.
  void apply_faults(const InjectedFaults& injected, std::shared_ptr<const RunContext<Real>> run_context,
                    ClientId client, Oracle<Real>& oracle) {
    if (injected.state_loss) {
      previous_runtime = std::move(runtime);
      runtime = std::make_unique<ClientRuntime<Real>>(std::move(run_context), client, oracle);
    } else if (injected.crashes && !before_commit.empty()) {
      if (!runtime->load(before_commit)) throw std::logic_error("a client cannot read its own state");
    } else if (injected.crashes) {
      runtime->drop_proposal();
    }
    before_commit.clear();
  }

  // Makes the client's reply to the request `committed` permanent, and saves the client for another process.
  // With `can_crash`, also saves the state before the commit, because a crash may come before the client
  // hears of the commit.
  void save(std::uint64_t committed, bool can_crash, Saver& to) {
    std::string before = can_crash ? runtime->save() : "";
    runtime->settle(committed);
    const std::string after = runtime->save();
    if (before_commit.empty() && before != after) before_commit = std::move(before);
    to(std::vector(before_commit.begin(), before_commit.end()));
    to(std::vector(after.begin(), after.end()));
  }
  bool load(Loader& from) {
    std::vector<char> before, after;
    from(before), from(after);
    before_commit.assign(before.begin(), before.end());
    return runtime->load({after.data(), after.size()});
  }

  // Encoded parts of a request; null if messages are not encoded.
  struct Bytes {
    std::shared_ptr<const EncodedBody<Real>> body, resync;
  };

  // Answers the request. Returns false if no reply arrives. The event views this client until its next newer
  // request id. With `encoded`, request and reply pass through the codec. `known` is the client's result in
  // the last evaluation.
  bool answer(ClientId client, Request<Real> request, bool encoded, const Bytes& bytes,
              const InjectedFaults& injected, const Codec<Real>& codec, LocalWorker<Real>& worker,
              Event<Real>& event, const Evaluated<Real>& known = {}) {
    if (injected.request_lost) return false;
    worker.oracle->bind(client);
    if (known.x.empty()) {
      runtime->bind(*worker.oracle);
    } else {
      runtime->bind(*worker.oracle, known);
    }
    if (encoded) {
      if (!link) link = std::make_unique<EncodedLink<Real>>(codec.context());
      request = link->down(codec.encode(request, bytes.body.get(), bytes.resync.get()));
    }
    const Uplink<Real>* reply = runtime->handle(request, worker.scratch);
    if (reply == nullptr || injected.reply_lost) return false;
    event.kind = Event<Real>::Kind::kReply;
    if (encoded) {
      const Encoded& message = worker.codec->encode(*reply);
      event.bytes = message.bytes;
      event.up = link->up(message, client, &worker.scratch.blocks);
    } else {
      event.bytes = worker.codec->encoded_bytes(*reply);
      event.up = *reply;
    }
    return true;
  }
};

}  // namespace gradwire
