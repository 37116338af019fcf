#include "validate/serving/serving_case.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "compose/engine_release.h"
#include "hardware/generation.h"
#include "serving/engine/engine_setup.h"
#include "serving/speculation/draft_method.h"

namespace foretoken {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Numbers in free text, each right after its label: 0 where the label is not there or no number follows it. One that
// makes no sense is a reason to leave the row out.
class LabelledNumbers {
 public:
  explicit LabelledNumbers(std::string_view text) : text_(text) {}

  double number(std::string_view label, Range<double> allowed) {
    const std::string_view digits = digits_after(label);
    if (digits.empty()) return 0;
    const std::optional<double> value = parse_number(digits);
    if (value && allowed.holds(*value)) return *value;
    complain(label, digits, fmt::format("a number from {} to {}", allowed.least, allowed.most));
    return 0;
  }

  int64_t count(std::string_view label, Range<int64_t> allowed) {
    const std::string_view digits = digits_after(label);
    if (digits.empty()) return 0;
    const std::optional<int64_t> value = parse_integer(digits);
    if (value && allowed.holds(*value)) return *value;
    complain(label, digits, fmt::format("a whole number from {} to {}", allowed.least, allowed.most));
    return 0;
  }

  const std::string& problem() const { return problem_; }  // the first; empty: none

 private:
  std::string_view digits_after(std::string_view label) const {
    const size_t at = text_.find(label);
    if (at == std::string_view::npos) return {};
    const size_t begin = at + label.size();
    const size_t end = std::min(text_.find_first_not_of("0123456789.", begin), text_.size());
    std::string_view digits = text_.substr(begin, end - begin);
    while (digits.ends_with('.')) digits.remove_suffix(1);  // the sentence's
    return digits;
  }

  void complain(std::string_view label, std::string_view digits, const std::string& expected) {
    if (problem_.empty()) problem_ = fmt::format("{}{}: expected {}", label, printable(digits), expected);
  }

