// Targets for the whole server as a state machine with a simulated clock. An attacker sends anything while
// correct clients run. It must not change a bit of the model, unless it claims the name of a client or joins
// before the clients.
#include <cstring>

#include "proto/security/login.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/wire.pb.h"
#include "tests/fuzz/served_run.h"
#include "tests/storage/simulated_disk.h"

namespace gradwire::fuzz {
namespace {

const Served& undisturbed() {
  static const Served served = [] {
    SimulatedDisk disk;
    return serve({}, false, disk);
  }();
  return served;
}

Bytes script_of(bool early) {
  Bytes script;
  put_u8(script, early ? 1 : 0);
  return script;
}
void put_connection(Bytes& script, unsigned number) {
  put_u8(script, 0);
  put_u8(script, number);
}
void put_frame(Bytes& script, FrameType type, const std::string& header, const Bytes& payload = {},
               unsigned channel = 0) {
  put_u8(script, 2);
  put_u8(script, static_cast<unsigned>(type));
  put_u8(script, channel);
  put_sized(script, std::as_bytes(std::span(header)));
  put_sized(script, payload);
}
std::string hello_header(const std::string& name) {
  wire::Hello hello;
  hello.set_protocol(kWireVersion);
  hello.set_client_name(name);
  hello.set_process(77);
  hello.set_connection(1);
  return hello.SerializeAsString();
}
std::string join_header() {
  wire::Join join;
  join.set_columns(0);
  join.set_sample_count(0);
  join.set_test_count(0);
  return join.SerializeAsString();
}
Encoded reply_of(ClientId client, std::uint64_t request_id, Codec<double>& codec, const Vec<double>& values) {
  Uplink<double> reply;
  reply.request_id = request_id;
  reply.round = 1;
  reply.client = client;
  reply.parts = {Payload<double>::dense(values)};
  return codec.encode(reply);
}

}  // namespace

namespace {

bool run_served(Input input, bool by_relay) {
  Cursor cursor(input);
  const bool early = cursor.u8() % 2 == 1;
  SimulatedDisk disk;
  const Served served = serve(cursor.rest(), early, disk, by_relay);
  const Served& expected = undisturbed();
  check(expected.why_not.empty() && expected.states.size() == kServedRounds,
        "the run without the attacker does not end well");
  const bool speaks_for_others = text_of(input).find("honest") != std::string_view::npos;
  if (early || speaks_for_others) return true;
  check(served.why_not.empty(), "the attacker stopped the run of the clients");
  check(served.states == expected.states, "the attacker changed the model of the clients");
  return true;
}

}  // namespace

// Runs a script (served_run.h). The first byte says whether the attacker connects before the others have
// joined.
bool run_server(Input input) { return run_served(input, false); }
// Does the same, but the attacker and one of the clients connect through a relay.
bool run_relay(Input input) { return run_served(input, true); }

// Runs a script (served_run.h) against a server that authenticates clients and has none enrolled. It must
// admit none.
bool run_login(Input input) {
  class RejectAll final : public Authenticator {
   public:
    const std::string& realm() const override { return realm_; }
    Status admit(const Login& login) override {
      const auto signed_text = login_message(realm_, login.name, login.key, login.nonce);
      check(!verify(login.key, signed_text, login.proof.signature),
            "a client knew the nonce before it was drawn");
      asked += 1;
      return Error{"'" + login.name + "' is unknown"};
    }
    bool still_admits(const std::string&) override { return false; }
    int asked = 0;

   private:
    const std::string realm_ = "realm";
  } authenticator;
  SimulatedTime time;
  Random random(1, "login");
  const StreamFaults link_faults{.delay_seconds = 0.001};
  CurrentServer current_server;
  SessionManagerOptions options;
  options.clients = 1;
  options.table = ClientTable(1);
  options.experiment = "experiment";
  options.authenticator = &authenticator;
  Attacker unauthenticated(time, random, link_faults, current_server, input);
  SessionManager session_manager(
      options, std::make_unique<SimulatedSockets>(time, random, link_faults, current_server));
  unauthenticated.begin();
  try {
    session_manager.gather(std::chrono::seconds(90));
    check(false, "no client was admitted");
  } catch (const std::runtime_error&) {  // not all have joined
  }
  check(session_manager.table().joined_count() == 0, "a client was admitted");
  return authenticator.asked > 0;
}
std::vector<Bytes> login_seeds() {
  std::vector<Bytes> seeds;
  wire::Proof proof;
  proof.set_signature(std::string(64, 's'));
  proof.set_token_mac(std::string(32, 'm'));
  wire::Hello hello;
  hello.set_protocol(kWireVersion);
  hello.set_client_name("a");
  hello.set_public_key(std::string(32, 'k'));
  wire::Relay relay;
  relay.set_protocol(kWireVersion);
  relay.set_name("site");
  relay.set_public_key(std::string(32, 'k'));
  for (const bool is_relay : {false, true}) {
    Bytes script;
    put_connection(script, 0);
    if (is_relay) {
      put_frame(script, FrameType::kRelay, relay.SerializeAsString());
    } else {
      put_frame(script, FrameType::kHello, hello.SerializeAsString());
    }
    put_frame(script, FrameType::kProof, proof.SerializeAsString());
    seeds.push_back(std::move(script));
  }
  return seeds;
}

std::vector<Bytes> relay_seeds() { return server_seeds(); }
std::vector<Bytes> server_seeds() {
  std::vector<Bytes> seeds;
  for (const bool early : {false, true})
    for (const std::string name : {"stranger", "honest-0"}) {
      Bytes script = script_of(early);
      put_connection(script, 0);
      put_frame(script, FrameType::kHello, hello_header(name));
      put_frame(script, FrameType::kJoin, join_header());
      put_frame(script, FrameType::kHeartbeat, "");
      CodecContext context;
      context.dim = 8;
      context.clients = kRealClients;
      Codec<double> codec(context);
      const Vec<double> values(8, 9.0);
      for (const std::uint64_t request_id : {5, 6, 7}) {
        const Encoded reply = reply_of(0, request_id, codec, values);
        const Bytes payload(reply.sections[0].begin(), reply.sections[0].end());
        put_frame(script, FrameType::kReply, reply.header, payload);
      }
      seeds.push_back(script);
    }
  // The attacker joins, begins a message, and is silent for 37 s.
  Bytes slow = script_of(true);
  put_connection(slow, 0);
  put_frame(slow, FrameType::kHello, hello_header("slow"));
  put_frame(slow, FrameType::kJoin, join_header());
  put_u8(slow, 1);
  put_sized(slow, bytes_of("GWR1"));
  put_u8(slow, 3);
  put_u8(slow, 148);
  put_u8(slow, 4);
  seeds.push_back(slow);
  wire::Relay relay;
  relay.set_protocol(kWireVersion);
  relay.set_adds(true);
  Bytes script = script_of(true);
  put_connection(script, 0);
  put_frame(script, FrameType::kRelay, relay.SerializeAsString());
  put_frame(script, FrameType::kHello, hello_header("behind"), {}, 3);
  put_frame(script, FrameType::kJoin, join_header(), {}, 3);
  put_u8(script, 3);
  put_u8(script, 80);
  put_u8(script, 4);
  seeds.push_back(script);
  script = script_of(false);
  put_connection(script, 1);
  put_u8(script, 1);
  put_sized(script, bytes_of("GET / HTTP/1.0\r\n\r\n"));
  seeds.push_back(script);
  return seeds;
}

}  // namespace gradwire::fuzz
