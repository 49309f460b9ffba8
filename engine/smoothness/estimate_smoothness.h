// Estimates of the constants that step-size theory needs, for functions without closed form.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/client_objectives.h"
#include "engine/smoothness/ordered_scan.h"
#include "engine/smoothness/smoothness.h"

namespace gradwire {

// Estimates the constants of f = sum_i weights[i] f_i (weights empty: 1/n each): the largest curvature met,
// at x0 and at the end of ten steps of gradient descent from there. A curvature is ||H v|| after twelve steps
// of the power method on differences of gradients, of f, of each f_i on at most 256 of its samples, and of
// single samples; of more than 64 clients, 64 are drawn, and the others get the largest of the values of
// these. mu = 0, convex = false, exact = false, estimated = true. Every value is a lower bound of the true
// constant, rounded up to two digits so that processors whose gradients differ in their last bits agree.
// Draws by `seed`; throws DataError where a gradient is not finite. Where processes share the clients, each
// asks the functions of its own. REQUIRES: at least one client; x0 is of the length of their oracles.
Smoothness estimate_smoothness(const ClientObjectives<double>& clients, std::span<const double> weights,
                               std::span<const double> x0, std::uint64_t seed, const OrderedScan& scan = {});

}  // namespace gradwire
