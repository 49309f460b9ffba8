// The value and the derivatives of an expression in usual notation.
#include <cmath>
#include <cstdio>

#include "engine/tape/tape.h"

int main() {
  gradwire::Tape<double> tape;
  auto a = tape.variable(-4.0), b = tape.variable(2.0);
  auto c = a + b;
  auto d = a * b + pow3(b);
  c += c + 1;
  c += 1 + c - a;
  d += d * 2 + relu(b + a);
  d += 3 * d + relu(b - a);
  auto e = c - d;
  auto f = sqr(e);
  auto g = f / 2;
  g += 10 / f;
  backward(g);
  std::printf("g = %.10f, dg/da = %.10f, dg/db = %.10f\n", g.value(), a.grad(), b.grad());
  return std::abs(a.grad() - 138.8338192419825) < 1e-9 && std::abs(b.grad() - 645.5772594752186) < 1e-9 ? 0
                                                                                                        : 1;
}
