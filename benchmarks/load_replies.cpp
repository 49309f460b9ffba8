#include "benchmarks/load_replies.h"

#include <limits>

#include "proto/wire/codec.h"

namespace gradwire::bench {
namespace {

template <class Real>
class LoadRepliesOf final : public LoadReplies {
 public:
  explicit LoadRepliesOf(const LoadOptions& options)
      : is_empty_(options.reply == LoadOptions::ReplyKind::kNothing), values_(options.dim) {
    CodecContext context;
    context.dim = options.dim;
    context.clients = options.clients();
    context.compressor = Identity{};
    context.zstd.kind = ZstdMode::Kind::kOff;
    codec_ = std::make_unique<Codec<Real>>(context);
  }

  std::string reply(std::uint32_t client, std::uint64_t request_id, std::uint32_t round, bool nan) override {
    Uplink<Real> up;
    up.request_id = request_id;
    up.round = round;
    up.client = client;
    up.grad_calls = 1;
    if (is_empty_) {
      up.parts = {Payload<Real>::nothing(static_cast<std::uint32_t>(values_.size()))};
    } else {
      for (std::size_t j = 0; j < values_.size(); ++j)
        values_[j] = static_cast<Real>((client * 31 + up.round * 17 + j * 7) % 101) / Real{100} - Real{0.5};
      if (nan) values_[client % values_.size()] = std::numeric_limits<Real>::quiet_NaN();
      up.parts = {Payload<Real>::dense(values_)};
    }
    const Encoded& message = codec_->encode(up);
    std::string bytes(reinterpret_cast<const char*>(message.prefix.data()), kPrefixBytes);
    bytes += message.header;
    for (const auto section : message.sections)
      bytes.append(reinterpret_cast<const char*>(section.data()), section.size());
    return bytes;
  }

 private:
  const bool is_empty_;
  Vec<Real> values_;
  std::unique_ptr<Codec<Real>> codec_;
};

}  // namespace

std::unique_ptr<LoadReplies> load_replies_of(const LoadOptions& options) {
  if (options.reply == LoadOptions::ReplyKind::kDoubles)
    return std::make_unique<LoadRepliesOf<double>>(options);
  return std::make_unique<LoadRepliesOf<float>>(options);
}

}  // namespace gradwire::bench
