#include "proto/security/challenge.h"

#include <cstring>

#include "proto/wire/control_frame.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {

Result<std::string> answer_challenge(std::span<const std::byte> header,
                                     const std::optional<Credentials>& credentials) {
  wire::Challenge challenge;
  if (Status status = parse_control(header, challenge); !status) return status.error();
  Bytes32 nonce;
  if (challenge.nonce().size() != nonce.size()) return Error{"Challenge: the nonce is missing or damaged"};
  if (!credentials) return Error{"the server requires authentication; use --identity"};
  if (challenge.realm() != credentials->realm)
    return Error{"the identity of '" + credentials->name + "' is for another server; use it only there"};
  std::memcpy(nonce.data(), challenge.nonce().data(), nonce.size());
  const Proof proof = prove(*credentials, nonce);
  wire::Proof message;
  message.set_signature(proof.signature.data(), proof.signature.size());
  if (proof.token_mac) message.set_token_mac(proof.token_mac->data(), proof.token_mac->size());
  return control_frame(FrameType::kProof, message);
}

}  // namespace gradwire
