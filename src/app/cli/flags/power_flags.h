// The flags that cap a board's power or clock.
#pragma once

#include <optional>
#include <string>

#include "app/cli/grammar/options.h"
#include "kernel/power.h"

namespace foretoken {

struct PowerFlags {
  double limit_watts = 0;  // 0 = the board's own
  std::string clock;       // MHz, or clock_search; empty = the board's own
  static constexpr const char* clock_search = "auto";

  void declare(Options& options);
  bool searches_clock() const { return clock == clock_search; }
  bool given() const { return limit_watts > 0 || !clock.empty(); }
  // The board with these caps. InputError for caps that no board takes, and a clock where none is known.
  PowerModel capped(const PowerModel& board, const Device& device) const;
  static double top_mhz(const Device& device);  // InputError where no clock is known
};

}  // namespace foretoken
