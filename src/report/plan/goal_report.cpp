#include "report/plan/goal_report.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

double goal_ms(const GoalCount& count) {
  return to_seconds(count.goal).value() * 1e3;
}

}  // namespace

std::string goals_text(std::span<const GoalCount> counts) {
  Table table({{"priority"}, {"TTFT goal (ms)"}, {"requests"}, {"met"}, {"late"}, {"rejected"}, {"met (%)"}});
  for (size_t i = 0; i < counts.size(); ++i) {
    const GoalCount& count = counts[i];
    table.add({fmt::format("{}", i), number_text(goal_ms(count)), fmt::format("{}", count.requests()),
               fmt::format("{}", count.met), fmt::format("{}", count.late), fmt::format("{}", count.rejected),
               fmt::format("{:.1f}", 100 * count.met_share())});
  }
  return table.text();
}

Json goals_json(std::span<const GoalCount> counts) {
  Json all = Json::array();
  for (size_t i = 0; i < counts.size(); ++i) {
    const GoalCount& count = counts[i];
    all.push(Json::object({{"priority", static_cast<int64_t>(i)},
                           {"ttft_goal_ms", goal_ms(count)},
                           {"requests", count.requests()},
                           {"met", count.met},
                           {"late", count.late},
                           {"rejected", count.rejected}}));
  }
  return all;
}

}  // namespace foretoken
