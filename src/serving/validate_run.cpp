#include "serving/validate_run.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/json.h"
#include "base/simulated_time.h"
#include "serving/composed_steps.h"
#include "serving/engine_setup.h"
#include "serving/load/listed_source.h"
#include "serving/load/trace.h"
#include "serving/op_tables.h"
#include "serving/simulation.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

struct MeasuredRequest {
  double queued_s = 0, first_token_s = 0, last_token_s = 0;
};

struct MeasuredRun {
  std::vector<Request> requests;       // in order of arrival
  std::vector<MeasuredRequest> times;  // by id
};

// By id; empty without such a file.
std::vector<std::vector<int64_t>> read_prefixes(const fs::path& folder) {
  std::vector<std::vector<int64_t>> prefixes;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("workload") && name.find(".csv") != std::string::npos) files.push_back(entry.path());
  }
  if (files.empty()) return prefixes;
  const std::unique_ptr<RequestSource> workload = open_trace(*std::min_element(files.begin(), files.end()));
  while (workload->next_arrival()) prefixes.push_back(workload->next().prefix_blocks);
  return prefixes;
}

MeasuredRun read_run(const fs::path& folder) {
  constexpr Range<double> moments{.least = 0, .most = 8e6};
  constexpr int prefix_block_tokens = 16;
  const auto prefixes = read_prefixes(fs::absolute(folder / "..").lexically_normal());
  CsvReader csv(folder / "requests.csv");
  const size_t arrival = csv.column("arrival_client_s"), queued = csv.column("queued_s");
  const size_t first = csv.column("first_token_s"), last = csv.column("last_token_s");
  const size_t input = csv.column("input_tokens"), output = csv.column("output_tokens");
  MeasuredRun run;
  while (csv.next()) {
    const size_t id = run.times.size();
    run.times.push_back({csv.number(queued, moments), csv.number(first, moments), csv.number(last, moments)});
    Request request{.id = static_cast<int64_t>(id),
                    .arrival = to_picoseconds(Seconds(csv.number(arrival, moments))),
                    .input_tokens = csv.integer(input, {1, 100'000'000}),
                    .output_tokens = csv.integer(output, {1, 100'000'000})};
    if (id < prefixes.size()) {
      request.prefix_block_tokens = prefix_block_tokens;
      request.prefix_blocks = prefixes[id];
    }
    run.requests.push_back(std::move(request));
  }
  if (run.requests.empty()) {
    throw InputError({.source = csv.source(), .value = "no row", .expected = "at least one request"});
  }
  std::stable_sort(run.requests.begin(), run.requests.end(),
                   [](const Request& a, const Request& b) { return a.arrival < b.arrival; });
  return run;
}

class ReplayedRequests : public ListedSource {
 public:
  explicit ReplayedRequests(std::vector<Request> requests) : requests_(std::move(requests)) {}

 protected:
  std::optional<Request> read() override {
    if (next_ == requests_.size()) return std::nullopt;
    return std::move(requests_[next_++]);
  }

 private:
  std::vector<Request> requests_;
  size_t next_ = 0;
};

class Records : public RunObserver {
 public:
  explicit Records(size_t requests) : by_id(requests) {}
  void request_ended(const RequestRecord& record) override { by_id[static_cast<size_t>(record.id)] = record; }
  std::vector<RequestRecord> by_id;
};

// What meta.json says of the engine.
struct RunSettings {
  std::string model, device;
  EngineFlags flags;
  int64_t num_gpu_blocks = 0;  // 0 = not recorded
  ParallelPlan plan;
};

RunSettings read_settings(const fs::path& folder) {
  const fs::path file = folder / "meta.json";
  const Json document = read_json_file(file);
  const JsonView meta(document, file.string());
  const JsonView engine = meta.at("engine_kwargs");
  constexpr Range<int64_t> sizes{.least = 1, .most = 1'000'000'000};
  RunSettings settings{.model = meta.at("model").string(), .device = ""};
  settings.flags.engine = "vllm-0.19";
  if (const auto seqs = engine.find("max_num_seqs")) settings.flags.max_num_seqs = seqs->integer(sizes);
  if (const auto tokens = engine.find("max_num_batched_tokens")) {
    settings.flags.max_num_batched_tokens = tokens->integer(sizes);
  }
  if (const auto longest = engine.find("max_model_len")) settings.flags.max_model_len = longest->integer(sizes);
  if (const auto tensor = engine.find("tensor_parallel_size")) settings.plan.tensor = tensor->integer(sizes);
  if (const auto cache = meta.find("kv_cache")) settings.num_gpu_blocks = cache->at("num_gpu_blocks").integer(sizes);
  if (const auto machine = meta.find("hardware")) settings.device = machine->at("device_name").string();
  if (const auto gpu = meta.find("gpu")) {
    settings.device = gpu->string().substr(0, gpu->string().find(','));  // "NAME, 96 GB, ..."
  }
  return settings;
}

double percent_off(double predicted, double measured) {
  return 100 * (predicted / measured - 1);
}

}  // namespace

