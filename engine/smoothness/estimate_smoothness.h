// Estimates of the constants of step-size theory, for functions without a closed form.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/client_objectives.h"
#include "engine/smoothness/ordered_scan.h"
#include "engine/smoothness/smoothness.h"

namespace gradwire {

// Estimates the constants of f = sum_i weights[i] f_i (1/n each if weights is empty) by the largest curvature
// at x0 and after ten steps of gradient descent from there.
//
// A curvature is ||H v|| after twelve steps of the power method on differences of gradients. It is measured
// for f, for each f_i on at most 256 of its samples, and for single samples. If there are more than 64
// clients, 64 are drawn, and the others get the largest value of these. Sets mu = 0, convex = false, exact =
// false, estimated = true.
//
// Every value is a lower bound of the true constant, rounded up to two digits, so that processors whose
// gradients differ in their last bits agree. `seed` determines the draws. If processes share the clients,
// each evaluates the functions of its own clients. Throws DataError if a gradient is not finite. REQUIRES: at
// least one client; x0 has the length of their oracles.
Smoothness estimate_smoothness(const ClientObjectives<double>& clients, std::span<const double> weights,
                               std::span<const double> x0, std::uint64_t seed, const OrderedScan& scan = {});

}  // namespace gradwire
