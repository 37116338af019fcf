#include "app/cli/flags/load_flags.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "app/cli/flags/choice_names.h"
#include "base/error.h"
#include "base/text.h"
#include "plan/serving/latency_slo.h"
#include "report/serving/serving_report.h"
#include "serving/load/agent_defaults.h"
#include "serving/load/synthetic.h"
#include "serving/load/trace.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> tokens{.least = 1, .most = 100'000'000};
constexpr Range<int64_t> any_count{.least = 0, .most = 100'000'000'000};
constexpr Range<int64_t> made_up_requests{.least = 0, .most = most_made_up_requests};
constexpr Range<double> not_negative{.least = 0, .most = 1e12};

constexpr const char* rate_forms = "a number of requests per second above 0, 300/min, or inf";

double number_of(const char* flag, const std::string& text, const char* expected) {
  const std::optional<double> number = parse_number(text);
  if (!number) throw InputError({.source = flag, .value = printable(text), .expected = expected});
  return *number;
}

std::string trace_help() {
  std::string names;
  for (const TraceFormat& format : trace_formats()) {
    if (format.clock == TraceClock::none) continue;
    names += fmt::format("{}{} ({},{},{})", names.empty() ? "" : "; ", format.name, format.arrival, format.input,
                         format.output);
  }
  return "Replay the requests in this file (.csv or .jsonl, optionally .gz) at their recorded arrival times. The "
         "format is recognized by its columns: " +
         names;
}

constexpr const char* arrivals_heading = "Load: arrivals";
constexpr const char* lengths_heading = "Load: lengths";
constexpr const char* conversations_heading =
    "Load: conversations (--dataset-name sessions or agents; rates count conversations)";

// "1..1000"; nothing where it is empty.
std::optional<LengthRange> range_of(const char* flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const size_t dots = text.find("..");
  const auto number = [&](size_t begin, size_t count) {
    return parse_integer(std::string_view(text).substr(begin, count));
  };
  const std::optional<int64_t> least = dots == std::string::npos ? std::nullopt : number(0, dots);
  const std::optional<int64_t> most = dots == std::string::npos ? std::nullopt : number(dots + 2, std::string::npos);
  if (!least || !most || *least < 1 || *most < *least || *most > tokens.most) {
    throw InputError(
        {.source = flag,
         .value = printable(text),
         .expected = fmt::format("a range MIN..MAX of tokens, for example 1..1000 (MAX at most {})", tokens.most)});
  }
  return LengthRange{*least, *most};
}

}  // namespace

