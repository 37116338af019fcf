#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "app/cli/commands/plan/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/load_flags.h"
#include "app/cli/flags/lora_flags.h"
#include "app/cli/flags/model_flags.h"
#include "app/cli/flags/placement_flags.h"
#include "app/cli/flags/speculation_flags.h"
#include "app/cli/flags/store_flags.h"
#include "app/cli/grammar/device_count.h"
#include "app/cli/grammar/money.h"
#include "app/cli/output/out_file.h"
#include "app/cli/output/plan_files.h"
#include "app/cli/output/progress.h"
#include "app/cli/output/search_stop.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "compose/device_formats.h"
#include "compose/serving_engine.h"
#include "library/traffic_use.h"
#include "plan/serving/launch_manifest.h"
#include "plan/serving/layout_engines.h"
#include "plan/serving/serving_planner.h"
#include "report/plan/serving_plan_report.h"
#include "report/plan/serving_plan_words.h"
#include "report/plan/shared_plan_report.h"
#include "serving/engine/engine_setup.h"
#include "serving/fleet/autoscaler.h"

namespace foretoken {
namespace {

constexpr int64_t most_traffic = 20'000;  // requests that are kept; capacity needs no more

std::vector<int64_t> listed_sizes(const char* flag, const std::vector<std::string>& texts, int64_t least) {
  std::vector<int64_t> numbers;
  numbers.reserve(texts.size());
  for (const std::string& text : texts)
    numbers.push_back(parse_size(flag, text, {.least = least, .most = 100'000'000}));
  return numbers;
}

void sort_and_unify(std::vector<int64_t>& sizes) {
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
}

// Not their older versions.
std::vector<std::string> newest_engines() {
  std::vector<std::string> names = engine_names();
  std::erase_if(names, [](const std::string& name) { return engine_family(name) != name; });
  return names;
}

// Not the one that never starts a replica.
std::vector<std::string> scaling_names() {
  std::vector<std::string> names = autoscaler_names();
  std::erase(names, "none");
  return names;
}

std::string without_line_end(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class PlanServe : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    declare_question(options);
    declare_layouts(options);
    declare_search(options);
    options.show_first({"--model", "--hardware", "--traffic", "--users", "--request-rate", "--slo",
                        "--random-input-len", "--random-output-len", "--engines", "--quantizations", "--kv-cache-dtype",
                        "--objective", "--price", "--budget", "--disaggregate", "--quick", "--trace", "--html"});
    options.footer(
        "Examples:\n"
        "  foretoken plan serve --model Llama-3.1-8B-Instruct --hardware 8xH100,8xL40S --traffic chat --users 500\n"
        "  foretoken plan serve --model Llama-3.1-70B --hardware h100_sxm:8 --slo \"ttft<500ms@p99,tpot<50ms@p99\"\n"
        "      --dataset-name lognormal --random-input-len 1024 --random-output-len 256\n"
        "  foretoken plan serve --model Llama-3.1-8B --hardware h100_sxm:8,l40s:8 --slo ttft:500,tpot:50\n"
        "      --request-rate 40 --random-output-len 200 --engines vllm\n"
        "  foretoken plan serve --model Llama-3.1-70B --request-rate 4 --also Llama-3.1-8B@20 --hardware h100_sxm:8\n"
        "      --slo ttft:500,tpot:50");
  }

