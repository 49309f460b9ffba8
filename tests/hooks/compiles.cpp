// Nothing is spoilt: this compiles.
#include "tests/hooks/method.h"

void all() { gradwire::list<gradwire::WholeClient, gradwire::WholeServer>(); }
