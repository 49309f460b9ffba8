// The compressors, in a program that has its own loop.
#include <cstdio>

#include "compressors/compressor.h"

int main() {
  gradwire::Vec<float> gradient = {0.5f, -3, 1, 0};
  gradwire::Scratch<float> scratch;
  gradwire::PayloadBuffer<float> buffer;
  const gradwire::Compressor top2 = gradwire::parse_compressor("topk:k=2", gradient.size());
  const gradwire::Payload<float>& sent = gradwire::compress(top2, gradient, {.seed = 1}, scratch, buffer);
  gradwire::Vec<float> received(4);
  gradwire::add_decoded<float>(sent, 1, received, 0, received.size());
  std::printf("%g %g %g %g\n", received[0], received[1], received[2], received[3]);
  return received == gradwire::Vec<float>{0, -3, 1, 0} ? 0 : 1;
}
