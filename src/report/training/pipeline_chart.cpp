#include "report/training/pipeline_chart.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {
namespace {

constexpr std::string_view chart_letters = "FBW.";
constexpr size_t idle_letter = 3;

size_t letter_of(PipelineTaskKind kind) {
  switch (kind) {
    case PipelineTaskKind::forward:
      return 0;
    case PipelineTaskKind::backward:
    case PipelineTaskKind::backward_input:
      return 1;
    case PipelineTaskKind::backward_weight:
      break;
  }
  return 2;
}

// What a stage does in one slice of time, in slices by letter.
using SliceShares = std::array<double, chart_letters.size()>;

// Adds an event from slice `begin` to slice `end`, parts of slices counted.
void add_to_slices(std::vector<SliceShares>& slices, size_t letter, double begin, double end) {
  for (auto i = static_cast<size_t>(begin); i < slices.size() && static_cast<double>(i) < end; ++i) {
    const auto left = static_cast<double>(i);
    slices[i][letter] += std::min(end, left + 1) - std::max(begin, left);
  }
}

char letter_of_slice(SliceShares shares) {
  shares[idle_letter] = 1 - (shares[0] + shares[1] + shares[2]);
  const auto* const most = std::max_element(shares.begin(), shares.end());
  return chart_letters[static_cast<size_t>(most - shares.begin())];
}

}  // namespace

std::string pipeline_chart(const PipelineTimeline& timeline, size_t width) {
  double end = 0;
  int64_t last_stage = 0;
  bool splits = false;
  for (const PipelineEvent& event : timeline.events) {
    end = std::max(end, event.start + event.seconds);
    last_stage = std::max(last_stage, event.stage);
    splits = splits || event.kind == PipelineTaskKind::backward_weight;
  }
  if (end <= 0) return {};
  const size_t digits = fmt::formatted_size("{}", last_stage), margin = digits + std::string_view("stage  ||").size();
  const size_t columns = std::max<size_t>(width, margin + 20) - margin;

  std::vector<std::vector<SliceShares>> slices(static_cast<size_t>(last_stage) + 1, std::vector<SliceShares>(columns));
  const double slices_per_second = static_cast<double>(columns) / end;
  for (const PipelineEvent& event : timeline.events) {
    add_to_slices(slices[static_cast<size_t>(event.stage)], letter_of(event.kind), event.start * slices_per_second,
                  (event.start + event.seconds) * slices_per_second);
  }
  std::string chart;
  for (size_t stage = 0; stage < slices.size(); ++stage) {
    chart += fmt::format("stage {:>{}} |", stage, digits);
    for (const SliceShares& shares : slices[stage]) chart += letter_of_slice(shares);
    chart += "|\n";
  }
  chart += fmt::format("{:{}}0{:>{}}\n", "", margin - 1, duration_text(end), columns - 1);
  chart += splits ? "F forward, B backward or its input gradients, W weight gradients, . idle\n"
                  : "F forward, B backward, . idle\n";
  return chart;
}

}  // namespace foretoken
