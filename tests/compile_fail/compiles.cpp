// Nothing is spoilt: this compiles.
#include "tests/compile_fail/method.h"

void all() { gradwire::list<gradwire::WholeClient, gradwire::WholeServer>(); }
