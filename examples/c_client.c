/* A client in C with training code of its own: client NUMBER, 0 to 2, of examples/server.cpp.
 *   c_client 127.0.0.1:7000 0 */
#include <gradwire.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 10 };

/* f_i(x) = ||A x - b||^2 / (2 m), over m points of a line with noise; x = (slope, offset). */
static int32_t gradient(void* user, const double* x, size_t d, const uint32_t* batch, size_t n, double* g,
                        double* loss) {
  const size_t count = n == 0 ? SAMPLES : n;
  const double share = 1 / (double)count;
  if (d != 2) return 1;
  *loss = g[0] = g[1] = 0;
  for (size_t k = 0; k < count; ++k) {
    const size_t j = n == 0 ? k : batch[k];
    const double a = *(const unsigned*)user + 0.1 * (double)j, b = 2 * a - 1 + (j % 2 == 0 ? 0.1 : -0.1);
    const double residual = x[0] * a + x[1] - b;
    *loss += share * residual * residual / 2;
    g[0] += share * residual * a;
    g[1] += share * residual;
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  unsigned number = (unsigned)atoi(argv[2]);
  gradwire_options options = {0};
  options.struct_size = sizeof options;
  options.server = argv[1];
  options.part = number;
  options.parts = 3;
  gradwire_oracle oracle = {0};
  oracle.struct_size = sizeof oracle;
  oracle.user = &number;
  oracle.sample_count = SAMPLES;
  oracle.gradient_f64 = gradient;
  char why[200];
  gradwire_client* client;
  if (gradwire_create(&options, &oracle, &client, why, sizeof why) != GRADWIRE_OK)
    return fprintf(stderr, "%s\n", why), 1;
  const gradwire_status status = gradwire_run(client);
  printf("client %u: %s\n", number, status == GRADWIRE_DONE ? "the run is over" : gradwire_message(client));
  gradwire_destroy(client);
  return status == GRADWIRE_DONE ? 0 : 1;
}
