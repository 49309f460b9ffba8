// Sums of so many replies that threads share the replies, not only the coordinates.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/core/context.h"
#include "algorithms/core/tree_sum.h"
#include "compressors/payload.h"

namespace gradwire {

// From this number of replies on, threads share them.
inline constexpr std::size_t kManyReplies = 16 * 1024;

// The sum out += scale * sum_i weight(i) decode(parts of client i), with the bits of add_parts_by().
// each(first, end, use) calls use(client, part) for the parts of the replies [first, end), in their order.
template <class Real, class Each, class Weight>
class ManyReplies {
 public:
  ManyReplies(const RunContext<Real>& run_context, std::size_t replies, const Each& each, Real scale,
              const Weight& weight)
      : items_(run_context.items), replies_(replies), each_(each), scale_(scale), weight_(weight) {}

  void add_to(Vec<Real>& out) {
    find_parts();
    if (terms_.size() == 1) {
      add_one_by_one(out, /*dense=*/true);
    } else if (!terms_.empty()) {
      add_dense(out);
    }
    if (others_ > 0 && all_sparse_) {
      add_sparse(out);
    } else if (others_ > 0) {
      add_one_by_one(out, /*dense=*/false);
    }
  }

 private:
  using Term = typename TreeSum<Real>::Term;
  struct Entry {
    std::uint32_t coordinate;
    Real value;
  };

  // Replies of a chunk, which one thread reads at once, and chunks whose entries are kept at the same time.
  static constexpr std::size_t kChunk = 1024, kChunksAtOnce = 64;
  // Clients of a subtree that one thread adds up, and coordinates that are added up at the same time.
  static constexpr std::size_t kSubtree = 4096, kReals = 8192;
  static constexpr std::size_t kMostRanges = 32;  // ranges of coordinates to which threads add entries

  std::size_t chunks() const { return (replies_ + kChunk - 1) / kChunk; }
  void each_of_chunk(std::size_t chunk, const auto& use) const {
    each_(chunk * kChunk, std::min(replies_, (chunk + 1) * kChunk), use);
  }
  // Calls body(item) for each item, on several threads.
  void for_items(std::size_t items, const auto& body) const {
    items_(items, [&](std::size_t first, std::size_t end) {
      for (std::size_t item = first; item < end; ++item) body(item);
    });
  }

  // Lists the dense parts, and counts the others.
  void find_parts() {
    struct Found {
      std::vector<Term> terms;
      std::size_t others = 0;
      bool all_sparse = true;
    };
    std::vector<Found> found(chunks());
    for_items(found.size(), [&](std::size_t k) {
      each_of_chunk(k, [&](ClientId i, const Payload<Real>& p) {
        if (p.shape == Shape::kDense) return found[k].terms.push_back({i, weight_(i), p.values.data()});
        ++found[k].others;
        found[k].all_sparse = found[k].all_sparse && p.shape == Shape::kSparse;
      });
    });
    for (const Found& f : found) {
      terms_.insert(terms_.end(), f.terms.begin(), f.terms.end());
      others_ += f.others;
      all_sparse_ = all_sparse_ && f.all_sparse;
    }
  }

  void add_one_by_one(Vec<Real>& out, bool dense) const {
    each_(0, replies_, [&](ClientId i, const Payload<Real>& p) {
      if ((p.shape == Shape::kDense) == dense) add_link<Real>(p, scale_ * weight_(i), out, 0, out.size());
    });
  }

  // Each thread adds up subtrees of the tree over the clients.
  void add_dense(Vec<Real>& out) const {
    std::vector<std::size_t> begin;  // by subtree: its first term
    for (std::size_t k = 0; k < terms_.size(); ++k)
      if (k == 0 || terms_[k].client / kSubtree != terms_[k - 1].client / kSubtree) begin.push_back(k);
    std::vector<TreeSum<Real>> subtrees(begin.size());
    for (std::size_t at = 0; at < out.size(); at += kReals) {
      const std::size_t size = std::min(out.size() - at, kReals);
      for_items(subtrees.size(), [&](std::size_t s) {
        const std::size_t end = s + 1 < begin.size() ? begin[s + 1] : terms_.size();
        std::vector<Term> terms(terms_.begin() + static_cast<std::ptrdiff_t>(begin[s]),
                                terms_.begin() + static_cast<std::ptrdiff_t>(end));
        for (Term& term : terms) term.v += at;
        subtrees[s].begin(size);
        subtrees[s].add_all(terms);
      });
      TreeSum<Real> all;
      all.begin(size);
      for (std::size_t s = 0; s < subtrees.size(); ++s)
        all.add(terms_[begin[s]].client, 1, subtrees[s].sum().data());
      const View<Real> sum = all.sum();
      for (std::size_t j = 0; j < size; ++j) out[at + j] += scale_ * sum[j];
    }
  }

  // Threads first sort the entries of some replies into ranges of coordinates, and then add one range each.
  void add_sparse(Vec<Real>& out) const {
    const int shift = std::bit_width((out.size() - 1) / kMostRanges);
    const std::size_t ranges = ((out.size() - 1) >> shift) + 1;
    std::vector<std::vector<Entry>> entries(kChunksAtOnce * ranges);  // by chunk and range
    for (std::size_t first = 0; first < chunks(); first += kChunksAtOnce) {
      const std::size_t count = std::min(kChunksAtOnce, chunks() - first);
      for_items(count, [&](std::size_t k) {
        std::vector<Entry>* const to = &entries[k * ranges];
        for (std::size_t r = 0; r < ranges; ++r) to[r].clear();
        each_of_chunk(first + k, [&](ClientId i, const Payload<Real>& p) {
          if (p.shape == Shape::kDense) return;
          const Real factor = scale_ * weight_(i);
          for (std::size_t e = 0; e < p.indices.size(); ++e)
            to[p.indices[e] >> shift].push_back({p.indices[e], factor * p.values[e]});
        });
      });
      for_items(ranges, [&](std::size_t r) {
        for (std::size_t k = 0; k < count; ++k)
          for (const Entry& entry : entries[k * ranges + r]) out[entry.coordinate] += entry.value;
      });
    }
  }

  const ForRanges& items_;
  const std::size_t replies_;
  const Each& each_;
  const Real scale_;
  const Weight& weight_;
  std::vector<Term> terms_;  // dense parts, in the order of clients
  std::size_t others_ = 0;
  bool all_sparse_ = true;
};

}  // namespace gradwire
