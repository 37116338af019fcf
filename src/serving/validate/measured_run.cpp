#include "serving/validate/measured_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/csv.h"
#include "base/error.h"
#include "base/json.h"
#include "base/simulated_time.h"
#include "serving/load/trace.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

// Requests with their prefixes by id; empty without such a file.
std::vector<Request> read_prefixes(const fs::path& folder) {
  std::vector<Request> prefixes;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("workload") && name.find(".csv") != std::string::npos) files.push_back(entry.path());
  }
  if (files.empty()) return prefixes;
  const std::unique_ptr<RequestSource> workload = open_trace(*std::min_element(files.begin(), files.end()));
  while (workload->next_arrival()) prefixes.push_back(workload->next());
  return prefixes;
}

void read_settings(const fs::path& folder, MeasuredRun& run) {
  const fs::path file = folder / "meta.json";
  const Json document = read_json_file(file);
  const JsonView meta(document, file.string());
  const JsonView engine = meta.at("engine_kwargs");
  constexpr Range<int64_t> sizes{.least = 1, .most = 1'000'000'000};
  run.model = meta.at("model").string();
  run.flags.engine = "vllm-0.19";
  if (const auto seqs = engine.find("max_num_seqs")) run.flags.max_num_seqs = seqs->integer(sizes);
  if (const auto tokens = engine.find("max_num_batched_tokens")) {
    run.flags.max_num_batched_tokens = tokens->integer(sizes);
  }
  if (const auto longest = engine.find("max_model_len")) run.flags.max_model_len = longest->integer(sizes);
  if (const auto tensor = engine.find("tensor_parallel_size")) run.plan.tensor = tensor->integer(sizes);
  if (const auto cache = meta.find("kv_cache")) run.num_gpu_blocks = cache->at("num_gpu_blocks").integer(sizes);
  if (const auto machine = meta.find("hardware")) run.device = machine->at("device_name").string();
  if (const auto gpu = meta.find("gpu")) {
    run.device = gpu->string().substr(0, gpu->string().find(','));  // "NAME, 96 GB, ..."
  }
}

void read_requests(const fs::path& folder, MeasuredRun& run) {
  constexpr Range<double> moments{.least = 0, .most = 8e6};
  std::vector<Request> prefixes = read_prefixes(fs::absolute(folder / "..").lexically_normal());
  CsvReader csv(folder / "requests.csv");
  const size_t arrival = csv.column("arrival_client_s"), queued = csv.column("queued_s");
  const size_t first = csv.column("first_token_s"), last = csv.column("last_token_s");
  const size_t input = csv.column("input_tokens"), output = csv.column("output_tokens");
  while (csv.next()) {
    const size_t id = run.times.size();
    run.times.push_back({csv.number(queued, moments), csv.number(first, moments), csv.number(last, moments)});
    Request request{.id = static_cast<int64_t>(id),
                    .arrival = to_picoseconds(Seconds(csv.number(arrival, moments))),
                    .input_tokens = csv.integer(input, {1, 100'000'000}),
                    .output_tokens = csv.integer(output, {1, 100'000'000})};
    if (id < prefixes.size()) {
      request.prefix_block_tokens = prefixes[id].prefix_block_tokens;
      request.prefix_blocks = std::move(prefixes[id].prefix_blocks);
    }
    run.requests.push_back(std::move(request));
  }
  if (run.requests.empty()) {
    throw InputError({.source = csv.source(), .value = "no row", .expected = "at least one request"});
  }
  std::stable_sort(run.requests.begin(), run.requests.end(),
                   [](const Request& a, const Request& b) { return a.arrival < b.arrival; });
}

}  // namespace

double MeasuredRun::end_s() const {
  double end = 0;
  for (const MeasuredRequest& request : times) end = std::max(end, request.last_token_s);
  return end;
}

MeasuredRun read_measured_run(const fs::path& folder) {
  MeasuredRun run;
  read_settings(folder, run);
  read_requests(folder, run);
  return run;
}

}  // namespace foretoken