  std::string_view text_;
  std::string problem_;
};

constexpr Range<int64_t> some_ranks{.least = 1, .most = 65'536};
constexpr Range<int64_t> some_tokens{.least = 1, .most = 100'000'000};
constexpr Range<double> share{.least = 0.01, .most = 1};

// "prefill 1x(tp4,dp1,ep4) decode 4x(tp1,dp8,ep8)": the workers after a label. Data-parallel ranks spread the experts
// over all of them; whether each expert is cut instead (ep1) makes no difference here.
std::optional<CasePool> pool_after(std::string_view layout, std::string_view label) {
  const size_t at = layout.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view workers = layout.substr(at, layout.find(')', at) - at);
  LabelledNumbers numbers(workers);
  const auto number = [&](std::string_view name) { return numbers.count(name, some_ranks); };
  const int64_t count = number(label), tensor = number("(tp"), data = number("dp"), expert = number("ep");
  if (count < 1 || tensor < 1 || data < 1 || expert < 1) return std::nullopt;
  CasePool pool{.replicas = count, .plan = {.tensor = tensor, .expert = expert}};
  if (data > 1) {
    pool.plan.data = data;
    pool.plan.expert = tensor * data;
  }
  return pool;
}

// Versions of harnesses and of Dynamo, which are no releases of its own, say nothing.
std::string_view trtllm_stack(std::string_view version) {
  const std::optional<ReleaseNumber> number = release_number_from(version);
  return number && number->major == 1 ? release_behavior("trtllm", version).stack : "trtllm-1.1";
}

// How wide weights are, or how they are stored; which of the formats of that width is the publisher's choice.
bool is_weight_dtype(std::string_view dtype) {
  return dtype == "fp8" || dtype == "fp4" || scheme_from_name(dtype).has_value();
}

// A dump of InferenceX counts the ranks of some colocated servers twice: the same measurements stand there under N
// tensor ranks and under N of them times N data-parallel ones; and attention that is data parallel over N ranks, which
// hold the experts together, under N times N of those.
void undo_squared_ranks(ParallelPlan& plan, int64_t& replicas) {
  if (replicas == 1) return;
  if (plan.tensor == replicas) {
    plan.expert = plan.expert > 1 ? plan.tensor : 1;
    replicas = 1;
  } else if (plan.tensor == 1 && plan.expert > 1 && replicas == plan.expert * plan.expert) {
    replicas = plan.expert;
  }
}

// Why a row is not to be compared with, in the words of its column `extra`; empty where nothing speaks against it.
std::string doubt_of(std::string_view extra) {
  if (has(extra, "doubtful")) {
    return fmt::format("the source calls this row doubtful: {}", printable(extra.substr(0, extra.find(';'))));
  }
  if (has(extra, "does not add up")) {
    return "the row's figures contradict each other: throughput x latency does not match the concurrency";
  }
  return has(extra, "WIP study") ? "unfinished study: TTFT falls with longer prompts and higher load" : "";
}

struct Statistic {
  std::string_view metric, statistic;
  double (*of)(const ServingMetrics&);
};
constexpr Statistic statistics[] = {
    {"ttft_ms", "mean", [](const ServingMetrics& m) { return m.ttft.mean_ms; }},
    {"ttft_ms", "median", [](const ServingMetrics& m) { return m.ttft.median_ms; }},
    {"tpot_ms", "mean ITL", [](const ServingMetrics& m) { return m.itl.mean_ms; }},
    {"tpot_ms", "mean", [](const ServingMetrics& m) { return m.tpot.mean_ms; }},
    {"tpot_ms", "median", [](const ServingMetrics& m) { return m.tpot.median_ms; }},
    {"e2e_ms", "mean", [](const ServingMetrics& m) { return m.e2el.mean_ms; }},
    {"e2e_ms", "median", [](const ServingMetrics& m) { return m.e2el.median_ms; }},
    {"req_s", "", [](const ServingMetrics& m) { return m.request_throughput; }},
    {"out_tok_s", "", [](const ServingMetrics& m) { return m.output_throughput; }},
};

}  // namespace

ServingCaseReader::ServingCaseReader(const std::filesystem::path& file, const HardwareCatalogue& hardware,
                                     PublicFacts facts)
    : ServingCaseReader(CsvReader(file), hardware, std::move(facts)) {}

ServingCaseReader::ServingCaseReader(CsvReader csv, const HardwareCatalogue& hardware, PublicFacts facts)
    : csv_(std::move(csv)), hardware_(hardware), facts_(std::move(facts)) {
  for (const char* name : {"gpu", "model", "engine", "mode", "isl", "osl"}) csv_.column(name);
}

std::string_view ServingCaseReader::text(std::string_view column) const {
  const auto found = csv_.find_column(column);
  return found ? csv_.cell(*found) : std::string_view();
}

int64_t ServingCaseReader::count(std::string_view column, int64_t fallback) const {
  const auto found = csv_.find_column(column);
  return found && !csv_.cell(*found).empty() ? csv_.integer(*found, {0, 1'000'000'000}) : fallback;
}

double ServingCaseReader::number(std::string_view column) const {
  const auto found = csv_.find_column(column);
  return found && !csv_.cell(*found).empty() ? csv_.number(*found, {0, 1e12}) : 0;
}

std::optional<ServingCase> ServingCaseReader::read(std::string& why) const {
  ServingCase result{.row = csv_.row(),
                     .id = std::string(text("case_id")),
                     .tier = std::string(text("tier")),
                     .gpu = std::string(text("gpu")),
                     .model = std::string(text("model")),
                     .engine = std::string(text("engine"))};
  why = doubt_of(text("extra"));
  if (!why.empty()) return std::nullopt;
  if (!read_layout(result, why) || !read_engine(result, why) || !read_load(result, why)) return std::nullopt;
  read_measured(result);
  if (result.measured.empty()) {
    why = "no measured value";
    return std::nullopt;
  }
  why = seats_contradiction(result);
  if (!why.empty()) return std::nullopt;
  return result;
}

std::string ServingCaseReader::seats_contradiction(const ServingCase& point) const {
  const int64_t seats = point.flags.max_num_seqs, clients = point.load.max_concurrency;
  if (seats == 0 || clients <= seats * point.pool.replicas || point.prefill) return {};
  const double service_ms = number("tpot_ms") * static_cast<double>(count("osl", 0));
  const double wait_ms =
      service_ms * (static_cast<double>(clients) / static_cast<double>(seats * point.pool.replicas) - 1);
  if (number("ttft_ms") == 0 || number("ttft_ms") >= 0.25 * wait_ms) return {};
  return fmt::format(
      "the row's figures contradict each other: only {} of {} requests run at once, so the others would wait {:.0f} "
      "s, but the TTFT is far shorter",
      seats * point.pool.replicas, clients, 1e-3 * wait_ms);
}

std::string ServingCaseReader::options_text() const {
  std::string flags(text("engine_flags"));
  if (text("mode") == "disagg") return flags;
  const auto is_meant = [&](const PublicRecipe& recipe) {
    return recipe.gpus.empty() || std::any_of(recipe.gpus.begin(), recipe.gpus.end(),
                                              [&](const std::string& gpu) { return text("gpu").starts_with(gpu); });
  };
  for (const PublicRecipe& recipe : facts_.recipes) {
    const std::string_view engine = text("engine");
    // "vllm", or with its release: "vLLM 0.9.0".
    const bool same_engine = engine == recipe.engine || engine.starts_with(recipe.engine + " ");
    if (!has(text("source"), recipe.benchmark) || !same_engine || !has(text("model"), recipe.model) ||
        (!recipe.generation.empty() && recipe.generation != generation()) ||
        (!recipe.weights.empty() && recipe.weights != text("weight_dtype")) || !has(text("arrival"), recipe.arrival) ||
        (recipe.tensor > 0 && recipe.tensor != count("tp", 0)) ||
        (recipe.expert > 0 && recipe.expert != count("ep", 0)) || !text("engine_version").starts_with(recipe.version) ||
        (!recipe.until.empty() && text("date") >= recipe.until) || !is_meant(recipe)) {
      continue;
    }
    if (recipe.replaces || !recipe.since.empty()) {
      if (text("date") >= recipe.since) flags = recipe.flags;
    } else if (flags.empty() || recipe.adds) {
      flags.append(flags.empty() ? "" : "; ").append(recipe.flags);
    }
  }
  return flags;
}

void ServingCaseReader::read_worker_limits(ServingCase& result) const {
  for (const WorkerLimits& known : facts_.workers) {
    if (known.engine != text("engine") || !has(text("source"), known.benchmark) || !has(text("model"), known.model) ||
        !text("gpu").starts_with(known.gpu) || known.weights != text("weight_dtype") ||
        known.input != count("isl", 0) || known.output != count("osl", 0) ||
        known.prefill_workers != result.prefill->replicas || known.decode_workers != result.pool.replicas ||
        known.decode_ranks != engine_devices(result.pool.plan) || known.attends_apart != (result.pool.plan.data > 1)) {
      continue;
    }
    const auto found = known.decode_seats.find(count("concurrency", 0));
    if (found == known.decode_seats.end()) continue;
    result.decode_seats = found->second;
    result.prefill_seats = known.prefill_seats;
    result.prefill_tokens = known.prefill_tokens;
    result.prefill_memory = known.prefill_memory;
    result.decode_memory = known.decode_memory;
    result.decode_graphs = known.decode_graphs;
    result.stream_interval = known.stream_interval;
    return;
  }
}

std::string ServingCaseReader::generation() const {
  const std::string_view gpu = text("gpu");
  const auto known = generations_.find(gpu);
  if (known != generations_.end()) return known->second;
  std::string title;
  try {
    const GpuGeneration* const found = find_generation(generation_of(hardware_.device(std::string(gpu))));
    if (found != nullptr) title = found->title;
  } catch (const InputError&) {  // told where the row is simulated
  }
  return generations_.emplace(gpu, std::move(title)).first->second;
}

bool ServingCaseReader::read_layout(ServingCase& result, std::string& why) const {
  if (text("mode") == "disagg") {
    const std::string_view layout = text("disagg_layout");
    result.prefill = pool_after(layout, "prefill ");
    const std::optional<CasePool> decode = pool_after(layout, "decode ");
    if (!result.prefill || !decode) {
      why = fmt::format("a layout of workers that is not understood: {}", printable(layout));
      return false;
    }
    result.pool = *decode;
    read_worker_limits(result);
    return true;
  }
  const std::string flags = options_text();
  LabelledNumbers published(flags);
  const int64_t tensor = published.count("tensor parallel ", some_ranks);
  const int64_t pipeline = std::max<int64_t>(1, published.count("pipeline parallel ", some_ranks));
  if (text("tp").empty()) {
    result.devices = count("num_gpus", 0);
    why = result.devices > 0 ? "" : "neither a parallel layout nor the number of devices is given";
    if (result.devices == 0) return false;
    if (tensor == 0 || result.devices % (tensor * pipeline) != 0) return true;
    const bool attends_apart = has(flags, "attention DP on");
    result.pool = {.replicas = result.devices / (tensor * pipeline),
                   .plan = {.tensor = attends_apart ? 1 : tensor,
                            .pipeline = pipeline,
                            .data = attends_apart ? tensor : 1,
                            .expert = attends_apart ? tensor : 1,
                            .exchange = ExpertExchange::all_gather}};
    result.devices = 0;
    return true;
  }
  const auto ranks = [&](std::string_view column) { return std::max<int64_t>(1, count(column, 1)); };
  const int64_t most = std::max({ranks("tp"), ranks("pp"), ranks("ep"), ranks("dp")});
  if (!some_ranks.holds(most)) {
    why = fmt::format("{} ranks: expected at most {}", most, some_ranks.most);
    return false;
  }
  ParallelPlan& plan = result.pool.plan;
  plan = {.tensor = ranks("tp"), .pipeline = ranks("pp"), .expert = ranks("ep")};
  result.pool.replicas = ranks("dp");
  if (has(text("source"), "InferenceX")) undo_squared_ranks(plan, result.pool.replicas);
  if (has(flags, "expert parallel flag on")) plan.expert = std::max(plan.expert, plan.tensor);
  if (has(flags, "attention DP on") && plan.tensor > 1) {  // each rank attends to requests of its own
    plan.data = plan.expert = plan.tensor;
    plan.tensor = 1;
    plan.exchange = ExpertExchange::all_gather;
  } else if (plan.expert > plan.tensor) {  // data-parallel ranks share the experts
    plan.data = plan.expert / plan.tensor;
    const bool sends = has(flags, "expert exchange deepep") || has(flags, "expert exchange megamoe");
    plan.exchange = sends ? ExpertExchange::all_to_all : ExpertExchange::all_gather;
    if (plan.expert % plan.tensor != 0 || result.pool.replicas % plan.data != 0) {
      why = fmt::format("experts over {} ranks: expected a multiple of the {} tensor ranks that divides all of them",
                        plan.expert, plan.tensor);
      return false;
    }
    result.pool.replicas /= plan.data;
  }
  return true;
}

// Where it was not recorded whether an engine drafted, it did not: such rows are for trends only (tier D).
bool ServingCaseReader::read_drafts(ServingCase& result, std::string_view flags, std::string& why) const {
  LabelledNumbers numbers(flags);
  constexpr std::string_view of_layer = "MTP speculative decoding, ";
  const std::string method = lower_case(text("spec_method"));
  if (has(flags, of_layer)) {
    result.draft_method = "mtp";
    result.drafts = numbers.count(of_layer, {.least = 1, .most = 64});
  } else if (!method.empty()) {
    result.draft_method = method == "nextn" ? "mtp" : method;
    result.drafts = count("spec_steps", 0);
    const int64_t verified = count("spec_draft_tokens", 0);  // the token before the drafts included
    const int64_t block = draft_method(result.draft_method).block_drafts;
    if (block > 0) {
      result.drafts = verified > 1 ? verified - 1 : block;
      for (const BundledDrafter& known : bundled_drafters()) {
        if (verified == 0 && known.method == method && has(result.model, known.model)) result.drafts = known.drafts;
      }
    }
    if (result.drafts == 0) {
      why = fmt::format("{} without the number of drafts", printable(method));
      return false;
    }
  }
  result.acceptance_length = number("accept_length");
  result.acceptance_is_forced = has(text("extra"), "SGLANG_SIMULATE_ACC_LEN");
  if (has(text("length_spec"), "random tokens")) result.load.texts = PromptTexts::random;
  why = numbers.problem();
  return why.empty();
}

bool ServingCaseReader::read_engine(ServingCase& result, std::string& why) const {
  const std::string flags = options_text();
  LabelledNumbers numbers(flags);
  if (!read_drafts(result, flags, why)) return false;
  result.weight_dtype = text("weight_dtype");
  if (!is_weight_dtype(result.weight_dtype)) {
    why = fmt::format("no such weight type: {}", printable(result.weight_dtype));
    return false;
  }
  if (has(flags, "experts by marlin")) result.expert_dtype = "int4_wo";
  if (has(flags, "experts with mxfp8 activations")) result.expert_dtype = "mxfp4_mxfp8";
  result.kv_dtype = text("kv_dtype");
  if (result.kv_dtype.empty() && has(flags, "kv fp8")) result.kv_dtype = "fp8";
  const bool quantized = result.weight_dtype != "bf16" && result.weight_dtype != "fp16";
  // NVIDIA's lab did not record how many tokens a step may hold; assumed is what its runs agree with: vLLM's default
  // where no server of its own asks (as inside Dynamo), and of 1k, 2k, 4k and 8k the one that TensorRT-LLM's decodes
  // fit.
  const bool from_lab = text("engine_flags").empty() && has(text("source"), "NVIDIA-lab");
  EngineFlags& engine = result.flags;
  if (result.engine == "vllm" || result.engine.starts_with("vLLM ")) {
    const std::string version(result.engine.starts_with("vLLM ") ? std::string_view(result.engine).substr(5)
                                                                 : text("engine_version"));
    const ReleaseBehavior& release = release_behavior("vllm", version);
    engine.engine = engine_of_version("vllm", version);
    result.scheduler = release.scheduler;
    engine.memory_fraction = numbers.number("gpu-mem-util ", share);
    engine.max_num_batched_tokens = has(flags, "max-num-batched-tokens = 2 isl")
                                        ? 2 * count("isl", 0)
                                        : numbers.count("max-num-batched-tokens ", some_tokens);
    engine.max_cudagraph_capture_size = numbers.count("max-cudagraph-capture-size ", some_tokens);
    if (from_lab) engine.max_num_batched_tokens = 2048;
    engine.max_num_seqs = has(flags, "max-num-seqs = concurrency") ? count("concurrency", 0)
                                                                   : numbers.count("max-num-seqs ", some_tokens);
    engine.block_size = numbers.count("block size ", some_tokens);
    // Several decode steps are planned at once, and requests that arrive meanwhile wait for the next plan.
    result.receive_interval = std::max<int64_t>(1, numbers.count("num-scheduler-steps ", some_tokens));
    result.prefix_caching = !has(flags, "prefix caching off");
    const bool fused = has(flags, "full-decode-only") && has(flags, "allreduce+quant fusion");
    result.stack = fused ? "vllm-0.10-fused" : release.stack;
    if (release.stack == "vllm" && has(flags, "experts by triton")) result.stack = "vllm-triton-experts";
    if (release.stack == "vllm" && has(flags, "fp32 products in TF32")) result.stack = "vllm-tf32";
    result.async_scheduling = release.schedules_ahead || has(flags, "async-scheduling on");
  } else if (result.engine.starts_with("trtllm")) {
    engine.engine = "trtllm";
    result.stack = trtllm_stack(text("engine_version"));
    if (has(result.engine, "Triton backend") || has(flags, "TensorRT engine")) result.stack = "trtllm-engine";
    result.scheduler = has(flags, "max-utilization") || has(flags, "max_util") ? "trtllm_max_utilization" : "trtllm";
    engine.memory_fraction = numbers.number("KV fraction ", share);
    if (engine.memory_fraction == 0) engine.memory_fraction = numbers.number("fraction for KV ", share);
    engine.max_num_batched_tokens = numbers.count("max_num_tokens ", some_tokens);
    if (from_lab) engine.max_num_batched_tokens = 4096;
    engine.max_num_seqs = numbers.count("max batch ", some_tokens);
    if (engine.max_num_batched_tokens > 0) {  // decodes take a token each
      engine.max_num_seqs = std::min(engine.max_num_seqs, engine.max_num_batched_tokens);
    }
    if (!has(flags, "for 1k/1k with TP<8 batch_wait") ||
        (count("isl", 0) == 1024 && count("osl", 0) == 1024 && result.pool.plan.tensor < 8)) {
      result.batch_wait_timeout_iters = numbers.count("batch_wait_timeout_iters ", {.least = 0, .most = 1'000'000});
      result.batch_wait_max_tokens_ratio = numbers.number("batch_wait_max_tokens_ratio ", {.least = 0, .most = 1});
    }
    // Ranks wait for prompts of all others before they start theirs: simulated as a wait of each.
    constexpr std::string_view balanced = "prompts of all ranks, at most ";
    if (const int64_t steps = numbers.count(balanced, some_tokens); steps > 0 && result.pool.plan.data > 1) {
      result.batch_wait_timeout_iters = steps;
      result.batch_wait_max_tokens_ratio = 1;
    }
    if (quantized && result.kv_dtype.empty()) result.kv_dtype = "fp8";  // its quantized engines keep the cache in fp8
  } else if (result.engine == "sglang") {
    engine.engine = result.scheduler = "sglang";
    std::string_view version = text("engine_version");
    for (const SglangBuild& build : sglang_builds()) {
      const bool is_it = build.version.empty() ? version.empty() : has(version, build.version);
      if (!is_it || !has(result.model, build.model)) continue;
      version = build.release;
      break;
    }
    result.stack = has(flags, "expert exchange megamoe") ? sglang_mega_moe_stack
                   : result.drafts > 0                   ? release_behavior("sglang", version).stack_with_drafts
                                                         : release_behavior("sglang", version).stack;
    engine.memory_fraction = numbers.number("mem-fraction-static ", share);
    engine.max_num_batched_tokens = numbers.count("chunked-prefill-size ", some_tokens);
    engine.max_num_seqs = has(flags, "max-running-requests = concurrency")
                              ? count("concurrency", 0)
                              : numbers.count("max-running-requests ", some_tokens);
    if (has(flags, " a rank (")) {  // rows divide what the engine is told
      engine.max_num_batched_tokens *= lock_step_ranks(result.pool.plan);
      engine.max_num_seqs *= lock_step_ranks(result.pool.plan);
    }
    result.prefix_caching = !has(flags, "radix cache off");
    result.receive_interval = std::max<int64_t>(1, numbers.count("scheduler-recv-interval ", some_tokens));
    result.stream_interval = std::max(result.stream_interval, numbers.count("stream-interval ", some_tokens));
    if (const int64_t longer = numbers.count("from concurrency 16 on ", some_tokens); count("concurrency", 0) >= 16) {
      result.receive_interval = std::max(result.receive_interval, longer);
    }
  } else {
    why = fmt::format("an engine that is not simulated: {}", printable(result.engine));
    return false;
  }
  why = numbers.problem();
  return why.empty();
}

bool ServingCaseReader::read_load(ServingCase& result, std::string& why) const {
  LoadSpec& load = result.load;
  load.max_concurrency = count("concurrency", 0);
  const bool open = load.max_concurrency == 0 && !text("rate_rps").empty() && !has(text("arrival"), "t=0");
  if (open) load.arrivals.rate = number("rate_rps");
  const int64_t each = has(options_text(), "5 prompts per concurrent request") ? 5 : 10;
  const int64_t usual = load.max_concurrency > 0 ? each * load.max_concurrency : 1000;
  load.num_prompts = count("num_requests", usual);
  return read_lengths(result, why);
}

bool ServingCaseReader::read_lengths(ServingCase& result, std::string& why) const {
  const std::string_view lengths = text("length_spec");
  const int64_t input = count("isl", 0), output = count("osl", 0);
  LabelledNumbers numbers(lengths);
  const auto room_for = [&](int64_t most_input, int64_t most_output) {
    result.flags.max_model_len = most_input + most_output + 256;  // as recipes set it, with room for special tokens
    return true;
  };
  if (has(lengths, "uniform in 1..")) {
    result.load.input_range = {1, numbers.count("uniform in 1..", some_tokens)};
    result.load.output_range = {1, numbers.count("(input) and 1..", some_tokens)};
    why = numbers.problem();
    if (why.empty() && result.load.output_range->most == 0) why = "lengths that are not understood";
    return why.empty() && room_for(result.load.input_range->most, result.load.output_range->most);
  }
  if (lengths.starts_with("ShareGPT") && input > 0 && output > 0) {
    result.load.dataset = Dataset::lognormal;
    result.load.input_law = with_mean_after_cut(sharegpt_prompts(static_cast<double>(input)));
    result.load.output_law = with_mean_after_cut(sharegpt_answers(static_cast<double>(output)));
    return room_for(result.load.input_law->most, result.load.output_law->most);
  }
  if (input > 0 && output > 0 && lengths.starts_with("fixed")) {
    for (const UniformLengths& table : uniform_lengths_of_tables()) {
      if (!has(text("source"), table.source) || !has(result.model, table.model) || has(result.model, table.except)) {
        continue;
      }
      result.load.input_range = {1, input};
      result.load.output_range = {1, output};
      return room_for(input, output);
    }
  }
  if (input > 0 && output > 0) {
    const bool varied = has(lengths, "[0.8,1.0]");
    result.lengths_are_assumed = has(lengths, "fixed length (assumed)");
    const auto range = [&](int64_t nominal) {
      return LengthRange{varied ? std::max<int64_t>(1, nominal * 4 / 5) : nominal, nominal};
    };
    result.load.input_range = range(input);
    result.load.output_range = range(output);
    return room_for(input, output);
  }
  LabelledNumbers totals(text("extra"));
  if (constexpr std::string_view label = "trace "; lengths.starts_with(label)) {
    const size_t space = lengths.find(' ', label.size()), bracket = lengths.find('(');
    if (space != std::string_view::npos && bracket != std::string_view::npos) {
      const std::string_view rest = lengths.substr(bracket + 1);
      result.trace = {.name = std::string(lengths.substr(label.size(), space - label.size())),
                      .tokenizer = std::string(rest.substr(0, rest.find(' '))),
                      .shards = std::max<int64_t>(1, numbers.count("one of ", some_ranks)),
                      .input_tokens = totals.count("in tokens ", some_tokens)};
      return true;
    }
  }
  for (const DataSetLengths& known : facts_.data_sets) {
    if (!lengths.starts_with(known.spec)) continue;
    result.sends_data_set = true;
    result.load.dataset = Dataset::lognormal;
    result.load.input_law = known.input;
    result.load.output_law = known.output_of(text("weight_dtype"));
    result.flags.max_model_len = known.input.most + known.output.most;
    if (text("num_requests").empty()) result.load.num_prompts = known.samples;
    return true;
  }
  why = "lengths of requests are those of a data set that is not here";
  return false;
}

void ServingCaseReader::read_measured(ServingCase& result) const {
  for (const char* metric : {"ttft_ms", "tpot_ms", "out_tok_s", "req_s", "e2e_ms"}) {
    const double value = number(metric);
    if (value <= 0) continue;
    // One token has no gap after it: what such rows call time per token is something else.
    const bool one_token = result.load.output_range && result.load.output_range->most <= 1;
    if (std::string_view(metric) == "tpot_ms" && one_token) continue;
    if (std::string_view(metric) == "ttft_ms" && has(text("extra"), "score TPOT only")) continue;
    const std::string_view of =
        text(fmt::format("{}_stat", std::string_view(metric).substr(0, std::string_view(metric).find('_'))));
    const auto* const found = std::find_if(std::begin(statistics), std::end(statistics), [&](const Statistic& known) {
      return known.metric == metric && (known.statistic.empty() || has(of, known.statistic));
    });
    if (found == std::end(statistics)) continue;
    result.measured.push_back({.metric = found->metric,
                               .value = value,
                               .statistic = found->statistic,
                               .predicted = found->of,
                               .at_most = latency_limit(found->metric)});
  }
}

double ServingCaseReader::latency_limit(std::string_view metric) const {
  for (const LatencyLimit& limit : facts_.limits) {
    if (!has(text("source"), limit.benchmark) || !has(text("model"), limit.model) ||
        !has(text("arrival"), limit.arrival)) {
      continue;
    }
    return metric == "ttft_ms" ? limit.ttft_ms : metric == "tpot_ms" ? limit.tpot_ms : 0;
  }
  return 0;
}

}  // namespace foretoken
