// The order in which dense replies are added: a fixed tree over the numbers of clients. So threads, relays
// and processes that hold whole subtrees add up their own clients, and the sum has the same bits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/support/message.h"
#include "compressors/payload.h"

namespace gradwire {

// Clients of one leaf: [16 b, 16 b + 16).
inline constexpr ClientId kClientsOfLeaf = 16;
inline std::uint32_t leaf_of(ClientId client) { return client / kClientsOfLeaf; }

// Adds vectors of one length, in the order of clients. A leaf is the sum of its clients in their order, a
// node the sum of its left half and its right half; where one half has no clients, it is the other. Keeps
// at most one vector for each level of the tree.
template <class Real>
class TreeSum {
 public:
  // Starts anew with vectors of this length; keeps its memory.
  void begin(std::size_t size) {
    size_ = size;
    used_ = 0;
  }
  // weight v, v of the length of begin().
  struct Term {
    Real weight;
    const Real* v;
  };
  // REQUIRES: `client` is not below any before it. A sum of other clients is added under the number of the
  // first of them.
  void add(ClientId client, Real weight, const Real* v) {
    const Term term{weight, v};
    add_leaf(leaf_of(client), {&term, 1});
  }
  // The same for several clients of one leaf, in their order; what it has already stays in front of them.
  void add_leaf(std::uint32_t leaf, std::span<const Term> terms) {
    const bool opens = used_ == 0 || nodes_[used_ - 1].last != leaf;
    Real* const to = opens ? open(leaf) : nodes_[used_ - 1].sum.data();
    std::size_t k = opens ? 1 : 0;
    if (opens)
      for (std::size_t j = 0; j < size_; ++j) to[j] = terms[0].weight * terms[0].v[j];
    // Four at a time read and write the sum a quarter as often.
    for (; k + 4 <= terms.size(); k += 4) {
      const Term a = terms[k], b = terms[k + 1], c = terms[k + 2], d = terms[k + 3];
      for (std::size_t j = 0; j < size_; ++j)
        to[j] = (((to[j] + a.weight * a.v[j]) + b.weight * b.v[j]) + c.weight * c.v[j]) + d.weight * d.v[j];
    }
    for (; k < terms.size(); ++k)
      for (std::size_t j = 0; j < size_; ++j) to[j] += terms[k].weight * terms[k].v[j];
  }
  // The sum; empty where nothing was added. Nothing more may be added before begin(), which ends the view.
  View<Real> sum() {
    while (used_ > 1) merge();
    return used_ == 0 ? View<Real>{} : View<Real>(nodes_[0].sum);
  }

 private:
  struct Node {
    std::uint32_t first, last;  // leaves
    Vec<Real> sum;
  };

  Real* open(std::uint32_t leaf) {
    // The level at which two neighbours meet is the highest bit in which the numbers of their leaves differ.
    while (used_ > 1 &&
           meet(nodes_[used_ - 2].last, nodes_[used_ - 1].first) < meet(nodes_[used_ - 1].last, leaf))
      merge();
    if (nodes_.size() == used_) nodes_.emplace_back();
    Node& node = nodes_[used_++];
    node.first = node.last = leaf;
    node.sum.resize(size_);
    return node.sum.data();
  }
  static int meet(std::uint32_t left, std::uint32_t right) { return std::bit_width(left ^ right); }
  void merge() {
    Node &left = nodes_[used_ - 2], &right = nodes_[used_ - 1];
    for (std::size_t j = 0; j < size_; ++j) left.sum[j] += right.sum[j];
    left.last = right.last;
    --used_;
  }

  std::size_t size_ = 0, used_ = 0;
  std::vector<Node> nodes_;  // those in use first, from left to right
};

}  // namespace gradwire
