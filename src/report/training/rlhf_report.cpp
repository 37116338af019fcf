#include "report/training/rlhf_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

std::string_view rlhf_verdict_words(MemoryVerdict verdict) {
  constexpr std::string_view words[] = {"fits", "fits with little to spare", "may not fit", "DOES NOT FIT"};
  return words[static_cast<size_t>(verdict)];
}

std::string rlhf_memory_line(const RlhfReport& report) {
  const TrainerMemory& trainers = report.trainers;
  std::string text = fmt::format("  memory    training needs {} per device with sequences of {} tokens",
                                 bytes_text(trainers.total().value()), report.longest_length);
  if (trainers.capacity) {
    text += fmt::format(", of {}: {}", bytes_text(trainers.capacity->value()), rlhf_verdict_words(trainers.verdict));
  }
  if (report.engine && report.engine->starts) {
    text += fmt::format("; an engine has a KV cache of {} per device and generates {} answers at once",
                        bytes_text(report.engine->kv_pool.value), report.plan.engine.most_sequences);
  }
  return text + "\n";
}

Json rlhf_memory_json(const RlhfReport& report) {
  const TrainerMemory& trainers = report.trainers;
  Json json = Json::object(
      {{"training", Json::object({{"longest_sequence_tokens", report.longest_length},
                                  {"actor_bytes", trainers.actor.total().value()},
                                  {"other_models_bytes", trainers.others.value()},
                                  {"total_bytes", trainers.total().value()},
                                  {"capacity_bytes", trainers.capacity ? Json(trainers.capacity->value()) : Json()},
                                  {"verdict", memory_verdict_name(trainers.verdict)}})}});
  if (report.engine) {
    json.set("generation", Json::object({{"starts", report.engine->starts},
                                         {"weights_bytes", report.engine->weights.value},
                                         {"kv_cache_bytes", std::max(0.0, report.engine->kv_pool.value)},
                                         {"sequences_at_once", report.plan.engine.most_sequences}}));
  }
  return json;
}

}  // namespace

std::string rlhf_failure(const RlhfReport& report) {
  const TrainerMemory& trainers = report.trainers;
  if (!trainers.fits()) {
    const double need = trainers.total().value(), have = trainers.capacity->value();
    return fmt::format(
        "Out of memory: training {} with sequences of {} tokens does not fit. Each device needs {} ({} for the actor, "
        "{} for the other models) but has only {} ({} short).",
        report.model, report.longest_length, bytes_text(need), bytes_text(trainers.actor.total().value()),
        bytes_text(trainers.others.value()), bytes_text(have), bytes_text(need - have));
  }
  if (!report.engine || report.engine->starts) return "";
  return fmt::format(
      "Out of memory: an engine of {} cannot generate with {}: {}. {{rollout_tensor_parallel_size}} "
      "gives it more GPUs.",
      counted(report.plan.engine.devices, "GPU"), report.model, memory_shortage(*report.engine));
}

std::vector<std::string> rlhf_notes(const RlhfReport& report) {
  std::vector<std::string> notes;
  const ResponseLengths& responses = report.plan.responses;
  constexpr double worth_saying = 0.03;  // of the mean answer
  if (responses.mean_tokens() < (1 - worth_saying) * responses.mean) {
    notes.push_back(
        fmt::format("{{max_response_len}} {:.0f} cuts {:.0f}% of the answers, so that their mean is {:.0f} tokens "
                    "instead of {:.0f}",
                    responses.most, 100 * responses.cut_share(), responses.mean_tokens(), responses.mean));
  }
  const int64_t held = report.plan.engine.most_sequences;
  if (report.engine && report.engine->starts && held < report.asked_sequences) {
    notes.push_back(
        fmt::format("the KV cache of an engine has room for {} at once, fewer than the {} of {{max_num_seqs}}",
                    counted(held, "answer"), report.asked_sequences));
  }
  return notes;
}

std::string rlhf_text(const RlhfReport& report) {
  const RlhfPlan& plan = report.plan;
  const RlhfIteration& iteration = report.iteration;
  const std::string failure = rlhf_failure(report);
  std::string head = failure.empty() ? "" : failure + " With enough memory:\n";
  head += fmt::format(
      "{} with {} on {} ({}), {}{}: an iteration of {} x {} takes about {}.\n", report.model, plan.algorithm.name,
      counted(plan.devices, "device"), report.cluster, rlhf_placement_name(plan.placement),
      plan.timing == RlhfTiming::one_step_behind ? ", one step behind" : "", counted(plan.prompts, "prompt"),
      counted(plan.algorithm.samples_per_prompt, "answer"), interval_text(report.seconds));
  std::string text = fmt::format(
      "  answers   {} tokens in total, {:.0f} in the mean, the longest about {:.0f}; {} tokens/s, including prompts\n",
      count_text(iteration.response_tokens), plan.responses.mean_tokens(), iteration.longest_response,
      count_text(iteration.tokens_per_second));
  text += rlhf_memory_line(report);
  for (const RlhfPool& pool : iteration.pools) {
    text += fmt::format("  pool      {}: {}, busy {:.1f}% of the time\n", pool.name, counted(pool.devices, "device"),
                        100 * pool.busy);
  }
  text = wrap_lines(head, page_width(), 2) + wrap_lines(text, page_width(), 12) + "\nWhere the time goes:\n";
  Table table({{"part", Table::Align::left}, {"time"}, {"share"}, {"", Table::Align::left}});
  for (const RlhfPart& part : iteration.parts) {
    if (part.seconds == 0) continue;
    table.add({part.name, duration_text(part.seconds),
               part.hidden ? "hidden" : fmt::format("{:.1f}%", 100 * part.seconds / iteration.seconds),
               bar(std::min(1.0, part.seconds / iteration.seconds), 20)});
  }
  return text + table.text();
}

Json rlhf_json(const RlhfReport& report) {
  const RlhfPlan& plan = report.plan;
  const RlhfIteration& iteration = report.iteration;
  Json parts = Json::array(), pools = Json::array();
  for (const RlhfPart& part : iteration.parts) {
    parts.push(Json::object({{"name", part.name}, {"seconds", part.seconds}, {"hidden", part.hidden}}));
  }
  for (const RlhfPool& pool : iteration.pools) {
    pools.push(Json::object({{"name", pool.name}, {"devices", pool.devices}, {"busy", pool.busy}}));
  }
  return Json::object({{"model", report.model},
                       {"cluster", report.cluster},
                       {"algorithm", plan.algorithm.name},
                       {"placement", rlhf_placement_name(plan.placement)},
                       {"one_step_behind", plan.timing == RlhfTiming::one_step_behind},
                       {"devices", plan.devices},
                       {"prompts", plan.prompts},
                       {"samples_per_prompt", plan.algorithm.samples_per_prompt},
                       {"seconds", iteration.seconds},
                       {"intervals", Json::object({{"seconds", to_json(report.seconds)}})},
                       {"tokens_per_second", iteration.tokens_per_second},
                       {"response_tokens", iteration.response_tokens},
                       {"mean_response_tokens", plan.responses.mean_tokens()},
                       {"longest_response_tokens", iteration.longest_response},
                       {"training_sequence_tokens", report.training_length},
                       {"fits", rlhf_failure(report).empty()},
                       {"memory", rlhf_memory_json(report)},
                       {"parts", std::move(parts)},
                       {"pools", std::move(pools)}});
}

}  // namespace foretoken
