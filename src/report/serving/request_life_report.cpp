#include "report/serving/request_life_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/simulated_time.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

constexpr size_t most_parts = 1000;  // in JSON

double to_ms(Picoseconds time) {
  return to_seconds(time).value() * 1e3;
}

Json part_json(const LifePart& part, Picoseconds arrival) {
  return Json::object({{"phase", life_phase_name(part.phase)},
                       {"begin_ms", to_ms(part.begin - arrival)},
                       {"ms", to_ms(part.end - part.begin)},
                       {"steps", part.steps},
                       {"tokens", part.tokens},
                       {"cached_tokens", part.cached_tokens}});
}

}  // namespace

std::string request_life_text(const RequestLife& life, const OperatorAccount* steps) {
  const RequestRecord& record = life.record();
  std::string text = fmt::format("Request {} on replica {}: {} prompt tokens ({} cached), {} output tokens", record.id,
                                 record.replica, record.input_tokens, record.cached_tokens, record.output_tokens);
  if (record.outcome == RequestOutcome::rejected) {
    return text + fmt::format("; failed: {}\n", rejection_text(record.rejection));
  }
  text += fmt::format(", {}\n", counted(record.preemptions, "preemption"));
  text += fmt::format("TTFT {:.2f} ms, E2EL {:.2f} ms, arrived at {:.3f} s\n", to_ms(record.ttft()),
                      to_ms(record.e2el()), to_seconds(record.arrival).value());
  const double all = to_ms(record.e2el());
  Table phases({{"phase", Table::Align::left},
                {"from (ms)"},
                {"time (ms)"},
                {"share"},
                {"steps"},
                {"tokens"},
                {"cached"},
                {"", Table::Align::left}});
  for (const LifePart& part : life.totals()) {
    const double time = to_ms(part.end - part.begin);
    if (time == 0 && part.steps == 0) continue;
    phases.add({std::string(life_phase_name(part.phase)), fmt::format("{:.2f}", to_ms(part.begin - record.arrival)),
                fmt::format("{:.2f}", time), fmt::format("{:.1f}%", 100 * time / all), fmt::format("{}", part.steps),
                fmt::format("{}", part.tokens), fmt::format("{}", part.cached_tokens), bar(time / all, 30)});
  }
  text += phases.text();
  if (steps != nullptr)
    text += "\n" + serving_breakdown_text({*steps}, "Steps of this request, with everything that ran in them");
  return text;
}

Json request_life_json(const RequestLife& life, const OperatorAccount* steps) {
  const RequestRecord& record = life.record();
  Json json = Json::object({{"request", record.id},
                            {"replica", int64_t{record.replica}},
                            {"input_tokens", record.input_tokens},
                            {"output_tokens", record.output_tokens},
                            {"cached_tokens", record.cached_tokens},
                            {"preemptions", int64_t{record.preemptions}},
                            {"error", rejection_text(record.rejection)}});
  if (record.outcome == RequestOutcome::rejected) return json;
  Json totals = Json::array(), parts = Json::array();
  for (const LifePart& part : life.totals()) totals.push(part_json(part, record.arrival));
  for (size_t i = 0; i < std::min(most_parts, life.parts().size()); ++i) {
    parts.push(part_json(life.parts()[i], record.arrival));
  }
  json.set("ttft_ms", to_ms(record.ttft()))
      .set("e2el_ms", to_ms(record.e2el()))
      .set("phases", std::move(totals))
      .set("timeline", std::move(parts));
  if (steps != nullptr) json.set("breakdown", serving_breakdown_json({*steps}));
  return json;
}

}  // namespace foretoken
