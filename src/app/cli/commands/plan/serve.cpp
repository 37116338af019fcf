#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/cli/commands/plan/list.h"
#include "app/cli/load_flags.h"
#include "app/cli/model_flags.h"
#include "app/cli/plan_files.h"
#include "app/cli/progress.h"
#include "app/cli/speculation_flags.h"
#include "app/cli/store_flags.h"
#include "app/cli/tier_flag.h"
#include "app/serving_planner.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "compose/serving_engine.h"
#include "report/serving_plan_report.h"

namespace foretoken {
namespace {

constexpr int64_t most_traffic = 20'000;  // requests that are kept; capacity needs no more

// What stands on either side of `sign`: "h100_sxm:8".
std::pair<std::string, std::string> named_value(const char* flag, const std::string& text, char sign,
                                                const char* expected) {
  const size_t place = text.rfind(sign);
  if (place == 0 || place == std::string::npos || place + 1 == text.size()) {
    throw InputError({.source = flag, .value = printable(text), .expected = expected});
  }
  return {text.substr(0, place), text.substr(place + 1)};
}

std::vector<int64_t> listed_sizes(const char* flag, const std::vector<std::string>& texts, int64_t least) {
  std::vector<int64_t> numbers;
  for (const std::string& text : texts)
    numbers.push_back(parse_size(flag, text, {.least = least, .most = 100'000'000}));
  return numbers;
}

class PlanServe : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    options.heading("Question");
    options.text("--model", model_, "Built-in name (foretoken models), config.json, or a directory with one", true);
    options.list("--slo,--goodput", slos_,
                 "Latency limits: ttft<500ms@p99,tpot<50ms@p95,e2e<20s@p99, itl; or ttft:500,tpot:50 (ms, p99)", true);
    options.list("--hardware", hardware_, "Devices and how many there may be: h100_sxm:8,a100_sxm:16", true);
    options.list("--price", prices_, "USD for one device and hour, h100_sxm=2.5; default: the library's");
    options.number("--budget-usd-hour", budget_, {.least = 0, .most = 1e9}, "Most USD an hour; 0 = any");
    options.choice("--objective", objective_, {"auto", "capacity", "cost"},
                   "auto = least cost for --request-rate, most requests/s where that is not given");
    load_.declare(options);
    options.heading("Layouts to try");
    options.list("--engines", engines_, "vllm, sglang, trtllm; default: all");
    options.list("--quantizations", schemes_,
                 "Of the weights: config (as the model's says), fp8, int4_wo, ...; default: config and fp8, where the "
                 "device computes in it");
    options.list("--kv-cache-dtype", kv_dtypes_, "Of the KV cache; default: auto (the model's) and fp8");
    options.list("--tensor-parallel-sizes,--tensor-parallel-size,-tp", tensor_, "Default: powers of two within a node");
    options.list("--pipeline-parallel-sizes,--pipeline-parallel-size,-pp", pipeline_, "Default: 1, 2, 4");
    options.list("--max-num-seqs", seqs_, "Most sequences of a step; default: the engine's, 32, 64, 128, 256");
    options.list("--max-num-batched-tokens", tokens_, "Most tokens of a step; default: the engine's, 2048, 8192");
    options.flag("--disaggregate", separate_pools_, "Also compute prompts on engines of their own [on]");
    options.integer("--max-model-len", max_model_len_, {.least = 0, .most = 100'000'000},
                    "Longest sequence, prompt and output; 0 = what the requests need");
    options.number("--gpu-memory-utilization,--mem-fraction-static,--free-gpu-memory-fraction", memory_fraction_,
                   {.least = 0, .most = 1}, "Share of the memory an engine may use; 0 = its own");
    speculation_.declare(options);
    options.heading("Search");
    options.integer("--most-simulated", most_simulated_, {.least = 1, .most = 1'000'000},
                    "Most layouts to simulate shortly");
    options.integer("--finalists", finalists_, {.least = 1, .most = 10'000}, "Layouts to simulate at length");
    options.integer("--threads", threads_, {.least = 0, .most = 1024}, "0 = all cores; the result is the same");
    options.choice("--tier", tier_, tier_names(), tier_help);
    store_.declare(options);
    files_.declare(options);
    options.footer(
        "Examples:\n"
        "  foretoken plan serve --model Llama-3.1-70B --hardware h100_sxm:8 --slo \"ttft<500ms@p99,tpot<50ms@p99\"\n"
        "      --dataset-name lognormal --random-input-len 1024 --random-output-len 256\n"
        "  foretoken plan serve --model Llama-3.1-8B --hardware h100_sxm:8,l40s:8 --slo ttft:500,tpot:50\n"
        "      --request-rate 40 --random-output-len 200 --engines vllm");
  }

  Answer run(const Library& library) const override {
    load_.check_use(*options_);
    const Rank rank = store_.own_rank();
    if (rank.answers()) files_.check();
    ServingPlanner planner{
        .library = library,
        .question = question(library),
        .traffic = Traffic(requests()),
        .device_files = device_files(library),
        .other_files = {model_},
        .tier = tier_from_name(tier_).value(),
        .limits = {.quick = static_cast<size_t>(most_simulated_), .full = static_cast<size_t>(finalists_)},
        .threads = threads_to_use(threads_),
        .store = store_.store,
        .tell = show_progress,
        .check_wanted = wanted_check()};
    if (planner.question.drafts) planner.other_files.push_back(planner.question.drafts->config.model);
    const ServingSearchResult result = planner.search();
    if (!rank.answers()) return {.text = {}, .json = {}};
    files_.write(planner, result);
    const ServingPlanReport report{.question = planner.question, .traffic = planner.traffic, .result = result};
    return {.text = serving_plan_text(report), .json = serving_plan_json(report)};
  }

 private:
  // The same requests for every rate: arrivals are stretched afterwards.
  std::vector<Request> requests() const {
    if (load_.conversations() || load_.max_concurrency > 0) {
      throw InputError({.source = load_.conversations() ? "--dataset-name" : "--max-concurrency",
                        .value = load_.conversations() ? load_.dataset : fmt::format("{}", load_.max_concurrency),
                        .expected = "requests that do not wait for each other: a trace, random, lognormal or "
                                    "prefix_repetition"});
    }
    LoadFlags flags = load_;
    flags.request_rate = load_.trace.empty() ? "1" : "inf";
    if (flags.num_prompts == 0) flags.num_prompts = most_traffic;
    const std::unique_ptr<RequestSource> source = flags.load()(static_cast<uint64_t>(load_.seed));
    return Traffic::taken_from(*source, std::min(flags.num_prompts, most_traffic));
  }

  ServingQuestion question(const Library& library) const {
    ServingQuestion asked{.model = library.models().model(model_),
                          .slos = parse_slos(fmt::format("{}", fmt::join(slos_, ",")), "--slo"),
                          .hardware = hardware(library),
                          .choices = {},
                          .drafts = {},
                          .max_model_len = max_model_len_,
                          .memory_fraction = memory_fraction_};
    if (asked.model.is_encoder_only()) {
      throw InputError({.source = "--model", .value = asked.model.name, .expected = "a model that generates tokens"});
    }
    if (std::isfinite(load_.rate())) asked.rate = load_.rate();
    if (asked.rate && *asked.rate <= 0) {
      throw InputError({.source = "--request-rate", .value = load_.request_rate, .expected = "a number above 0"});
    }
    if (budget_ > 0) asked.budget_usd_per_hour = budget_;
    const bool cheap = objective_ == "cost" || (objective_ == "auto" && asked.rate);
    asked.objective = !cheap       ? PlanObjective::capacity
                      : asked.rate ? PlanObjective::cost
                                   : PlanObjective::cost_per_request;
    check_prices(asked);
    asked.choices = choices(asked.model);
    if (speculation_.given()) {
      const SpeculativeConfig config = speculation_.read(asked.model);
      asked.drafts = DraftChoice{.config = config,
                                 .model = speculation_.draft_model(config, library),
                                 .text = speculation_.config + " " + speculation_.acceptance};
    }
    return asked;
  }

  std::vector<HardwareChoice> hardware(const Library& library) const {
    constexpr const char* form = "DEVICE:COUNT, as in h100_sxm:8";
    std::vector<std::pair<std::string, double>> prices;
    for (const std::string& text : prices_) {
      const auto [device, usd] = named_value("--price", text, '=', "DEVICE=USD, as in h100_sxm=2.5");
      prices.emplace_back(library.hardware().device(device).name,
                          parse_listed_number("--price", usd, {.least = 1e-6, .most = 1e6}, "USD an hour above 0"));
    }
    std::vector<HardwareChoice> all;
    for (const std::string& text : hardware_) {
      const auto [device, count] = named_value("--hardware", text, ':', form);
      const int64_t devices = parse_size("--hardware", count, {.least = 1, .most = 100'000});
      all.push_back(hardware_choice(library, device, devices, std::nullopt));
      const bool twice = std::any_of(all.begin(), all.end() - 1, [&](const HardwareChoice& one) {
        return one.device.name == all.back().device.name;
      });
      if (twice) throw InputError({.source = "--hardware", .value = printable(text), .expected = "each device once"});
      for (const auto& [name, usd] : prices) {
        if (name == all.back().device.name) all.back().usd_per_hour = usd;
      }
    }
    return all;
  }

  std::map<std::string, std::string> device_files(const Library& library) const {
    std::map<std::string, std::string> files;
    for (const std::string& text : hardware_) {
      const std::string device = text.substr(0, text.rfind(':'));
      if (HardwareCatalogue::is_path(device)) files.emplace(library.hardware().device(device).name, device);
    }
    return files;
  }

  static void check_prices(const ServingQuestion& asked) {
    const bool needed = asked.budget_usd_per_hour.has_value() || asked.hardware.size() > 1;
    for (const HardwareChoice& one : asked.hardware) {
      if (!needed || one.usd_per_hour) continue;
      throw InputError({.source = "--price",
                        .value = one.device.name,
                        .expected = "a price, since the library has none: --price " + one.device.name + "=USD"});
    }
  }

  LayoutChoices choices(const Model& model) const {
    LayoutChoices result{.engines = engines_.empty() ? engine_names() : engines_,
                         .schemes = {},
                         .kv_dtypes = {},
                         .tensor = listed_sizes("--tensor-parallel-sizes", tensor_, 1),
                         .pipeline = listed_sizes("--pipeline-parallel-sizes", pipeline_, 1),
                         .max_num_seqs = seqs_.empty() ? std::vector<int64_t>{0, 32, 64, 128, 256}
                                                       : listed_sizes("--max-num-seqs", seqs_, 0),
                         .max_num_batched_tokens = tokens_.empty()
                                                       ? std::vector<int64_t>{0, 2048, 8192}
                                                       : listed_sizes("--max-num-batched-tokens", tokens_, 0),
                         .separate_pools = separate_pools_};
    for (const std::string& engine : result.engines) engine_kind(engine);
    const auto add = [](auto& list, const auto& one) {
      if (std::find(list.begin(), list.end(), one) == list.end()) list.push_back(one);
    };
    const auto schemes = schemes_.empty() ? std::vector<std::string>{"config", "fp8"} : schemes_;
    for (const std::string& name : schemes) {
      std::optional<Scheme> scheme;
      if (lower_case(name) != "config") {
        scheme = scheme_from_name(name);
        if (!scheme) {
          throw InputError({.source = "--quantizations",
                            .value = printable(name),
                            .expected = fmt::format("config or one of {}", fmt::join(scheme_names(), ", ")),
                            .suggestion = nearest_name(name, scheme_names()).value_or("")});
        }
        if (*scheme == model.scheme) scheme.reset();
      }
      add(result.schemes, scheme);
    }
    const auto types = kv_dtypes_.empty() ? std::vector<std::string>{"auto", "fp8"} : kv_dtypes_;
    for (const std::string& name : types) {
      ModelFlags flags;
      flags.kv_cache_dtype = name;
      add(result.kv_dtypes, flags.kv_dtype(model));
    }
    return result;
  }

  const Options* options_ = nullptr;
  std::string model_, objective_ = "auto", tier_ = "best";
  std::vector<std::string> slos_, hardware_, prices_, engines_, schemes_, kv_dtypes_, tensor_, pipeline_, seqs_,
      tokens_;
  double budget_ = 0, memory_fraction_ = 0;
  bool separate_pools_ = true;
  int64_t max_model_len_ = 0, most_simulated_ = 96, finalists_ = 6, threads_ = 0;
  LoadFlags load_;
  SpeculationFlags speculation_;
  StoreFlags store_;
  PlanFileFlags files_;
};

}  // namespace

std::unique_ptr<Command> make_plan_serve() {
  return std::make_unique<PlanServe>();
}

}  // namespace foretoken
