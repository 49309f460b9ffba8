// The table of one instruction set and one type. The file is compiled once for each pair
// (engine/CMakeLists.txt).
#include "engine/kernels/activations.h"
#include "engine/kernels/attention.h"
#include "engine/kernels/attention_tangent.h"
#include "engine/kernels/features.h"
#include "engine/kernels/gram.h"
#include "engine/kernels/images.h"
#include "engine/kernels/lane_outer.h"
#include "engine/kernels/lane_product.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/one_lane.h"
#include "engine/kernels/peak.h"
#include "engine/kernels/rows.h"
#include "engine/kernels/sums.h"

#define GRADWIRE_TEXT_OF(x) #x
#define GRADWIRE_TEXT(x) GRADWIRE_TEXT_OF(x)

namespace gradwire::GRADWIRE_ISA {

using Real = GRADWIRE_REAL;

extern const Kernels<Real> GRADWIRE_TABLE;
const Kernels<Real> GRADWIRE_TABLE = {
    .name = GRADWIRE_TEXT(GRADWIRE_ISA),
    .vector = kNative<Real>,
    .lane_product = lane_product<Real>,
    .lane_product_pair = lane_product_pair<Real>,
    .row_forward = row_forward<Real>,
    .row_tangent = row_tangent<Real>,
    .row_backward = row_backward<Real>,
    .single_backward = single_backward<Real>,
    .outer = outer<Real>,
    .lane_outer = lane_outer<Real>,
    .lane_sums = lane_sums<Real>,
    .transpose = transpose<Real>,
    .sparse_forward = sparse_forward<Real>,
    .sparse_backward = sparse_backward<Real>,
    .dense_forward = dense_forward<Real>,
    .dense_backward = dense_backward<Real>,
    .gram = gram<Real>,
    .activation_forward = {activation_forward<Tanh, Real>, activation_forward<Relu, Real>,
                           activation_forward<Sigmoid, Real>, activation_forward<Gelu, Real>},
    .activation_backward = {activation_backward<Tanh, Real>, activation_backward<Relu, Real>,
                            activation_backward<Sigmoid, Real>, activation_backward<Gelu, Real>},
    .add = add<Real>,
    .copy = copy<Real>,
    .multiply = multiply<Real>,
    .scale_lanes = scale_lanes<Real>,
    .lane_grams = lane_grams<Real>,
    .axpy = axpy<Real>,
    .norm_forward = norm_forward<Real>,
    .norm_backward = norm_backward<Real>,
    .norm_tangent = norm_tangent<Real>,
    .attention_forward = attention_forward<Real>,
    .attention_tangent = attention_tangent<Real>,
    .attention_backward = attention_backward<Real>,
    .convolution_forward = convolution_forward<Real>,
    .convolution_input = convolution_input<Real>,
    .convolution_weights = convolution_weights<Real>,
    .max_pool_forward = max_pool_forward<Real>,
    .max_pool_tangent = max_pool_tangent<Real>,
    .max_pool_backward = max_pool_backward<Real>,
    .average_pool_forward = average_pool_forward<Real>,
    .average_pool_backward = average_pool_backward<Real>,
    .cross_entropy = cross_entropy<Real>,
    .multiply_adds = multiply_adds<Real>,
    .multiply_adds_a_round = kPeakChains * kNative<Real>,
};

}  // namespace gradwire::GRADWIRE_ISA
