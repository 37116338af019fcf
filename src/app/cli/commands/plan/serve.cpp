#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/cli/commands/plan/list.h"
#include "app/cli/commands/plan/serving/day_flags.h"
#include "app/cli/commands/plan/serving/demand_flags.h"
#include "app/cli/commands/plan/serving/layout_flags.h"
#include "app/cli/commands/plan/serving/offer_flags.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/store_flags.h"
#include "app/cli/grammar/device_count.h"
#include "app/cli/output/out_file.h"
#include "app/cli/output/plan_files.h"
#include "app/cli/output/progress.h"
#include "app/cli/output/search_stop.h"
#include "base/error.h"
#include "base/field_braces.h"
#include "base/file.h"
#include "base/parallel.h"
#include "base/text.h"
#include "plan/serving/launch_files/launch_manifest.h"
#include "report/parts/table.h"
#include "report/plan/serving_plan_report.h"
#include "report/plan/serving_plan_words.h"
#include "report/plan/shared_plan_report.h"

namespace foretoken {
namespace {

std::string without_line_end(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class PlanServe : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    declare_question(options);
    options.heading("Layouts to try");
    layouts_.declare(options);
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
    demand_.check_use();
    layouts_.lora.check_use(*options_);
    adapter_load_.check_use(*options_, layouts_.lora.enabled, !demand_.load.trace.empty());
    day_.check_use();
    if (quick_)
      options_->refuse({"--most-simulated", "--finalists", "--html", "--trace-out", "--goal-seek", "--time-limit"}, {},
                       "--quick");
    if (demand_.load.conversations()) refuse_with_conversations();
    if (demand_.load.max_concurrency > 0) refuse_with_closed_loop("--max-concurrency");
    if (find_max_concurrency_) {
      refuse_flag("--max-concurrency", "--find-max-concurrency", "only one of the two");
      if (demand_.load.conversations()) refuse_flag("--find-max-concurrency", "conversations", "a --request-rate");
      refuse_with_closed_loop("--find-max-concurrency");
    }
    // Closed forms know nothing of requests that wait for slots: they may be off by ten times.
    if (quick_) options_->refuse({"--enable-lora"}, {}, "--quick, which does not price waiting for adapter slots");
    // Ranks that share a store must all search alike; one that is killed is resumed from the store.
    if (!store_.store.empty()) options_->refuse({"--time-limit"}, {}, "--store");
    const SearchStop stop(time_limit_, store_.store.empty());
    const ProcessRank rank = store_.own_rank();
    if (launch_ == "lines") options_->refuse({"--launch-out"}, {}, "--launch lines");
    if (!also_.empty()) return run_together(library, rank, stop);
    ServingPlanner planner = make_planner(library, {.model = model_, .load = load(library)}, stop);
    day_.check_least_replicas(planner.question);
    if (rank.answers()) {
      files_.check();
      OutFile("--launch-out", launch_out_, OutFile::Mode::append).close();
    }
    const ServingSearchResult result = searched(planner, library);
    if (!rank.answers()) return {.text = {}, .json = {}};
    const std::optional<LayoutExplanation> explanation = planner.explain(result);
    const SoughtGoals goals = goal_seek_ ? planner.seek(result) : SoughtGoals();
    const std::optional<DayPlan> day =
        day_.given() ? planner.day(result, day_.settings(demand_.load_of_use(library))) : std::nullopt;
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
    if (result.winner() == nullptr) {
      tell_unwritten(answer);
    } else if (launch_ != "lines") {
      add_launch_file(planner, result.winner()->layout, answer);
    }
    return answer;
  }

