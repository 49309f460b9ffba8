// The constants of step-size theory (notation of docs/reference/algorithms.md), exact to 1e-12 relative.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gradwire {

// Constants of one client's f_i = mean_j f_ij, j over its samples. A function that is not such a mean has one
// sample.
struct ClientSmoothness {
  double L_i = 0;           // smoothness of f_i: ||grad f_i(x) - grad f_i(y)|| <= L_i ||x - y||
  double mu_i = 0;          // strong convexity of f_i; 0 if unknown or not strongly convex
  double L_s = 0;           // sqrt(mean_j L_ij^2), L_ij the smoothness of f_ij with the regularizer
  double L_sample_max = 0;  // max_j L_ij
};

// Constants of f = sum_i w_i f_i.
struct Smoothness {
  double L = 0;                      // smoothness of f (L_- of the papers)
  double mu = 0;                     // strong convexity, or the PL constant; 0 if unknown or none
  std::vector<double> L_i = {};      // one per client
  std::vector<double> weights = {};  // w_i, one per client, sum 1; 1/n each if empty
  bool convex = false;               // every f_i is convex
  bool exact = true;       // false if estimated, or if L is the mean of the L_i, as the server sees no data
  bool estimated = false;  // true if all are lower bounds: the largest values found (estimate_smoothness.h)

  // The smallest constants with sum_i w_i ||D_i||^2 <= L_+^2 ||x - y||^2 and
  // sum_i w_i ||D_i||^2 - ||sum_i w_i D_i||^2 <= L_pm^2 ||x - y||^2, where D_i = grad f_i(x) - grad f_i(y)
  // (Hessian variance, arXiv:2110.03300). Empty if there is no closed form.
  std::optional<double> L_plus = {}, L_pm = {};

  double L_s = 0;           // sqrt(sum_i w_i mean_j L_ij^2): average smoothness of samples (VR-MARINA, PAGE)
  double L_sample_max = 0;  // max_ij L_ij

  double L_max() const { return L_i.empty() ? 0 : *std::max_element(L_i.begin(), L_i.end()); }
  // Returns max_i n w_i L_i: L_max of the functions n w_i f_i, whose plain mean is f.
  double L_max_weighted() const {
    if (weights.empty()) return L_max();
    const double equal = 1 / static_cast<double>(L_i.size());
    double largest = 0;
    for (std::size_t i = 0; i < L_i.size(); ++i) largest = std::max(largest, weights[i] / equal * L_i[i]);
    return largest;
  }
  // Returns sum_i w_i L_i.
  double L_avg() const {
    return mean([](double l) { return l; });
  }
  // Returns L~ = sqrt(sum_i w_i L_i^2).
  double L_tilde() const {
    return std::sqrt(mean([](double l) { return l * l; }));
  }
  // Returns the smallest known bound, by L_+ <= L~ and L_pm <= L_+.
  double L_plus_bound() const { return L_plus ? *L_plus : L_tilde(); }
  double L_pm_bound() const { return L_pm ? *L_pm : L_plus_bound(); }

 private:
  template <class Term>
  double mean(Term term) const {
    if (L_i.empty()) return 0;
    double sum = 0;
    for (std::size_t i = 0; i < L_i.size(); ++i) sum += (weights.empty() ? 1 : weights[i]) * term(L_i[i]);
    return weights.empty() ? sum / static_cast<double>(L_i.size()) : sum;
  }
};

}  // namespace gradwire
