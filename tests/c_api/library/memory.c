/* A client in a region of its own: memory SERVER NUMBER. Checks that the region that gradwire_memory_needed() names
 * suffices, that little less does not, that rounds take no more memory, and that a client of a callback is not in it. */
#include <gradwire.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 2410 };
static long answers, at_ten, at_end;
static gradwire_client* inner; /* made by a callback, and alive when the region is gone */

static long in_use(void) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  return (long)mallinfo2().uordblks;
#else
  return 0;
#endif
}

static int32_t gradient(void* user, const double* x, size_t d, const uint32_t* batch, size_t n, double* g,
                        double* loss) {
  (void)user, (void)batch, (void)n;
  *loss = 0;
  for (size_t j = 0; j < d; ++j) {
    g[j] = x[j] - 1 / (double)(j + 1);
    *loss += g[j] * g[j] / 2;
  }
  if (++answers == 1) {
    gradwire_options options;
    gradwire_oracle oracle;
    memset(&options, 0, sizeof options);
    memset(&oracle, 0, sizeof oracle);
    options.struct_size = sizeof options;
    options.server = "127.0.0.1:1";
    oracle.struct_size = sizeof oracle;
    oracle.sample_count = 1;
    oracle.gradient_f64 = gradient;
    if (gradwire_create(&options, &oracle, &inner, NULL, 0) != GRADWIRE_OK) return 1;
  }
  if (answers == 10) at_ten = in_use();
  at_end = in_use();
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  gradwire_plan plan;
  memset(&plan, 0, sizeof plan);
  plan.struct_size = sizeof plan;
  plan.precision = 64;
  plan.clients = 1;
  plan.dim = DIM;
  plan.sample_count = 1;
  plan.algorithm = "ef21";
  plan.compressor = "topk:k=1%";
  uint64_t bytes = 0;
  if (gradwire_memory_needed(&plan, &bytes) != GRADWIRE_OK) return fprintf(stderr, "no plan\n"), 1;
  const int less = strcmp(argv[2], "less") == 0;
  gradwire_options options;
  gradwire_oracle oracle;
  memset(&options, 0, sizeof options);
  memset(&oracle, 0, sizeof oracle);
  options.struct_size = sizeof options;
  options.server = argv[1];
  options.memory_bytes = less ? bytes / 2 : bytes;
  options.memory = malloc((size_t)options.memory_bytes);
  oracle.struct_size = sizeof oracle;
  oracle.sample_count = 1;
  oracle.gradient_f64 = gradient;
  char why[300];
  gradwire_client* client = NULL;
  gradwire_status status = gradwire_create(&options, &oracle, &client, why, sizeof why);
  if (status == GRADWIRE_OK) {
    status = gradwire_run(client);
    strncpy(why, gradwire_message(client), sizeof why - 1);
    why[sizeof why - 1] = '\0';
  }
  gradwire_progress progress;
  memset(&progress, 0, sizeof progress);
  progress.struct_size = sizeof progress;
  if (client != NULL) gradwire_progress_of(client, &progress);
  printf("%d %llu %llu %ld %s\n", (int)status, (unsigned long long)bytes, (unsigned long long)progress.memory_peak,
         at_end - at_ten, why);
  gradwire_destroy(client);
  memset(options.memory, 0xff, (size_t)options.memory_bytes);
  free(options.memory);
  gradwire_destroy(inner);
  return 0;
}
