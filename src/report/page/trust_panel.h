// How far to trust a prediction: what it rests on, and how far the layers that it went through are from published
// measurements.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "compose/step_estimate.h"
#include "hardware/node.h"
#include "report/accuracy/published_accuracy.h"
#include "report/drawing/html_page.h"

namespace foretoken {

// Seconds of kernels and collectives by what their times rest on, in the order of Confidence.
using TimeByConfidence = std::array<double, 4>;

TimeByConfidence time_by_confidence(const StepEstimate& step);
TimeByConfidence kernel_time_by_confidence(const StepEstimate& step);  // without its collectives

// The names under which measurements speak of a device: its own, and that of the usual node.
std::vector<std::string> measured_names(const Device& device, const std::optional<Node>& node);

struct Trust {
  std::vector<std::string_view> layers;   // that the prediction went through, as PublishedGroup names them
  std::vector<std::string> names;         // measured_names() of all devices in it
  std::vector<PublishedGroup> published;  // of all layers
  TimeByConfidence time = {};             // all zero = the estimate does not know
  std::string time_of;                    // what `time` is the time of: "kernels of the typical steps"
};

void add_trust(HtmlPage& page, const Trust& trust);

}  // namespace foretoken
