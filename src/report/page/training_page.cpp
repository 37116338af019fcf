#include "report/page/training_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/drawing/html_page.h"
#include "report/drawing/line_chart.h"
#include "report/drawing/svg.h"
#include "report/page/step_parts.h"
#include "report/parts/json_parts.h"
#include "report/training/training_report.h"

namespace foretoken {
namespace {

constexpr std::string_view forward_colour = "#56b4e9", backward_colour = "#0072b2", weights_colour = "#e69f00";

std::string_view colour_of(PipelineTaskKind kind) {
  switch (kind) {
    case PipelineTaskKind::forward:
      return forward_colour;
    case PipelineTaskKind::backward_weight:
      return weights_colour;
    default:
      return backward_colour;
  }
}

std::vector<BarPart> page_time_parts(const IterationEstimate& iteration) {
  std::vector<BarPart> parts;
  for (size_t i = 0; i < iteration.parts.size(); ++i) {
    const double seconds = iteration.parts[i].value;
    if (seconds <= 0) continue;
    parts.push_back({std::string(time_part_name(static_cast<TimePart>(i))), seconds, duration_text(seconds)});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const BarPart& a, const BarPart& b) { return a.value > b.value; });
  return parts;
}

std::vector<BarPart> page_memory_parts(const TrainingMemory& memory) {
  const auto part = [](const char* name, Bytes bytes) {
    return BarPart{name, bytes.value(), bytes_text(bytes.value())};
  };
  return {part("parameters", memory.parameters),       part("gradients", memory.gradients),
          part("optimizer", memory.optimizer),         part("activations", memory.activations),
          part("communication", memory.communication), part("logits", memory.logits),
          part("workspace", memory.workspace),         part("fragmentation", memory.fragmentation)};
}

void add_long_run(HtmlPage& page, const TrainingQuestion& question, const TrainingRun& run) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](std::string name, const Estimate& value, const char* unit) {
    rows.push_back({std::move(name), fmt::format("{:.4g} {}", value.value, unit), fmt::format("{:.4g}", value.low),
                    fmt::format("{:.4g}", value.high)});
  };
  add(fmt::format("{} tokens", count_text(question.run->tokens)), run.days, "days");
  add("Devices", run.device_hours, "hours");
  if (run.usd) add("Cost", *run.usd, "USD");
  if (run.megawatt_hours) add("Energy", *run.megawatt_hours, "MWh");
  page.table({"", "predicted", "low (90%)", "high"}, rows);
  std::string taken;
  if (run.usd) taken += fmt::format("{:g} USD per device-hour. ", *question.run->usd_per_device_hour);
  if (run.megawatt_hours) taken += fmt::format("{:.0f} W per device.", *question.run->watts_per_device);
  if (!taken.empty()) page.paragraph("Taken: " + taken);
}

void add_training_costs(HtmlPage& page, const TrainingPage& own) {
  const MaybeFact<Watts>& limit = own.question.cluster.node.device.power_limit;
  if (!own.estimate.run && !own.rent && !limit) return;
  page.heading("Energy and cost");
  if (own.estimate.run) {
    add_long_run(page, own.question, own.estimate.run->run);
    return;
  }
  if (own.rent) add_rent(page, *own.rent);
  if (!limit) return;
  const double joules = limit->value.value() / own.estimate.iteration.tokens_per_second_per_device;
  page.paragraph(
      fmt::format("Boards draw at most their limit of {:.0f} W: {:.3g} J per token, {:.3g} MWh per billion tokens. Add "
                  "{{train_tokens}} for a whole run.",
                  limit->value.value(), joules, joules * 1e9 / 3.6e9));
}

std::string sentence(const TrainingPage& page) {
  const TrainingEstimate& estimate = page.estimate;
  const std::string failure = training_failure(page.question, estimate);
  return fmt::format("{}A step of {} on {} x {} {} {}: {:.0f} tokens/s per device, {:.1f}% MFU{}",
                     failure.empty() ? "" : failure + " With enough memory: ", page.question.job.model.name,
                     page.question.devices, page.question.cluster.name, failure.empty() ? "takes" : "would take",
                     interval_text(estimate.iteration.seconds), estimate.iteration.tokens_per_second_per_device,
                     100 * estimate.use.mfu, failure.empty() ? "; it fits in memory." : ".");
}

}  // namespace

