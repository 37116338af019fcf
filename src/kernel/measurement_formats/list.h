// The layouts, each in a file of its own.
#pragma once

#include "kernel/measurement_format.h"

namespace foretoken {

MeasurementFormat llmservingsim_format();

}  // namespace foretoken
