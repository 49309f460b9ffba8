/* Prints the layout of gradwire.h. */
#include <gradwire.h>
#include <stdio.h>

#define SIZE(type) printf("%s %u\n", #type, (unsigned)sizeof(type))
#define AT(type, member) printf("%s.%s %u\n", #type, #member, (unsigned)offsetof(type, member))

int main(void) {
  SIZE(gradwire_options);
  AT(gradwire_options, flags);
  AT(gradwire_options, server);
  AT(gradwire_options, part);
  AT(gradwire_options, give_up_after_ms);
  AT(gradwire_options, log);
  AT(gradwire_options, connect);
  AT(gradwire_options, memory);
  AT(gradwire_options, memory_bytes);
  SIZE(gradwire_run_info);
  AT(gradwire_run_info, precision);
  AT(gradwire_run_info, dim);
  AT(gradwire_run_info, client);
  AT(gradwire_run_info, rounds);
  SIZE(gradwire_training);
  AT(gradwire_training, batch);
  AT(gradwire_training, seed);
  AT(gradwire_training, step_size);
  AT(gradwire_training, proximal);
  SIZE(gradwire_oracle);
  AT(gradwire_oracle, user);
  AT(gradwire_oracle, sample_count);
  AT(gradwire_oracle, begin);
  AT(gradwire_oracle, gradient_f32);
  AT(gradwire_oracle, train_f64);
  AT(gradwire_oracle, score);
  AT(gradwire_oracle, dim);
  SIZE(gradwire_wait);
  AT(gradwire_wait, fd);
  AT(gradwire_wait, timeout_ms);
  SIZE(gradwire_progress);
  AT(gradwire_progress, answered);
  AT(gradwire_progress, memory_peak);
  AT(gradwire_progress, loss);
  SIZE(gradwire_plan);
  AT(gradwire_plan, dim);
  AT(gradwire_plan, algorithm);
  AT(gradwire_plan, compressor);
  return 0;
}
