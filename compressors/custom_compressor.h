// A compressor that is defined outside this tree and used like those of the list. custom_compressor() makes
// it from a struct like theirs. Experiment files cannot name it. It works in programs that have both the
// server and the clients. Its payloads pass through the codec like any others.
//
// Such a struct C has
//   name                         its name in records, unless it has spec()
//   CompressorConstants constants(std::size_t d) const
//                                for one client; or joint(d, n), for all n clients
//   const Payload<Real>& operator()(Vec<Real>& v, const RngKey&, Scratch<Real>&, PayloadBuffer<Real>&) const
//                                for double, float or both; must be thread-safe
// and may have
//   bool redraw(Shape, std::size_t count, std::uint32_t dim, const RngKey&,
//               std::vector<std::uint32_t>& indices, std::uint32_t& first) const
//                                for payloads marked with set_seeded(); their support then costs nothing on
//                                the wire
//   std::size_t most_values(std::size_t d) const
//                                the largest number of values of one payload; zeta without it
//
// The struct uses PayloadBuffer to say how a payload is written: its shape, and set_packing() if the values
// are multiples of a unit.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compressors/payload.h"
#include "gradwire/compressor.h"

namespace gradwire {

class CompressorInterface {
 public:
  virtual ~CompressorInterface() = default;
  virtual std::string spec() const = 0;
  virtual CompressorConstants joint(std::size_t d, std::uint32_t n) const = 0;
  virtual std::size_t most_values(std::size_t d) const = 0;
  virtual const Payload<float>& compress(Vec<float>& v, const RngKey& key, Scratch<float>& scratch,
                                         PayloadBuffer<float>& to) const = 0;
  virtual const Payload<double>& compress(Vec<double>& v, const RngKey& key, Scratch<double>& scratch,
                                          PayloadBuffer<double>& to) const = 0;
  virtual bool redraw(Shape shape, std::size_t count, std::uint32_t dim, const RngKey& key,
                      std::vector<std::uint32_t>& indices, std::uint32_t& first) const = 0;
};

// The type of all custom compressors in the variant. Two of them are equal if they are the same object.
struct CustomCompressor {
  std::shared_ptr<const CompressorInterface> made;
  bool operator==(const CustomCompressor&) const = default;

  std::string spec() const { return made->spec(); }
  CompressorConstants joint(std::size_t d, std::uint32_t n) const {
    const CompressorConstants q = made->joint(d, n);
    if (!(q.omega >= 0 && q.alpha >= 0 && q.alpha <= 1 && q.zeta >= 0))
      throw std::logic_error("compressor " + spec() +
                             " returned invalid constants: omega, alpha or zeta is out of range");
    return q;
  }
  std::size_t most_values(std::size_t d) const { return made->most_values(d); }
  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                  PayloadBuffer<Real>& to) const {
    const auto dim = v.size();
    const Payload<Real>& payload = made->compress(v, key, scratch, to);
    if (payload.dim != dim)
      throw std::logic_error("compressor " + spec() + " returned a payload of the wrong length");
    return payload;
  }
  bool redraw(Shape shape, std::size_t count, std::uint32_t dim, const RngKey& key,
              std::vector<std::uint32_t>& indices, std::uint32_t& first) const {
    return made->redraw(shape, count, dim, key, indices, first);
  }
};

template <class C>
class CompressorAdapter final : public CompressorInterface {
 public:
  explicit CompressorAdapter(C c) : c_(std::move(c)) {}

  std::string spec() const override {
    if constexpr (requires { c_.spec(); }) {
      return c_.spec();
    } else {
      return std::string(C::name);
    }
  }
  CompressorConstants joint(std::size_t d, std::uint32_t n) const override {
    if constexpr (requires { c_.joint(d, n); }) {
      return c_.joint(d, n);
    } else {
      return c_.constants(d).independent(n);
    }
  }
  std::size_t most_values(std::size_t d) const override {
    if constexpr (requires { c_.most_values(d); }) {
      return c_.most_values(d);
    } else {
      return static_cast<std::size_t>(std::ceil(joint(d, 1).zeta));
    }
  }
  const Payload<float>& compress(Vec<float>& v, const RngKey& key, Scratch<float>& scratch,
                                 PayloadBuffer<float>& to) const override {
    return call(v, key, scratch, to);
  }
  const Payload<double>& compress(Vec<double>& v, const RngKey& key, Scratch<double>& scratch,
                                  PayloadBuffer<double>& to) const override {
    return call(v, key, scratch, to);
  }
  bool redraw(Shape shape, std::size_t count, std::uint32_t dim, const RngKey& key,
              std::vector<std::uint32_t>& indices, std::uint32_t& first) const override {
    if constexpr (requires { c_.redraw(shape, count, dim, key, indices, first); }) {
      return c_.redraw(shape, count, dim, key, indices, first);
    } else {
      return false;
    }
  }

 private:
  template <class Real>
  const Payload<Real>& call(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                            PayloadBuffer<Real>& to) const {
    if constexpr (requires { c_(v, key, scratch, to); }) {
      return c_(v, key, scratch, to);
    } else {
      throw std::logic_error("compressor " + spec() + " does not support this precision");
    }
  }
  C c_;
};

// Makes a compressor for RunContext::compressor, resolve() of algorithms/algorithms.h, Scaled, Induced or
// Composed.
template <class C>
CustomCompressor custom_compressor(C c) {
  return {std::make_shared<const CompressorAdapter<C>>(std::move(c))};
}

}  // namespace gradwire
