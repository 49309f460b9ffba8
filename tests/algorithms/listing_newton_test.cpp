// FedNL, compared with a transcription of its listing with dense matrices, and the solvers that it uses.
#include "algorithms/support/symmetric.h"
#include "compressors/symmetric_eigen.h"
#include "gradwire/oracle.h"
#include "tests/algorithms/listing.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: includes Vector's operators

// Returns the full matrix of an upper triangle, shape (d, d), row by row.
Vector full(const Vector& upper, std::size_t d) {
  Vector matrix(d * d);
  for (std::size_t a = 0, at = 0; a < d; ++a)
    for (std::size_t b = a; b < d; ++b) matrix[a * d + b] = matrix[b * d + a] = upper[at++];
  return matrix;
}
Vector product(const Vector& matrix, const Vector& v) {
  Vector out(v.size());
  for (std::size_t a = 0; a < v.size(); ++a)
    for (std::size_t b = 0; b < v.size(); ++b) out[a] += matrix[a * v.size() + b] * v[b];
  return out;
}
// Solves A v = b by Gauss-Jordan elimination with pivoting.
Vector solve_naively(Vector A, Vector b) {
  const std::size_t d = b.size();
  for (std::size_t k = 0; k < d; ++k) {
    std::size_t pivot = k;
    for (std::size_t r = k; r < d; ++r)
      if (std::abs(A[r * d + k]) > std::abs(A[pivot * d + k])) pivot = r;
    for (std::size_t c = 0; c < d; ++c) std::swap(A[k * d + c], A[pivot * d + c]);
    std::swap(b[k], b[pivot]);
    for (std::size_t r = 0; r < d; ++r) {
      if (r == k) continue;
      const double f = A[r * d + k] / A[k * d + k];
      for (std::size_t c = 0; c < d; ++c) A[r * d + c] -= f * A[k * d + c];
      b[r] -= f * b[k];
    }
  }
  for (std::size_t k = 0; k < d; ++k) b[k] /= A[k * d + k];
  return b;
}

// Returns the upper triangle of Σ λ u uᵀ over the r eigenvalues λ of largest magnitude, computed by Jacobi's
// algorithm.
Vector rank_r_of(const Vector& upper, std::size_t d, std::size_t r) {
  Vector A = full(upper, d), U(d * d);
  for (std::size_t k = 0; k < d; ++k) U[k * d + k] = 1;
  for (int sweep = 0; sweep < 60; ++sweep) {
    for (std::size_t p = 0; p < d; ++p) {
      for (std::size_t q = p + 1; q < d; ++q) {
        const double angle = 0.5 * std::atan2(2 * A[p * d + q], A[q * d + q] - A[p * d + p]);
        const double c = std::cos(angle), s = std::sin(angle);
        const auto rotate = [&](double& a, double& b) {
          const double old = a;
          a = c * old - s * b;
          b = s * old + c * b;
        };
        for (std::size_t k = 0; k < d; ++k) rotate(A[k * d + p], A[k * d + q]);
        for (std::size_t k = 0; k < d; ++k) rotate(A[p * d + k], A[q * d + k]);
        for (std::size_t k = 0; k < d; ++k) rotate(U[k * d + p], U[k * d + q]);
      }
    }
  }
  std::vector<std::size_t> order(d);
  for (std::size_t k = 0; k < d; ++k) order[k] = k;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return std::abs(A[a * d + a]) > std::abs(A[b * d + b]); });
  Vector out(upper.size());
  for (std::size_t l = 0; l < r; ++l)
    for (std::size_t a = 0, at = 0; a < d; ++a)
      for (std::size_t b = a; b < d; ++b, ++at)
        out[at] += A[order[l] * d + order[l]] * U[a * d + order[l]] * U[b * d + order[l]];
  return out;
}

Vector random_triangle(std::size_t d, std::uint64_t seed) {
  Random random(seed, "triangle");
  Vector upper(upper_size(d));
  for (double& v : upper) v = random.normal();
  return upper;
}

// Returns the eigenvalues, descending. `matrix` becomes the eigenvectors, one per row.
Vector eigen(Vector& matrix, std::size_t d) {
  Vector values(d), work;
  symmetric_eigenvectors(matrix, d, work, values);
  return values;
}

