#pragma once

namespace gradwire {

// What theory needs to know of a compressor on R^d.
struct Quality {
  bool unbiased = false;  // E C(x) = x
  double omega = 0;       // unbiased: E ||C(x) - x||^2 <= omega ||x||^2
  double alpha = 0;       // contractive: E ||C(x) - x||^2 <= (1 - alpha) ||x||^2; 0 when it is not
  double zeta = 0;        // expected number of sent coordinates

  // An unbiased compressor with omega < 1 is contractive as it stands.
  static Quality of_unbiased(double omega, double zeta) {
    return {true, omega, omega < 1 ? 1 - omega : 0, zeta};
  }
  static Quality of_contractive(double alpha, double zeta) { return {alpha == 1, 0, alpha, zeta}; }
};

}  // namespace gradwire
