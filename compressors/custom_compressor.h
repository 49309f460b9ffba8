// A compressor that a program outside this tree defines and uses like those of the list: custom_compressor()
// makes it from a struct like theirs. It has no spelling in an experiment file; it runs wherever the program
// itself holds both ends, and its payloads pass through the codec like any other.
//
// Such a struct C has
//   name                                              what records call it; unless it has a spec() of its own
//   Quality quality(std::size_t d) const              of one client alone; or joint(d, n), of all n
//   const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>&, PayloadBuffer<Real>&)
//   const
//                                                     for double, float or both; several threads may call it
// and may have
//   bool redraw(Shape, std::size_t count, std::uint32_t dim, const RngKey&,
//               std::vector<std::uint32_t>& indices, std::uint32_t& first) const
//                                                     for payloads that it marks with set_seeded(): their
//                                                     support then costs nothing on the wire
//   std::size_t most_values(std::size_t d) const      the largest number of values of one payload; else zeta
// The struct says with Store how a payload is written: its shape, and set_packing() where the values are
// multiples of a unit.
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

#include "compressors/compressor_constants.h"
#include "compressors/payload.h"

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

// The one entry of the list for all of them; two are equal when they are the same object.
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
      throw std::logic_error("the compressor " + spec() + " returned a payload of another length");
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
      throw std::logic_error("the compressor " + spec() + " is not made for this precision");
    }
  }
  C c_;
};

// For RunContext::compressor and resolve() of algorithms/algorithms.h, or inside of Scaled, Induced and Over.
template <class C>
CustomCompressor custom_compressor(C c) {
  return {std::make_shared<const CompressorAdapter<C>>(std::move(c))};
}

}  // namespace gradwire