 private:
  // Users whose answers come faster ask sooner again: where that is more than was assumed, the search is for the rate
  // that the speed of the winner makes. Slower answers leave the rate as it is, with more to spare. Where nothing
  // serves the higher rate, answers at the rate in between are slower, too: the search goes on there. Where nothing
  // serves even the first rate, users wait longer for the layout that serves most, and ask for less.
  ServingSearchResult searched(ServingPlanner& planner, const Library& library) const {
    if (find_max_concurrency_) return searched_in_flight(planner);
    if (demand_.users == 0) return planner.search();
    const double output_tokens = planner.traffic.lengths().mean_output;
    double answer_s = demand_.assumed_answer_seconds(library, output_tokens);
    const auto count_users = [&](double seconds) {
      answer_s = seconds;
      if (!day_.given()) planner.question.rate = demand_.rate_of_users(seconds);
    };
    count_users(answer_s);
    ServingSearchResult result = planner.search();
    constexpr int most_rounds = 5;
    constexpr double as_good_as = 1.02;
    std::optional<double> served_s, unserved_s;  // answers that make a rate which is served, and one that is not
    std::optional<double> asked_rate;            // of users whose answers come sooner than was counted
    for (int round = 0; round < most_rounds && !day_.given() && !result.stopped; ++round) {
      const PlanRun* run = result.winner() == nullptr ? nullptr : shown_run(planner.question, *result.winner());
      double next_s = 0;
      if (run == nullptr || run->tokens_per_s_of_user <= 0) {
        const std::optional<double> slower_s = served_s ? std::nullopt : answer_of_most(result, output_tokens);
        if (!served_s && (!slower_s || *slower_s <= answer_s)) break;
        unserved_s = answer_s;
        next_s = served_s ? (*served_s + answer_s) / 2 : *slower_s;
      } else {
        const double own_s = output_tokens / run->tokens_per_s_of_user;
        const double own_rate = demand_.rate_of_users(own_s);
        asked_rate.reset();
        if (own_rate <= as_good_as * *planner.question.rate) break;
        asked_rate = own_rate;
        served_s = answer_s;
        next_s = unserved_s ? std::max(own_s, (answer_s + *unserved_s) / 2) : own_s;
      }
      const double before_s = answer_s;
      count_users(next_s);
      ServingSearchResult next = planner.search();
      if (next.stopped && result.winner() != nullptr) {
        count_users(before_s);  // what was found in full
        result.stopped = true;
        break;
      }
      result = std::move(next);
    }
    if (asked_rate && result.winner() != nullptr) {
      planner.question.assumptions.push_back(fmt::format(
          "Answers come sooner than that, so that these users ask for up to {:.3g} requests/s.", *asked_rate));
    } else if (asked_rate) {
      planner.question.assumptions.push_back(
          fmt::format("{:.3g} requests/s are served, but then answers come so soon that these users ask for more.",
                      demand_.rate_of_users(*served_s)));
    }
    for (std::string& sentence : demand_.user_assumptions(answer_s)) {
      planner.question.assumptions.push_back(std::move(sentence));
    }
    return result;
  }

  // Seconds of an answer of the layout that serves most, where its users then ask for no more than that.
  std::optional<double> answer_of_most(const ServingSearchResult& result, double output_tokens) const {
    const PlanPoint* most = most_capable(result);
    const PlanRun* run = most == nullptr ? nullptr : most->at_capacity();
    if (run == nullptr || run->tokens_per_s_of_user <= 0) return std::nullopt;
    const double seconds = output_tokens / run->tokens_per_s_of_user;
    return demand_.rate_of_users(seconds) <= run->rate ? std::optional(seconds) : std::nullopt;
  }

  // The most requests in flight are those of the layouts that sustain most; the answer is the best layout for them.
  ServingSearchResult searched_in_flight(ServingPlanner& planner) const {
    ServingSearchResult at_a_rate = planner.search();
    const std::optional<ServingPlanner::MostInFlight> most = planner.most_in_flight(at_a_rate);
    if (!most) {
      planner.question.assumptions.emplace_back(
          at_a_rate.stopped
              ? "The search ended before the most requests in flight ({find_max_concurrency}) were found: "
                "the answer is for a rate of arrivals."
              : "No number of requests in flight was found that keeps the limits "
                "({find_max_concurrency}): the answer is for a rate of arrivals.");
      return at_a_rate;
    }
    planner.question.in_flight = most->requests;
    if (objective_ != "capacity") planner.question.objective = PlanObjective::cost;
    planner.question.assumptions.push_back(
        fmt::format("At most {} requests in flight keep the limits ({{find_max_concurrency}}), found with {}. The "
                    "answer is for that number.",
                    most->requests, layout_text(most->layout)));
    return planner.search();
  }

  void add_launch_file(const ServingPlanner& planner, const ServingLayout& layout, Answer& answer) const {
    std::string manifest;
    try {
      manifest =
          launch_manifest(launch_, planner.question, layout, planned_model_len(planner.question, planner.traffic));
    } catch (const InputError& error) {
      refuse_launch_file(error.problem(), answer);
      return;
    }
    if (launch_out_.empty()) {
      answer.text += "\n" + with_literal_braces(manifest);
    } else {
      write_file(launch_out_, manifest);
    }
    answer.json.set("manifest", with_literal_braces(manifest));
  }

  // Files of the winner, where there is none: one of an earlier run stays as it is.
  void tell_unwritten(Answer& answer) const {
    remove_if_empty(launch_out_);  // made to see whether it can be written
    for (const std::string& file : {files_.trace_out, launch_out_}) {
      if (file.empty()) continue;
      answer.text += with_literal_braces(fmt::format("\n{} was not written: no layout was found.\n", file));
    }
  }

