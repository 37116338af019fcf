#include "validate/training/validate_moe_layer.h"

#include <chrono>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/csv.h"
#include "base/error.h"
#include "training/iteration.h"

namespace foretoken {
namespace {

struct MoeLayerCase {
  std::string name;
  TrainingJob job;
  TrainingPlan plan;
  std::string device;
  double forward_ms = 0, backward_ms = 0;
};

// One layer that is nothing but routed and shared experts.
Model experts_alone(const CsvReader& table) {
  const auto size = [&](const char* column) { return table.integer(table.column(column), {1, 10'000'000}); };
  const auto shared = table.integer(table.column("shared_ffn"), {0, 10'000'000});
  const auto gated = table.find_column("gated");
  Model model{.name = std::string(table.cell(table.column("case"))), .hidden = size("hidden"), .vocabulary = 32000};
  model.layers = {Layer{.mixer = {},
                        .feed_forward = Moe{.experts = size("experts"),
                                            .top_k = size("topk"),
                                            .width = size("moe_ffn"),
                                            .gated = gated && table.cell(*gated) == "1",
                                            .shared_width = shared},
                        .norms = 0}};
  return model;
}

TokenDispatcher dispatcher_in(const CsvReader& table) {
  const size_t column = table.column("dispatcher");
  const std::string_view name = table.cell(column);
  if (name == "a2a") return TokenDispatcher::all_to_all;
  const std::optional<TokenDispatcher> found = token_dispatcher_from_name(name);
  if (!found) table.fail(column, fmt::format("a2a or one of {}", fmt::join(token_dispatcher_names(), ", ")));
  return *found;
}

MoeLayerCase read_case(const CsvReader& table) {
  const auto count = [&](const char* column) { return table.integer(table.column(column), {1, 1'000'000}); };
  const auto time = [&](const char* column) { return table.number(table.column(column), {1e-6, 1e9}); };
  MoeLayerCase one{.name = std::string(table.cell(table.column("case"))),
                   .job = {.model = experts_alone(table),
                           .sequence_length = count("seq"),
                           .recipe = training_recipe(table.cell(table.column("dtype")))},
                   .plan = {},
                   .device = std::string(table.cell(table.column("gpu")))};
  TrainingPlan& plan = one.plan;
  plan.parallel = {.tensor = count("tp"), .expert = count("ep")};
  plan.parallel.data = count("n_gpus") / plan.parallel.tensor;
  if (plan.parallel.data * plan.parallel.tensor != count("n_gpus"))
    table.fail(table.column("n_gpus"), "a multiple of tp");
  plan.parallel.sequence = plan.parallel.tensor > 1;
  plan.micro_batch = count("micro_batch");
  plan.global_batch = plan.micro_batch * plan.parallel.data;
  plan.dispatcher = dispatcher_in(table);
  one.forward_ms = time("forward_ms");
  one.backward_ms = time("backward_ms");
  return one;
}

std::string cluster_of_device(const CsvReader& table, const std::vector<RunCluster>& clusters) {
  const size_t column = table.column("gpu");
  for (const RunCluster& entry : clusters) {
    if (entry.gpu == table.cell(column) && entry.sources.empty()) return entry.cluster;
  }
  table.fail(column, "a device of data/training/clusters.json");
}

// A stack as it runs one layer: nothing else can hide what the layer sends, and no other layer keeps the host busy.
TrainingStack by_itself(TrainingStack stack) {
  stack.constants[expert_exposed] = stack.constants[tensor_exposed] = 1;
  for (auto& [place, constants] : stack.on) {
    constants.erase(expert_exposed);
    constants.erase(tensor_exposed);
  }
  return stack;
}

}  // namespace

Validation validate_moe_layers(const MoeLayerRequest& request, const HardwareCatalogue& hardware,
                               const MachineMaker& make_machine, const ScoredMoeLayerSink& sink) {
  CsvReader table{request.data};
  Validation validation;
  ValidationTally tally(0);
  std::map<std::string, std::unique_ptr<MachineModels>> machines;
  const TrainingStack stack = by_itself(request.stack);
  while (table.next()) {
    const auto start = std::chrono::steady_clock::now();
    try {
      const MoeLayerCase one = read_case(table);
      auto& machine = machines[one.device];
      if (!machine) machine = make_machine(hardware.cluster(cluster_of_device(table, request.clusters)));
      check_plan(one.job.model, one.job.sequence_length, one.plan, machine->machine().network->device_count());
      const ChunkTimes times = IterationModel(one.job, stack, machine->machine()).first_layer(one.plan);
      const RunInterval interval = stack.interval_for(one.job.model, {.device = &machine->device(),
                                                                      .adapters = false,
                                                                      .devices = one.plan.devices(),
                                                                      .expert_ranks = one.plan.parallel.expert});
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      const auto score = [&](std::string_view pass, double measured_ms, double seconds) {
        const double predicted = 1e3 * seconds;
        const ScoredMoeLayer scored{.name = one.name,
                                    .pass = pass,
                                    .measured_ms = measured_ms,
                                    .predicted_ms = predicted,
                                    .low_ms = predicted * interval.low,
                                    .high_ms = predicted * interval.high};
        tally.add(pass, {.measured = measured_ms, .predicted = predicted, .low = scored.low_ms, .high = scored.high_ms},
                  spent.count() / 2);
        if (sink) sink(scored);
      };
      score("forward", one.forward_ms, times.forward);
      score("backward", one.backward_ms, times.backward_input + times.backward_weight);
    } catch (const InputError& error) {
      validation.skipped.push_back({.file = table.source(), .row = table.row(), .why = error.sentence()});
    }
  }
  tally.write(validation);
  return validation;
}

}  // namespace foretoken
