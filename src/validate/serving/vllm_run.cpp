#include "validate/serving/vllm_run.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/json.h"
#include "base/simulated_time.h"
#include "base/text.h"
#include "base/units.h"
#include "compose/engine_release.h"
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

constexpr Range<int64_t> sizes{.least = 1, .most = 1'000'000'000};

// What the run would be without the field: nothing to say about it.
bool is_off(const JsonView& value) {
  const Json& json = value.value();
  switch (json.kind()) {
    case Json::Kind::null:
      return true;
    case Json::Kind::boolean:
      return !value.boolean();
    case Json::Kind::integer:
    case Json::Kind::number:
      return json.number() == 0;
    case Json::Kind::string:
      return value.string().empty();
    case Json::Kind::array:
      return value.items().empty();
    case Json::Kind::object:
      return value.members().empty();
  }
  return false;
}

constexpr std::string_view read_arguments[] = {"model",
                                               "tensor_parallel_size",
                                               "pipeline_parallel_size",
                                               "data_parallel_size",
                                               "expert_parallel_size",
                                               "enable_expert_parallel",
                                               "all2all_backend",
                                               "max_num_seqs",
                                               "max_num_batched_tokens",
                                               "max_model_len",
                                               "dtype",
                                               "kv_cache_dtype",
                                               "quantization",
                                               "gpu_memory_utilization",
                                               "block_size",
                                               "num_gpu_blocks_override",
                                               "kv_cache_memory_bytes",
                                               "enforce_eager",
                                               "enable_prefix_caching",
                                               "enable_chunked_prefill",
                                               "async_scheduling",
                                               "long_prefill_token_threshold",
                                               "scheduler_reserve_full_isl",
                                               "scheduling_policy",
                                               "speculative_config",
                                               "interconnect_given"};

// Choose kernels or which steps are captured: simulated are those that vLLM takes by itself.
constexpr std::string_view kernel_arguments[] = {"attention_backend",
                                                 "attention_config",
                                                 "moe_backend",
                                                 "kernel_config",
                                                 "compilation_config",
                                                 "cudagraph_capture_sizes",
                                                 "cuda_graph_sizes",
                                                 "max_cudagraph_capture_size",
                                                 "max_seq_len_to_capture",
                                                 "optimization_level",
                                                 "disable_custom_all_reduce",
                                                 "disable_cascade_attn",
                                                 "disable_nccl_for_dp_synchronization",
                                                 "performance_mode"};

// Of no consequence for the time of a step and the order of requests: loading, names, logs, texts, processes.
constexpr std::string_view harmless_arguments[] = {"seed",
                                                   "stream_interval",
                                                   "tokenizer",
                                                   "tokenizer_mode",
                                                   "tokenizer_revision",
                                                   "skip_tokenizer_init",
                                                   "trust_remote_code",
                                                   "load_format",
                                                   "config_format",
                                                   "hf_config_path",
                                                   "hf_token",
                                                   "download_dir",
                                                   "safetensors_load_strategy",
                                                   "use_tqdm_on_load",
                                                   "pt_load_map_location",
                                                   "model_loader_extra_config",
                                                   "ignore_patterns",
                                                   "revision",
                                                   "code_revision",
                                                   "model_weights",
                                                   "model_impl",
                                                   "runner",
                                                   "convert",
                                                   "task",
                                                   "served_model_name",
                                                   "host",
                                                   "port",
                                                   "uvicorn_log_level",
                                                   "api_server_count",
                                                   "chat_template",
                                                   "disable_log_stats",
                                                   "disable_log_requests",
                                                   "enable_log_requests",
                                                   "aggregate_engine_logging",
                                                   "show_hidden_metrics_for_version",
                                                   "otlp_traces_endpoint",
                                                   "collect_detailed_traces",
                                                   "kv_cache_metrics",
                                                   "cudagraph_metrics",
                                                   "enable_mfu_metrics",
                                                   "enable_logging_iteration_details",
                                                   "profiler_config",
                                                   "generation_config",
                                                   "override_generation_config",
                                                   "max_logprobs",
                                                   "logprobs_mode",
                                                   "reasoning_parser",
                                                   "structured_outputs_config",
                                                   "guided_decoding_backend",
                                                   "limit_mm_per_prompt",
                                                   "mm_processor_kwargs",
                                                   "mm_processor_cache_gb",
                                                   "skip_mm_profiling",
                                                   "language_model_only",
                                                   "allowed_local_media_path",
                                                   "enable_sleep_mode",
                                                   "swap_space",
                                                   "device",
                                                   "worker_cls",
                                                   "worker_extension_cls",
                                                   "distributed_executor_backend",
                                                   "max_parallel_loading_workers",
                                                   "ray_workers_use_nsight",
                                                   "master_addr",
                                                   "master_port",
                                                   "nnodes",
                                                   "node_rank",
                                                   "data_parallel_rank",
                                                   "data_parallel_size_local",
                                                   "data_parallel_address",
                                                   "data_parallel_rpc_port",
                                                   "data_parallel_backend",
                                                   "prefix_caching_hash_algo",
                                                   "max_num_partial_prefills",
                                                   "max_long_partial_prefills",
                                                   "disable_hybrid_kv_cache_manager",
                                                   "disable_chunked_mm_input",
                                                   "calculate_kv_scales",
                                                   "kv_events_config",
                                                   "additional_config"};

// engine_kwargs first, then what the engine itself made of them.
class Settings {
 public:
  explicit Settings(const JsonView& meta) {
    parts_.push_back(meta.at("engine_kwargs"));
    if (const auto cache = meta.find("kv_cache")) parts_.push_back(*cache);
    if (const auto resolved = meta.find("resolved_excerpt")) {
      for (const char* part : {"parallel_config", "cache_config", "scheduler_config"}) {
        if (const auto found = resolved->find(part)) parts_.push_back(*found);
      }
    }
  }

  std::optional<JsonView> find(std::string_view name) const {
    for (const JsonView& part : parts_) {
      if (auto found = part.find(name)) return found;
    }
    return std::nullopt;
  }
  int64_t size(std::string_view name, int64_t otherwise) const {
    const auto found = find(name);
    return found ? found->integer(sizes) : otherwise;
  }
  int64_t size_or_none(std::string_view name) const {
    const auto found = find(name);
    return found ? found->integer({.least = 0, .most = sizes.most}) : 0;
  }
  bool is_on(std::string_view name, bool otherwise) const {
    const auto found = find(name);
    return found ? found->boolean() : otherwise;
  }
  std::string text(std::string_view name) const {
    const auto found = find(name);
    return found ? lower_case(found->string()) : std::string();
  }

  // Of engine_kwargs: what is not read and would change the run is refused, and so is what nobody knows.
  void check_rest(std::vector<std::string>& notes) const {
    const auto is_in = [](const auto& list, std::string_view name) {
      return std::find(std::begin(list), std::end(list), name) != std::end(list);
    };
    for (const auto& [name, value] : parts_.front().members()) {
      if (is_in(read_arguments, name) || is_in(harmless_arguments, name) || is_off(value)) continue;
      if (is_in(kernel_arguments, name)) {
        notes.push_back(
            fmt::format("meta.json: engine_kwargs.{} was not used: kernels are those that are usual", name));
        continue;
      }
      if (value.is_number() && value.number() == 1 && name.ends_with("_size")) continue;  // as good as none
      std::vector<std::string> known(std::begin(read_arguments), std::end(read_arguments));
      value.fail("a run without this engine argument: replays of measured runs do not simulate it",
                 nearest_name(name, known).value_or(""));
    }
  }

 private:
  std::vector<JsonView> parts_;
};

ParallelPlan read_plan(const Settings& settings) {
  ParallelPlan plan{.tensor = settings.size("tensor_parallel_size", 1),
                    .pipeline = settings.size("pipeline_parallel_size", 1),
                    .data = settings.size("data_parallel_size", 1),
                    .exchange = ExpertExchange::all_gather};  // vLLM's allgather_reducescatter
  if (settings.is_on("enable_expert_parallel", false)) plan.expert = plan.tensor * plan.data;
  if (const auto experts = settings.find("expert_parallel_size")) {
    const int64_t ranks = experts->integer(sizes);
    if (ranks != 1 && ranks != plan.tensor && ranks != plan.tensor * plan.data) {
      experts->fail(fmt::format("1, or all ranks that experts can be spread over: {}", plan.tensor * plan.data));
    }
    plan.expert = std::max(plan.expert, ranks);
  }
  if (const auto backend = settings.find("all2all_backend")) {
    const std::string name = lower_case(backend->string());
    if (name.starts_with("deepep") || name.starts_with("pplx") || name == "all_to_all") {
      plan.exchange = ExpertExchange::all_to_all;
      if (name == "deepep_high_throughput") plan.exchange_kernels = ExchangeKernels::normal;
      if (name == "deepep_low_latency") plan.exchange_kernels = ExchangeKernels::low_latency;
    } else if (name != "allgather_reducescatter" && name != "naive" && name != "auto") {
      backend->fail("allgather_reducescatter, deepep_high_throughput, deepep_low_latency or pplx");
    }
  }
  return plan;
}

void read_formats(const Settings& settings, VllmRun& run) {
  if (const std::string cache = settings.text("kv_cache_dtype"); !cache.empty() && cache != "auto") {
    run.kv_dtype = dtype_from_name(cache);
    if (!run.kv_dtype && cache.starts_with("fp8")) run.kv_dtype = dtype_from_name("fp8");  // fp8_e4m3, fp8_inc, ...
    if (!run.kv_dtype) {
      settings.find("kv_cache_dtype")->fail(fmt::format("auto or one of {}", fmt::join(dtype_names(), ", ")));
    }
  }
  constexpr std::string_view sixteen_bits[] = {"", "auto", "bfloat16", "bf16", "float16", "fp16", "half"};
  if (std::find(std::begin(sixteen_bits), std::end(sixteen_bits), settings.text("dtype")) == std::end(sixteen_bits)) {
    settings.find("dtype")->fail("auto, bfloat16 or float16: other activations are not simulated");
  }
  run.quantization = settings.text("quantization");
}

// A number with one of these units in a text: "15 GB/s" is 15e9 with {"gb/s", 1e9}.
std::optional<double> number_with_unit(std::string_view text,
                                       std::span<const std::pair<std::string_view, double>> units) {
  const std::string lower = lower_case(text);
  constexpr std::string_view digits = "0123456789.";
  for (size_t from = lower.find_first_of(digits); from != std::string::npos;) {
    const size_t to = std::min(lower.find_first_not_of(digits, from), lower.size());
    const size_t unit = std::min(lower.find_first_not_of(' ', to), lower.size());
    const auto value = parse_number(std::string_view(lower).substr(from, to - from));
    for (const auto& [name, factor] : units) {
      const size_t end = unit + name.size();
      const bool ends = end >= lower.size() || !std::isalpha(static_cast<unsigned char>(lower[end]));
      if (value && ends && std::string_view(lower).substr(unit).starts_with(name)) return *value * factor;
    }
    from = lower.find_first_of(digits, to);
  }
  return std::nullopt;
}

struct GivenLink {
  std::optional<double> bytes_per_second, seconds;
};

void read_link_text(std::string_view text, GivenLink& link) {
  constexpr std::pair<std::string_view, double> rates[] = {{"gb/s", 1e9}, {"gib/s", gibi}, {"mb/s", 1e6}};
  constexpr std::pair<std::string_view, double> times[] = {{"us", 1e-6}, {"ns", 1e-9}, {"ms", 1e-3}};
  if (const auto rate = number_with_unit(text, rates)) link.bytes_per_second = rate;
  if (const auto time = number_with_unit(text, times)) link.seconds = time;
}

// Units stand in names: bandwidth_gb_s, latency_us.
void read_link_member(std::string_view name, const JsonView& value, GivenLink& link) {
  if (value.is(Json::Kind::string)) return read_link_text(value.string(), link);
  if (!value.is_number()) return;
  const std::string lower = lower_case(name);
  const double number = value.number({.least = 0, .most = 1e12});
  if (lower.find("bandwidth") != std::string::npos || lower.find("bw") != std::string::npos) {
    const bool binary = lower == "link_bw" || lower.find("gib") != std::string::npos;
    link.bytes_per_second = number * (binary ? gibi : 1e9);
  }
  if (lower.find("latency") != std::string::npos) {
    constexpr std::pair<std::string_view, double> endings[] = {{"_us", 1e-6}, {"_ns", 1e-9}, {"_ms", 1e-3}, {"_s", 1}};
    for (const auto& [ending, factor] : endings) {
      if (lower.ends_with(ending)) link.seconds = number * factor;
    }
    if (lower == "link_latency") link.seconds = number * 1e-9;
  }
}

void read_link(const JsonView& meta, VllmRun& run) {
  std::optional<JsonView> given = meta.find("interconnect_given");
  for (const char* part : {"hardware", "engine_kwargs"}) {
    if (const auto found = meta.find(part); !given && found) given = found->find("interconnect_given");
  }
  if (!given) return;
  GivenLink link;
  if (given->is(Json::Kind::string)) read_link_text(given->string(), link);
  if (given->is(Json::Kind::object)) {
    for (const auto& [name, value] : given->members()) read_link_member(name, value, link);
  }
  if (!link.bytes_per_second || *link.bytes_per_second <= 0) {
    run.notes.emplace_back(
        "meta.json: interconnect_given was not used: it has no readable bandwidth. Give bandwidth_gb_s and latency_us, "
        "or a text such as \"15 GB/s, 10 us\"");
    return;
  }
  constexpr double usual_latency = 10e-6;  // as collective.h starts
  if (!link.seconds) {
    run.notes.emplace_back("meta.json: interconnect_given gives no latency; 10 us a hop was assumed");
  }
  run.link = {.latency = Seconds(link.seconds.value_or(usual_latency)),
              .bandwidth = BytesPerSecond(*link.bytes_per_second)};
}

// How many drafts were accepted stands in the config, or as the mean tokens of a verification beside engine_kwargs.
void read_speculation(const JsonView& meta, const Settings& settings, VllmRun& run) {
  const auto config = settings.find("speculative_config");
  if (!config || is_off(*config)) return;
  const std::string text = config->is(Json::Kind::string) ? config->string() : config->value().dump(0);
  SpeculativeConfig speculation = parse_speculative_config(text, "meta.json: engine_kwargs.speculative_config");
  if (const auto length = meta.find("acceptance_length"); length && !speculation.acceptance) {
    const double tokens = length->number({1, static_cast<double>(speculation.num_speculative_tokens + 1)});
    speculation.acceptance = Acceptance::of_mean_length(tokens, speculation.num_speculative_tokens);
  }
  if (!speculation.acceptance) {
    config->fail(
        "how many drafts were accepted: synthetic_acceptance_length in it, or acceptance_length (mean tokens "
        "of a verification) beside engine_kwargs");
  }
  run.speculation = std::move(speculation);
}

void read_settings(const fs::path& folder, VllmRun& run) {
  const fs::path file = folder / "meta.json";
  const Json document = read_json_file(file);
  const JsonView meta(document, file.string());
  const Settings settings(meta);
  run.model = meta.at("model").string();
  const auto version = meta.find("vllm_version");
  const std::string said = version ? version->string() : "0.19";
  const ReleaseBehavior& release = release_behavior("vllm", said);
  run.flags.engine = engine_of_version("vllm", said);
  run.scheduler = release.scheduler;
  run.stack = release.stack;
  run.flags.max_num_seqs = settings.size("max_num_seqs", 0);
  run.flags.max_num_batched_tokens = settings.size("max_num_batched_tokens", 0);
  if (const auto longest = meta.at("engine_kwargs").find("max_model_len")) {
    run.flags.max_model_len = longest->integer(sizes);
  }
  if (const auto share = settings.find("gpu_memory_utilization")) run.flags.memory_fraction = share->number({0.01, 1});
  run.flags.block_size = settings.size("block_size", 0);
  run.flags.num_gpu_blocks_override = settings.size("num_gpu_blocks_override", 0);
  run.flags.kv_cache_memory_bytes = settings.size("kv_cache_memory_bytes", 0);
  run.flags.enforce_eager = settings.is_on("enforce_eager", false);
  run.scheduling = {.enable_chunked_prefill = settings.is_on("enable_chunked_prefill", true),
                    .enable_prefix_caching = settings.is_on("enable_prefix_caching", true),
                    .async_scheduling = settings.is_on("async_scheduling", release.schedules_ahead),
                    .scheduler_reserve_full_isl = settings.is_on("scheduler_reserve_full_isl", true),
                    .long_prefill_token_threshold = settings.size_or_none("long_prefill_token_threshold")};
  if (const std::string policy = settings.text("scheduling_policy"); !policy.empty() && policy != "fcfs") {
    settings.find("scheduling_policy")->fail("fcfs: requests of a run have no priorities");
  }
  run.plan = read_plan(settings);
  read_formats(settings, run);
  read_speculation(meta, settings, run);
  read_link(meta, run);
  settings.check_rest(run.notes);
  // vLLM's client adds up the blocks of all data-parallel ranks (v1/engine/utils.py, wait_for_engine_startup).
  if (const auto cache = meta.find("kv_cache")) {
    if (const auto blocks = cache->find("num_gpu_blocks")) run.num_gpu_blocks = blocks->integer(sizes) / run.plan.data;
  }
  if (const auto machine = meta.find("hardware")) run.device = machine->at("device_name").string();
  if (const auto gpu = meta.find("gpu")) {
    run.device = gpu->string().substr(0, gpu->string().find(','));  // "NAME, 96 GB, ..."
  }
}

void read_requests(const fs::path& folder, VllmRun& run) {
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

double VllmRun::end_s() const {
  double end = 0;
  for (const VllmRequestTimes& request : times) end = std::max(end, request.last_token_s);
  return end;
}

VllmRun read_vllm_run(const fs::path& folder) {
  VllmRun run;
  read_settings(folder, run);
  read_requests(folder, run);
  return run;
}

}  // namespace foretoken
