#include "serving/validate/validate_serving.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel.h"
#include "serving/engine/engine_builder.h"
#include "serving/engine/engine_setup.h"
#include "serving/load/closed_loop.h"
#include "serving/load/listed_source.h"
#include "serving/load/synthetic.h"
#include "serving/load/trace.h"
#include "serving/speculation/acceptance_table.h"
#include "serving/validate/serving_case.h"

namespace foretoken {
namespace {

bool wanted(const std::vector<std::string>& filter, std::string_view value) {
  return filter.empty() || std::find(filter.begin(), filter.end(), value) != filter.end();
}

// InputError for a value of a filter that no row has.
void check_filters(const ServingValidationRequest& request) {
  struct Filter {
    const char *flag, *column;
    const std::vector<std::string>& values;
    std::set<std::string> known;
  };
  Filter filters[] = {{"--kinds", nullptr, request.kinds, {"dense", "moe"}},
                      {"--tiers", "tier", request.tiers, {}},
                      {"--devices", "gpu", request.devices, {}},
                      {"--models", "model", request.models, {}},
                      {"--engines", "engine", request.engines, {}}};
  ServingCaseReader rows(request.data);
  while (rows.next()) {
    for (Filter& filter : filters) {
      if (filter.column != nullptr) filter.known.emplace(rows.text(filter.column));
    }
  }
  for (const Filter& filter : filters) {
    for (const std::string& value : filter.values) {
      if (filter.known.contains(value)) continue;
      const std::vector<std::string> known(filter.known.begin(), filter.known.end());
      throw InputError({.source = filter.flag,
                        .value = printable(value),
                        .expected = fmt::format("one of {}", fmt::join(known, ", ")),
                        .suggestion = nearest_name(value, known).value_or("")});
    }
  }
}

struct Answered {
  std::vector<Headline> values;  // as ServingCase::measured
  std::string why;               // where there are none
  double seconds = 0;
};

// Of equal replicas that share an open load one stands for all, with its part of it and no more requests than tell.
int64_t stands_for(const ServingCase& point) {
  return point.laws && !point.prefill ? point.pool.replicas : 1;
}
// Ten minutes of an open load, as the rules of MLPerf ask for; of one sent at once what fills the engine several times.
int64_t enough_requests(double rate) {
  constexpr double least_seconds = 600;
  constexpr int64_t most = 6000;
  return std::isfinite(rate) ? std::min(most, static_cast<int64_t>(rate * least_seconds) + 1) : most;
}

LoadMaker load_of(const ServingCase& point, const std::vector<Request>& replayed) {
  if (point.trace) {
    return [&replayed](uint64_t /*seed*/) { return std::make_unique<ReplayedRequests>(replayed); };
  }
  return [&point](uint64_t seed) {
    ArrivalSettings arrivals = point.arrivals;
    std::unique_ptr<LengthSource> lengths;
    if (point.laws) {
      const int64_t share = stands_for(point);
      arrivals.rate /= static_cast<double>(share);
      arrivals.count = std::clamp<int64_t>(arrivals.count / share, 1, enough_requests(arrivals.rate));
      lengths = lognormal_lengths(point.laws->first, point.laws->second, seed);
    } else {
      lengths = uniform_lengths(point.input, point.output, seed);
    }
    std::unique_ptr<RequestSource> load = synthetic_load(arrivals, std::move(lengths), {}, seed);
    return point.concurrency > 0 ? closed_loop(std::move(load), point.concurrency) : std::move(load);
  };
}

int64_t longest_of(const std::vector<Request>& requests) {
  int64_t longest = 0;
  for (const Request& request : requests) longest = std::max(longest, request.input_tokens + request.output_tokens);
  return longest;
}

// The requests of a row that replays a file: APEX+ sent a trace at 0.25 or 0.5 requests a second, each of its engines
// every so many of them. InputError where it is not there.
std::vector<Request> replayed_requests(const ServingCase& point, const std::filesystem::path& folder) {
  if (!point.trace) return {};
  const CaseTrace& trace = *point.trace;
  if (folder.empty()) {
    throw InputError({.source = "--traces", .expected = "the folder of the request files that rows replay"});
  }
  const bool slow = point.arrivals.rate * static_cast<double>(trace.shards) < 0.375;
  const std::unique_ptr<RequestSource> source =
      open_trace(folder / fmt::format("apex_{}_{}_{}.csv", trace.tokenizer, trace.name, slow ? "025" : "05"));
  std::vector<std::vector<Request>> shards(static_cast<size_t>(trace.shards));
  for (size_t i = 0; source->next_arrival(); ++i) shards[i % shards.size()].push_back(source->next());
  const auto distance = [&](const std::vector<Request>& shard) {
    int64_t tokens = 0;
    for (const Request& request : shard) tokens += request.input_tokens;
    return std::abs(tokens - trace.input_tokens);
  };
  return *std::min_element(shards.begin(), shards.end(),
                           [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
}

// The engine of a row's pool with this plan. `acceptance` where the row drafts; `longest_request` in tokens, where the
// row does not say it.
EngineSpec engine_of(const ServingCase& point, const ParallelPlan& plan, const Model& model, const Device& device,
                     const AcceptanceTable* acceptance, int64_t longest_request = 0) {
  EngineSpec spec{.model = with_scheme(model, point.scheme),
                  .device = device,
                  .plan = plan,
                  .flags = point.flags,
                  .stack = point.stack,
                  .scheduler = point.scheduler,
                  .scheduling = {.enable_prefix_caching = point.prefix_caching,
                                 .async_scheduling = point.async_scheduling,
                                 .batch_wait_timeout_iters = point.batch_wait_timeout_iters,
                                 .batch_wait_max_tokens_ratio = point.batch_wait_max_tokens_ratio},
                  .receive_interval = point.receive_interval,
                  .offline = point.concurrency == 0 && !std::isfinite(point.arrivals.rate)};
  spec.flags.kv_dtype = point.kv_dtype.value_or(spec.model.kv_cache_dtype());
  int64_t& longest = spec.flags.max_model_len;
  if (longest_request > 0) longest = longest_request;
  if (model.max_positions > 0) longest = std::min(longest, model.max_positions);
  if (acceptance != nullptr) {
    spec.speculation =
        SpeculativeConfig{.method = &draft_method(point.draft_method), .num_speculative_tokens = point.drafts};
    spec.speculation->acceptance =
        acceptance->of_model_or_all(point.model, spec.speculation->method->name, point.drafts);
  }
  return spec;
}

// How caches move from the pool of prompts to the one that decodes. InputError where the network is not known.
Disaggregation pools_of(const ServingCase& point, double kv_bytes_per_token, const std::optional<Node>& node) {
  Disaggregation pools{.prefill_replicas = static_cast<size_t>(point.prefill->replicas),
                       .decode_router = "least_outstanding",
                       .kv_bytes_per_token = kv_bytes_per_token,
                       .ports = {},
                       .first_token = usual_first_token(point.flags.engine)};
  const CasePool both[] = {*point.prefill, point.pool};
  int64_t devices = 0;
  for (const CasePool& pool : both) devices += pool.replicas * engine_devices(pool.plan);
  const std::optional<BytesPerSecond> bandwidth = node ? transfer_bandwidth_per_device(*node, devices) : std::nullopt;
  if (!bandwidth) {
    throw InputError({.source = point.id, .value = point.gpu, .expected = "a device whose network is known"});
  }
  for (const CasePool& pool : both) {
    const KvPort port{.bandwidth = BytesPerSecond(bandwidth->value() * static_cast<double>(engine_devices(pool.plan))),
                      .latency = usual_transfer_latency};
    pools.ports.insert(pools.ports.end(), static_cast<size_t>(pool.replicas), port);
  }
  return pools;
}

// What the rows of a group have in common.
struct GroupFacts {
  const Model& model;
  const Device& device;
  const AcceptanceTable* acceptance = nullptr;  // where they draft
  std::optional<Node> node = {};                // where caches move
};

std::vector<Headline> simulate_point(const ServingCase& point, const GroupFacts& group, EngineBuilder& builder,
                                     const std::filesystem::path& traces) {
  ServingRunRequest request;
  const int64_t share = stands_for(point);
  const std::vector<Request> replayed = replayed_requests(point, traces);
  std::vector<ReplicaGroup> engines;  // whose step times replicas use
  if (point.prefill) {
    engines.push_back(builder.build(engine_of(point, point.prefill->plan, group.model, group.device, nullptr)));
  }
  engines.push_back(builder.build(
      engine_of(point, point.pool.plan, group.model, group.device, group.acceptance, longest_of(replayed))));
  request.config.router = point.prefill ? "least_outstanding" : usual_router(point.flags.engine, point.pool.replicas);
  if (point.prefill) {
    request.config.replicas.assign(static_cast<size_t>(point.prefill->replicas), engines.front().config);
    const double cache = kv_bytes_per_token(engines.back().model, engines.back().kv_dtype).value();
    request.config.disaggregation = pools_of(point, cache, group.node);
  }
  request.config.replicas.insert(request.config.replicas.end(), static_cast<size_t>(point.pool.replicas / share),
                                 engines.back().config);
  request.load = load_of(point, replayed);
  request.percentiles = {};
  const ServingRun run = run_serving(request);
  if (run.metrics.completed == 0) {
    throw InputError({.source = point.id, .value = "no request", .expected = "requests that fit the engine"});
  }
  std::vector<Headline> values;
  for (const MeasuredValue& measured : point.measured) {
    Headline value = run.headline(measured.predicted);
    if (measured.metric == "out_tok_s" || measured.metric == "req_s") {
      for (double* one : {&value.value, &value.low, &value.high}) *one *= static_cast<double>(share);
    }
    values.push_back(value);
  }
  return values;
}

// Reads rows, simulates them in groups, keeps the answers in the order of rows.
class ServingValidator {
 public:
  ServingValidator(const HardwareCatalogue& hardware, const ModelCatalogue& models, const StackCatalogue& stacks,
                   const DeviceModelMaker& make_models, std::optional<AcceptanceTable> acceptance,
                   std::filesystem::path traces)
      : hardware_(hardware),
        models_(models),
        stacks_(stacks),
        make_models_(make_models),
        acceptance_(std::move(acceptance)),
        traces_(std::move(traces)) {}

  // InputError where the row names something unknown.
  void add(ServingCase point) {
    if (point.drafts > 0 && !acceptance_) {
      throw InputError({.source = "--speculative-acceptance",
                        .expected = "measured acceptance lengths: the row does not say how many drafts were accepted"});
    }
    const Model& model = find_model(point.model);
    if (point.devices > 0) choose_layout(point, with_scheme(model, point.scheme), find_device(point.gpu));
    check_step(model, {}, point.pool.plan);
    if (point.prefill) check_step(model, {}, point.prefill->plan);
    const Device& device = find_device(point.gpu);
    groups_[{device.name, model.name, point.scheme, point.kv_dtype, plan_key(point.pool.plan),
             point.prefill ? plan_key(point.prefill->plan) : PlanKey{}, point.stack, point.draft_method, point.drafts}]
        .push_back(points_.size());
    points_.push_back(std::move(point));
  }

  bool is_dense(const std::string& model) { return !find_model(model).has_experts(); }

  std::vector<Answered> answer(int threads) {
    std::vector<Answered> answers(points_.size());
    std::vector<const std::vector<size_t>*> work;
    for (const auto& [key, rows] : groups_) work.push_back(&rows);
    std::atomic<size_t> next = 0;
    run_on_threads(static_cast<unsigned>(std::max(1, threads)), [&] {
      for (size_t index = next++; index < work.size(); index = next++) answer_group(*work[index], answers);
    });
    return answers;
  }

  const std::vector<ServingCase>& points() const { return points_; }

 private:
  using PlanKey = std::array<int64_t, 4>;
  using Key = std::tuple<std::string, std::string, Scheme, std::optional<DType>, PlanKey, PlanKey, std::string,
                         std::string, int64_t>;

  static PlanKey plan_key(const ParallelPlan& plan) { return {plan.tensor, plan.pipeline, plan.expert, plan.data}; }

  // The fewest devices whose engine keeps a fifth of the memory for the cache, or else all of a node: what those who
  // seek throughput choose.
  static void choose_layout(ServingCase& point, const Model& model, const Device& device) {
    constexpr double cache_share = 0.2;
    constexpr int64_t most = 8;
    for (int64_t tensor = 1; tensor <= std::min(point.devices, most); tensor *= 2) {
      if (point.devices % tensor != 0) continue;
      point.pool = {.replicas = point.devices / tensor, .plan = {.tensor = tensor, .expert = tensor}};
      if (!model.has_experts()) point.pool.plan.expert = 1;
      const ServingMemory memory = serving_memory(model, device, point.pool.plan, point.flags);
      if (memory.kv_pool.value >= cache_share * allocatable_bytes(device).value) return;
    }
  }

  void answer_group(const std::vector<size_t>& rows, std::vector<Answered>& answers) const {
    const ServingCase& first = points_[rows.front()];
    try {
      const Device& device = known_devices_.at(first.gpu);
      const Model& model = known_models_.at(first.model);
      EngineBuilder builder({.device_models = make_models_,
                             .stack = [&](std::string_view name) { return stacks_.stack(std::string(name)); }});
      const GroupFacts group{.model = model,
                             .device = device,
                             .acceptance = first.drafts > 0 ? &*acceptance_ : nullptr,
                             .node = first.prefill ? hardware_.node_with(device) : std::nullopt};
      for (const size_t row : rows) {
        const auto begin = std::chrono::steady_clock::now();
        try {
          answers[row].values = simulate_point(points_[row], group, builder, traces_);
        } catch (const InputError& error) {
          answers[row].why = error.what();
        }
        answers[row].seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      }
    } catch (const InputError& error) {
      for (const size_t row : rows) answers[row].why = error.what();
    }
  }

  const Model& find_model(const std::string& name) {
    const auto found = known_models_.find(name);
    return found != known_models_.end() ? found->second
                                        : known_models_.emplace(name, models_.model(name)).first->second;
  }
  const Device& find_device(const std::string& name) {
    const auto found = known_devices_.find(name);
    return found != known_devices_.end() ? found->second
                                         : known_devices_.emplace(name, hardware_.device(name)).first->second;
  }

  const HardwareCatalogue& hardware_;
  const ModelCatalogue& models_;
  const StackCatalogue& stacks_;
  const DeviceModelMaker& make_models_;
  std::optional<AcceptanceTable> acceptance_;
  std::filesystem::path traces_;
  std::map<std::string, Model> known_models_;
  std::map<std::string, Device> known_devices_;
  std::vector<ServingCase> points_;
  std::map<Key, std::vector<size_t>> groups_;
};

}  // namespace

Validation validate_serving(const ServingValidationRequest& request, const HardwareCatalogue& hardware,
                            const ModelCatalogue& models, const StackCatalogue& stacks,
                            const DeviceModelMaker& make_models, const ScoredServingSink& sink) {
  check_filters(request);
  ServingCaseReader rows(request.data);
  if (!request.group_by.empty()) rows.csv().column(request.group_by);
  std::optional<AcceptanceTable> acceptance;
  if (!request.acceptance.empty()) acceptance.emplace(request.acceptance);
  ServingValidator validator(hardware, models, stacks, make_models, std::move(acceptance), request.traces);
  Validation result;
  std::vector<std::string> groups;  // of the points, where a column says them
  while (rows.next()) {
    if (!wanted(request.tiers, rows.text("tier")) || !wanted(request.devices, rows.text("gpu")) ||
        !wanted(request.models, rows.text("model")) || !wanted(request.engines, rows.text("engine"))) {
      continue;
    }
    std::string why;
    try {
      if (!request.kinds.empty() &&
          !wanted(request.kinds, validator.is_dense(std::string(rows.text("model"))) ? "dense" : "moe")) {
        continue;
      }
      if (std::optional<ServingCase> point = rows.read(why)) {
        validator.add(std::move(*point));
        groups.emplace_back(request.group_by.empty() ? "" : rows.text(request.group_by));
        continue;
      }
    } catch (const InputError& error) {
      why = error.what();
    }
    result.skipped.push_back({request.data.string(), rows.csv().row(), why});
  }

  if (validator.points().empty() && result.skipped.empty()) {
    throw InputError({.source = request.kinds.empty() ? request.data.string() : "--kinds",
                      .value = "no row",
                      .expected = "filters that leave at least one"});
  }
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const std::vector<Answered> answers = validator.answer(request.threads > 0 ? request.threads : cores);
  ErrorTable errors;
  std::map<std::string, std::pair<double, double>> effort;  // rows and seconds by group
  double seconds = 0, values = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const ServingCase& point = validator.points()[i];
    if (answers[i].values.empty()) {
      result.skipped.push_back({request.data.string(), point.row, answers[i].why});
      continue;
    }
    const auto count = static_cast<double>(point.measured.size());
    for (size_t k = 0; k < point.measured.size(); ++k) {
      const MeasuredValue& measured = point.measured[k];
      const Headline& predicted = answers[i].values[k];
      const std::string group = groups[i].empty() ? fmt::format("{}/{}", point.tier, measured.metric)
                                                  : fmt::format("{}/{}", groups[i], measured.metric);
      errors.add(
          group,
          {.measured = measured.value, .predicted = predicted.value, .low = predicted.low, .high = predicted.high});
      effort[group].first += 1;
      effort[group].second += answers[i].seconds / count;
      if (sink) {
        sink({.id = point.id,
              .group = group,
              .device = point.gpu,
              .model = point.model,
              .engine = point.engine,
              .metric = measured.metric,
              .row = point.row,
              .measured = measured.value,
              .predicted = predicted});
      }
    }
    seconds += answers[i].seconds;
    values += count;
  }
  std::sort(result.skipped.begin(), result.skipped.end(),
            [](const SkippedRows& a, const SkippedRows& b) { return a.row < b.row; });
  result.overall = errors.overall();
  for (const auto& [name, summary] : errors.groups()) {
    const auto& [count, spent] = effort.at(name);
    result.groups.push_back({.name = name, .errors = summary, .seconds_per_1000_rows = spent / count * 1000});
  }
  if (values > 0) result.seconds_per_1000_rows = seconds / values * 1000;
  return result;
}

}  // namespace foretoken
