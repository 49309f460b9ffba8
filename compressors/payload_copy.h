// A deep copy of a payload.
#pragma once

#include "base/arena.h"
#include "compressors/payload.h"

namespace gradwire {

// Copies everything that `part` and its successors view into the arena, and makes `part` view the copy. Calls
// change(link, values) for each copied link; `change` may modify both.
template <class Real, class Change>
void copy_payload(Payload<Real>& part, Arena& arena, Change&& change) {
  const Out<Real> values = arena.copy(part.values);
  part.values = values;
  part.indices = arena.copy(part.indices);
  if (part.key != nullptr) part.key = arena.copy(std::span<const RngKey>(part.key, 1)).data();
  change(part, values);
  if (part.next == nullptr) return;
  Payload<Real> next = *part.next;
  copy_payload(next, arena, change);
  part.next = arena.copy(std::span<const Payload<Real>>(&next, 1)).data();
}
template <class Real>
void copy_payload(Payload<Real>& part, Arena& arena) {
  copy_payload(part, arena, [](const Payload<Real>&, Out<Real>) {});
}

}  // namespace gradwire