TEST(SymmetricEigen, ReturnsOrthonormalEigenvectors) {
  for (const std::size_t d : {1, 2, 3, 8, 33, 70}) {
    Vector matrix = full(random_triangle(d, d), d);
    if (d == 8) std::fill(matrix.begin(), matrix.end(), 0.0);  // the zero matrix
    if (d == 33)
      for (std::size_t k = 0; k < d * d; ++k) matrix[k] = 1;  // one eigenvalue d, the others 0
    Vector vectors = matrix;
    const Vector values = eigen(vectors, d);
    EXPECT_TRUE(std::is_sorted(values.rbegin(), values.rend()));
    for (std::size_t e = 0; e < d; ++e) {
      const Vector v(vectors.begin() + static_cast<std::ptrdiff_t>(e * d),
                     vectors.begin() + static_cast<std::ptrdiff_t>((e + 1) * d));
      const Vector Av = product(matrix, v);
      for (std::size_t k = 0; k < d; ++k)
        EXPECT_NEAR(Av[k], values[e] * v[k], 1e-12 * static_cast<double>(d + 20));
      for (std::size_t other = 0; other < d; ++other) {
        double dot = 0;
        for (std::size_t k = 0; k < d; ++k) dot += v[k] * vectors[other * d + k];
        EXPECT_NEAR(dot, other == e ? 1 : 0, 1e-12);
      }
    }
  }
}

TEST(RankR, SendsEigenpairsOfLargestMagnitude) {
  for (const std::size_t d : {1, 2, 5, 17}) {
    const Vector upper = random_triangle(d, 11);
    for (std::size_t r = 1; r <= d; r += 3) {
      const Compressor c = parse_compressor("rankr:r=" + std::to_string(r), upper.size());
      Vector v = upper, out(upper.size());
      Scratch<double> scratch;
      PayloadBuffer<double> buffer;
      const Payload<double>& p = compress<double>(c, v, {}, scratch, buffer);
      EXPECT_EQ(p.values.size(), r * (d + 1));
      EXPECT_EQ(wire_bits(p), 64.0 * static_cast<double>(r * (d + 1)));
      add_decoded<double>(p, 1.0, out);
      expect_near(out, rank_r_of(upper, d, r), "entry ");
    }
  }
}

TEST(SymmetricSolver, SolvesOnlyPositiveDefiniteSystems) {
  for (const std::size_t d : {1, 2, 5, 40}) {
    const Vector upper = random_triangle(d, 3);
    Vector b(d, 1.0), copy = b, shifted = full(upper, d);
    SymmetricSolver solver(d);
    const double shift = 3 * std::sqrt(static_cast<double>(d)) + 3;
    for (std::size_t k = 0; k < d; ++k) shifted[k * d + k] += shift;
    ASSERT_TRUE(solver.solve<double>(upper, shift, b));
    expect_near(b, solve_naively(shifted, copy), "v");
    EXPECT_FALSE(solver.solve<double>(upper, -shift, copy));
    EXPECT_EQ(copy, Vector(d, 1.0));
  }
}

TEST(SymmetricSolver, RaisesSmallEigenvaluesToMu) {
  const std::size_t d = 12;
  const double mu = 0.5;
  const Vector upper = random_triangle(d, 5);
  Vector vectors = full(upper, d), b(d), projected(d * d);
  const Vector values = eigen(vectors, d);
  ASSERT_LT(values.back(), 0);
  ASSERT_GT(values.front(), mu);
  for (std::size_t e = 0; e < d; ++e)
    for (std::size_t r = 0; r < d; ++r)
      for (std::size_t k = 0; k < d; ++k)
        projected[r * d + k] += std::max(values[e], mu) * vectors[e * d + r] * vectors[e * d + k];
  for (std::size_t k = 0; k < d; ++k) b[k] = static_cast<double>(k) - 3;
  const Vector want = solve_naively(projected, b);
  SymmetricSolver(d).solve_projected<double>(upper, mu, b);
  for (std::size_t k = 0; k < d; ++k) EXPECT_NEAR(b[k], want[k], 1e-9);
}

TEST(FrobeniusNorm, CountsEntriesOffTheDiagonalTwice) {
  for (const std::size_t d : {1, 2, 9, 31}) {
    const Vector upper = random_triangle(d, 8);
    double sum = 0;
    for (const double v : full(upper, d)) sum += v * v;
    EXPECT_NEAR(frobenius_norm<double>(upper, d), std::sqrt(sum), 1e-12 * std::sqrt(sum));
  }
}

