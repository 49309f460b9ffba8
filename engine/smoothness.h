// The constants that step-size theory needs (notation of docs/algorithms.md), exact to 1e-12 relative.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gradwire {

// Of one client's f_i.
struct ClientSmoothness {
  double L_i = 0;   // smoothness of f_i: ||grad f_i(x) - grad f_i(y)|| <= L_i ||x - y||
  double mu_i = 0;  // strong convexity of f_i; 0 when unknown or none
};

// Of f = sum_i w_i f_i.
struct Smoothness {
  double L = 0;             // smoothness of f
  double mu = 0;            // strong convexity, or the PL constant; 0 when unknown or none
  std::vector<double> L_i;  // one per client
  bool convex = false;      // every f_i is convex
  bool exact = true;        // false: L is the mean of the L_i (a server that sees no data), an upper bound

  double L_max() const { return L_i.empty() ? 0 : *std::max_element(L_i.begin(), L_i.end()); }
  double L_avg() const {
    double sum = 0;
    for (const double l : L_i) sum += l;
    return L_i.empty() ? 0 : sum / static_cast<double>(L_i.size());
  }
  // L~ = sqrt(mean_i L_i^2)
  double L_tilde() const {
    double sum = 0;
    for (const double l : L_i) sum += l * l;
    return L_i.empty() ? 0 : std::sqrt(sum / static_cast<double>(L_i.size()));
  }
};

}  // namespace gradwire