  // The search took its time, and its answer stands without the file.
  void refuse_launch_file(const InputProblem& problem, Answer& answer) const {
    const std::string note =
        fmt::format("No file was written for --launch {}. {} {}", launch_, problem.value, problem.expected);
    answer.text += wrap_lines("\nnote: " + note + "\n", page_width(), 2);
    answer.json.set("manifest", Json());
    answer.json.set("manifest_note", note);
    remove_if_empty(launch_out_);  // made to see whether it can be written
  }

  // Closed forms know nothing of caches that conversations leave behind, and days only of requests that stand alone.
  void refuse_with_conversations() const {
    const auto refuse = [&](const char* flag, const char* instead) {
      refuse_flag(flag, "--dataset-name " + demand_.load.dataset, instead);
    };
    refuse("--max-concurrency", "conversations at a --request-rate, or requests of another --dataset-name in flight");
    refuse("--quick", "a search without --quick: the turns of conversations must be simulated");
    refuse("--day", "the conversations per second at the peak of the day as --request-rate");
    refuse("--users", "the conversations that begin per second as --request-rate");
  }

  void refuse_with_closed_loop(const char* loop) const {
    const auto refuse = [&](const char* flag, const char* instead) { refuse_flag(flag, loop, instead); };
    constexpr const char* either = "either requests per second or requests in flight";
    refuse("--request-rate", either);
    refuse("--users", either);
    refuse("--day", either);
    refuse("--trace", "the lengths of the trace as --dataset-path: its requests have arrival times of their own");
    refuse("--quick", "a search without --quick: closed forms are of requests that arrive at a rate");
    refuse("--goal-seek", "a --request-rate: changes are compared by the rate that they sustain");
    refuse("--also", "a --request-rate for each model");
    for (const char* flag : {"--html", "--trace-out"}) {
      refuse(flag, "`foretoken serve --max-concurrency` with the winner's flags, which writes such a file");
    }
  }

  void refuse_flag(const char* flag, const std::string& with, const char* instead) const {
    if (!options_->was_given(flag)) return;
    throw InputError({.source = flag, .value = "cannot be combined with " + with, .expected = instead});
  }

  void declare_question(Options& options) {
    options.heading("Question");
    options.text("--model", model_,
                 "Built-in name (`foretoken models` lists them), a config.json, or a directory that contains one",
                 true);
    demand_.declare(options);
    day_.declare(options);
    options.number("--attainment", attainment_, {.least = 0, .most = 100},
                   "Percentage of requests that must meet every limit (goodput), instead of each limit at its "
                   "percentile; 0 = off");
    options.flag("--find-max-concurrency", find_max_concurrency_,
                 "Find the largest number of requests always in flight that keeps the limits, and plan for it as "
                 "with --max-concurrency");
    offer_.declare(options);
    options.choice(
        "--objective", objective_, {"auto", "capacity", "cost"},
        "What to optimize: auto = lowest cost that serves --request-rate, or highest capacity if no rate is given");
    options.flag("--pessimistic", pessimistic_,
                 "Plan with the slow end of the 90% interval of each step instead of the middle");
    options.list("--also", also_,
                 "Another model to serve on the same devices with its own engines: MODEL@RATE, or MODEL@RATE:IN/OUT "
                 "with its own lengths. --request-rate is then required");
    demand_.load.declare(options);
    adapter_load_.declare(options);
  }

