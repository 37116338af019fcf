#include "app/cli/commands/plan/serving/demand_flags.h"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "library/traffic_use.h"

namespace foretoken {
namespace {

constexpr int64_t most_traffic = 30'000;  // requests that are kept; capacity needs no more

}  // namespace

void DemandFlags::declare(Options& all) {
  options = &all;
  all.list("--slo,--goodput", slos,
           "Latency limits for ttft, tpot, itl or e2e: ttft<500ms@p99,tpot<50ms@p95; or ttft:500,tpot:50 (ms at "
           "p99) [the limits of --traffic]");
  all.text("--traffic", traffic,
           "What the requests are for: chat, code, rag, agent or batch. Sets lengths, shared prefixes and default "
           "limits from public statistics (data/traffic/uses.json); length flags override them");
  all.integer("--users", users, {.least = 0, .most = 1'000'000'000},
              "Number of people who use the service at once, instead of --request-rate; 0 = not given");
  all.number("--user-pause", user_pause_s, {.least = 0.001, .most = 1e6},
             "With --users: mean time between an answer and the same user's next request, in seconds");
}

void DemandFlags::check_use() const {
  load.check_use(*options);
  if (users == 0) options->refuse_without("--users", {"--user-pause"});
}

LoadFlags DemandFlags::load_of_use(const Library& library) const {
  LoadFlags flags = load;
  if (!traffic.empty()) {
    options->refuse({"--trace", "--dataset-name", "--dataset-path", "--random-range-ratio", "--random-input-range",
                     "--random-output-range"},
                    {}, "--traffic");
    const TrafficUse use = traffic_use(library.directory(), traffic);
    const auto set = [&](const char* flag, auto& value, auto usual) {
      if (!options->was_given(flag)) value = usual;
    };
    flags.dataset = "lognormal";
    set("--lognormal-sigma", flags.lognormal_sigma, use.sigma);
    set("--random-input-len", flags.input_len, use.input_tokens);
    set("--random-output-len", flags.output_len, use.output_tokens);
    set("--random-prefix-len", flags.prefix_len, use.prefix_tokens);
    set("--prefix-repetition-num-prefixes", flags.num_prefixes, use.prefixes);
    set("--prompt-text", flags.texts, use.is_code ? "code" : "natural");
  }
  if (users > 0) {
    options->refuse({"--request-rate"}, {}, "--users");
    const double answer_s = assumed_answer_seconds(library, static_cast<double>(flags.output_len));
    flags.request_rate = number_text(rate_of_users(answer_s));
  }
  return flags;
}

double DemandFlags::rate_of_users(double answer_s) const {
  return *parse_number(fmt::format("{:.3g}", static_cast<double>(users) / (user_pause_s + answer_s)));
}

double DemandFlags::assumed_answer_seconds(const Library& library, double output_tokens) const {
  // Half of the strictest limit of each kind.
  std::map<SloMetric, double> half_ms;
  for (const LatencySlo& slo : limits(library)) {
    const auto [place, is_first] = half_ms.emplace(slo.metric, slo.limit_ms / 2);
    if (!is_first) place->second = std::min(place->second, slo.limit_ms / 2);
  }
  const double answer_ms = half_ms[SloMetric::ttft] + half_ms[SloMetric::tpot] * output_tokens;
  const double whole_ms = half_ms[SloMetric::e2el];
  return (whole_ms > 0 && (answer_ms <= 0 || whole_ms < answer_ms) ? whole_ms : answer_ms) / 1e3;
}

std::vector<LatencySlo> DemandFlags::limits(const Library& library) const {
  if (!slos.empty()) return parse_slos(fmt::format("{}", fmt::join(slos, ",")), "slo");
  return parse_slos(traffic_use(library.directory(), traffic.empty() ? usual_traffic_use : traffic).slo, "slo");
}

std::vector<std::string> DemandFlags::use_assumptions(const Library& library) const {
  std::vector<std::string> sentences;
  if (!traffic.empty()) {
    const TrafficUse use = traffic_use(library.directory(), traffic);
    sentences.push_back(fmt::format("Requests are those of {} ({}): {}.", use.name, use.summary, use.source));
  }
  if (slos.empty()) {
    const TrafficUse use = traffic_use(library.directory(), traffic.empty() ? usual_traffic_use : traffic);
    sentences.push_back(
        fmt::format("No {{slo}} was given: {} is the default for {} ({}).", use.slo, use.name, use.slo_source));
  }
  return sentences;
}

std::vector<std::string> DemandFlags::user_assumptions(double answer_s) const {
  if (users == 0) return {};
  return {
      fmt::format("{} users are counted as {:.3g} requests/s: each user waits {:.2g} s for an answer and pauses {} s "
                  "({{user_pause}}) before the next request.",
                  users, rate_of_users(answer_s), answer_s, number_text(user_pause_s))};
}

namespace {

// Conversations have long prompts, whose blocks are all kept.
constexpr int64_t most_of_conversations = 6'000;

// Every run draws conversations of its own; some are drawn for the lengths of their requests.
Traffic planned_conversations(const LoadFlags& load, const AdapterLoadFlags& adapters) {
  const LoadSpec spec = load.spec();
  const auto begun = [spec, adapters](double per_s, int64_t count) {
    LoadSpec own = spec;
    own.arrivals.rate = per_s;
    own.num_prompts = count;
    return adapters.load(make_load(own));
  };
  const SessionSettings& sessions = spec.sessions;
  const double agents = sessions.subagent_share * static_cast<double>(sessions.subagents * sessions.subagent_turns);
  const double usual_requests = static_cast<double>(sessions.turns) * (1 + agents);
  int64_t drawn = std::max<int64_t>(2, static_cast<int64_t>(most_of_conversations / usual_requests));
  if (load.num_prompts > 0) drawn = std::min(drawn, load.num_prompts);
  const auto seed = static_cast<uint64_t>(load.seed);
  const std::unique_ptr<RequestSource> source = begun(1, drawn)(seed);
  return {Traffic::taken_from(*source, std::numeric_limits<int64_t>::max()), drawn, {.begun = begun, .seed = seed}};
}

}  // namespace

Traffic planned_traffic(const LoadFlags& load, const AdapterLoadFlags& adapters) {
  if (load.conversations()) return planned_conversations(load, adapters);
  LoadFlags flags = load;
  flags.request_rate = load.trace.empty() ? "1" : "inf";
  flags.max_concurrency = 0;  // of the runs
  if (flags.num_prompts == 0) flags.num_prompts = most_traffic;
  const std::unique_ptr<RequestSource> source = adapters.load(flags.load())(static_cast<uint64_t>(load.seed));
  return Traffic(Traffic::taken_from(*source, std::min(flags.num_prompts, most_traffic)));
}

}  // namespace foretoken
