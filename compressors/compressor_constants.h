#pragma once

#include <cstdint>

namespace gradwire {

// What theory needs to know of a compressor on R^d, and of n clients that use it.
struct CompressorConstants {
  bool unbiased = false;  // E C(x) = x
  double omega = 0;       // unbiased: E ||C(x) - x||^2 <= omega ||x||^2
  double alpha = 0;       // contractive: E ||C(x) - x||^2 <= (1 - alpha) ||x||^2; 0 when it is not
  double zeta = 0;        // expected number of sent numbers (toplek: at most)
  // Unbiased: E ||mean C_i(a_i) - mean a_i||^2 <= A mean ||a_i||^2 - B ||mean a_i||^2 (the AB inequality,
  // arXiv:2110.03300) over the n clients; all means by the same weights w_i.
  double A = 0, B = 0;

  // An unbiased compressor with omega < 1 is also contractive, without scaling.
  static CompressorConstants of_unbiased(double omega, double zeta) {
    return {true, omega, omega < 1 ? 1 - omega : 0, zeta, omega, 0};
  }
  static CompressorConstants of_contractive(double alpha, double zeta) {
    return {alpha == 1, 0, alpha, zeta, 0, 0};
  }
  // The same on n clients that draw independently.
  CompressorConstants independent(std::uint32_t n) const {
    CompressorConstants q = *this;
    q.A = unbiased ? omega / n : 0;
    return q;
  }
  // From equal weights to any, skew = n max w_i: the errors of the clients add up to A n sum w_i^2 ||a_i||^2
  // at most, and B stays.
  CompressorConstants weighted(double skew) const {
    CompressorConstants q = *this;
    q.A *= skew;
    return q;
  }
};

}  // namespace gradwire