Validation validate_run(const RunValidationRequest& request, const HardwareCatalogue& hardware,
                        const ModelCatalogue& models, const StackCatalogue& stacks,
                        const DeviceModelMaker& make_models) {
  RunSettings settings = read_settings(request.folder);
  const Device device = hardware.device(request.device.empty() ? settings.device : request.device);
  const Model model = models.model(settings.model);
  const bool given_blocks = settings.num_gpu_blocks > 0 && !request.own_blocks;
  if (given_blocks) settings.flags.num_gpu_blocks_override = settings.num_gpu_blocks;
  settings.flags.kv_dtype = model.dtype;
  const ServingMemory memory = serving_memory(model, device, settings.plan, settings.flags);
  const SchedulerOptions options = scheduler_options(memory, settings.plan);
  const Stack stack = engine_stack(stacks.stack("vllm"), memory.flags);
  const std::unique_ptr<StepTimes> times =
      request.op_tables.empty()
          ? compose_steps({.model = model,
                           .plan = settings.plan,
                           .models = make_models(device, settings.plan),
                           .stack = stack,
                           .kv_dtype = model.dtype})
          : read_op_tables(request.op_tables, {.layers = static_cast<int64_t>(model.layers.size()),
                                               .tensor = settings.plan.tensor,
                                               .graph_sizes = stack.graph_sizes});

  const auto begin = std::chrono::steady_clock::now();
  const MeasuredRun run = read_run(request.folder);
  ReplayedRequests source(run.requests);
  Records records(run.times.size());
  const SimulationTotals totals = simulate({.replicas = {{.options = options, .times = times.get()}}}, source, records);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;

  ErrorTable errors;
  std::map<std::string, std::pair<double, double>> sums;  // predicted and measured
  double measured_end = 0;
  const auto add = [&](const char* metric, double predicted_s, double measured_s) {
    if (measured_s <= 0) return;
    const double ms = predicted_s * 1e3;
    errors.add(metric, {.measured = measured_s * 1e3, .predicted = ms, .low = ms, .high = ms});
    sums[metric].first += predicted_s;
    sums[metric].second += measured_s;
  };
  for (size_t id = 0; id < run.times.size(); ++id) {
    const MeasuredRequest& measured = run.times[id];
    const RequestRecord& record = records.by_id[id];
    measured_end = std::max(measured_end, measured.last_token_s);
    if (record.outcome == RequestOutcome::rejected) continue;
    add("ttft_ms", to_seconds(record.first_token - record.queued).value(), measured.first_token_s - measured.queued_s);
    add("e2e_ms", to_seconds(record.last_token - record.queued).value(), measured.last_token_s - measured.queued_s);
    if (record.output_tokens < 2) continue;
    const auto gaps = static_cast<double>(record.output_tokens - 1);
    add("tpot_ms", to_seconds(record.last_token - record.first_token).value() / gaps,
        (measured.last_token_s - measured.first_token_s) / gaps);
  }
  Validation result{.overall = errors.overall()};
  const double per_thousand = spent.count() / static_cast<double>(run.times.size()) * 1000;
  result.seconds_per_1000_rows = per_thousand;
  for (const auto& [name, summary] : errors.groups()) {
    result.groups.push_back({.name = name, .errors = summary, .seconds_per_1000_rows = per_thousand});
    const auto& [predicted, measured] = sums.at(name);
    result.notes.push_back(fmt::format("mean {}: {:+.2f}%", name, percent_off(predicted, measured)));
  }
  result.notes.push_back(
      fmt::format("last token: {:+.2f}%", percent_off(to_seconds(totals.end).value(), measured_end)));
  result.notes.push_back(fmt::format("{} preemptions, {} rejected, {} KV blocks ({})", totals.preemptions,
                                     totals.rejected, options.num_gpu_blocks,
                                     given_blocks ? "given" : "from first principles"));
  return result;
}

}  // namespace foretoken
