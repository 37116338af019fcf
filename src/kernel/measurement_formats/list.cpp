#include "kernel/measurement_formats/list.h"

namespace foretoken {

std::span<const MeasurementFormat> measurement_formats() {
  // Add your line here.
  static const MeasurementFormat formats[] = {
      llmservingsim_format(),
  };
  return formats;
}

}  // namespace foretoken
