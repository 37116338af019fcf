#include "report/plan/shared_plan_report.h"

#include <map>

#include <fmt/format.h>

#include "report/parts/table.h"
#include "report/plan/serving_plan_report.h"

namespace foretoken {
namespace {

ServingPlanReport report_of_model(const SharedPlanReport& report, size_t model) {
  return {.question = report.plan.questions[model],
          .traffic = *report.traffic[model],
          .result = report.plan.results[model]};
}

// Behind the devices that the models before take of the same host.
HostPlace place_of(const SharedPlanReport& report, size_t model) {
  const std::string& device = report.plan.results[model].winner()->layout.pool.engine.device;
  HostPlace place{.router_port = 8000 + 100 * static_cast<int64_t>(model)};
  for (size_t i = 0; i < model; ++i) {
    const PlanPoint* before = report.plan.results[i].winner();
    if (before == nullptr) continue;
    for (const auto& [choice, count] : report.plan.questions[i].hardware_of(before->layout)) {
      if (choice->device.name == device) place.first_device += count;
    }
  }
  return place;
}

}  // namespace

std::string shared_plan_sentence(const SharedPlanReport& report) {
  const SharedPlan& plan = report.plan;
  std::map<std::string, int64_t> devices;
  for (size_t i = 0; i < plan.results.size(); ++i) {
    const PlanPoint* winner = plan.results[i].winner();
    if (winner == nullptr) continue;
    for (const auto& [choice, count] : plan.questions[i].hardware_of(winner->layout)) {
      devices[choice->device.title] += count;
    }
  }
  std::string hardware;
  for (const auto& [title, count] : devices) {
    hardware += fmt::format("{}{} x {}", hardware.empty() ? "" : " and ", count, title);
  }
  if (!plan.fits) {
    return fmt::format("The {} models cannot be served together{}.", plan.results.size(),
                       hardware.empty() ? "" : "; those that can take " + hardware);
  }
  const std::optional<double> usd = plan.usd_per_hour();
  return fmt::format("Serve {} models together on {}{}.", plan.results.size(), hardware,
                     usd ? fmt::format(" for ${:.2f} per hour", *usd) : "");
}

std::string shared_plan_text(const SharedPlanReport& report) {
  std::string text = wrap_lines(shared_plan_sentence(report) + "\n", page_width(), 2);
  for (size_t i = 0; i < report.plan.results.size(); ++i) {
    const ServingPlanReport own = report_of_model(report, i);
    if (own.result.layouts == 0) {
      text += fmt::format("\n{}: the other models leave no devices for this one.\n", own.question.model.name);
      continue;
    }
    text += "\n" + wrap_lines(serving_plan_sentence(own), page_width(), 2);
    if (const PlanPoint* winner = own.result.winner()) {
      text += launch_text(own, winner->layout, place_of(report, i));
    }
  }
  return text;
}

Json shared_plan_json(const SharedPlanReport& report) {
  Json models = Json::array();
  for (size_t i = 0; i < report.plan.results.size(); ++i) {
    const ServingPlanReport own = report_of_model(report, i);
    Json json = serving_plan_json(own);
    if (const PlanPoint* winner = own.result.winner()) {
      json.set("commands", launch_json(own, winner->layout, place_of(report, i)));
    }
    models.push(std::move(json));
  }
  const std::optional<double> usd = report.plan.usd_per_hour();
  return Json::object({{"sentence", shared_plan_sentence(report)},
                       {"fits", report.plan.fits},
                       {"usd_per_hour", usd ? Json(*usd) : Json()},
                       {"models", std::move(models)}});
}

}  // namespace foretoken
