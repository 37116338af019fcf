// The steps of one engine, each repeated without pause: how much longer its board's limits make them, and what it
// draws.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "serving/steps/composed_steps.h"
#include "serving/steps/size_grid.h"

namespace foretoken {

// By the tokens of its prompts, its decodes and their mean context a step is what our own kernels make up
// (compose/sustained_step.h), interpolated on a grid (size_grid.h). Not thread-safe.
class SustainedGrid {
 public:
  // Steps of the grid to each doubling: two, or one where many engines are compared and watts alone are asked for.
  enum class Spacing : uint8_t { fine, coarse };
  // `config.models` knows the device's power.
  explicit SustainedGrid(ComposedStepsConfig config, Spacing spacing = Spacing::fine);

  struct Step {
    double prompt_tokens = 0, decodes = 0, mean_context = 0;
  };
  // Time over its time on a cool board. The interval reaches from none to twice as much of what the power limit takes.
  Estimate slowdown(const Step& step);
  // W of all devices of a replica together beyond what they draw idle, mean over the step.
  Estimate watts_above_idle(const Step& step);

 private:
  using Node = std::array<int64_t, 3>;
  struct Held {
    Estimate slowdown, watts_above_idle;
  };
  const Held& held_at(const Node& node);
  Held compute(const Node& node) const;

  ComposedStepsConfig config_;
  Spacing spacing_;
  std::map<Node, Held> held_;  // a node is composed once for both
  SizeGrid<3, 2> slowdowns_, watts_;
  SizeGrid<3, 1> coarse_watts_;
};

}  // namespace foretoken
