// List of all benchmarks. To add one, declare its function here and add a line to bench.cpp.
#pragma once

#include "benchmarks/harness.h"

namespace gradwire::bench {

void engine_logistic(Bench& bench);
void engine_mlp(Bench& bench);
void engine_first_layer(Bench& bench);
void engine_dense(Bench& bench);
void engine_tape(Bench& bench);
void engine_letters(Bench& bench);
void engine_batches(Bench& bench);
void engine_gpt(Bench& bench);
void engine_shapes(Bench& bench);
void engine_precision(Bench& bench);
void engine_kernels(Bench& bench);
void engine_capabilities(Bench& bench);
void engine_process(Bench& bench);
void engine_files(Bench& bench);
void engine_scalars(Bench& bench);
void papers_burtorch(Bench& bench);
void compressors_compress(Bench& bench);
void compressors_check(Bench& bench);
void compressors_decode(Bench& bench);
void compressors_add(Bench& bench);
void rounds_overhead(Bench& bench);
void rounds_a9a(Bench& bench);
void rounds_mnist_shaped(Bench& bench);
void rounds_threads(Bench& bench);
void rounds_sums(Bench& bench);
void rounds_events(Bench& bench);
void scale_start(Bench& bench);
void scale_rounds(Bench& bench);
void scale_ef21(Bench& bench);
void scale_evaluation(Bench& bench);
void scale_serial(Bench& bench);
void scale_threads(Bench& bench);
void algorithms_quadratic(Bench& bench);
void algorithms_permk(Bench& bench);
void algorithms_fednl(Bench& bench);
void wire_codec(Bench& bench);
void wire_zstd(Bench& bench);
void durability_commit(Bench& bench);
void durability_record(Bench& bench);
void cluster_sums(Bench& bench);
void cluster_fedavg(Bench& bench);
void plot_fifty(Bench& bench);
void sweep_hundred(Bench& bench);
void tcp_payloads(Bench& bench);
void tcp_load(Bench& bench);
void tcp_connections(Bench& bench);
void tcp_restart(Bench& bench);
void tcp_rounds(Bench& bench);
void tcp_memory(Bench& bench);
void tcp_overlap(Bench& bench);

}  // namespace gradwire::bench
