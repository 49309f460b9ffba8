// A custom transport in a program that uses gradwire as an installed package. Each client is a process, and
// messages travel through pipes. The model has the same bits as that of the same run in one process.
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "proto/wire/codec.h"
#include "proto/wire/frame.h"
#include "rounds/round_loop.h"
#include "rounds/runtime.h"
#include "simulation/fault_simulation.h"

using namespace gradwire;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::_Exit(1);
}

void read_all(int from, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t got = ::read(from, to.data(), to.size());
    if (got <= 0) fail("a pipe ended in the middle of a message");
    to = to.subspan(static_cast<std::size_t>(got));
  }
}

void write_all(int to, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(to, bytes.data(), bytes.size());
    if (wrote <= 0) fail("a pipe cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
}

void write_message(int to, const Encoded& message) {
  write_all(to, message.prefix);
  write_all(to, std::as_bytes(std::span(message.header)));
  for (const auto section : message.sections) write_all(to, section);
}

// Reads a message into a slot of the codec.
template <class Slot>
void read_message(int from, Slot& slot, std::uint64_t most_bytes) {
  std::array<std::byte, kPrefixBytes> bytes;
  read_all(from, bytes);
  const auto prefix = read_prefix(bytes, most_bytes);
  if (!prefix) fail(prefix.error().message);
  std::vector<std::byte> header(prefix->header_len);
  read_all(from, header);
  throw_if_failed(check_header(bytes, header));
  const auto payload = slot.prepare(*prefix, header);
  if (!payload) fail(payload.error().message);
  for (const std::span<std::byte> part : *payload) read_all(from, part);
}

// f_i(x) = ||x - i||^2 / 2
class Distance final : public Oracle<double> {
 public:
  Distance(std::size_t d, double to) : d_(d), to_(to) {}
  std::size_t dim() const override { return d_; }
  std::size_t sample_count() const override { return 1; }
  double loss_and_gradient(std::span<const double> x, Batch, std::span<double> gradient) override {
    double loss = 0;
    for (std::size_t j = 0; j < d_; ++j) {
      gradient[j] = x[j] - to_ - 0.001 * static_cast<double>(j);
      loss += gradient[j] * gradient[j] / 2;
    }
    return loss;
  }

 private:
  std::size_t d_;
  double to_;
};

CodecContext context_of(const RunContext<double>& run_context) {
  CodecContext context;
  context.seed = run_context.seed;
  context.dim = static_cast<std::uint32_t>(run_context.d);
  context.clients = run_context.n;
  context.compressor = run_context.compressor;
  return context;
}

// Runs a client that answers requests until the shutdown.
void be_client(std::shared_ptr<const RunContext<double>> run_context, ClientId i, int from, int to) {
  Distance oracle(run_context->d, i);
  ClientRuntime<double> runtime(run_context, i, oracle);
  const CodecContext context = context_of(*run_context);
  Codec<double> codec(context);
  RequestSlot<double> slot(context);
  Scratch<double> scratch;
  for (;;) {
    read_message(from, slot, max_payload_bytes(context, sizeof(double)));
    const auto request = slot.finish();
    if (!request) fail(request.error().message);
    if (!runtime.accepts(*request)) fail("a message lacks parts that the algorithm reads");
    if (const Uplink<double>* answer = runtime.handle(*request, scratch))
      write_message(to, codec.encode(*answer));
    if (request->kind == RequestKind::kShutdown) return;
  }
}

class Pipes final : public Transport<double> {
 public:
  explicit Pipes(std::shared_ptr<const RunContext<double>> run_context)
      : run_context_(std::move(run_context)), context_(context_of(*run_context_)), codec_(context_) {
    for (ClientId i = 0; i < run_context_->n; ++i) {
      int down[2], up[2];
      if (::pipe(down) != 0 || ::pipe(up) != 0) fail("no pipe");
      const pid_t child = ::fork();
      if (child == 0) {
        ::close(down[1]), ::close(up[0]);
        be_client(run_context_, i, down[0], up[1]);
        std::_Exit(0);
      }
      ::close(down[0]), ::close(up[1]);
      peers_.push_back({child, down[1], up[0], std::make_unique<UplinkSlot<double>>(context_)});
    }
  }
  ~Pipes() override {
    for (const Peer& peer : peers_) ::waitpid(peer.process, nullptr, 0);
  }

  std::uint64_t send(ClientId client, const Request<double>& request) override {
    // The loop sends the same body to all clients of a round, but this transport may encode it for each.
    std::shared_ptr<const EncodedBody<double>> body, resync;
    if (request.body != nullptr) body = codec_.encode_body(*request.body);
    if (request.resync != nullptr) resync = codec_.encode_body(*request.resync);
    const Encoded message = codec_.encode(request, body.get(), resync.get());
    write_message(peers_[client].to, message);
    if (request.kind != RequestKind::kShutdown) awaited_.push_back(client);
    return message.bytes;
  }

  // Reads the answers in the order of the requests. The RequestTracker orders them by client.
  const Event<double>& next(double) override {
    event_ = {};
    if (awaited_.empty()) return event_;  // a timeout
    const ClientId client = awaited_.front();
    awaited_.pop_front();
    UplinkSlot<double>& slot = *peers_[client].slot;
    read_message(peers_[client].from, slot, max_payload_bytes(context_, sizeof(double)));
    const auto up = slot.finish(client);
    if (!up) fail(up.error().message);
    event_.kind = Event<double>::Kind::kReply;
    event_.up = *up;
    return event_;
  }
  double now() const override { return 0; }

 private:
  struct Peer {
    pid_t process;
    int to, from;
    std::unique_ptr<UplinkSlot<double>> slot;
  };
  std::shared_ptr<const RunContext<double>> run_context_;
  CodecContext context_;
  Codec<double> codec_;
  std::vector<Peer> peers_;
  std::deque<ClientId> awaited_;
  Event<double> event_;
};

Vec<double> run_over(Transport<double>& transport,
                     const std::shared_ptr<const RunContext<double>>& run_context) {
  const auto server = make_server<double>(run_context);
  RunProgress progress;
  RoundLimits limits;
  limits.rounds = 60;
  limits.evaluate_every = 20;
  LoopHooks<double> hooks;
  hooks.on_record = [](const RoundRecord& r) { std::printf("round %u: loss %.6f\n", r.round, r.loss); };
  run_rounds<double>(*server, traits_of(*run_context), *run_context, transport, progress, limits, hooks);
  const auto model = server->model();
  return {model.begin(), model.end()};
}

int main() {
  auto run_context = std::make_shared<RunContext<double>>();
  run_context->n = 5;
  run_context->d = 300;
  run_context->x0.assign(run_context->d, 0.0);
  run_context->compressor = parse_compressor("randk:k=10%", run_context->d, run_context->n);
  run_context->algorithm = {.name = "diana", .compressor = "randk:k=10%", .step_size = "0.1"};
  run_context->algorithm.parameters = {{"alpha", "0.1"}};

  std::vector<Distance> functions;
  for (std::uint32_t i = 0; i < run_context->n; ++i) functions.emplace_back(run_context->d, i);
  std::vector<Oracle<double>*> oracles;
  for (Distance& function : functions) oracles.push_back(&function);

  std::fflush(stdout);
  Pipes pipes(run_context);
  FaultSimulation<double> memory(run_context, oracles, {});
  const bool same = run_over(pipes, run_context) == run_over(memory, run_context);
  std::printf("the same bits over pipes as in memory: %s\n", same ? "yes" : "NO");
  return same ? 0 : 1;
}
