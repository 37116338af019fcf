// Simulated time: integer picoseconds inside a run, seconds outside.
#pragma once

#include "serving/request.h"

namespace foretoken {

Picoseconds picoseconds(double seconds);  // the nearest; within 106 days
double seconds(Picoseconds time);

}  // namespace foretoken
