#include "report/plan/training_search_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/text.h"
#include "plan/megatron_flags.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"
#include "report/training/mixed_report.h"
#include "report/training/training_report.h"

namespace foretoken {
namespace {

double mfu_of(const TrainingQuestion& question, const RankedPlan& one) {
  const TokenFlops flops =
      token_flops(question.job.model, {.sequence_length = question.job.sequence_length, .lora = question.job.lora});
  return flop_use(*question.convention, flops, one.tokens_per_second_per_device, question.cluster.node.device,
                  facts(question.job.recipe.scheme).math)
      .mfu;
}

std::string sharding_text(const TrainingPlan& plan) {
  std::string text(sharding_name(plan.sharding));
  if (plan.shard_ranks > 0) text += fmt::format(" / {}", plan.shard_ranks);
  return text;
}

std::string recompute_text(const TrainingPlan& plan) {
  std::string text(recompute_name(plan.recompute));
  if (plan.recompute_layers > 0) text += fmt::format(" {}", plan.recompute_layers);
  return text;
}

// In words, for frameworks that take no arguments of Megatron-LM.
std::string plan_in_words(const TrainingPlan& plan) {
  const ParallelPlan& p = plan.parallel;
  return fmt::format(
      "tp {}, cp {}, ep {}, pp {}, dp {}, {} per micro-batch, sharding {}, recompute {}", p.tensor, p.context, p.expert,
      plan.virtual_stages > 1 ? fmt::format("{}x{}", p.pipeline, plan.virtual_stages) : fmt::format("{}", p.pipeline),
      p.data, counted(plan.micro_batch, "sequence"), sharding_text(plan), recompute_text(plan));
}

std::string starting_text(const TrainingQuestion& question, const TrainingPlan& plan, bool as_megatron_flags) {
  return as_megatron_flags ? megatron_flags(plan, question.job.dropout) : plan_in_words(plan);
}

bool is_schedule_of_megatron(const TrainingPlan& plan) {
  return plan.schedule == "1f1b" || plan.schedule == "interleaved";
}

// How a plan divides the work, behind what is said of its speed.
std::vector<Table::Column> with_plan_columns(std::vector<Table::Column> columns) {
  for (const char* title : {"tp", "cp", "ep", "pp", "dp", "batch"}) columns.push_back({title});
  columns.push_back({"sharding", Table::Align::left});
  columns.push_back({"recompute", Table::Align::left});
  return columns;
}

std::vector<std::string> with_plan_cells(std::vector<std::string> cells, const TrainingPlan& plan) {
  const ParallelPlan& p = plan.parallel;
  for (const int64_t size : {p.tensor, p.context, p.expert}) cells.push_back(fmt::format("{}", size));
  cells.push_back(plan.virtual_stages > 1 ? fmt::format("{}x{}", p.pipeline, plan.virtual_stages)
                                          : fmt::format("{}", p.pipeline));
  for (const int64_t size : {p.data, plan.micro_batch}) cells.push_back(fmt::format("{}", size));
  cells.push_back(sharding_text(plan));
  cells.push_back(recompute_text(plan));
  return cells;
}

std::string plans_table(const TrainingQuestion& question, const std::vector<RankedPlan>& plans) {
  Table table(with_plan_columns({{"step"}, {"tokens/s/device"}, {"MFU"}, {"memory"}}));
  for (const RankedPlan& one : plans) {
    table.add(
        with_plan_cells({duration_text(one.seconds.value), fmt::format("{:.0f}", one.tokens_per_second_per_device),
                         fmt::format("{:.1f}%", 100 * mfu_of(question, one)), bytes_text(one.memory.value())},
                        one.plan));
  }
  return table.text();
}

// Of plans that need about the same memory, the fastest.
std::vector<RankedPlan> thinned(const std::vector<RankedPlan>& frontier) {
  constexpr double less = 0.9;
  std::vector<RankedPlan> shown;
  for (size_t i = frontier.size(); i-- > 0;) {
    if (shown.empty() || frontier[i].memory <= less * shown.back().memory) shown.push_back(frontier[i]);
  }
  return shown;
}

// Why a plan stands above one that takes less time.
std::string caution_text(const TrainingSearchResult& result) {
  const RankedPlan* const faster = faster_than_first(result);
  if (faster == nullptr) return "";
  return wrap_lines(
      fmt::format("Row {} takes {}, less than the first row: plans whose experts lie on several nodes are ranked as if "
                  "they took {:.0f}% longer, because the time of traffic between nodes is the least certain.\n",
                  faster - result.best.data() + 1, duration_text(faster->seconds.value),
                  100 * (expert_network_margin - 1)),
      page_width(), 2);
}

Json plans_json(const TrainingQuestion& question, const std::vector<RankedPlan>& plans) {
  Json list = Json::array();
  for (const RankedPlan& one : plans) {
    list.push(Json::object({{"plan", to_json(one.plan)},
                            {"seconds", to_json(one.seconds)},
                            {"tokens_per_second_per_device", one.tokens_per_second_per_device},
                            {"mfu", mfu_of(question, one)},
                            {"memory_bytes", one.memory.value()}}));
  }
  return list;
}

Json search_json(const TrainingQuestion& question, const TrainingSearchResult& result) {
  return Json::object({{"model", question.job.model.name},
                       {"cluster", question.cluster.name},
                       {"device", question.cluster.node.device.name},
                       {"stack", question.stack.name},
                       {"precision", question.job.recipe.name},
                       {"sequence_length", question.job.sequence_length},
                       {"looked_at", result.looked_at},
                       {"too_large", result.too_large},
                       {"estimated", result.estimated},
                       {"best", plans_json(question, result.best)},
                       {"frontier", plans_json(question, result.frontier)},
                       {"roomy", result.roomy ? plans_json(question, {*result.roomy}).items().front() : Json()}});
}

}  // namespace

std::string training_search_text(const TrainingQuestion& question, const TrainingSearchResult& result,
                                 bool with_megatron_flags) {
  std::string text = fmt::format(
      "{} on {} x {} ({}), {} x {} tokens per step: {} considered, {} of them too large, {} estimated in "
      "full.\n\n",
      question.job.model.name, question.plan.devices(), question.cluster.node.device.title, question.cluster.name,
      question.plan.global_batch, question.job.sequence_length, counted(result.looked_at, "plan"), result.too_large,
      result.estimated);
  text +=
      "The fastest plan of each choice of ranks (pp 16x8: 8 chunks of layers on each of 16 stages; batch: sequences "
      "per micro-batch; recompute full 4: 4 layers of each chunk; sharding parameters / 8: 8 ranks share a copy):\n";
  text = wrap_lines(text, page_width(), 2) + plans_table(question, result.best) + caution_text(result);
  const std::string_view first = faster_than_first(result) == nullptr ? "fastest" : "first";
  text += "\nPlans with less memory, and their cost in time:\n" + plans_table(question, thinned(result.frontier));
  if (result.roomy) {
    const RankedPlan& best = result.best.front();
    text += wrap_lines(fmt::format("\nMore headroom: {:.1f}% slower than the {}, {} instead of {} of memory:\n  {}\n",
                                   100 * (result.roomy->seconds.value / best.seconds.value - 1), first,
                                   bytes_text(result.roomy->memory.value()), bytes_text(best.memory.value()),
                                   starting_text(question, result.roomy->plan, with_megatron_flags)),
                       page_width(), 4);
  }
  if (!with_megatron_flags) return text + "\n";
  const TrainingPlan& plan = result.best.front().plan;
  text += fmt::format("\nThe {} plan, for Megatron-LM:\n", first);
  if (question.job.lora.rank > 0) {
    text +=
        fmt::format("  Its pretrain_gpt.py trains no adapters: use these sizes in Megatron-Bridge, with peft.dim {}.\n",
                    question.job.lora.rank);
  }
  if (!is_schedule_of_megatron(plan)) {
    text += fmt::format("  Megatron-LM has no schedule like {}: these flags run {} instead.\n", plan.schedule,
                        plan.virtual_stages > 1 ? "interleaved" : "1f1b");
  }
  return text + "  " + wrap_lines(megatron_flags(plan, question.job.dropout), page_width() - 2, 4) + "\n";
}

Json training_search_json(const TrainingQuestion& question, const TrainingSearchResult& result) {
  Json json = search_json(question, result);
  if (question.stack.takes_megatron_flags) {
    json.set("megatron_flags", megatron_flags(result.best.front().plan, question.job.dropout));
  }
  return json;
}

std::string unfit_training_search_sentence(const TrainingQuestion& question, const NearestPlan& nearest) {
  return fmt::format(
      "Out of memory: none of {} for {} fits on {} x {} ({}). The plan that needs the least memory "
      "needs {} per device; {} is usable.",
      counted(nearest.looked_at, "plan"), question.job.model.name, nearest.plan.devices(),
      question.cluster.node.device.title, question.cluster.name, bytes_text(nearest.memory.value()),
      bytes_text(nearest.capacity.value()));
}

std::string unfit_training_search_text(const TrainingQuestion& question, const NearestPlan& nearest,
                                       bool for_megatron) {
  return wrap_lines(unfit_training_search_sentence(question, nearest) + "\n", page_width(), 2) +
         "Use more devices, shorter sequences or a smaller model, or set fewer sizes by flag.\n\n" +
         fmt::format("The plan that needs the least memory{}:\n  ", for_megatron ? ", for Megatron-LM" : "") +
         wrap_lines(starting_text(question, nearest.plan, for_megatron), page_width() - 2, 4);
}

Json unfit_training_search_json(const TrainingQuestion& question, const NearestPlan& nearest) {
  Json json = search_json(question, {.looked_at = nearest.looked_at, .too_large = nearest.looked_at});
  Json plan = Json::object({{"plan", to_json(nearest.plan)},
                            {"memory_bytes", nearest.memory.value()},
                            {"capacity_bytes", nearest.capacity.value()}});
  if (question.stack.takes_megatron_flags) {
    plan.set("megatron_flags", megatron_flags(nearest.plan, question.job.dropout));
  }
  json.set("nearest", std::move(plan));
  return json;
}

std::string mixed_search_text(std::span<const TrainingPool> pools, const MixedSearchResult& result) {
  std::string text = fmt::format(
      "Tried {} ways to divide the job among {} pools; {} do not fit in memory. Fastest first (data: faster GPUs take "
      "more micro-batches; pipeline: faster GPUs hold more layers; memory: the fullest GPU):\n",
      result.tried, pools.size(), result.too_large);
  Table table(with_plan_columns({{"step"}, {"tokens/s"}, {"by", Table::Align::left}, {"memory"}}));
  for (const RankedMixedPlan& one : result.best) {
    double memory = 0;
    for (const PoolWork& work : one.estimate.pools) memory = std::max(memory, work.memory.total().value());
    table.add(with_plan_cells(
        {duration_text(one.estimate.seconds.value), fmt::format("{:.0f}", one.estimate.tokens_per_second),
         std::string(pool_axis_names[static_cast<size_t>(one.estimate.axis)]),
         bytes_text(memory) + (one.estimate.fits ? "" : " (too much)")},
        one.plan));
  }
  return wrap_lines(text, page_width(), 2) + table.text() + "\n";
}

Json mixed_search_json(std::span<const TrainingPool> pools, const MixedSearchResult& result) {
  Json plans = Json::array();
  for (const RankedMixedPlan& one : result.best) {
    plans.push(Json::object({{"seconds", one.estimate.seconds.value},
                             {"tokens_per_second", one.estimate.tokens_per_second},
                             {"pool_axis", pool_axis_names[static_cast<size_t>(one.estimate.axis)]},
                             {"fits", one.estimate.fits},
                             {"megatron_flags", megatron_flags(one.plan, pools.front().question.job.dropout)}}));
  }
  return Json::object({{"tried", result.tried},
                       {"too_large", result.too_large},
                       {"best", std::move(plans)},
                       {"fastest", mixed_json(pools, result.best.front().estimate)}});
}

}  // namespace foretoken