void LoadFlags::declare(Options& options) {
  options_ = &options;
  options.heading(arrivals_heading);
  options.text("--trace", trace, trace_help());
  options.number("--time-scale", time_scale, {.least = 1e-6, .most = 1e6},
                 "Multiply the arrival times of the trace by this factor: 0.5 doubles the request rate");
  options.integer("--num-prompts", num_prompts, made_up_requests,
                  "Number of requests; 0 = all requests of the trace, or 1000 without a trace");
  options.text("--request-rate", request_rate,
               "Mean arrival rate in requests per second (300/min and 5000/h also work); inf = all requests arrive at "
               "once (in plan serve: the highest rate "
               "that keeps the limits)");
  options.number("--burstiness", arrivals.burstiness, not_negative,
                 "Shape parameter of the gamma-distributed gaps between arrivals: 1 = Poisson, below 1 = burstier, "
                 "above 1 = smoother");
  options.choice("--ramp-up-strategy", rate_shape, rate_shape_names(), "How the request rate changes during the run");
  options.number("--ramp-up-start-rps", arrivals.ramp_start, not_negative,
                 "Request rate at the start of the ramp, in requests per second");
  options.number("--ramp-up-end-rps", arrivals.ramp_end, not_negative,
                 "Request rate at the end of the ramp, in requests per second");
  options.number("--daily-swing", arrivals.swing, {.least = 0, .most = 0.99},
                 "With --ramp-up-strategy daily: amplitude of the daily cycle as a share of the mean rate");
  options.number("--daily-period", arrivals.period_s, not_negative,
                 "With --ramp-up-strategy daily: length of a day in seconds");
  options.integer(
      "--max-concurrency", max_concurrency, any_count,
      "Maximum number of requests in flight: a new request starts only when another one ends; 0 = no limit. In plan "
      "serve: the load to plan for, in place of a rate");
  options.list("--priority-shares", priority_shares,
               "Share of requests at each priority, starting with priority 0 (most urgent), for example 0.1,0.9; used "
               "by --scheduling-policy priority");
  options.integer("--seed", seed, any_count, "Random seed: the same seed gives the same requests and the same result");

  options.heading(lengths_heading);
  options.choice("--dataset-name", dataset, dataset_names(),
                 "How prompt and output lengths are generated. sessions = multi-turn conversations; agents = sessions "
                 "whose turns follow tool calls");
  options.text(
      "--dataset-path", dataset_path,
      "Draw pairs of prompt and output lengths from this trace or CSV table (columns input_tokens, output_tokens)");
  options.integer("--random-input-len,--prefix-repetition-suffix-len", input_len, tokens,
                  "Prompt length in tokens, not counting a shared prefix or earlier turns of a conversation");
  options.integer("--random-output-len,--prefix-repetition-output-len", output_len, tokens, "Output length in tokens");
  options.number("--random-range-ratio", range_ratio, {.least = 0, .most = 1},
                 "Vary prompt and output lengths uniformly by up to this share in either direction: 0.2 = 80% to 120%");
  options.text("--random-input-range", input_range,
               "Range of prompt lengths in tokens, each length equally likely, for example 1..1000 (what "
               "sglang.bench_serving draws for --random-input-len 1000 by default)");
  options.text("--random-output-range", output_range,
               "Range of output lengths in tokens, each length equally likely, for example 1..1000");
  options.choice(
      "--prompt-text", texts, names_of(prompt_text_names),
      "What prompts contain: natural = texts of many kinds; code = program code; random = random tokens with answers "
      "that ignore the end of text, as load generators send them. Where no draft acceptance is given, drafts are "
      "accepted more often over code, and over random tokens if the model's own layers make them");
  options.number("--lognormal-sigma", lognormal_sigma, {.least = 0, .most = 10},
                 "With --dataset-name lognormal: standard deviation of the logarithm of the lengths, whose means are "
                 "the given lengths");
  options.integer("--random-prefix-len,--prefix-repetition-prefix-len", prefix_len,
                  {.least = 0, .most = most_prefix_tokens}, "Length of the prefix shared by prompts, in tokens");
  options.integer("--prefix-repetition-num-prefixes", num_prefixes, {.least = 0, .most = most_prefixes},
                  "Number of distinct shared prefixes; 0 = 1, or 10 with --dataset-name prefix_repetition (256 tokens "
                  "each unless --prefix-repetition-prefix-len is given)");

  options.heading(conversations_heading);
  options.integer("--turns", sessions.turns, tokens,
                  "Requests per conversation; each one repeats all earlier turns in its prompt");
  options.number("--think-time", sessions.think_s, not_negative,
                 "Mean time between an answer and the user's next turn, in seconds");
  options.number("--tool-time", sessions.tool_s, not_negative,
                 "Mean duration of a tool call, in seconds, for turns that follow a tool call instead of the user");
  options.number("--tool-share", sessions.tool_share, {.least = 0, .most = 1},
                 "Share of turns that follow a tool call");
  options.integer("--subagents", sessions.subagents, {.least = 0, .most = 10'000},
                  "Number of subagents that a conversation starts at once and waits for; 0 = none");
  options.integer("--subagent-turns", sessions.subagent_turns, tokens, "Requests made by each subagent");
  options.number("--subagent-share", sessions.subagent_share, {.least = 0, .most = 1},
                 "Share of turns that start subagents");

  thinking.declare(options);
}

void LoadFlags::check_use(const Options& options) const {
  const std::vector<std::string> ramp = {"--ramp-up-start-rps", "--ramp-up-end-rps"};
  const std::vector<std::string> daily = {"--daily-swing", "--daily-period"};
  if (!trace.empty()) {
    options.refuse({"--burstiness", "--ramp-up-strategy", "--ramp-up-start-rps", "--ramp-up-end-rps", "--daily-swing",
                    "--daily-period"},
                   {lengths_heading, conversations_heading, ThinkingFlags::heading}, "--trace");
    return;
  }
  options.refuse_without("--trace", {"--time-scale"});
  thinking.check_use(options);
  if (sessions.subagents == 0) options.refuse_without("--subagents", {"--subagent-turns", "--subagent-share"});
  const std::string shape = "--ramp-up-strategy " + rate_shape;
  if (rate_shape != "linear" && rate_shape != "exponential") options.refuse(ramp, {}, shape);
  if (rate_shape != "daily") options.refuse(daily, {}, shape);
  if (!conversations()) options.refuse({}, {conversations_heading}, "--dataset-name " + dataset);
  if (dataset != "random") {
    options.refuse({"--random-input-range", "--random-output-range"}, {}, "--dataset-name " + dataset);
  }
  if (!input_range.empty()) options.refuse({"--random-input-len"}, {}, "--random-input-range");
  if (!output_range.empty()) options.refuse({"--random-output-len"}, {}, "--random-output-range");
  if (!input_range.empty() && !output_range.empty()) {
    options.refuse({"--random-range-ratio"}, {}, "--random-input-range and --random-output-range");
  }
  if (dataset != "lognormal") options.refuse({"--lognormal-sigma"}, {}, "--dataset-name " + dataset);
  if (!dataset_path.empty()) {
    options.refuse({"--random-input-len", "--random-output-len", "--random-range-ratio", "--random-input-range",
                    "--random-output-range", "--lognormal-sigma"},
                   {}, "--dataset-path");
  }
}

void LoadFlags::check_prefixes(const Options& options) const {
  if (!trace.empty()) return;
  if (dataset != "prefix_repetition" && prefix_len == 0) {
    options.refuse_without("--random-prefix-len", {"--prefix-repetition-num-prefixes"});
  }
  if (dataset == "prefix_repetition" && num_prefixes > requests()) {
    throw InputError(
        {.source = "--prefix-repetition-num-prefixes",
         .value = std::to_string(num_prefixes),
         .expected = fmt::format("at most one prefix for each of the {} prompts (--num-prompts)", requests())});
  }
}

double LoadFlags::rate() const {
  if (lower_case(request_rate) == "inf") return std::numeric_limits<double>::infinity();
  constexpr std::pair<std::string_view, double> units[] = {{"/s", 1}, {"/min", 60}, {"/h", 3600}};
  const size_t slash = std::min(request_rate.find('/'), request_rate.size());
  for (const auto& [unit, seconds] : units) {
    const std::optional<double> number = parse_number(request_rate.substr(0, slash));
    if (number && request_rate.substr(slash) == unit) return *number / seconds;
  }
  return number_of("--request-rate", request_rate, rate_forms);
}

std::string LoadFlags::open_load() const {
  if (max_concurrency > 0) return {};
  if (!trace.empty()) return "the arrivals of the trace";
  return std::isfinite(rate()) ? fmt::format("{:.4g} requests/s", rate()) : "";
}

// Where the command line does not say.
LoadFlags LoadFlags::with_agent_defaults() const {
  const AgentDefaults defaults;
  LoadFlags flags = *this;
  const auto set = [&](const char* flag, auto& value, auto usual) {
    if (!options_->was_given(flag)) value = usual;
  };
  set("--turns", flags.sessions.turns, defaults.turns);
  set("--tool-share", flags.sessions.tool_share, defaults.tool_share);
  set("--random-prefix-len", flags.prefix_len, defaults.system_tokens);
  set("--random-input-len", flags.input_len, defaults.input_tokens);
  set("--random-output-len", flags.output_len, defaults.output_tokens);
  return flags;
}

LoadSpec LoadFlags::spec() const {
  const LoadFlags flags = dataset == "agents" ? with_agent_defaults() : *this;
  LoadSpec spec{.trace = trace,
                .time_scale = time_scale,
                .num_prompts = num_prompts,
                .arrivals = arrivals,
                .max_concurrency = max_concurrency,
                .dataset = dataset_from_name(dataset).value(),  // one of the choices
                .dataset_path = dataset_path,
                .input_len = flags.input_len,
                .output_len = flags.output_len,
                .range_ratio = range_ratio,
                .lognormal_sigma = lognormal_sigma,
                .prefix_len = flags.prefix_len,
                .num_prefixes = num_prefixes,
                .texts = prompt_texts(),
                .sessions = flags.sessions};
  spec.input_range = range_of("--random-input-range", input_range);
  spec.output_range = range_of("--random-output-range", output_range);
  spec.arrivals.rate = rate();
  spec.arrivals.shape = rate_shape_from_name(rate_shape).value();  // one of the choices
  if (thinking.given()) spec.thinking = thinking.settings();
  for (const std::string& text : priority_shares) {
    spec.priority_shares.push_back(
        number_of("--priority-shares", text, "shares of requests by priority, for example 0.1,0.9"));
  }
  return spec;
}

PromptTexts LoadFlags::prompt_texts() const {
  return named<PromptTexts>(prompt_text_names, texts);
}

LoadMaker LoadFlags::load() const {
  return make_load(spec());
}

void GoalFlags::declare(Options& options) {
  options.list("--goodput,--slo", goodput,
               "Latency goals of a request for ttft, tpot or e2el, for example ttft:500,tpot:50 (ms) or ttft<0.5s; "
               "goodput counts the requests that meet all of them");
  options.list("--percentile-metrics", percentile_metrics, "Latencies to show: ttft, tpot, itl, e2el [ttft,tpot,itl]");
  options.list("--metric-percentiles", metric_percentiles, "Percentiles to show for each latency [99]");
}

LatencyGoals GoalFlags::goals() const {
  LatencyGoals result;
  if (goodput.empty()) return result;
  // A goal is one of each request: there is no percentile of them.
  for (const std::string& goal : goodput) {
    if (goal.find('@') == std::string::npos) continue;
    throw InputError({.field = "goodput",
                      .value = printable(goal),
                      .expected = "a limit for every request, without a percentile, for example ttft:500,tpot:50; "
                                  "`foretoken plan serve` takes limits at percentiles"});
  }
  constexpr SloMetric of_requests[] = {SloMetric::ttft, SloMetric::tpot, SloMetric::e2el};
  for (const LatencySlo& slo : parse_slos(fmt::format("{}", fmt::join(goodput, ",")), "goodput", of_requests)) {
    std::optional<double>& limit = slo.metric == SloMetric::ttft   ? result.ttft_ms
                                   : slo.metric == SloMetric::tpot ? result.tpot_ms
                                                                   : result.e2el_ms;
    limit = slo.limit_ms;
  }
  return result;
}

std::vector<double> GoalFlags::percentiles() const {
  std::vector<double> result;
  for (const std::string& text : metric_percentiles) {
    result.push_back(
        parse_listed_number("--metric-percentiles", text, {.least = 0, .most = 100}, "numbers from 0 to 100"));
  }
  return result.empty() ? std::vector<double>{99} : result;
}

std::vector<std::string> GoalFlags::shown_metrics() const {
  if (percentile_metrics.empty()) return {"ttft", "tpot", "itl"};
  const std::vector<std::string> known = latency_metric_names();
  for (const std::string& name : percentile_metrics) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw InputError({.source = "--percentile-metrics",
                        .value = printable(name),
                        .expected = fmt::format("one of {}", fmt::join(known, ", ")),
                        .suggestion = nearest_name(name, known).value_or("")});
    }
  }
  return percentile_metrics;
}

}  // namespace foretoken
