#include "report/plan/serving_plan_notes.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "compose/device_formats.h"
#include "plan/serving/layout_space.h"
#include "report/serving/first_token_note.h"
#include "report/serving/speculation_report.h"

namespace foretoken {
namespace {

// What closed forms leave out of the question, as the end of a sentence.
std::string unpriced_by_closed_form(const ServingPlanReport& report) {
  const PlanPoint* winner = report.result.winner();
  if (winner != nullptr && winner->layout.pool.max_loras > 0) {
    return ", which does not price waiting for adapter slots: the service may sustain far less";
  }
  if (report.question.in_flight) return ", which is for requests that arrive at a rate, not for requests in flight";
  if (report.traffic.has_conversations()) {
    return ", which assumes that every turn finds the KV cache of its conversation: the service may sustain less";
  }
  return "";
}

std::string stopped_note(const ServingPlanReport& report) {
  const ServingSearchResult& result = report.result;
  if (result.by_closed_form) {
    return fmt::format(
        "The search was stopped before it had simulated any layout: this answer is by closed form, as with "
        "{{quick}}{}.",
        unpriced_by_closed_form(report));
  }
  const auto at_length = std::count_if(result.points.begin(), result.points.end(),
                                       [](const PlanPoint& point) { return is_at_length(point.effort); });
  return fmt::format(
      "The search was stopped before its end: this is the best of {} simulated layouts, {} of them simulated at "
      "length. Another layout may be better.",
      result.points.size(), at_length);
}

// Of a layout that keeps numbers in narrower formats than the checkpoint, where the checkpoint's were tried as well:
// nobody asked for them. Empty where there is nothing to say.
std::string changed_numbers_note(const ServingQuestion& question, const ServingLayout& layout) {
  const LayoutChoices& choices = question.choices;
  const auto is_tried = [](const auto& formats, const auto& wanted) {
    return std::any_of(formats.begin(), formats.end(), wanted);
  };
  std::vector<std::string> formats, flags;
  const std::optional<Scheme>& scheme = layout.pool.engine.scheme;
  if (scheme && is_tried(choices.schemes, [](const std::optional<Scheme>& one) { return !one; })) {
    formats.push_back(fmt::format("weights in {}", facts(*scheme).name));
    flags.emplace_back("{quantizations} config");
  }
  const DType cache = layout.pool.engine.kv_dtype;
  const auto is_wider = [&](DType one) { return bytes_per_element(one) > bytes_per_element(cache); };
  if (is_tried(choices.kv_dtypes, is_wider)) {
    formats.push_back(fmt::format("the KV cache in {}", dtype_name(cache)));
    flags.emplace_back("{kv_cache_dtype} auto");
  }
  if (formats.empty()) return "";
  return fmt::format(
      "The best layout keeps {}, which is not the checkpoint's own format, so the quality of answers may change: test "
      "it first, or keep the checkpoint's format with {}.",
      fmt::join(formats, " and "), fmt::join(flags, " "));
}

}  // namespace

std::vector<std::string> serving_plan_notes(const ServingPlanReport& report) {
  std::vector<std::string> notes = report.question.model.notes;
  if (const PlanPoint* winner = report.result.winner(); winner != nullptr && !winner->layout.pool.engine.scheme) {
    notes = run_on(report.question.model, report.question.hardware_of(winner->layout.pool.engine.device).device).notes;
  }
  if (const PlanPoint* winner = report.result.winner()) {
    std::string note = changed_numbers_note(report.question, winner->layout);
    if (!note.empty()) notes.push_back(std::move(note));
    note = first_token_note(report.question, winner->layout);
    if (!note.empty()) notes.push_back(std::move(note));
  }
  for (std::string& sentence : left_out(report.question)) notes.push_back(std::move(sentence));
  if (const std::optional<DraftChoice>& drafts = report.question.drafts) {
    if (std::string note = assumed_acceptance_note(drafts->config.speculation()); !note.empty()) {
      notes.push_back(std::move(note));
    }
  }
  notes.insert(notes.begin(), report.question.assumptions.begin(), report.question.assumptions.end());
  if (report.result.stopped) notes.insert(notes.begin(), stopped_note(report));
  return notes;
}

}  // namespace foretoken
