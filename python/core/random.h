// gw.RandomStream, and generators of NumPy for the random numbers of a run.
#pragma once

#include <pybind11/pybind11.h>

#include "gradwire/random.h"

namespace gradwire::python {

// Returns a generator that two numbers of the stream determine.
pybind11::object generator_of(RandomStream random);

}  // namespace gradwire::python
