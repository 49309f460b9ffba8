// The base class of all messages of wire.proto and storage/state.proto.
#pragma once

namespace google::protobuf {
class MessageLite;
}
namespace gradwire::lean {
class Message;
}

namespace gradwire {

#ifdef GRADWIRE_LEAN_MESSAGES
using WireMessage = lean::Message;
#else
using WireMessage = google::protobuf::MessageLite;
#endif

}  // namespace gradwire
