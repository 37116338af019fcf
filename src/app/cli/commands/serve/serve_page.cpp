#include "app/cli/commands/serve/serve_page.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "app/cli/commands/serve/energy_runs.h"
#include "app/cli/commands/serve/rate_curve.h"
#include "app/cli/output/out_file.h"
#include "app/cli/output/page_trust.h"
#include "report/page/serving_page.h"
#include "serving/engine/engine_setup.h"

namespace foretoken {
namespace {

Trust trust_in(const std::vector<ReplicaGroup>& groups, const Library& library) {
  std::vector<Device> devices;
  bool has_collectives = false;
  for (const ReplicaGroup& group : groups) {
    devices.push_back(group.models.kernels.device());
    has_collectives = has_collectives || engine_devices(group.plan) > 1;
  }
  std::vector<std::string_view> layers = {"kernels", "steps", "serving"};
  if (has_collectives) layers.insert(layers.begin() + 1, "collectives");
  Trust trust = page_trust(library, std::move(layers), devices);
  trust.time_of = "the kernel time of typical steps";
  return trust;
}

std::vector<TypicalStep> steps_with_operators(const std::vector<ReplicaGroup>& groups,
                                              const std::vector<StepMix>& mixes) {
  std::vector<TypicalStep> steps;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!groups[i].has_operators) continue;
    for (TypicalStep& step : typical_steps_of(groups[i], mixes[i], "--html")) steps.push_back(std::move(step));
  }
  return steps;
}

std::optional<RunExplanation> explanation_of(const ServeFlags& flags, const ServedRun& served) {
  if (flags.colocation.given() || flags.fleet.given())
    return std::nullopt;  // their devices are not those of the groups
  std::vector<ExplainedPool> pools;
  double devices = 0;
  for (size_t i = 0; i < served.groups.size(); ++i) {
    const ReplicaGroup& group = served.groups[i];
    const StepMix& mix = served.watch.mixes[i];
    const auto each = static_cast<double>(summary_of(group).devices_each);
    devices += each * static_cast<double>(group.count);
    pools.push_back(
        {.device = &group.models.kernels.device(),
         .devices_each = each,
         .busy_seconds = mix.busy_seconds(),
         .stages = static_cast<double>(group.plan.pipeline),
         .steps = group.has_operators ? typical_steps_of(group, mix, "--html") : std::vector<TypicalStep>()});
  }
  return explain_run(served.watch.slowest, served.watch.prompts, flags.goals.percentiles().front(), pools,
                     devices * served.report.run.metrics.duration_s);
}

}  // namespace

void write_serving_page(const ServeFlags& flags, ServedRun served, Answer& answer, const Library& library) {
  const ReplicaGroup& first = served.groups.front();
  ServingPage page{.report = served.report,
                   .curves = served.watch.curves,
                   .device = first.models.kernels.device(),
                   .goals = flags.goals.goals(),
                   .rates = other_rates(flags, served.groups, served.report.run.metrics, library),
                   .steps = steps_with_operators(served.groups, served.watch.mixes),
                   .explanation = explanation_of(flags, served),
                   .memory = std::nullopt,
                   .energy = std::move(served.energy),
                   .energy_remark = {},
                   .rent = std::nullopt,
                   .trust = trust_in(served.groups, library),
                   .command = flags.options->line(),
                   .more = answer.text};
  page.trust.time = time_by_confidence(page.steps);
  if (!first.model.is_encoder_only()) page.memory = first.memory;
  if (!page.energy) add_page_energy(page, flags, served.replica, served.groups, library);
  write_report(flags.html, serving_page_html(page));
  answer.text += fmt::format("wrote {}\n", flags.html);
}

}  // namespace foretoken
