#include "mpi/rank_communicator.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "algorithms/core/vector_ops.h"

namespace gradwire {
namespace {

// Below this number of coordinates, every rank adds up all of them: one exchange in place of two.
constexpr std::size_t kCoordinatesWorthSharing = 512;

// Packs bytes at multiples of 8, so that numbers in them can be used in place.
class Packer {
 public:
  explicit Packer(std::vector<std::byte>& to) : to_(to) { to_.clear(); }
  template <class T>
  void put(std::span<const T> values) {
    if (values.empty()) return;
    std::memcpy(room(values.size_bytes()), values.data(), values.size_bytes());
  }
  template <class T>
  void put(const T& value) {
    put(std::span<const T>(&value, 1));
  }
  // Returns room to fill; the view lives until the next call.
  std::byte* room(std::size_t bytes) {
    const std::size_t begin = to_.size();
    to_.resize(begin + (bytes + 7) / 8 * 8);
    return to_.data() + begin;
  }

 private:
  std::vector<std::byte>& to_;
};

class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> from) : rest_(from) {}
  template <class T>
  std::span<const T> take(std::size_t count) {
    const std::size_t padded = (count * sizeof(T) + 7) / 8 * 8;
    if (padded > rest_.size()) throw std::logic_error("RankCommunicator: the ranks are not at the same sum");
    const std::span<const T> values(reinterpret_cast<const T*>(rest_.data()), count);
    rest_ = rest_.subspan(padded);
    return values;
  }
  template <class T>
  T one() {
    return take<T>(1)[0];
  }

 private:
  std::span<const std::byte> rest_;
};

// The nodes of a sum: clients, and values of shape (clients, coordinates).
template <class Number>
struct Nodes {
  std::span<const ClientId> clients;
  std::span<const Number> values;
};
// Packs the clients of the nodes. Returns where their values go.
template <class Number>
Number* put_nodes(Packer& packer, std::span<const ClientId> clients, std::size_t coordinates) {
  packer.put(std::uint64_t{clients.size()});
  packer.put(clients);
  return reinterpret_cast<Number*>(packer.room(clients.size() * coordinates * sizeof(Number)));
}
template <class Number>
Nodes<Number> take_nodes(Unpacker& unpacker, std::size_t coordinates) {
  const auto count = static_cast<std::size_t>(unpacker.one<std::uint64_t>());
  Nodes<Number> nodes;
  nodes.clients = unpacker.take<ClientId>(count);
  nodes.values = unpacker.take<Number>(count * coordinates);
  return nodes;
}

// Returns the root of the tree over the nodes of all ranks, in the coordinates [at, end). Each node has
// `coordinates` coordinates.
template <class Number>
View<Number> root_of(TreeSum<Number>& tree, std::span<const Nodes<Number>> of_ranks, std::size_t coordinates,
                     std::size_t at, std::size_t end) {
  tree.begin(end - at);
  for (const Nodes<Number>& nodes : of_ranks)
    for (std::size_t k = 0; k < nodes.clients.size(); ++k)
      tree.add(nodes.clients[k], Number(1), nodes.values.data() + k * coordinates + at);
  return tree.sum();
}

// The header of a part that is not dense, or of the piece of it in the coordinates of one rank.
struct LinkHead {
  double coefficient;
  Shape shape;
  std::uint32_t dim, first, rows, indices, values;
};
template <class Real>
void put_link(Packer& packer, const Payload<Real>& p, Real coefficient) {
  packer.put(LinkHead{static_cast<double>(coefficient), p.shape, p.dim, p.first, p.rows,
                      static_cast<std::uint32_t>(p.indices.size()),
                      static_cast<std::uint32_t>(p.values.size())});
  packer.put(p.indices);
  packer.put(p.values);
}
template <class Real>
void put_link_of(Packer& packer, Payload<Real> p, Real coefficient, std::size_t lo, std::size_t hi) {
  if (p.shape == Shape::kSparse) {
    const auto from = std::ranges::lower_bound(p.indices, lo), to = std::ranges::lower_bound(p.indices, hi);
    const auto begin = static_cast<std::size_t>(from - p.indices.begin());
    const auto count = static_cast<std::size_t>(to - from);
    p.indices = p.indices.subspan(begin, count);
    p.values = p.values.subspan(begin, count);
    put_link(packer, p, coefficient);
  } else if (p.shape == Shape::kRange) {
    // The range may wrap around the end of the vector; then it has two pieces.
    const View<Real> values = p.values;
    const std::size_t straight = std::min<std::size_t>(values.size(), p.dim - p.first);
    const auto piece = [&](std::size_t first, View<Real> part) {
      const std::size_t a = std::clamp(lo, first, first + part.size());
      const std::size_t b = std::clamp(hi, first, first + part.size());
      p.first = static_cast<std::uint32_t>(a < b ? a : 0);
      p.values = part.subspan(a - first, a < b ? b - a : 0);
      put_link(packer, p, coefficient);
    };
    piece(p.first, values.first(straight));
    piece(0, values.subspan(straight));
  } else {
    put_link(packer, p, coefficient);
  }
}
template <class Real>
void add_links(Unpacker& unpacker, std::uint64_t count, Out<Real> out, std::size_t lo, std::size_t hi) {
  for (std::uint64_t k = 0; k < count; ++k) {
    const auto head = unpacker.one<LinkHead>();
    Payload<Real> p;
    p.shape = head.shape;
    p.dim = head.dim;
    p.first = head.first;
    p.rows = head.rows;
    p.indices = unpacker.take<std::uint32_t>(head.indices);
    p.values = unpacker.take<Real>(head.values);
    if (!p.values.empty()) add_link<Real>(p, static_cast<Real>(head.coefficient), out, lo, hi);
  }
}