// f_i(x) = Σ_j a_j log cosh(x_j − b_j) with rotations between neighbours, so that Hessians change with x.
class LogCosh final : public Oracle<double> {
 public:
  Vector a, b;
  std::size_t dim() const override { return a.size(); }
  std::size_t sample_count() const override { return 1; }
  double loss_and_gradient(View<double> x, Batch, Out<double> gradient) override {
    std::fill(gradient.begin(), gradient.end(), 0.0);
    double loss = 0;
    for (std::size_t j = 0; j < a.size(); ++j) {
      const std::size_t k = (j + 1) % a.size();
      const double z = x[j] + 0.5 * x[k] - b[j], slope = a[j] * (std::tanh(z) + 0.04 * z);
      loss += a[j] * (std::log(std::cosh(z)) + 0.02 * z * z);
      gradient[j] += slope;
      gradient[k] += 0.5 * slope;
    }
    return loss;
  }
  bool hessian(View<double> x, Out<double> upper) override {
    const std::size_t d = a.size();
    Vector H(d * d);
    for (std::size_t j = 0; j < d; ++j) {
      const std::size_t k = (j + 1) % d;
      const double th = std::tanh(x[j] + 0.5 * x[k] - b[j]), curvature = a[j] * (1 - th * th + 0.04);
      H[j * d + j] += curvature;
      H[k * d + k] += 0.25 * curvature;
      H[j * d + k] += 0.5 * curvature;
      H[k * d + j] += 0.5 * curvature;
    }
    for (std::size_t r = 0, at = 0; r < d; ++r)
      for (std::size_t k = r; k < d; ++k) upper[at++] = H[r * d + k];
    return true;
  }
};

constexpr std::size_t kDim = 6, kEntries = 21;
constexpr std::uint32_t kNewtonClients = 4;

struct Newton {
  std::vector<LogCosh> oracles;
  std::shared_ptr<RunContext<double>> run_context = std::make_shared<RunContext<double>>();
  std::vector<RoundRecord> records;
  Vector model;

  explicit Newton(const AlgorithmSpec& spec, std::uint32_t rounds, double start = 0) {
    Random random(4, "newton");
    for (std::uint32_t i = 0; i < kNewtonClients; ++i) {
      LogCosh f;
      for (std::size_t j = 0; j < kDim; ++j) {
        f.a.push_back(0.2 + random.uniform());
        f.b.push_back(random.normal());
      }
      oracles.push_back(f);
    }
    run_context->n = kNewtonClients;
    run_context->d = kDim;
    run_context->x0 = Vector(kDim, start);
    Theory theory;
    theory.n = kNewtonClients;
    theory.d = kDim;
    Warnings warnings;
    run_context->algorithm = resolve(spec, theory, warnings);
    run_context->compressor = uplink_compressor(run_context->algorithm, kDim, kNewtonClients);
    std::vector<Oracle<double>*> pointers;
    for (auto& f : oracles) pointers.push_back(&f);
    FaultSimulation<double> transport(run_context, pointers, {});
    const auto server = make_server<double>(run_context);
    RunProgress progress;
    RoundLimits limits;
    limits.rounds = rounds;
    LoopHooks<double> hooks;
    hooks.on_record = [&](const RoundRecord& record) { records.push_back(record); };
    run_rounds<double>(*server, find_algorithm("fednl").traits, *run_context, transport, progress, limits,
                       hooks);
    model.assign(server->model().begin(), server->model().end());
  }

  Vector grad(std::uint32_t i, const Vector& x) {
    Vector g(kDim);
    oracles[i].loss_and_gradient(x, {}, g);
    return g;
  }
  Vector hessian(std::uint32_t i, const Vector& x) {
    Vector H(kEntries);
    oracles[i].hessian(x, H);
    return H;
  }
  Vector mean_grad(const Vector& x) {
    Vector g(kDim);
    for (std::uint32_t i = 0; i < kNewtonClients; ++i) g = g + (1.0 / kNewtonClients) * grad(i, x);
    return g;
  }
  Vector C(std::uint32_t i, std::uint32_t t, const Vector& v) const {
    if (const auto* rank_r = std::get_if<RankR>(&run_context->compressor))
      return rank_r_of(v, kDim, rank_r->r);
    return Listing::apply(run_context->compressor, v, {1, i, t, RngDomain::kCompressor + 1});
  }

