#include "report/plan/training_sizing_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"
#include "report/training/training_report.h"

namespace foretoken {
namespace {

std::string limits_text(const SizingLimits& limits) {
  std::vector<std::string> texts;
  if (limits.days) texts.push_back(fmt::format("{:g} days", *limits.days));
  if (limits.usd) texts.push_back(fmt::format("{} USD", rounded_text(*limits.usd)));
  return fmt::format("{}", fmt::join(texts, " and "));
}

std::string goal_text(SizingGoal goal, const SizingLimits& limits) {
  const bool limited = limits.days || limits.usd;
  const std::string within = limited ? " within " + limits_text(limits) : "";
  switch (goal) {
    case SizingGoal::speed:
      return "the fastest choice" + within;
    case SizingGoal::fewest_devices:
      return limited ? "the smallest number of GPUs tried that finishes" + within
                     : "the smallest number of GPUs tried that has enough memory";
    case SizingGoal::cost:
      return "the cheapest choice" + within;
  }
  return "";
}

std::string run_text(const JobSize& size) {
  if (!size.estimate->run) {
    return fmt::format("{} per step", duration_text(size.estimate->iteration.seconds.value));
  }
  const TrainingRun& run = size.estimate->run->run;
  std::string text =
      fmt::format("{:.1f} days (90% interval {:.1f} to {:.1f})", run.days.value, run.days.low, run.days.high);
  if (run.usd) {
    text += fmt::format(", {} USD ({} to {})", rounded_text(run.usd->value), rounded_text(run.usd->low),
                        rounded_text(run.usd->high));
  }
  return text;
}

std::string device_title(const TrainingQuestion& question) {
  return question.cluster.node.device.title;
}

// What a row of the table says beside its numbers.
std::string remark(const JobSizing& sizing, size_t place) {
  const JobSize& size = sizing.sizes[place];
  if (size.nearest) {
    return fmt::format("out of memory: {} of {}", bytes_text(size.nearest->memory.value()),
                       bytes_text(size.nearest->capacity.value()));
  }
  if (!size.estimate) return "no plan divides evenly";
  std::vector<std::string> remarks;
  if (sizing.chosen == place) {
    remarks.emplace_back("chosen");
  } else if (sizing.cautious == place) {
    remarks.emplace_back("safe choice");
  } else if (!keeps_limits(size, sizing.limits)) {
    const TrainingRun& run = size.estimate->run->run;
    const bool is_slow = sizing.limits.days && run.days.value > *sizing.limits.days;
    remarks.emplace_back(is_slow ? "too slow" : "too expensive");
  }
  if (size.search->offloads_optimizer) remarks.emplace_back("optimizer in host memory");
  return fmt::format("{}", fmt::join(remarks, "; "));
}

// Numbers that are worth a row: one that is no faster than fewer devices is none, unless it was chosen. Of those on
// which nothing fits, the last.
bool is_shown(const JobSizing& sizing, size_t place) {
  if (sizing.chosen == place || sizing.cautious == place) return true;
  const JobSize& size = sizing.sizes[place];
  if (!size.estimate) {
    const bool is_last = place + 1 == sizing.sizes.size() || sizing.sizes[place + 1].estimate;
    return size.nearest && is_last;
  }
  for (size_t fewer = 0; fewer < place; ++fewer) {
    const JobSize& other = sizing.sizes[fewer];
    if (other.estimate && other.estimate->iteration.seconds.value <= size.estimate->iteration.seconds.value)
      return false;
  }
  return true;
}

std::string sizes_table(const TrainingQuestion& question, const JobSizing& sizing) {
  const bool has_run = question.run.has_value();
  const bool has_price = has_run && question.run->usd_per_device_hour.has_value();
  std::vector<Table::Column> columns = {{"GPUs"}, {"step"}, {"MFU"}, {"memory"}};
  if (has_run) columns.push_back({"days"});
  if (has_price) columns.push_back({"USD"});
  columns.push_back({"", Table::Align::left});
  Table table(columns);
  for (size_t i = 0; i < sizing.sizes.size(); ++i) {
    if (!is_shown(sizing, i)) continue;
    const JobSize& size = sizing.sizes[i];
    std::vector<std::string> cells = {fmt::format("{}", size.devices)};
    if (size.estimate) {
      const RankedPlan& fastest = size.search->best.front();
      cells.push_back(duration_text(fastest.seconds.value));
      cells.push_back(fmt::format("{:.1f}%", 100 * size.estimate->use.mfu));
      cells.push_back(bytes_text(fastest.memory.value()));
      if (has_run) cells.push_back(fmt::format("{:.1f}", size.estimate->run->run.days.value));
      if (has_price) cells.push_back(rounded_text(size.estimate->run->run.usd->value));
    }
    cells.resize(columns.size() - 1, "-");
    cells.push_back(remark(sizing, i));
    table.add(std::move(cells));
  }
  return table.text();
}

// The size that comes nearest to limits that none keeps; null where none fits at all.
const JobSize* nearest_size(const JobSizing& sizing) {
  const JobSize* nearest = nullptr;
  const auto excess = [&](const JobSize& size) {
    const TrainingRun& run = size.estimate->run->run;
    const double days = sizing.limits.days ? run.days.value / *sizing.limits.days : 0;
    const double usd = sizing.limits.usd ? run.usd->value / *sizing.limits.usd : 0;
    return std::max(days, usd);
  };
  for (const JobSize& size : sizing.sizes) {
    if (size.estimate && (nearest == nullptr || excess(size) < excess(*nearest))) nearest = &size;
  }
  return nearest;
}

}  // namespace

std::string training_sizing_failure(const TrainingQuestion& question, const JobSizing& sizing) {
  if (sizing.chosen) return "";
  const JobSize* const nearest = nearest_size(sizing);
  const int64_t most = sizing.sizes.back().devices;
  if (nearest == nullptr) {
    return fmt::format("Out of memory: {} does not fit on any number of {} tried, up to {}.", question.job.model.name,
                       device_title(question), most);
  }
  return fmt::format("No number of GPUs tried, up to {} x {}, stays within {}. The nearest is {} GPUs: {}.", most,
                     device_title(question), limits_text(sizing.limits), nearest->devices, run_text(*nearest));
}

std::string training_sizing_text(const TrainingQuestion& question, const JobSizing& sizing) {
  std::string text = training_sizing_failure(question, sizing);
  if (sizing.chosen) {
    const JobSize& chosen = sizing.sizes[*sizing.chosen];
    text = fmt::format("{} x {} for {}: {}, {}.", chosen.devices, device_title(question), question.job.model.name,
                       goal_text(sizing.goal, sizing.limits), run_text(chosen));
    if (sizing.cautious && sizing.cautious != sizing.chosen) {
      const JobSize& safe = sizing.sizes[*sizing.cautious];
      text += fmt::format(" To stay within {} even at the slow end of the interval, use {} GPUs: {}.",
                          limits_text(sizing.limits), safe.devices, run_text(safe));
    } else if (!sizing.cautious) {
      text += fmt::format(" At the slow end of the interval, no number of GPUs up to {} stays within {}.",
                          sizing.sizes.back().devices, limits_text(sizing.limits));
    }
  }
  return wrap_lines(text +
                        "\n\nThe best plan for each number of GPUs (numbers that are no faster than a smaller one "
                        "are left out):\n",
                    page_width(), 2) +
         sizes_table(question, sizing) + "\n";
}

Json training_sizing_json(const JobSizing& sizing) {
  const auto devices_at = [&](const std::optional<size_t>& place) {
    return place ? Json(sizing.sizes[*place].devices) : Json();
  };
  Json sizes = Json::array();
  for (const JobSize& size : sizing.sizes) {
    Json json = Json::object({{"devices", size.devices}, {"fits", size.estimate.has_value()}});
    if (size.nearest) {
      json.set("memory_bytes", size.nearest->memory.value());
      json.set("capacity_bytes", size.nearest->capacity.value());
    }
    if (size.estimate) {
      const RankedPlan& fastest = size.search->best.front();
      json.set("offloads_optimizer", size.search->offloads_optimizer);
      json.set("within_limits", keeps_limits(size, sizing.limits));
      json.set("plan", to_json(fastest.plan));
      json.set("seconds", to_json(fastest.seconds));
      json.set("memory_bytes", fastest.memory.value());
      json.set("mfu", size.estimate->use.mfu);
      if (size.estimate->run) {
        json.set("days", to_json(size.estimate->run->run.days));
        if (size.estimate->run->run.usd) json.set("usd", to_json(*size.estimate->run->run.usd));
      }
    }
    sizes.push(std::move(json));
  }
  Json json = Json::object({{"goal", sizing_goal_name(sizing.goal)},
                            {"chosen_devices", devices_at(sizing.chosen)},
                            {"cautious_devices", devices_at(sizing.cautious)},
                            {"sizes", std::move(sizes)}});
  if (sizing.limits.days) json.set("deadline_days", *sizing.limits.days);
  if (sizing.limits.usd) json.set("budget_usd", *sizing.limits.usd);
  return json;
}

}  // namespace foretoken
