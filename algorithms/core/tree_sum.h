// The order in which dense replies are added: a fixed tree over the client numbers. Threads, relays and
// processes that hold whole subtrees can add their own clients, and the sum has the same bits.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/core/message.h"
#include "compressors/payload.h"

namespace gradwire {

// The number of clients of one leaf. Leaf b holds the clients [16 b, 16 b + 16).
inline constexpr ClientId kClientsOfLeaf = 16;
inline std::uint32_t leaf_of(ClientId client) { return client / kClientsOfLeaf; }

// One more than the largest possible client number.
inline constexpr std::uint64_t kAllClients = std::uint64_t{1} << 32;

// A sum of vectors of one length, added in the order of clients. A leaf is the sum of its clients in their
// order. A node is the sum of its left half and its right half; if one half has no clients, the node equals
// the other half. The object keeps at most one vector for each level of the tree.
template <class Real>
class TreeSum {
 public:
  // Starts a new sum of vectors of this length and keeps the allocated memory.
  void begin(std::size_t size) { begin_part(size, {0, 0}, 0); }
  // Starts a sum over the part `mine` of the clients 0, ..., clients − 1; other processes add the rest. Only
  // subtrees inside `mine` are added here. Clients of a leaf that crosses the bounds of `mine` stay separate
  // nodes.
  void begin_part(std::size_t size, ClientRange mine, std::uint32_t clients) {
    size_ = size;
    used_ = 0;
    first_ = mine.first;
    end_ = mine.end == clients ? kAllClients : mine.end;
  }
  std::size_t size() const { return size_; }

  // The summand weight * v; v has the length given to begin().
  struct Term {
    ClientId client;
    Real weight;
    const Real* v;
  };
  // Adds weight * v. A sum over several clients is added under the number of its first client. REQUIRES:
  // clients ascend over all calls.
  template <class From>
  void add(ClientId client, Real weight, const From* v) {
    const std::uint32_t leaf = leaf_of(client);
    if (opens(leaf)) {
      Real* const to = open(client);
      for (std::size_t j = 0; j < size_; ++j) to[j] = weight * static_cast<Real>(v[j]);
    } else {
      Real* const to = nodes_[used_ - 1].sum.data();
      for (std::size_t j = 0; j < size_; ++j) to[j] += weight * static_cast<Real>(v[j]);
    }
  }
  // Adds several clients of one leaf, in their order and after the clients that the leaf already has.
  void add_leaf(std::span<const Term> terms) {
    const std::uint32_t leaf = leaf_of(terms[0].client);
    if (!holds(leaf, 1)) {
      for (const Term& term : terms) add(term.client, term.weight, term.v);
      return;
    }
    const bool opened = opens(leaf);
    Real* const to = opened ? open(terms[0].client) : nodes_[used_ - 1].sum.data();
    // Adding several terms at a time reads and writes the sum less often. A new sum starts with its first
    // term.
    std::size_t k = 0;
    if (opened) k = terms.size() >= 4 ? add_some<4, true>(to, &terms[0]) : add_some<1, true>(to, &terms[0]);
    while (k + 4 <= terms.size()) k += add_some<4, false>(to, &terms[k]);
    while (k < terms.size()) k += add_some<1, false>(to, &terms[k]);
  }
  // Adds clients of any leaves.
  void add_all(std::span<const Term> terms) {
    for (std::size_t k = 0; k < terms.size();) {
      const std::size_t begin = k;
      while (k < terms.size() && leaf_of(terms[k].client) == leaf_of(terms[begin].client)) ++k;
      add_leaf(terms.subspan(begin, k - begin));
    }
  }

  // The sum over neighbours in the tree; `client` is the first one that was added.
  struct Node {
    ClientId client;
    std::uint32_t first, last;  // leaves
    Vec<Real> sum;
  };
  // Returns the sums so far, from left to right. There is one node, or none if nothing was added. After
  // begin_part() there may be several, separated by other clients. The view is valid as long as that of
  // sum().
  std::span<const Node> nodes() {
    while (used_ > 1 && may_merge()) merge();
    return std::span(nodes_).first(used_);
  }
  // Returns the sum, or an empty view if nothing was added. Call begin() before adding more; it ends the
  // view. REQUIRES: begin() started the sum.
  View<Real> sum() {
    const auto all = nodes();
    return all.empty() ? View<Real>{} : View<Real>(all[0].sum);
  }

 private:
  // Adds kTerms terms in their order; returns their number.
  template <std::size_t kTerms, bool kOpens>
  std::size_t add_some(Real* __restrict to, const Term* terms) const {
    std::array<const Real*, kTerms> v;
    std::array<Real, kTerms> weight;
    for (std::size_t i = 0; i < kTerms; ++i) v[i] = terms[i].v, weight[i] = terms[i].weight;
    for (std::size_t j = 0; j < size_; ++j) {
      Real sum = kOpens ? weight[0] * v[0][j] : to[j] + weight[0] * v[0][j];
      for (std::size_t i = 1; i < kTerms; ++i) sum += weight[i] * v[i][j];
      to[j] = sum;
    }
    return kTerms;
  }
  // Returns whether a client of this leaf starts a new node.
  bool opens(std::uint32_t leaf) const {
    return used_ == 0 || nodes_[used_ - 1].last != leaf || !holds(leaf, 1);
  }
  // Appends a node, whose sum the caller fills.
  Real* open(ClientId client) {
    const std::uint32_t leaf = leaf_of(client);
    // Two neighbours meet at the level of the highest bit in which their leaf numbers differ. (Levels can be
    // equal if clients do not ascend. Then the order of the sum differs, but its memory does not grow.)
    while (used_ > 1 &&
           meet(nodes_[used_ - 2].last, nodes_[used_ - 1].first) <= meet(nodes_[used_ - 1].last, leaf) &&
           may_merge())
      merge();
    if (nodes_.size() == used_) nodes_.emplace_back();
    Node& node = nodes_[used_++];
    node.client = client;
    node.first = node.last = leaf;
    node.sum.resize(size_);
    return node.sum.data();
  }
  static int meet(std::uint32_t left, std::uint32_t right) { return std::bit_width(left ^ right); }
  // Returns whether all clients of these leaves are added here.
  bool holds(std::uint64_t leaf, std::uint64_t leaves) const {
    return leaf * kClientsOfLeaf >= first_ && (leaf + leaves) * kClientsOfLeaf <= end_;
  }
  // Returns whether the last two nodes may become one, which must lie in the range as a whole.
  bool may_merge() const {
    const int level = meet(nodes_[used_ - 2].last, nodes_[used_ - 1].first);
    return holds(std::uint64_t{nodes_[used_ - 1].first} >> level << level, std::uint64_t{1} << level);
  }
  void merge() {
    Node &left = nodes_[used_ - 2], &right = nodes_[used_ - 1];
    for (std::size_t j = 0; j < size_; ++j) left.sum[j] += right.sum[j];
    left.last = right.last;
    --used_;
  }

  std::size_t size_ = 0, used_ = 0;
  std::uint64_t first_ = 0, end_ = kAllClients;
  std::vector<Node> nodes_;  // nodes in use come first, from left to right
};

}  // namespace gradwire