  // Runs the listing from H_i^0 with `option` 1 or 2.
  Vector listing(std::vector<Vector> H_i, double alpha, int option, double mu, std::uint32_t rounds) {
    Vector x(kDim);
    for (std::uint32_t t = 0; t < rounds; ++t) {
      Vector H(kEntries);
      double l = 0;
      for (std::uint32_t i = 0; i < kNewtonClients; ++i) {
        H = H + (1.0 / kNewtonClients) * H_i[i];
        double square = 0;
        for (const double v : full(H_i[i] - hessian(i, x), kDim)) square += v * v;
        l += std::sqrt(square) / kNewtonClients;
      }
      Vector A = full(H, kDim);
      if (option == 2) {
        for (std::size_t k = 0; k < kDim; ++k) A[k * kDim + k] += l;
      } else {
        Vector vectors = A;
        const Vector values = eigen(vectors, kDim);
        std::fill(A.begin(), A.end(), 0.0);
        for (std::size_t e = 0; e < kDim; ++e)
          for (std::size_t r = 0; r < kDim; ++r)
            for (std::size_t k = 0; k < kDim; ++k)
              A[r * kDim + k] += std::max(values[e], mu) * vectors[e * kDim + r] * vectors[e * kDim + k];
      }
      const Vector x_next = x - solve_naively(A, mean_grad(x));
      for (std::uint32_t i = 0; i < kNewtonClients; ++i)
        H_i[i] = H_i[i] + alpha * C(i, t, hessian(i, x) - H_i[i]);
      x = x_next;
    }
    return x;
  }
};

void expect_close(const Vector& got, const Vector& want) {
  for (std::size_t j = 0; j < want.size(); ++j) EXPECT_NEAR(got[j], want[j], 1e-9 * (1 + std::abs(want[j])));
}

TEST(FedNl, MatchesPaperListingOfOptionOneFromZero) {
  for (const char* compressor :
       {"topk:k=5", "randk:k=7", "randseqk:k=9", "natural", "identity", "rankr:r=1", "rankr:r=3"}) {
    Newton run(spec_of("fednl", compressor, {{"option", "1"}, {"mu", "0.4"}, {"init", "zero"}}), 6);
    SCOPED_TRACE(compressor);
    expect_close(run.model, run.listing(std::vector<Vector>(kNewtonClients, Vector(kEntries)),
                                        parameter(*run.run_context, "alpha"), 1, 0.4, 6));
  }
}

TEST(FedNl, MatchesPaperListingOfOptionTwoFromHessians) {
  Newton run(spec_of("fednl", "randk:k=7", {{"option", "2"}}), 6);
  EXPECT_DOUBLE_EQ(parameter(*run.run_context, "alpha"), 7.0 / 21);
  std::vector<Vector> H_i;
  for (std::uint32_t i = 0; i < kNewtonClients; ++i) H_i.push_back(run.hessian(i, Vector(kDim)));
  expect_close(run.model, run.listing(H_i, 7.0 / 21, 2, 0, 6));
}

TEST(FedNl, ConvergesLocallyInFewRoundsForAnyConditioning) {
  const Newton run(spec_of("fednl", "randseqk:k=10", {{"option", "1"}, {"mu", "0.05"}}), 40);
  EXPECT_LT(run.records.back().grad_norm_sq, 1e-24);
}

TEST(FedNl, NeverRaisesLossWithArmijoAndReachesOptimum) {
  const Options projected = {{"option", "1"}, {"mu", "0.01"}, {"init", "hessian"}};
  AlgorithmSpec spec = spec_of("fednl", "topk:k=21", projected);
  spec.parameters.emplace_back("line_search", "armijo");
  const Newton run(spec, 40, 6.0);
  std::size_t held = 0;
  for (std::size_t k = 1; k < run.records.size(); ++k) {
    EXPECT_LE(run.records[k].loss, run.records[k - 1].loss + 1e-14);
    held += run.records[k].loss == run.records[k - 1].loss;
  }
  EXPECT_LT(run.records.back().grad_norm_sq, 1e-20);
  EXPECT_GT(held, 0u) << "no trial failed";
  const Newton bold(spec_of("fednl", "topk:k=21", projected), 3, 6.0);
  EXPECT_GT(bold.records[1].loss, bold.records[0].loss) << "a full step would also decrease the loss";
}

}  // namespace
}  // namespace gradwire
