#include "app/cli/commands/serve/explained_request.h"

#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "report/serving/request_life_report.h"
#include "serving/results/ttft_ranking.h"

namespace foretoken {

int64_t explained_request(const ServeFlags& flags, const ServingRunRequest& request) {
  if (!flags.explains()) return -1;
  constexpr double most_percentile = 100;
  const bool is_percentile = lower_case(flags.explained.front()) == 'p';
  const std::optional<double> number = parse_number(flags.explained.substr(is_percentile ? 1 : 0));
  const std::optional<int64_t> whole = number ? exact_integer(*number) : std::nullopt;
  const bool makes_sense = number && *number >= 0 && (is_percentile ? *number <= most_percentile : whole.has_value());
  if (!makes_sense) {
    throw InputError({.source = "--explain-request",
                      .value = printable(flags.explained),
                      .expected = "the number of a request, counting from 0, or a percentile of TTFT such as p99"});
  }
  if (!is_percentile) return *whole;
  TtftRanking ranking;
  ServingRunRequest first = request;
  first.step_bounds = false;
  first.more_seeds = 0;
  first.observers = {&ranking};
  run_serving(first);
  return ranking.request_at(*number).value_or(0);
}

void add_life(Answer& answer, const std::vector<ReplicaGroup>& groups, const RequestLife& life) {
  if (!life.has_ended()) {
    throw InputError({.source = "--explain-request",
                      .value = fmt::format("{}", life.request()),
                      .expected = "a request of this run, counting from 0"});
  }
  size_t of = 0;
  for (int64_t before = life.record().replica; before >= groups[of].count; ++of) before -= groups[of].count;
  std::optional<OperatorAccount> steps;
  if (groups[of].has_operators) steps = operator_account_of(groups[of], life.steps(), "--explain-request");
  const OperatorAccount* known = steps ? &*steps : nullptr;
  answer.text += "\n" + request_life_text(life, known);
  answer.json.set("request", request_life_json(life, known));
}

}  // namespace foretoken