  void declare_search(Options& options) {
    options.heading("Search");
    options.flag("--quick", quick_,
                 "Answer in about a second from formulas instead of simulations, with wider intervals");
    options.integer("--most-simulated", most_simulated_, {.least = 1, .most = 1'000'000},
                    "Maximum number of layouts to simulate briefly, for each kind of device");
    options.integer("--finalists", finalists_, {.least = 1, .most = 10'000},
                    "Number of layouts to simulate at length, for each kind of device");
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
                   "Kubernetes, Docker Compose, NVIDIA Dynamo, llm-d or KServe");
    options.text("--launch-out", launch_out_, "Write the YAML of --launch to this file instead of printing it");
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
    if (layouts_.speculation.given()) {
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
    if (demand_.users > 0) {
      const double answer_s = demand_.assumed_answer_seconds(library, static_cast<double>(own.output_len));
      for (std::string& sentence : demand_.user_assumptions(answer_s)) {
        questions.front().assumptions.push_back(std::move(sentence));
      }
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
    LoadFlags flags = demand_.load_of_use(library);
    if (day_.given()) flags.request_rate = number_text(day_.rates(flags).peak());
    return flags;
  }

  std::vector<std::string> assumptions(const Library& library, const LoadFlags& load) const {
    std::vector<std::string> sentences;
    const auto add = [&](const std::vector<std::string>& more) {
      sentences.insert(sentences.end(), more.begin(), more.end());
    };
    if (quick_) {
      sentences.emplace_back(
          "Nothing was simulated ({quick}): each capacity is the usual share of a closed-form bound. Run without "
          "{quick} before you rent.");
    }
    add(offer_.count_notes(library));
    add(demand_.use_assumptions(library));
    if (day_.given()) {
      sentences.push_back(
          fmt::format("Layouts are chosen for the peak of the day, {} requests/s.", asked_rate_number(load.rate())));
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
    const ProcessRank rank = store_.own_rank();
    ServingPlanner planner{.library = library,
                           .question = question(library, asked),
                           .traffic = planned_traffic(asked.load, adapter_load_),
                           .device_files = offer_.device_files(library),
                           .other_files = {asked.model},
                           .tier = tier_from_name(tier_).value(),
                           .placement = layouts_.placement.spec(),
                           .host_factor = layouts_.host_factor,
                           .limits = {.quick = static_cast<size_t>(most_simulated_),
                                      .full = static_cast<size_t>(finalists_),
                                      .closed_form = quick_},
                           .threads = threads_to_use(threads_),
                           .processes = rank.launcher.empty() ? 0 : rank.count,
                           .store = store_.store,
                           .tell = show_progress,
                           .check_wanted = [wanted = wanted_check(), &stop] {
                             wanted();
                             stop.check();
                           }};
    planner.question.has_conversations = planner.traffic.has_conversations();
    // Rates of conversations are of those; a search counts requests.
    if (planner.question.rate) *planner.question.rate *= planner.traffic.requests_each();
    layouts_.choose_host_memory(planner);
    if (layouts_.lora.enabled) layouts_.choose_slots(planner);
    if (planner.question.drafts) planner.other_files.push_back(planner.question.drafts->config.model);
    const TrafficLengths& lengths = planner.traffic.lengths();
    const auto context = static_cast<int64_t>(lengths.mean_input + lengths.mean_output / 2);
    for (HardwareChoice& one : planner.question.hardware)
      one.sheet_share = sheet_share(library, planner.question.model, one, std::max<int64_t>(1, context), planner.tier);
    return planner;
  }

  ServingQuestion question(const Library& library, const AskedModel& of) const {
    const double rate = of.load.rate();
    ServingQuestion asked{.model = library.models().model(of.model),
                          .slos = demand_.limits(library),
                          .hardware = offer_.choices(library, tier_from_name(tier_).value(), layouts_.placement.spec()),
                          .choices = {},
                          .drafts = {},
                          .max_model_len = layouts_.max_model_len,
                          .memory_fraction = layouts_.memory_fraction,
                          .assumptions = assumptions(library, of.load)};
    if (attainment_ > 0) set_attainment(asked);
    asked.pessimistic = pessimistic_;
    asked.texts = of.load.prompt_texts();
    if (asked.model.is_encoder_only()) {
      throw InputError({.source = "--model", .value = asked.model.name, .expected = "a model that generates tokens"});
    }
    if (std::isfinite(rate)) asked.rate = rate;
    if (asked.rate && *asked.rate <= 0) {
      throw InputError({.source = "--request-rate", .value = of.load.request_rate, .expected = "a number above 0"});
    }
    if (of.load.max_concurrency > 0) asked.in_flight = of.load.max_concurrency;
    asked.budget_usd_per_hour = offer_.budget();
    const bool cheap = objective_ == "cost" || (objective_ == "auto" && asked.has_demand());
    asked.objective = !cheap               ? PlanObjective::capacity
                      : asked.has_demand() ? PlanObjective::cost
                                           : PlanObjective::cost_per_request;
    for (std::string& sentence : price_notes(asked)) asked.assumptions.push_back(std::move(sentence));
    asked.choices = layouts_.choices(asked.model, quick_);
    layouts_.check_runs_somewhere(asked);
    if (layouts_.speculation.given()) {
      const SpeculationFlags& flags = layouts_.speculation;
      SpeculativeConfig config = flags.read(asked.model);
      if (config.acceptance_is_usual) config.assume_usual(asked.texts);
      asked.drafts = DraftChoice{
          .config = config, .model = flags.draft_model(config, library), .text = flags.config + " " + flags.acceptance};
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

  const Options* options_ = nullptr;
  std::string model_, objective_ = "auto", tier_ = "best", launch_ = "lines", launch_out_;
  std::vector<std::string> also_;
  double attainment_ = 0, time_limit_ = 0;
  bool pessimistic_ = false, quick_ = false, goal_seek_ = false, find_max_concurrency_ = false;
  int64_t most_simulated_ = 96, finalists_ = 6, threads_ = 0;
  DemandFlags demand_;
  DayFlags day_;
  OfferFlags offer_;
  LayoutFlags layouts_;
  AdapterLoadFlags adapter_load_;
  StoreFlags store_;
  PlanFileFlags files_;
};

}  // namespace

std::unique_ptr<Command> make_plan_serve() {
  return std::make_unique<PlanServe>();
}

}  // namespace foretoken
