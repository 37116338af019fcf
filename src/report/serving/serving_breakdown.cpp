#include "report/serving/serving_breakdown.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/parts/table.h"

namespace foretoken {
namespace {

constexpr size_t most_shown = 12;

Json numbers_json(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push(value);
  return list;
}

}  // namespace

std::vector<OperatorShare> operator_shares(const std::vector<TypicalStep>& steps) {
  std::map<std::string, double> seconds;
  for (const TypicalStep& typical : steps) {
    const double scale = typical.share.seconds / typical.step.seconds.value;
    double kernels = 0;
    for (const StageEstimate& stage : typical.step.stages) {
      for (const TimedOperator& timed : stage.operators) {
        seconds[timed.call.name] += timed.seconds.value * scale;
        kernels += timed.seconds.value;
      }
    }
    seconds[between_kernels] += std::max(0.0, typical.step.seconds.value - kernels) * scale;
  }
  std::vector<OperatorShare> shares;
  for (const auto& [name, sum] : seconds) shares.push_back({name, sum});
  std::stable_sort(shares.begin(), shares.end(),
                   [](const OperatorShare& a, const OperatorShare& b) { return a.seconds > b.seconds; });
  return shares;
}

std::string serving_breakdown_text(const std::vector<OperatorAccount>& pools, const std::string& title) {
  const OperatorAccount all = together(pools);
  const double busy = all.busy_seconds();
  Table kinds({{"device", Table::Align::left},
               {"steps", Table::Align::left},
               {"count"},
               {"time (s)"},
               {"share"},
               {"sequences"},
               {"prompt tokens"}});
  for (const OperatorAccount& pool : pools) {
    for (const StepShare& share : pool.shares) {
      if (share.steps == 0) continue;
      kinds.add({fmt::format("{}", fmt::join(pool.devices, ", ")), std::string(step_phase_name(share.phase)),
                 fmt::format("{}", share.steps), fmt::format("{:.2f}", share.seconds),
                 fmt::format("{:.1f}%", 100 * share.seconds / busy), fmt::format("{}", share.typical().batch),
                 fmt::format("{:.0f}", share.prefill_tokens / static_cast<double>(share.steps))});
    }
  }
  Table operators({{"operator", Table::Align::left}, {"time (s)"}, {"share"}, {"", Table::Align::left}});
  for (size_t i = 0; i < std::min(most_shown, all.operators.size()); ++i) {
    const double seconds = all.operators[i].sum();
    operators.add({all.operators[i].name, fmt::format("{:.2f}", seconds), fmt::format("{:.1f}%", 100 * seconds / busy),
                   bar(seconds / busy, 40)});
  }
  return title + "\n" + kinds.text() + "\n" + operators.text();
}

Json serving_breakdown_json(const std::vector<OperatorAccount>& pools) {
  const OperatorAccount all = together(pools);
  Json kinds = Json::array(), operators = Json::array();
  for (const OperatorAccount& pool : pools) {
    for (const StepShare& share : pool.shares) {
      if (share.steps == 0) continue;
      kinds.push(Json::object({{"device", fmt::format("{}", fmt::join(pool.devices, ", "))},
                               {"kind", step_phase_name(share.phase)},
                               {"steps", share.steps},
                               {"seconds", share.seconds},
                               {"prefill_tokens", share.prefill_tokens},
                               {"decode_tokens", share.decode_tokens}}));
    }
  }
  for (const OperatorTime& one : all.operators) {
    Json by_kind = Json::object();
    for (size_t kind = 0; kind < all.shares.size(); ++kind) {
      by_kind.set(std::string(step_phase_name(all.shares[kind].phase)), one.seconds[kind]);
    }
    operators.push(Json::object({{"operator", one.name},
                                 {"seconds", one.sum()},
                                 {"decode_wait_seconds", one.decode_wait_seconds},
                                 {"by_kind", std::move(by_kind)},
                                 {"over_time", numbers_json(one.slice_seconds)}}));
  }
  return Json::object(
      {{"step_kinds", std::move(kinds)}, {"slice_seconds", all.slice_seconds}, {"operators", std::move(operators)}});
}

}  // namespace foretoken
