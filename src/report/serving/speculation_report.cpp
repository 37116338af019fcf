#include "report/serving/speculation_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

constexpr size_t bar_width = 20;

// A device holds so many sequences and no more.
std::string memory_text(const SpeculationReport::Context& context) {
  if (!context.memory_ends_here) return "";
  if (context.points.empty()) {
    return fmt::format("Out of memory: at most {} of {} tokens fit beside the weights and the drafter.\n",
                       counted(context.largest_batch, "sequence"), context.tokens);
  }
  return fmt::format("Batches above {} do not fit in memory and are left out.\n", context.largest_batch);
}

std::string context_text(const SpeculationReport::Context& context) {
  if (context.points.empty()) return memory_text(context);
  double most = 1;
  for (const SpeculationPoint& point : context.points) most = std::max(most, point.speedup.value);
  Table table({{"batch"},
               {"plain step"},
               {"verify"},
               {"draft"},
               {"tokens"},
               {"speed-up"},
               {"90% interval"},
               {"", Table::Align::left}});
  for (const SpeculationPoint& point : context.points) {
    const double draft = std::max(0.0, point.speculated_seconds.value - point.verify_seconds);
    table.add({fmt::format("{}", point.batch), duration_text(point.plain_seconds.value),
               duration_text(point.verify_seconds), duration_text(draft), fmt::format("{:.2f}", point.tokens.value),
               fmt::format("{:.2f}x", point.speedup.value),
               fmt::format("{:.2f} to {:.2f}", point.speedup.low, point.speedup.high),
               bar(point.speedup.value / most, bar_width)});
  }
  std::string text = fmt::format("{} tokens in the KV cache of each sequence\n{}", context.tokens, table.text());
  if (context.break_even) {
    text += fmt::format("Speculative decoding stops paying off at a batch of {}.\n", *context.break_even);
    const auto again = std::find_if(context.points.begin(), context.points.end(), [&](const SpeculationPoint& point) {
      return point.batch > *context.break_even && point.speedup.value > 1;
    });
    if (again != context.points.end()) text += fmt::format("It pays off again at a batch of {}.\n", again->batch);
  } else {
    text += fmt::format("Speculative decoding pays off at every batch up to {}.\n", context.largest_batch);
  }
  const std::optional<int64_t>& earliest = context.earliest_break_even;
  if (earliest && (!context.break_even || *earliest < *context.break_even)) {
    text += fmt::format("At the low end of the 90% interval, it stops paying off at a batch of {}.\n", *earliest);
  }
  return text + memory_text(context);
}

Json context_json(const SpeculationReport::Context& context) {
  Json points = Json::array();
  for (const SpeculationPoint& point : context.points) {
    points.push(Json::object(
        {{"batch", point.batch},
         {"plain_seconds", to_json(point.plain_seconds)},
         {"speculated_seconds", to_json(point.speculated_seconds)},
         {"verify_seconds", point.verify_seconds},
         {"tokens_per_step", point.tokens.value},
         {"tokens_per_step_interval", Json::object({{"low", point.tokens.low}, {"high", point.tokens.high}})},
         {"speedup", to_json(point.speedup)}}));
  }
  return Json::object(
      {{"context_len", context.tokens},
       {"points", std::move(points)},
       {"break_even_batch", context.break_even ? Json(*context.break_even) : Json()},
       {"earliest_break_even_batch", context.earliest_break_even ? Json(*context.earliest_break_even) : Json()},
       {"largest_batch", context.largest_batch},
       {"memory_ends_here", context.memory_ends_here}});
}

}  // namespace

std::string assumed_acceptance_note(const Speculation& speculation) {
  if (speculation.unknown_acceptance.empty()) return "";
  const int64_t drafts = speculation.draft_tokens;
  return fmt::format(
      "no draft acceptance was given: {:.2f} tokens per verification step are assumed (90% interval {:.2f} to "
      "{:.2f}), the mean of published runs; to change it, set synthetic_acceptance_length in "
      "{{speculative_config}}",
      speculation.acceptance.expected_tokens(drafts), speculation.unknown_acceptance[0].expected_tokens(drafts),
      speculation.unknown_acceptance[1].expected_tokens(drafts));
}

std::string speculation_text(const SpeculationReport& report) {
  const Speculation& speculation = report.speculation;
  std::string text = fmt::format("{} on {}: {}, {}{}, {:.2f} tokens expected per verification step\n", report.model,
                                 report.device, report.method, counted(speculation.draft_tokens, "draft"),
                                 speculation.verified_tokens > speculation.draft_tokens
                                     ? fmt::format(" deep in a tree of {}", speculation.verified_tokens)
                                     : "",
                                 speculation.acceptance.expected_tokens(speculation.draft_tokens));
  for (const SpeculationReport::Context& context : report.contexts) text += "\n" + context_text(context);
  return text + wrap_lines(
                    "\nThe speed-up is that of decode steps. Prompts take no less time with drafts, so whole requests "
                    "gain less the more prompts run between the steps.\n",
                    page_width(), 2);
}

std::string speculation_failure(const SpeculationReport& report) {
  for (const SpeculationReport::Context& context : report.contexts) {
    if (!context.points.empty()) return "";
  }
  return "Out of memory: no batch that was asked for fits beside the weights of the model and of the drafter.";
}

Json speculation_json(const SpeculationReport& report) {
  const Speculation& speculation = report.speculation;
  Json rates = Json::array();
  for (const double chance : speculation.acceptance.reached()) rates.push(chance);
  Json contexts = Json::array();
  for (const SpeculationReport::Context& context : report.contexts) contexts.push(context_json(context));
  return Json::object({{"model", report.model},
                       {"device", report.device},
                       {"method", report.method},
                       {"num_speculative_tokens", speculation.draft_tokens},
                       {"verified_tokens", speculation.verified_tokens},
                       {"acceptance_rates", std::move(rates)},
                       {"contexts", std::move(contexts)}});
}

}  // namespace foretoken