  Answer run(const Library& library) const override {
    load_.check_use(*options_);
    lora_.check_use(*options_);
    adapter_load_.check_use(*options_, lora_.enabled, !load_.trace.empty());
    if (users_ == 0) options_->refuse_without("--users", {"--user-pause"});
    if (day_.empty())
      options_->refuse_without("--day", {"--autoscaler", "--min-replicas", "--scale-utilization", "--cold-start"});
    if (quick_)
      options_->refuse({"--most-simulated", "--finalists", "--html", "--trace-out", "--goal-seek", "--time-limit"}, {},
                       "--quick");
    // Closed forms know nothing of requests that wait for slots: they may be off by ten times.
    if (quick_) options_->refuse({"--enable-lora"}, {}, "--quick, which does not price waiting for adapter slots");
    // Ranks that share a store must all search alike; one that is killed is resumed from the store.
    if (!store_.store.empty()) options_->refuse({"--time-limit"}, {}, "--store");
    const SearchStop stop(time_limit_, store_.store.empty());
    const ProcessRank rank = store_.own_rank();
    if (launch_ == "lines") options_->refuse({"--launch-out"}, {}, "--launch lines");
    if (rank.answers()) files_.check();
    if (rank.answers()) OutFile("--launch-out", launch_out_, OutFile::Mode::append).close();
    if (!also_.empty()) return run_together(library, rank, stop);
    const ServingPlanner planner = make_planner(library, {.model = model_, .load = load(library)}, stop);
    check_least_replicas(planner.question);
    const ServingSearchResult result = planner.search();
    if (!rank.answers()) return {.text = {}, .json = {}};
    const std::optional<LayoutExplanation> explanation = planner.explain(result);
    const SoughtGoals goals = goal_seek_ ? planner.seek(result) : SoughtGoals();
    const std::optional<DayPlan> day = day_.empty() ? std::nullopt : planner.day(result, day_settings(library));
    const ServingPlanReport report{.question = planner.question,
                                   .traffic = planner.traffic,
                                   .result = result,
                                   .sought = goal_seek_ ? &goals : nullptr,
                                   .explanation = explanation ? &*explanation : nullptr,
                                   .day = day ? &*day : nullptr};
    files_.write(planner, report);
    Answer answer{.text = serving_plan_text(report),
                  .json = serving_plan_json(report),
                  .failure = result.winner() == nullptr ? without_line_end(serving_plan_sentence(report)) : ""};
    if (launch_ != "lines" && result.winner() != nullptr) {
      const std::string manifest = launch_manifest(launch_, planner.question, result.winner()->layout,
                                                   planned_model_len(planner.question, planner.traffic));
      if (launch_out_.empty()) {
        answer.text += "\n" + manifest;
      } else {
        write_report(launch_out_, manifest);
      }
      answer.json.set("manifest", manifest);
    }
    return answer;
  }

