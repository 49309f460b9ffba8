// Readers of samples that also know those of a program.
#pragma once

#include <optional>

#include "gradwire/data.h"
#include "samples/local_problem.h"

namespace gradwire {

// Returns the readers of an experiment whose problem.data or problem.test is "given".
Reading reading_of(const std::optional<Data>& data, const std::optional<Data>& test);

}  // namespace gradwire
