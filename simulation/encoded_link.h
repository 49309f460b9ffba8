#pragma once

#include <stdexcept>
#include <string>

#include "proto/wire/codec.h"
#include "proto/wire/scatter.h"
#include "rounds/transport.h"

namespace gradwire {

// Both directions of one client's connection, without a network. Encoded messages are received into the slots
// that a real connection uses. Throws std::logic_error on an invalid message, which is a bug of this program.
template <class Real>
class EncodedLink {
 public:
  // Set `keeps_frames` if you will call frame().
  explicit EncodedLink(const CodecContext& context, bool keeps_frames = false)
      : limit_(max_payload_bytes(context, sizeof(Real))),
        requests_(context),
        uplinks_(context, keeps_frames) {}

  Request<Real> down(const Encoded& bytes) {
    receive(bytes, requests_);
    return checked(requests_.finish());
  }
  // `draws` is the memo of the calling thread, as in UplinkSlot::finish().
  UplinkView<Real> up(const Encoded& bytes, ClientId client, BlockMemo* draws = nullptr) {
    receive(bytes, uplinks_);
    return checked(uplinks_.finish(client, draws));
  }
  Frame frame() const { return uplinks_.frame(); }  // the frame of the last up()

 private:
  template <class T>
  static T checked(Result<T> result) {
    if (!result) throw std::logic_error("codec: " + result.error().message);
    return std::move(*result);
  }

  template <class Slot>
  void receive(const Encoded& bytes, Slot& slot) {
    const auto prefix = checked(read_prefix(bytes.prefix, limit_));
    const auto header = std::as_bytes(std::span(bytes.header));
    checked(check_header(bytes.prefix, header));
    if (!scatter(bytes.sections, checked(slot.prepare(prefix, header))))
      throw std::logic_error("codec: the payload is not as long as declared");
  }

  std::uint64_t limit_;
  RequestSlot<Real> requests_;
  UplinkSlot<Real> uplinks_;
};

}  // namespace gradwire
