#pragma once

#include <cstdint>

namespace gradwire {

// The constants of a compressor on R^d that theory needs, also for n clients that use it.
struct CompressorConstants {
  bool unbiased = false;  // E C(x) = x
  double omega = 0;       // if unbiased: E ||C(x) - x||^2 <= omega ||x||^2
  double alpha = 0;       // E ||C(x) - x||^2 <= (1 - alpha) ||x||^2; 0 if the compressor is not contractive
  double zeta = 0;        // expected number of sent numbers (for toplek an upper bound)
  // For an unbiased compressor: E ||mean C_i(a_i) - mean a_i||^2 <= A mean ||a_i||^2 - B ||mean a_i||^2 over
  // the n clients (the AB inequality, arXiv:2110.03300). All means have the same weights w_i.
  double A = 0, B = 0;

  // Returns the constants of an unbiased compressor. With omega < 1 it is also contractive, without scaling.
  static CompressorConstants of_unbiased(double omega, double zeta) {
    return {true, omega, omega < 1 ? 1 - omega : 0, zeta, omega, 0};
  }
  static CompressorConstants of_contractive(double alpha, double zeta) {
    return {alpha == 1, 0, alpha, zeta, 0, 0};
  }
  // Returns the constants for n clients that draw independently.
  CompressorConstants independent(std::uint32_t n) const {
    CompressorConstants q = *this;
    q.A = unbiased ? omega / n : 0;
    return q;
  }
  // Returns the constants for any weights w_i from those for equal weights; skew is n max w_i. The errors of
  // the clients add up to at most A n sum w_i^2 ||a_i||^2, and B is unchanged.
  CompressorConstants weighted(double skew) const {
    CompressorConstants q = *this;
    q.A *= skew;
    return q;
  }
};

}  // namespace gradwire