// Calls body(at, end) for consecutive pieces of [lo, hi), so short that they stay in the cache.
void in_pieces(std::size_t lo, std::size_t hi, const auto& body) {
  for (std::size_t at = lo; at < hi; at += kTreeReals) body(at, std::min(hi, at + kTreeReals));
}

std::size_t first_of_rank(std::size_t size, unsigned rank, unsigned count) { return size * rank / count; }

}  // namespace

ClientRange clients_of_rank(std::uint32_t clients, unsigned rank, unsigned count) {
  // Shares differ by at most an eighth, and consist of few subtrees.
  const std::uint64_t together =
      std::bit_floor(std::max<std::uint64_t>(1, clients / (std::uint64_t{16} * count)));
  const auto first = [&](unsigned r) {
    const std::uint64_t even = std::uint64_t{clients} * r / count;
    return static_cast<ClientId>(r == count ? clients : even / together * together);
  };
  return {first(rank), first(rank + 1)};
}

template <class Real>
RankCommunicator<Real>::RankCommunicator(std::shared_ptr<Ranks> ranks, std::uint32_t clients)
    : ranks_(std::move(ranks)),
      clients_(clients),
      mine_(clients_of_rank(clients, ranks_->rank(), ranks_->count())),
      whole_leaves_(true) {
  for (unsigned r = 1; r < ranks_->count(); ++r)
    if (clients_of_rank(clients, r, ranks_->count()).first % kClientsOfLeaf != 0) whole_leaves_ = false;
}

template <class Real>
template <class Number>
void RankCommunicator<Real>::share(std::size_t size, const auto& make, const auto& take,
                                   std::span<Number> out) {
  const unsigned count = ranks_->count();
  const auto messages = [&] {
    std::vector<std::span<const std::byte>> of_ranks;
    for (unsigned r = 0; r < count; ++r) of_ranks.push_back(received_.of(r));
    return of_ranks;
  };
  std::vector<std::vector<std::byte>> to(1);
  if (size < kCoordinatesWorthSharing) {
    make(to, std::vector<std::size_t>{0, size});
    ranks_->all_gather(to[0], received_);
    take(0, size, messages());
    return;
  }
  to.resize(count);
  std::vector<std::size_t> begin;  // first coordinate of each rank
  for (unsigned r = 0; r <= count; ++r) begin.push_back(first_of_rank(size, r, count));
  make(to, begin);
  ranks_->exchange(to, received_);
  const std::size_t lo = begin[ranks_->rank()], hi = begin[ranks_->rank() + 1];
  take(lo, hi, messages());
  ranks_->all_gather(std::as_bytes(out.subspan(lo, hi - lo)), received_);
  for (unsigned r = 0; r < count; ++r)
    if (const auto bytes = received_.of(r); r != ranks_->rank() && !bytes.empty())
      std::memcpy(out.data() + begin[r], bytes.data(), bytes.size());
}

template <class Real>
typename RankCommunicator<Real>::SummandTotals RankCommunicator<Real>::totals_of(
    std::span<const Summand> summands) {
  SummandTotals mine;
  for (const Summand& s : summands) ++(s.part->shape == Shape::kDense ? mine.dense : mine.others);
  ranks_->all_gather(std::as_bytes(std::span(&mine, 1)), received_);
  SummandTotals all;
  for (unsigned r = 0; r < ranks_->count(); ++r) {
    SummandTotals of_rank;
    std::memcpy(&of_rank, received_.of(r).data(), sizeof of_rank);
    all.dense += of_rank.dense;
    all.others += of_rank.others;
  }
  return all;
}