 private:
  void declare_question(Options& options) {
    options.heading("Question");
    options.text("--model", model_,
                 "Built-in name (`foretoken models` lists them), a config.json, or a directory that contains one",
                 true);
    options.list("--slo,--goodput", slos_,
                 "Latency limits for ttft, tpot, itl or e2e: ttft<500ms@p99,tpot<50ms@p95; or ttft:500,tpot:50 (ms at "
                 "p99) [the limits of --traffic]");
    options.text(
        "--traffic", traffic_,
        "What the requests are for: chat, code, rag, agent or batch. Sets lengths, shared prefixes and default "
        "limits from public statistics (data/traffic/uses.json); length flags override them");
    options.integer("--users", users_, {.least = 0, .most = 1'000'000'000},
                    "Number of people who use the service at once, instead of --request-rate; 0 = not given");
    options.number("--user-pause", user_pause_, {.least = 0.001, .most = 1e6},
                   "With --users: mean time between an answer and the same user's next request, in seconds");
    options.text(
        "--day", day_,
        "Also show the cost of a day, with replicas for its peak and with an autoscaler. Give a CSV file with the "
        "columns hour (0 to 24) and requests_per_s, or sine:0.5 for a rate that varies by 50% around "
        "--request-rate. The layout is chosen for the peak");
    options.choice("--autoscaler", day_settings_.autoscaler, scaling_names(),
                   "With --day: how the number of replicas is chosen (see foretoken serve --help)");
    options.integer("--min-replicas", day_settings_.least_replicas, {.least = 1, .most = 100'000},
                    "With --day: minimum number of replicas");
    options.number("--scale-utilization", day_settings_.utilization, {.least = 0.01, .most = 1},
                   "With --day: target load of each replica, as a share of its capacity");
    options.number("--cold-start", cold_start_s_, {.least = -1, .most = 1e6},
                   "With --day: time until a new replica serves requests, in seconds; -1 = 60 s to provision, time to "
                   "load the weights, and 40 s to start the engine");
    options.number("--attainment", attainment_, {.least = 0, .most = 100},
                   "Percentage of requests that must meet every limit (goodput), instead of each limit at its "
                   "percentile; 0 = off");
    options.list("--hardware", hardware_,
                 "Available devices and their number, for example h100_sxm:8,a100_sxm:16 or 8xH100", true);
    options.list("--price,--gpu-price", prices_,
                 "Rent of one device per hour, for example h100_sxm=2.5 or 'h100_sxm=$1.9/h'; with one kind of device "
                 "also $1.9/h [a public list price]");
    options.text("--budget", budget_text_, "Maximum cost of the service, for example $28/h, $500/day or $20000/month");
    options.money("--budget-usd-hour", budget_, {.least = 0, .most = 1e9},
                  "Maximum cost in USD per hour; 0 = no limit");
    options.choice(
        "--objective", objective_, {"auto", "capacity", "cost"},
        "What to optimize: auto = lowest cost that serves --request-rate, or highest capacity if no rate is given");
    options.flag("--pessimistic", pessimistic_,
                 "Plan with the slow end of the 90% interval of each step instead of the middle");
    options.list("--also", also_,
                 "Another model to serve on the same devices with its own engines: MODEL@RATE, or MODEL@RATE:IN/OUT "
                 "with its own lengths. --request-rate is then required");
    load_.declare(options);
    adapter_load_.declare(options);
  }

  void declare_layouts(Options& options) {
    options.heading("Layouts to try");
    options.list("--engines", engines_, "Engines to try: vllm, sglang, trtllm [all]");
    options.list(
        "--quantizations", schemes_,
        "Weight formats to try: config (the model's own), fp8, int4_wo, ...; default: config, and fp8 if the model "
        "is not quantized and the device multiplies in fp8");
    options.list("--kv-cache-dtype", kv_dtypes_, "Formats of the KV cache to try [auto (the model's format) and fp8]");
    options.list("--tensor-parallel-sizes,--tensor-parallel-size,-tp", tensor_,
                 "Tensor-parallel sizes to try [powers of two within a node]");
    options.list("--pipeline-parallel-sizes,--pipeline-parallel-size,-pp", pipeline_,
                 "Pipeline-parallel sizes to try [1, 2, 4]");
    options.list("--max-num-seqs", seqs_,
                 "Maximum numbers of sequences per step to try [the engine's default, 32, 64, 128, 256]");
    options.list("--max-num-batched-tokens", tokens_,
                 "Maximum numbers of tokens per step to try [the engine's default, 2048, 8192]");
    options.flag("--disaggregate", separate_pools_, "Also try separate engines for prefill and decode [on]");
    options.flag("--mix-hardware", mixed_pools_, "Also try different devices for prefill and decode");
    options.list(
        "--kv-offloading-per-gpu", offloading_,
        "Sizes of host memory for KV offloading to try, in GiB per GPU; 0 = none [0; if prompts share prefixes, also "
        "the size of the GPU's memory]");
    options.integer("--max-model-len", max_model_len_, {.least = 0, .most = 100'000'000},
                    "Maximum length of a sequence in tokens, prompt and output together; 0 = what the requests need");
    options.number("--gpu-memory-utilization,--mem-fraction-static,--free-gpu-memory-fraction", memory_fraction_,
                   {.least = 0, .most = 1}, "Share of GPU memory that an engine may use; 0 = the engine's default");
    speculation_.declare(options);
    lora_.declare(options, &slots_);
    placement_.declare(options);
  }

  void declare_search(Options& options) {
    options.heading("Search");
    options.flag("--quick", quick_,
                 "Answer in about a second from formulas instead of simulations, with wider intervals");
    options.integer("--most-simulated", most_simulated_, {.least = 1, .most = 1'000'000},
                    "Maximum number of layouts to simulate briefly");
    options.integer("--finalists", finalists_, {.least = 1, .most = 10'000}, "Number of layouts to simulate at length");
    options.flag("--goal-seek", goal_seek_,
                 "Also show which single change would halve the cost or double the capacity of the best layout: number "
                 "formats, speculative decoding, limits, devices");
    options.number("--time-limit", time_limit_, {.least = 0, .most = 1e6},
                   "Stop the search after this many seconds and answer with the best layout so far; 0 = no limit. "
                   "Ctrl-C and SIGTERM do the same");
    options.integer("--threads", threads_, {.least = 0, .most = 1024},
                    "Number of CPU threads; 0 = all cores. The result does not depend on it");
    declare_kernel_source(options, tier_);
    declare_deployment(options);
    store_.declare(options);
    files_.declare(options);
    std::vector<std::string> launches = manifest_names();
    launches.insert(launches.begin(), "lines");
    options.choice("--launch", launch_, std::move(launches),
                   "How to show the launch of the winner: lines = command lines; otherwise also a YAML file for "
                   "Kubernetes, Docker Compose, NVIDIA Dynamo or llm-d");
    options.text("--launch-out", launch_out_, "Write the YAML of --launch to this file instead of printing it");
  }

  void check_least_replicas(const ServingQuestion& question) const {
    int64_t most = 0;
    for (const HardwareChoice& one : question.hardware) most = std::max(most, one.most_devices);
    if (day_settings_.least_replicas <= most) return;
    throw InputError({.source = "--min-replicas",
                      .value = fmt::format("{}", day_settings_.least_replicas),
                      .expected = fmt::format("at most {}, the GPUs of one kind in --hardware", most)});
  }

  struct AskedModel {
    std::string model;
    LoadFlags load;
  };

  Answer run_together(const Library& library, const ProcessRank& rank, const SearchStop& stop) const {
    options_->refuse({"--goal-seek", "--enable-lora", "--day"}, {}, "--also");
    if (files_.any() || launch_ != "lines") {
      throw InputError(
          {.source = "--also", .expected = "no --html, --csv, --trace-out or --launch: those are of one model"});
    }
    if (speculation_.given()) {
      throw InputError({.source = "--also", .expected = "no --speculative-config: drafts are of one model"});
    }
    const LoadFlags own = load(library);
    std::vector<AskedModel> asked = {{.model = model_, .load = own}};
    for (const std::string& text : also_) asked.push_back(also_asked(text, own));
    std::vector<ServingPlanner> planners;
    std::vector<ServingQuestion> questions;
    for (const AskedModel& one : asked) {
      planners.push_back(make_planner(library, one, stop));
      questions.push_back(planners.back().question);
      if (questions.back().rate) continue;
      throw InputError({.source = "--request-rate", .value = "inf", .expected = "with --also: requests/s of --model"});
    }
    const SharedPlan plan = share_devices(questions, [&](size_t model, const ServingQuestion& question) {
      show_progress(question.model.name);
      planners[model].question = question;
      return planners[model].search();
    });
    if (!rank.answers()) return {.text = {}, .json = {}};
    SharedPlanReport report{.plan = plan, .traffic = {}};
    for (const ServingPlanner& planner : planners) report.traffic.push_back(&planner.traffic);
    return {.text = shared_plan_text(report),
            .json = shared_plan_json(report),
            .failure = plan.fits ? "" : shared_plan_sentence(report)};
  }

  // At the peak where a day is asked about.
  LoadFlags load(const Library& library) const {
    LoadFlags flags = load_of_traffic(library);
    if (!day_.empty()) flags.request_rate = number_text(day_rates(flags).peak());
    return flags;
  }

  DayRates day_rates(const LoadFlags& load) const {
    constexpr std::string_view sine = "sine";
    constexpr double usual_swing = 0.5, most_swing = 0.99;
    if (!day_.starts_with(sine) || (day_.size() > sine.size() && day_[sine.size()] != ':')) {
      if (!std::filesystem::exists(day_)) {
        throw InputError({.source = "--day",
                          .value = printable(day_),
                          .expected = "a CSV file or sine:SWING, as in sine:0.5: this is neither"});
      }
      options_->refuse({"--request-rate", "--users"}, {}, "--day FILE, because the file contains the rates");
      return read_day(day_);
    }
    const std::string swing = day_.size() > sine.size() ? day_.substr(sine.size() + 1) : number_text(usual_swing);
    const double share = parse_listed_number("--day", swing, {.least = 0, .most = most_swing},
                                             "sine:SWING with a SWING from 0 to 0.99, for example sine:0.5");
    if (!std::isfinite(load.rate()) || load.rate() <= 0) {
      throw InputError(
          {.source = "--request-rate", .expected = "the mean rate of the day (or --users) for --day sine"});
    }
    return sine_day(load.rate(), share);
  }

  DaySettings day_settings(const Library& library) const {
    DaySettings settings = day_settings_;
    settings.rates = day_rates(load_of_traffic(library));
    if (cold_start_s_ >= 0) settings.cold_start_s = cold_start_s_;
    return settings;
  }

  // With the lengths of the use that is named, as far as flags do not say others, and the rate of the users.
  LoadFlags load_of_traffic(const Library& library) const {
    LoadFlags flags = load_;
    if (!traffic_.empty()) {
      options_->refuse({"--trace", "--dataset-name", "--dataset-path", "--random-range-ratio", "--random-input-range",
                        "--random-output-range"},
                       {}, "--traffic");
      const TrafficUse use = traffic_use(library.directory(), traffic_);
      const auto set = [&](const char* flag, auto& value, auto usual) {
        if (!options_->was_given(flag)) value = usual;
      };
      flags.dataset = "lognormal";
      set("--lognormal-sigma", flags.lognormal_sigma, use.sigma);
      set("--random-input-len", flags.input_len, use.input_tokens);
      set("--random-output-len", flags.output_len, use.output_tokens);
      set("--random-prefix-len", flags.prefix_len, use.prefix_tokens);
      set("--prefix-repetition-num-prefixes", flags.num_prefixes, use.prefixes);
    }
    if (users_ > 0) {
      options_->refuse({"--request-rate"}, {}, "--users");
      flags.request_rate = fmt::format("{:.3g}", static_cast<double>(users_) / seconds_of_user(library, flags));
    }
    return flags;
  }

  // Of a user, from one request to the next: reads and writes, and waits for an answer that takes half as long as the
  // limits on it allow.
  double seconds_of_user(const Library& library, const LoadFlags& flags) const {
    double answer_ms = 0;
    for (const LatencySlo& slo : parse_slos(slo_words(library), "slo")) {
      if (slo.metric == SloMetric::ttft) answer_ms += slo.limit_ms / 2;
      if (slo.metric == SloMetric::tpot) answer_ms += slo.limit_ms / 2 * static_cast<double>(flags.output_len);
    }
    return user_pause_ + answer_ms / 1e3;
  }

  std::string slo_words(const Library& library) const {
    if (!slos_.empty()) return fmt::format("{}", fmt::join(slos_, ","));
    return traffic_use(library.directory(), traffic_.empty() ? usual_traffic_use : traffic_).slo;
  }

  std::vector<std::string> assumptions(const Library& library, const LoadFlags& flags) const {
    std::vector<std::string> sentences;
    if (quick_) {
      sentences.emplace_back(
          "Nothing was simulated ({quick}): capacities are what layouts usually reach of closed-form bounds. Leave "
          "{quick} out for figures to rent by.");
    }
    if (!traffic_.empty()) {
      const TrafficUse use = traffic_use(library.directory(), traffic_);
      sentences.push_back(fmt::format("Requests are those of {} ({}): {}.", use.name, use.summary, use.source));
    }
    if (slos_.empty()) {
      const TrafficUse use = traffic_use(library.directory(), traffic_.empty() ? usual_traffic_use : traffic_);
      sentences.push_back(
          fmt::format("No {{slo}} was given: {} is the default for {} ({}).", use.slo, use.name, use.slo_source));
    }
    if (!day_.empty()) {
      sentences.push_back(
          fmt::format("Layouts are chosen for the peak of the day, {} requests/s.", asked_rate_number(flags.rate())));
    }
    if (users_ > 0) {
      sentences.push_back(
          fmt::format("{} users are counted as {:.3g} requests/s: each user pauses {} s "
                      "({{user_pause}}) and waits for answers "
                      "that take half as long as the limits allow.",
                      users_, day_.empty() ? flags.rate() : load_of_traffic(library).rate(), number_text(user_pause_)));
    }
    return sentences;
  }

  static AskedModel also_asked(const std::string& text, const LoadFlags& own) {
    constexpr const char* form = "MODEL@RATE or MODEL@RATE:IN/OUT, as in Llama-3.1-8B@20:512/128";
    const auto [model, rest] = named_value("--also", text, '@', form);
    AskedModel asked{.model = model, .load = own};
    const size_t colon = rest.find(':');
    asked.load.request_rate = rest.substr(0, colon);
    parse_listed_number("--also", asked.load.request_rate, {.least = 1e-9, .most = 1e9}, form);
    if (colon == std::string::npos) return asked;
    const auto [in, out] = named_value("--also", rest.substr(colon + 1), '/', form);
    asked.load.input_range = asked.load.output_range = "";
    asked.load.input_len = parse_size("--also", in, {.least = 1, .most = 100'000'000});
    asked.load.output_len = parse_size("--also", out, {.least = 1, .most = 100'000'000});
    return asked;
  }

  ServingPlanner make_planner(const Library& library, const AskedModel& asked, const SearchStop& stop) const {
    ServingPlanner planner{.library = library,
                           .question = question(library, asked),
                           .traffic = Traffic(requests(asked.load, adapter_load_)),
                           .device_files = device_files(library),
                           .other_files = {asked.model},
                           .tier = tier_from_name(tier_).value(),
                           .placement = placement_.spec(),
                           .limits = {.quick = static_cast<size_t>(most_simulated_),
                                      .full = static_cast<size_t>(finalists_),
                                      .closed_form = quick_},
                           .threads = threads_to_use(threads_),
                           .store = store_.store,
                           .tell = show_progress,
                           .check_wanted = [wanted = wanted_check(), &stop] {
                             wanted();
                             stop.check();
                           }};
    choose_host_memory(planner);
    if (lora_.enabled) choose_slots(planner);
    if (planner.question.drafts) planner.other_files.push_back(planner.question.drafts->config.model);
    const TrafficLengths& lengths = planner.traffic.lengths();
    const auto context = static_cast<int64_t>(lengths.mean_input + lengths.mean_output / 2);
    for (HardwareChoice& one : planner.question.hardware)
      one.sheet_share = sheet_share(library, planner.question.model, one, std::max<int64_t>(1, context), planner.tier);
    return planner;
  }

  // Where prompts share prefixes, also as much host memory as the GPUs have themselves: servers usually have that.
  void choose_host_memory(ServingPlanner& planner) const {
    LayoutChoices& choices = planner.question.choices;
    if (quick_ && planner.traffic.lengths().shared_tokens > 0) {
      planner.question.assumptions.emplace_back(
          "Prompts share prefixes: at the low end of the intervals, the KV cache keeps none of them; at the high end, "
          "all.");
    }
    if (!offloading_.empty()) {
      choices.host_gib = listed_sizes("--kv-offloading-per-gpu", offloading_, 0);
      sort_and_unify(choices.host_gib);  // of layouts that do the same, the first is kept: the one with less
      return;
    }
    choices.host_as_gpu = !quick_ && !lora_.enabled && planner.traffic.lengths().shared_tokens > 0;
    if (!choices.host_as_gpu) return;
    planner.question.assumptions.emplace_back(
        "Prompts share prefixes, so layouts that keep KV blocks in host memory "
        "were also tried, with as much host memory per "
        "GPU as the GPU has memory (set other sizes with {kv_offloading_per_gpu}; "
        "0 = no host memory).");
  }

  void choose_slots(ServingPlanner& planner) const {
    ServingQuestion& question = planner.question;
    const int64_t adapters = std::max<int64_t>(1, planner.traffic.lengths().adapters);
    std::vector<int64_t>& slots = question.choices.max_loras;
    slots = listed_sizes("--max-loras", slots_, 1);
    if (slots.empty()) {
      for (const int64_t usual : {4, 16, 64}) slots.push_back(std::min(usual, adapters));
    }
    sort_and_unify(slots);
    LoraFlags flags = lora_;
    flags.settings.max_loras = slots.back();
    if (flags.settings.max_cpu_loras == 0) {
      flags.settings.max_cpu_loras = std::max(adapters, slots.back());
      question.assumptions.push_back(
          fmt::format("Host memory is assumed to hold all {} adapters "
                      "(change this with {{max_cpu_loras}}).",
                      adapters));
    }
    question.lora = flags.read();
  }

  // The same requests for every rate: arrivals are stretched afterwards.
  static std::vector<Request> requests(const LoadFlags& load, const AdapterLoadFlags& adapters) {
    if (load.conversations() || load.max_concurrency > 0) {
      throw InputError({.source = load.conversations() ? "--dataset-name" : "--max-concurrency",
                        .value = load.conversations() ? load.dataset : fmt::format("{}", load.max_concurrency),
                        .expected = "requests that do not wait for each other: a trace, random, lognormal or "
                                    "prefix_repetition"});
    }
    LoadFlags flags = load;
    flags.request_rate = load.trace.empty() ? "1" : "inf";
    if (flags.num_prompts == 0) flags.num_prompts = most_traffic;
    const std::unique_ptr<RequestSource> source = adapters.load(flags.load())(static_cast<uint64_t>(load.seed));
    return Traffic::taken_from(*source, std::min(flags.num_prompts, most_traffic));
  }

  ServingQuestion question(const Library& library, const AskedModel& of) const {
    const double rate = of.load.rate();
    ServingQuestion asked{.model = library.models().model(of.model),
                          .slos = parse_slos(slo_words(library), "slo"),
                          .hardware = hardware(library),
                          .choices = {},
                          .drafts = {},
                          .max_model_len = max_model_len_,
                          .memory_fraction = memory_fraction_,
                          .assumptions = assumptions(library, of.load)};
    if (attainment_ > 0) set_attainment(asked);
    asked.pessimistic = pessimistic_;
    if (asked.model.is_encoder_only()) {
      throw InputError({.source = "--model", .value = asked.model.name, .expected = "a model that generates tokens"});
    }
    if (std::isfinite(rate)) asked.rate = rate;
    if (asked.rate && *asked.rate <= 0) {
      throw InputError({.source = "--request-rate", .value = of.load.request_rate, .expected = "a number above 0"});
    }
    if (budget_ > 0) asked.budget_usd_per_hour = budget_;
    if (!budget_text_.empty()) asked.budget_usd_per_hour = budget();
    const bool cheap = objective_ == "cost" || (objective_ == "auto" && asked.rate);
    asked.objective = !cheap       ? PlanObjective::capacity
                      : asked.rate ? PlanObjective::cost
                                   : PlanObjective::cost_per_request;
    check_prices(asked);
    asked.choices = choices(asked.model);
    check_runs_somewhere(asked);
    if (speculation_.given()) {
      const SpeculativeConfig config = speculation_.read(asked.model);
      asked.drafts = DraftChoice{.config = config,
                                 .model = speculation_.draft_model(config, library),
                                 .text = speculation_.config + " " + speculation_.acceptance};
    }
    return asked;
  }

  void set_attainment(ServingQuestion& asked) const {
    asked.joint_percent = attainment_;
    for (LatencySlo& slo : asked.slos) {
      const bool has_percentile = slo.percentile != LatencySlo{}.percentile;
      const bool twice = std::count_if(asked.slos.begin(), asked.slos.end(),
                                       [&](const LatencySlo& other) { return other.metric == slo.metric; }) > 1;
      if (has_percentile || twice || slo.metric == SloMetric::itl) {
        throw InputError({.source = "--slo",
                          .value = slo_key(slo),
                          .expected = "with --attainment: one limit of each of ttft, tpot and e2e, no percentiles"});
      }
    }
    for (LatencySlo& slo : asked.slos) slo.percentile = attainment_;
  }

  double budget() const {
    const std::optional<double> usd = parse_usd_per_time(budget_text_);
    if (!usd || *usd <= 0 || *usd > 1e9 || budget_ > 0) {
      throw InputError({.source = "--budget",
                        .value = printable(budget_text_),
                        .expected = budget_ > 0 ? "no --budget-usd-hour beside it"
                                                : "USD above 0 for an hour, a day or a month, as in $20000/month"});
    }
    return *usd;
  }

  std::vector<HardwareChoice> hardware(const Library& library) const {
    std::vector<std::pair<std::string, double>> prices;
    for (const std::string& text : prices_) {
      const bool is_of_all = hardware_.size() == 1 && text.find('=') == std::string::npos && parse_usd_per_hour(text);
      const auto [device, amount] = is_of_all ? std::pair(device_and_count(hardware_.front()).first, text)
                                              : named_value("--price", text, '=', "DEVICE=USD, as in h100_sxm=2.5");
      const std::optional<double> usd = parse_usd_per_hour(amount);
      if (!usd || *usd < 1e-6 || *usd > 1e6) {
        throw InputError({.source = "--price",
                          .value = printable(text),
                          .expected = "USD an hour above 0, as in h100_sxm=2.5 or h100_sxm=$1.9/h"});
      }
      prices.emplace_back(library.hardware().device(device).name, *usd);
    }
    std::vector<HardwareChoice> all;
    for (const auto& [name, usd] : prices) {
      const bool offered = std::any_of(hardware_.begin(), hardware_.end(), [&, priced = name](const std::string& text) {
        return library.hardware().device(device_and_count(text).first).name == priced;
      });
      if (!offered) {
        throw InputError({.source = "--price", .value = name, .expected = "a device that --hardware offers"});
      }
    }
    for (const std::string& text : hardware_) {
      const auto [device, count] = device_and_count(text);
      const int64_t devices = parse_size("--hardware", count, device_counts);
      all.push_back(
          hardware_choice(library, device, devices, std::nullopt, tier_from_name(tier_).value(), placement_.spec()));
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
      const std::string device = device_and_count(text).first;
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

  // InputError where no engine runs on any device offered, or none has a format that was asked for.
  void check_runs_somewhere(const ServingQuestion& asked) const {
    const auto& offered = asked.hardware;
    const bool any_engine =
        std::any_of(asked.choices.engines.begin(), asked.choices.engines.end(), [&](const std::string& engine) {
          return std::any_of(offered.begin(), offered.end(),
                             [&](const HardwareChoice& one) { return runs_on(engine_kind(engine), one.device); });
        });
    if (!any_engine) check_engine_runs_on("engines", asked.choices.engines.front(), offered.front().device);
    for (const std::optional<Scheme>& scheme : asked.choices.schemes) {
      if (!scheme || schemes_.empty()) continue;
      const bool computes = std::any_of(offered.begin(), offered.end(),
                                        [&](const HardwareChoice& one) { return multiplies_in(one.device, *scheme); });
      if (!computes) {
        check_multiplies_in("quantizations", facts(*scheme).math, offered.front().device, facts(*scheme).name);
      }
    }
    const bool is_own_format = asked.choices.schemes == std::vector<std::optional<Scheme>>{std::nullopt};
    const bool runs = std::any_of(offered.begin(), offered.end(),
                                  [&](const HardwareChoice& one) { return loads_on(asked.model, one.device); });
    if (is_own_format && !runs) run_on(asked.model, offered.front().device);  // says what is wrong
  }

  LayoutChoices choices(const Model& model) const {
    LayoutChoices result{.engines = engines_.empty() ? newest_engines() : engines_,
                         .schemes = {},
                         .kv_dtypes = {},
                         .tensor = listed_sizes("--tensor-parallel-sizes", tensor_, 1),
                         .pipeline = listed_sizes("--pipeline-parallel-sizes", pipeline_, 1),
                         .max_num_seqs = listed_sizes("--max-num-seqs", seqs_, 0),
                         .max_num_batched_tokens = listed_sizes("--max-num-batched-tokens", tokens_, 0),
                         .separate_pools = separate_pools_,
                         .mixed_pools = mixed_pools_};
    // Closed forms do not tell limits apart.
    const auto usual_limits = [&](std::vector<int64_t> usual) { return quick_ ? std::vector<int64_t>{0} : usual; };
    if (seqs_.empty()) result.max_num_seqs = usual_limits({0, 32, 64, 128, 256});
    if (tokens_.empty()) result.max_num_batched_tokens = usual_limits({0, 2048, 8192});
    for (const std::string& engine : result.engines) engine_kind(engine);
    const auto add = [](auto& list, const auto& one) {
      if (std::find(list.begin(), list.end(), one) == list.end()) list.push_back(one);
    };
    // Nobody quantizes a checkpoint once more that is published quantized, unless asked to.
    const auto usual = model.is_quantized() || model.named_scheme ? std::vector<std::string>{"config"}
                                                                  : std::vector<std::string>{"config", "fp8"};
    const auto schemes = schemes_.empty() ? usual : schemes_;
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
        check_agrees_with_name("quantizations", *scheme, model);
        if (*scheme == model.scheme || model.named_scheme) scheme.reset();
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
  std::string model_, traffic_, budget_text_, day_, objective_ = "auto", tier_ = "best", launch_ = "lines", launch_out_;
  std::vector<std::string> slos_, also_, hardware_, prices_, engines_, schemes_, kv_dtypes_, tensor_, pipeline_, seqs_,
      tokens_, offloading_, slots_;
  double budget_ = 0, memory_fraction_ = 0, attainment_ = 0, user_pause_ = 10, time_limit_ = 0;
  bool separate_pools_ = true, mixed_pools_ = false, pessimistic_ = false, quick_ = false, goal_seek_ = false;
  int64_t users_ = 0, max_model_len_ = 0, most_simulated_ = 96, finalists_ = 6, threads_ = 0;
  DaySettings day_settings_;
  double cold_start_s_ = -1;
  LoadFlags load_;
  AdapterLoadFlags adapter_load_;
  LoraFlags lora_;
  SpeculationFlags speculation_;
  PlacementFlags placement_;
  StoreFlags store_;
  PlanFileFlags files_;
};

}  // namespace

std::unique_ptr<Command> make_plan_serve() {
  return std::make_unique<PlanServe>();
}

}  // namespace foretoken
