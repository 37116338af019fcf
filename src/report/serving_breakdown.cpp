#include "report/serving_breakdown.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "report/table.h"

namespace foretoken {
namespace {

constexpr size_t most_shown = 12;

double busy_seconds(const std::vector<TypicalStep>& steps) {
  double sum = 0;
  for (const TypicalStep& typical : steps) sum += typical.share.seconds;
  return sum;
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
    seconds["host and gaps"] += std::max(0.0, typical.step.seconds.value - kernels) * scale;
  }
  std::vector<OperatorShare> shares;
  for (const auto& [name, sum] : seconds) shares.push_back({name, sum});
  std::stable_sort(shares.begin(), shares.end(),
                   [](const OperatorShare& a, const OperatorShare& b) { return a.seconds > b.seconds; });
  return shares;
}

std::string serving_breakdown_text(const std::vector<TypicalStep>& steps, const std::string& title) {
  const double busy = busy_seconds(steps);
  Table kinds({{"device", Table::Align::left},
               {"steps", Table::Align::left},
               {"count"},
               {"time (s)"},
               {"share"},
               {"sequences"},
               {"prompt tokens"}});
  for (const TypicalStep& typical : steps) {
    const auto count = static_cast<double>(typical.share.steps);
    kinds.add(
        {typical.device, std::string(step_phase_name(typical.share.phase)), fmt::format("{}", typical.share.steps),
         fmt::format("{:.2f}", typical.share.seconds), fmt::format("{:.1f}%", 100 * typical.share.seconds / busy),
         fmt::format("{}", typical.step.request.batch), fmt::format("{:.0f}", typical.share.prefill_tokens / count)});
  }
  Table operators({{"operator", Table::Align::left}, {"time (s)"}, {"share"}, {"", Table::Align::left}});
  const std::vector<OperatorShare> shares = operator_shares(steps);
  for (size_t i = 0; i < std::min(most_shown, shares.size()); ++i) {
    operators.add({shares[i].name, fmt::format("{:.2f}", shares[i].seconds),
                   fmt::format("{:.1f}%", 100 * shares[i].seconds / busy), bar(shares[i].seconds / busy, 40)});
  }
  return title + "; operators as in the typical step of each kind\n" + kinds.text() + "\n" + operators.text();
}

Json serving_breakdown_json(const std::vector<TypicalStep>& steps) {
  Json kinds = Json::array(), operators = Json::array();
  for (const TypicalStep& typical : steps) {
    kinds.push(Json::object({{"device", typical.device},
                             {"kind", step_phase_name(typical.share.phase)},
                             {"steps", typical.share.steps},
                             {"seconds", typical.share.seconds},
                             {"prefill_tokens", typical.share.prefill_tokens},
                             {"decode_tokens", typical.share.decode_tokens}}));
  }
  for (const OperatorShare& share : operator_shares(steps)) {
    operators.push(Json::object({{"operator", share.name}, {"seconds", share.seconds}}));
  }
  return Json::object({{"step_kinds", std::move(kinds)}, {"operators", std::move(operators)}});
}

}  // namespace foretoken