template <class Real>
void RankCommunicator<Real>::add(std::span<const Summand> summands, Real scale, const ForRanges& ranges,
                                 Vec<Real>& out) {
  const SummandTotals totals = totals_of(summands);
  if (totals.dense + totals.others == 0) return;
  // A single vector is not a tree: it is only scaled by its weight.
  const bool single = totals.dense == 1;
  using Term = typename TreeSum<Real>::Term;
  std::vector<Term> dense;
  std::vector<const Summand*> others;
  Real coefficient = scale;
  for (const Summand& s : summands) {
    if (s.part->shape != Shape::kDense) {
      others.push_back(&s);
    } else if (single) {
      dense.push_back({s.client, Real(1), s.part->values.data()});
      coefficient = scale * s.weight;
    } else {
      dense.push_back({s.client, s.weight, s.part->values.data()});
    }
  }
  // The nodes are the same for all coordinates.
  TreeSum<Real> shape;
  shape.begin_part(0, mine_, clients_);
  shape.add_all(dense);
  std::vector<ClientId> clients;
  for (const auto& node : shape.nodes()) clients.push_back(node.client);

  std::uint64_t links = 0;
  for (const Summand* s : others) links += s->part->shape == Shape::kRange ? 2 : 1;
  const auto make = [&](std::vector<std::vector<std::byte>>& to, std::span<const std::size_t> begin) {
    std::vector<std::size_t> values_at;  // start of the node values in each message
    for (std::size_t r = 0; r < to.size(); ++r) {
      Packer packer(to[r]);
      packer.put(static_cast<double>(coefficient));
      const Real* const values = put_nodes<Real>(packer, clients, begin[r + 1] - begin[r]);
      values_at.push_back(
          static_cast<std::size_t>(reinterpret_cast<const std::byte*>(values) - to[r].data()));
      packer.put(links);
      for (const Summand* s : others)
        put_link_of<Real>(packer, *s->part, scale * s->weight, begin[r], begin[r + 1]);
    }
    if (clients.empty()) return;
    ranges(begin.back(), [&](std::size_t from, std::size_t until) {
      TreeSum<Real> tree;
      std::vector<Term> terms(dense.size());
      for (std::size_t r = 0; r < to.size(); ++r)
        in_pieces(std::max(from, begin[r]), std::min(until, begin[r + 1]),
                  [&](std::size_t at, std::size_t end) {
                    for (std::size_t k = 0; k < dense.size(); ++k)
                      terms[k] = {dense[k].client, dense[k].weight, dense[k].v + at};
                    tree.begin_part(end - at, mine_, clients_);
                    tree.add_all(terms);
                    Real* row = reinterpret_cast<Real*>(to[r].data() + values_at[r]) + (at - begin[r]);
                    for (const auto& node : tree.nodes()) {
                      std::ranges::copy(node.sum, row);
                      row += begin[r + 1] - begin[r];
                    }
                  });
    });
  };
  const auto take = [&](std::size_t lo, std::size_t hi,
                        std::span<const std::span<const std::byte>> messages) {
    std::vector<Nodes<Real>> nodes;
    std::vector<Unpacker> rest;
    for (const auto message : messages) {
      Unpacker& unpacker = rest.emplace_back(message);
      const auto factor = static_cast<Real>(unpacker.one<double>());
      nodes.push_back(take_nodes<Real>(unpacker, hi - lo));
      if (single && !nodes.back().clients.empty()) coefficient = factor;
    }
    if (totals.dense > 0)
      ranges(hi - lo, [&](std::size_t from, std::size_t until) {
        TreeSum<Real> tree;
        in_pieces(from, until, [&](std::size_t at, std::size_t end) {
          axpy<Real>(coefficient, root_of<Real>(tree, nodes, hi - lo, at, end),
                     std::span(out).subspan(lo + at, end - at));
        });
      });
    for (Unpacker& unpacker : rest) add_links<Real>(unpacker, unpacker.one<std::uint64_t>(), out, lo, hi);
  };
  share<Real>(out.size(), make, take, std::span(out));
}

template <class Real>
Vec<double> RankCommunicator<Real>::sum(TreeSum<double>& tree) {
  const auto nodes = tree.nodes();
  std::vector<ClientId> clients;
  for (const auto& node : nodes) clients.push_back(node.client);
  Vec<double> out(tree.size());
  const auto make = [&](std::vector<std::vector<std::byte>>& to, std::span<const std::size_t> begin) {
    for (std::size_t r = 0; r < to.size(); ++r) {
      Packer packer(to[r]);
      double* values = put_nodes<double>(packer, clients, begin[r + 1] - begin[r]);
      for (const auto& node : nodes)
        values = std::copy(node.sum.data() + begin[r], node.sum.data() + begin[r + 1], values);
    }
  };
  const auto take = [&](std::size_t lo, std::size_t hi,
                        std::span<const std::span<const std::byte>> messages) {
    std::vector<Nodes<double>> of_ranks;
    for (const auto message : messages) {
      Unpacker unpacker(message);
      of_ranks.push_back(take_nodes<double>(unpacker, hi - lo));
    }
    TreeSum<double> all;
    in_pieces(0, hi - lo, [&](std::size_t at, std::size_t end) {
      std::ranges::copy(root_of<double>(all, of_ranks, hi - lo, at, end), out.begin() + lo + at);
    });
  };
  share<double>(out.size(), make, take, std::span(out));
  return out;
}

template <class Real>
std::vector<double> RankCommunicator<Real>::gather(std::span<const double> mine) {
  ranks_->all_gather(std::as_bytes(mine), received_);
  std::vector<double> all;
  for (unsigned r = 0; r < ranks_->count(); ++r) {
    const auto bytes = received_.of(r);
    const std::size_t before = all.size();
    all.resize(before + bytes.size() / sizeof(double));
    if (!bytes.empty()) std::memcpy(all.data() + before, bytes.data(), bytes.size());
  }
  return all;
}

template class RankCommunicator<float>;
template class RankCommunicator<double>;

}  // namespace gradwire