std::string pipeline_svg(const PipelineTimeline& timeline) {
  constexpr double width = 760, left = 64, right = 744, top = 60, row = 18;
  constexpr size_t most_stages = 32;
  int64_t stages = 0;
  double end = 0;
  for (const PipelineEvent& event : timeline.events) {
    stages = std::max(stages, event.stage + 1);
    end = std::max(end, event.start + event.seconds);
  }
  const int64_t shown = std::min<int64_t>(stages, most_stages);
  Svg svg(width, top + row * static_cast<double>(shown) + 24, "Pipeline");
  svg.text({24, 24},
           fmt::format("{} through {}", counted(timeline.micro_batches, "micro-batch"), counted(stages, "stage")),
           {.size = 15, .bold = true});
  double legend = left;
  for (const auto& [name, colour] : {std::pair{"forward", forward_colour}, std::pair{"backward", backward_colour},
                                     std::pair{"weight gradients", weights_colour}}) {
    svg.rectangle({legend, 38}, 12, 12, {.fill = colour});
    svg.text({legend + 18, 48}, name, {.size = 12});
    legend += 42 + svg_text_width(name, 12);
  }
  for (int64_t stage = 0; stage < shown; ++stage) {
    svg.text({left - 8, top + row * static_cast<double>(stage) + 13}, fmt::format("{}", stage),
             {.size = 11, .anchor = SvgAnchor::end, .fill = "#5b6675"});
  }
  for (const PipelineEvent& event : timeline.events) {
    if (event.stage >= shown || end <= 0) continue;
    const double from = left + (right - left) * event.start / end;
    const double wide = std::max(0.2, (right - left) * event.seconds / end);
    svg.rectangle({from, top + row * static_cast<double>(event.stage) + 2}, wide, row - 4,
                  {.fill = colour_of(event.kind)});
  }
  return svg.finish();
}

std::string training_page_html(const TrainingPage& own) {
  const TrainingEstimate& estimate = own.estimate;
  HtmlPage page(fmt::format("foretoken: training {}", own.question.job.model.name));
  page.sentence(sentence(own));
  page.heading("Where the time of a step goes");
  page.figure(parts_bar_svg(duration_text(estimate.iteration.seconds.value), page_time_parts(estimate.iteration)),
              "Parts of one step; bubble is the time that pipeline stages wait");
  if (own.question.plan.parallel.pipeline > 1) {
    page.figure(pipeline_svg(own.timeline), "What each pipeline stage does over time, from left to right");
  }
  page.heading("Memory of the fullest device");
  const TrainingMemory& memory = estimate.memory.most();
  page.figure(parts_bar_svg(estimate.capacity ? fmt::format("{} of {}", bytes_text(memory.total().value()),
                                                            bytes_text(estimate.capacity->value()))
                                              : bytes_text(memory.total().value()),
                            page_memory_parts(memory), estimate.capacity ? estimate.capacity->value() : 0),
              fmt::format("Stage {} holds most", estimate.memory.fullest));
  if (!estimate.advice.empty()) {
    page.paragraph("To make it fit:");
    std::vector<std::vector<std::string>> rows;
    for (const MemoryAdvice& advice : estimate.advice) rows.push_back({advice.sentence});
    page.table({"change"}, rows);
  }
  add_roofline(page,
               {{.device = own.question.cluster.node.device.name,
                 .share = {.phase = StepPhase::train, .steps = 1, .seconds = own.micro_batch.seconds.value},
                 .step = own.micro_batch}},
               own.question.cluster.node.device);
  add_training_costs(page, own);
  add_trust(page, own.trust);
  page.heading("In full");
  page.preformatted(own.more);
  page.heading("To reproduce");
  page.preformatted(own.command);
  return page.finish();
}

}  // namespace foretoken
