// A complete algorithm, which compiles.
#include "tests/compile_fail/algorithm.h"

void all() { gradwire::list<gradwire::WholeClient, gradwire::WholeServer>(); }
