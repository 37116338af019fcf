#include "validate/serving/load_stages.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/simulated_time.h"
#include "compose/engine_release.h"
#include "compose/model_spec.h"
#include "library/library.h"
#include "validate/row_filter.h"
#include "validate/serving/public_facts.h"
#include "validate/serving/request_records.h"

namespace foretoken {
namespace {

constexpr int32_t block_tokens = 16;  // vLLM's
constexpr Range<int64_t> stage_sizes{.least = 1, .most = 1'000'000'000};
constexpr Range<int64_t> stage_counts{.least = 0, .most = 1'000'000'000};
constexpr Range<double> stage_times{.least = 1e-6, .most = 1e12};
constexpr int64_t most_requests = 10'000'000;  // of one run, which is held in memory

using RecordTime = Picoseconds (RequestRecord::*)() const;

// Mean over requests [first, first + count) that were served.
double mean_ms(const RequestRecords& records, size_t first, size_t count, RecordTime time) {
  double sum = 0, served = 0;
  for (size_t i = first; i < first + count; ++i) {
    const RequestRecord& record = records.by_id[i];
    if (record.outcome != RequestOutcome::completed) continue;
    sum += to_seconds((record.*time)()).value() * 1e3;
    ++served;
  }
  return served > 0 ? sum / served : 0;
}

constexpr StepBound bounds[] = {StepBound::value, StepBound::low, StepBound::high};

struct StageMetric {
  std::string_view name;
  double LoadStage::*measured;
  RecordTime predicted;
};
constexpr StageMetric stage_metrics[] = {{"e2e_ms", &LoadStage::e2e_ms, &RequestRecord::e2el},
                                         {"ttft_ms", &LoadStage::ttft_ms, &RequestRecord::ttft}};

}  // namespace

bool has_load_stages(const CsvReader& table) {
  return table.find_column("experiment") && table.find_column("stage");
}

std::vector<StagedRun> read_staged_runs(CsvReader& table) {
  const auto text = [&](std::string_view name) { return std::string(table.cell(table.column(name))); };
  const auto size = [&](std::string_view name) { return table.integer(table.column(name), stage_sizes); };
  const auto version = table.find_column("engine_version"), median = table.find_column("ttft_p50_ms");
  std::vector<StagedRun> runs;
  while (table.next()) {
    const std::string experiment = text("experiment");
    if (runs.empty() || runs.back().experiment != experiment) {
      runs.push_back({.experiment = experiment,
                      .model = text("model"),
                      .device = text("device"),
                      .engine_version = std::string(version ? table.cell(*version) : staged_runs_engine_version),
                      .tensor = size("tp"),
                      .flags = {.max_num_batched_tokens = size("max_num_batched_tokens"),
                                .max_num_seqs = size("max_num_seqs"),
                                .max_model_len = size("max_model_len")}});
    }
    runs.back().stages.push_back({.row = table.row(),
                                  .id = fmt::format("{}, stage {}", experiment, text("stage")),
                                  .rate = table.number(table.column("rate"), {.least = 1e-6, .most = 1e6}),
                                  .requests = size("count"),
                                  .failures = table.integer(table.column("failures"), stage_counts),
                                  .prompts = size("prompts"),
                                  .prompt_len = size("prompt_len"),
                                  .output_len = size("output_len"),
                                  .e2e_ms = table.number(table.column("e2e_mean_ms"), stage_times),
                                  .ttft_ms = table.number(table.column("ttft_mean_ms"), stage_times),
                                  .ttft_p50_ms = median ? table.number(*median, stage_times) : 0});
    if (runs.back().stages.back().failures > runs.back().stages.back().requests) {
      table.fail(table.column("failures"), "at most the count of requests");
    }
    int64_t requests = 0;
    for (const LoadStage& stage : runs.back().stages) requests += stage.requests;
    if (requests > most_requests) table.fail(table.column("count"), fmt::format("at most {} of a run", most_requests));
  }
  return runs;
}

namespace {

// What the column to group by says in each row; empty without one.
std::map<size_t, std::string> groups_of_rows(const ServingValidationRequest& request) {
  std::map<size_t, std::string> groups;
  if (request.group_by.empty()) return groups;
  CsvReader table(request.data);
  const size_t column = table.column(request.group_by);
  while (table.next()) groups.emplace(table.row(), table.cell(column));
  return groups;
}

}  // namespace

std::vector<Request> requests_of(const StagedRun& run) {
  std::vector<Request> requests;
  double start = 0;
  for (const LoadStage& stage : run.stages) {
    for (int64_t i = 0; i < stage.requests; ++i) {
      const auto id = static_cast<int64_t>(requests.size());
      Request request{.id = id,
                      .arrival = to_picoseconds(Seconds(start + static_cast<double>(i) / stage.rate)),
                      .input_tokens = stage.prompt_len,
                      .output_tokens = stage.output_len,
                      .prefix_block_tokens = block_tokens};
      const int64_t blocks = stage.prompt_len / block_tokens;
      for (int64_t block = 0; block < blocks; ++block) {
        request.prefix_blocks.push_back(id % stage.prompts * blocks + block);
      }
      requests.push_back(std::move(request));
    }
    start += static_cast<double>(stage.requests) / stage.rate;
  }
  return requests;
}

StagedSpecs staged_specs(const StagedRun& run, const Library& library) {
  const Device device = library.hardware().device(run.device);
  const ParallelPlan plan{.tensor = run.tensor};
  const ModelSpec asked{.model = run.model};
  const ReleaseBehavior& release = release_behavior("vllm", run.engine_version);
  StagedSpecs specs{.engine = {.model = open_model(library, asked, device, plan),
                               .device = device,
                               .plan = plan,
                               .flags = run.flags,
                               .stack = std::string(release.stack),
                               .scheduler = std::string(release.scheduler),
                               .boards = BoardState::held_busy,
                               .power = library.power_model(device)},
                    .load = {.listed = requests_of(run)}};
  specs.engine.flags.engine = engine_of_version("vllm", run.engine_version);
  specs.engine.flags.kv_dtype = kv_cache_dtype(asked, specs.engine.model);
  specs.engine.scheduling.async_scheduling = release.schedules_ahead;
  specs.engine.scheduling.enable_prefix_caching = true;
  return specs;
}

Validation validate_load_stages(const ServingValidationRequest& request, const Library& library,
                                const ServingFacts& facts, const ScoredServingSink& sink) {
  CsvReader table(request.data);
  const std::map<size_t, std::string> groups = groups_of_rows(request);
  Validation result;
  ErrorTable errors;
  double seconds = 0, values = 0;
  for (const StagedRun& run : read_staged_runs(table)) {
    if (!is_wanted(request.devices, run.device) || !is_wanted(request.models, run.model)) continue;
    const auto skip = [&](const LoadStage& stage, std::string why) {
      result.skipped.push_back({request.data.string(), stage.row, std::move(why)});
    };
    const auto gave_up =
        std::find_if(run.stages.begin(), run.stages.end(), [](const LoadStage& stage) { return stage.failures > 0; });
    if (gave_up != run.stages.end()) {
      for (const LoadStage& stage : run.stages) {
        skip(stage,
             fmt::format("the client dropped {} of {} requests ({}), so the measured latencies cover only the others",
                         gave_up->failures, gave_up->requests, gave_up->id));
      }
      continue;
    }
    const auto too_long = std::find_if(run.stages.begin(), run.stages.end(), [&](const LoadStage& stage) {
      return stage.prompt_len + stage.output_len > run.flags.max_model_len;
    });
    if (too_long != run.stages.end()) {
      for (const LoadStage& stage : run.stages) {
        skip(stage, fmt::format("{}: {} + {} tokens are more than max_model_len, {}", too_long->id,
                                too_long->prompt_len, too_long->output_len, run.flags.max_model_len));
      }
      continue;
    }
    const auto begin = std::chrono::steady_clock::now();
    std::vector<RequestRecords> replays;
    try {
      const StagedSpecs specs = staged_specs(run, library);
      EngineBuilder builder(facts);
      for (const StepBound bound : bounds) {
        RequestRecords& records = replays.emplace_back(specs.load.listed.size());
        simulate_serving(builder, specs.engine, specs.load,
                         {.observers = {&records}, .percentiles = {}, .bound = bound, .step_bounds = false});
      }
    } catch (const InputError& error) {
      for (const LoadStage& stage : run.stages) skip(stage, error.sentence());
      continue;
    }
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    size_t first = 0;
    for (const LoadStage& stage : run.stages) {
      const auto count = static_cast<size_t>(stage.requests);
      for (const StageMetric& metric : stage_metrics) {
        std::array<double, std::size(bounds)> at{};
        for (size_t i = 0; i < at.size(); ++i) at[i] = mean_ms(replays[i], first, count, metric.predicted);
        const auto [low, high] = std::minmax_element(at.begin(), at.end());
        const Headline predicted{.value = at[0], .low = *low, .high = *high};
        const std::string group =
            groups.empty() ? std::string(metric.name) : fmt::format("{}/{}", groups.at(stage.row), metric.name);
        errors.add(group, {stage.*metric.measured, predicted.value, predicted.low, predicted.high});
        ++values;
        if (sink) {
          sink({.id = stage.id,
                .group = group,
                .device = run.device,
                .model = run.model,
                .engine = "vllm",
                .metric = metric.name,
                .row = stage.row,
                .measured = stage.*metric.measured,
                .predicted = predicted});
        }
      }
      first += count;
    }
  }
  if (values == 0 && result.skipped.empty()) {
    throw InputError(
        {.source = request.data.string(), .value = "no row", .expected = "filters that leave at least one"});
  }
  result.overall = errors.overall();
  if (values > 0) result.seconds_per_1000_rows = seconds / values * 1000;
  for (const auto& [name, summary] : errors.groups()) {
    result.groups.push_back({.name = name, .errors = summary, .seconds_per_1000_rows = result.seconds_per_1000_rows});
  }
  return result;
}

}  // namespace foretoken
