#include "compressors/compressed.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "compressors/compressor.h"

namespace gradwire {

template <class Real>
Compressed<Real>::Compressed(std::shared_ptr<const CompressedContent<Real>> content)
    : content_(std::move(content)) {}

template <class Real>
Compressed<Real> Compressed<Real>::whole(std::vector<Real> values) {
  auto content = std::make_shared<CompressedContent<Real>>();
  content->buffer.whole(values);
  return Compressed(std::move(content));
}

template <class Real>
Compressed<Real> Compressed<Real>::entries(std::size_t d, std::vector<std::uint32_t> indices,
                                           std::vector<Real> values) {
  if (indices.size() != values.size())
    throw std::logic_error("a compressed vector has " + std::to_string(indices.size()) + " indices and " +
                           std::to_string(values.size()) + " values");
  if (d > kMaxDim || std::ranges::adjacent_find(indices, std::greater_equal<>()) != indices.end() ||
      (!indices.empty() && indices.back() >= d))
    throw std::logic_error("the indices of a compressed vector must ascend and be below " +
                           std::to_string(d));
  auto content = std::make_shared<CompressedContent<Real>>();
  content->buffer.indices() = std::move(indices);
  content->buffer.values() = std::move(values);
  content->buffer.sparse(static_cast<std::uint32_t>(d));
  return Compressed(std::move(content));
}

template <class Real>
std::size_t Compressed<Real>::dim() const {
  return content_->payload().dim;
}

template <class Real>
std::vector<std::uint32_t> Compressed<Real>::indices() const {
  const Payload<Real>& p = content_->payload();
  if (p.next != nullptr) return {};
  if (p.shape == Shape::kSparse) return {p.indices.begin(), p.indices.end()};
  if (p.shape != Shape::kRange) return {};
  std::vector<std::uint32_t> indices(p.values.size());
  for (std::size_t k = 0; k < indices.size(); ++k)
    indices[k] = static_cast<std::uint32_t>((std::uint64_t{p.first} + k) % p.dim);
  std::ranges::sort(indices);
  return indices;
}

template <class Real>
std::vector<Real> Compressed<Real>::values() const {
  const Payload<Real>& p = content_->payload();
  std::vector<Real> values(p.values.begin(), p.values.end());
  // A range that wraps around begins with its last coordinates.
  if (p.shape == Shape::kRange && p.first + values.size() > p.dim)
    std::ranges::rotate(values, values.begin() + static_cast<std::ptrdiff_t>(p.dim - p.first));
  if (p.next != nullptr) values.insert(values.end(), p.next->values.begin(), p.next->values.end());
  return values;
}

template <class Real>
double Compressed<Real>::bits() const {
  return wire_bits(content_->payload());
}
template <class Real>
double Compressed<Real>::paper_bits() const {
  return gradwire::paper_bits(content_->payload());
}

template <class Real>
std::vector<Real> Compressed<Real>::to_vector() const {
  std::vector<Real> out(dim());
  add_to(out);
  return out;
}

template <class Real>
void Compressed<Real>::add_to(std::span<Real> out, Real scale) const {
  if (out.size() != dim())
    throw std::logic_error("a compressed vector of length " + std::to_string(dim()) +
                           " cannot be added to one of length " + std::to_string(out.size()));
  add_decoded<Real>(content_->payload(), scale, out);
}

struct NamedCompressorContent {
  Compressor compressor;
  std::size_t d;
  std::uint32_t clients;
};

NamedCompressor::NamedCompressor(std::string_view spec, std::size_t d, std::uint32_t clients) {
  if (d == 0 || d > kMaxDim || clients == 0)
    throw std::logic_error("a compressor needs a dimension from 1 to " + std::to_string(kMaxDim) +
                           " and at least one client");
  content_ = std::make_shared<const NamedCompressorContent>(
      NamedCompressorContent{parse_compressor(spec, d, clients), d, clients});
}

std::string NamedCompressor::spec() const { return to_spec(content_->compressor); }
CompressorConstants NamedCompressor::constants() const {
  return gradwire::constants(content_->compressor, content_->d, content_->clients);
}

template <class Real>
Compressed<Real> NamedCompressor::compress(std::span<const Real> v, const CompressorDraw& draw) const {
  if (v.size() != content_->d)
    throw std::logic_error("compressor " + spec() + " is for vectors of length " +
                           std::to_string(content_->d) + ", not " + std::to_string(v.size()));
  auto result = std::make_shared<CompressedContent<Real>>();
  Vec<Real> work(v.begin(), v.end());
  Scratch<Real> scratch;
  gradwire::compress<Real>(content_->compressor, work,
                           {draw.seed, draw.client, draw.round, RngDomain::kCompressor + draw.part}, scratch,
                           result->buffer);
  return Compressed<Real>(std::move(result));
}

template class Compressed<float>;
template class Compressed<double>;
template Compressed<float> NamedCompressor::compress(std::span<const float>, const CompressorDraw&) const;
template Compressed<double> NamedCompressor::compress(std::span<const double>, const CompressorDraw&) const;

}  // namespace gradwire
