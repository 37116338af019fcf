#include "serving/runs/run_folder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/field_braces.h"
#include "base/file.h"
#include "base/kinds.h"
#include "base/simulated_time.h"
#include "base/text.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_run_bytes = size_t{16} << 20;
constexpr size_t most_run_requests = 5'000'000;   // held in memory
constexpr size_t most_run_numbers = 100'000'000;  // gaps and block numbers of all requests
constexpr size_t most_run_samples = 5'000'000;
constexpr size_t most_run_stages = 10'000;
constexpr CsvLimits run_csv_limits{.max_row_bytes = size_t{16} << 20};
constexpr Range<double> run_seconds{.least = 0, .most = longest_simulated_time.value()};
constexpr Range<double> run_amounts{.least = 0, .most = 1e18};
constexpr Range<int64_t> run_counts{.least = 0, .most = 1'000'000'000};

struct LatencyField {
  const char* name;
  MeasuredLatency MeasuredSummary::*latency;
};
constexpr LatencyField latency_fields[] = {{"ttft_s", &MeasuredSummary::ttft},
                                           {"tpot_s", &MeasuredSummary::tpot},
                                           {"itl_s", &MeasuredSummary::itl},
                                           {"e2e_s", &MeasuredSummary::e2e}};
struct ThroughputField {
  const char* name;
  std::optional<double> MeasuredSummary::*value;
};
constexpr ThroughputField throughput_fields[] = {{"request_throughput", &MeasuredSummary::request_throughput},
                                                 {"output_throughput", &MeasuredSummary::output_throughput},
                                                 {"total_throughput", &MeasuredSummary::total_throughput}};
struct RunTextField {
  const char* name;
  std::string MeasuredRun::*text;
};
constexpr RunTextField run_text_fields[] = {{"name", &MeasuredRun::name},
                                            {"tool", &MeasuredRun::tool},
                                            {"tool_version", &MeasuredRun::tool_version},
                                            {"engine", &MeasuredRun::engine},
                                            {"engine_version", &MeasuredRun::engine_version},
                                            {"model", &MeasuredRun::model},
                                            {"device", &MeasuredRun::device},
                                            {"started", &MeasuredRun::started}};
struct SampleField {
  const char* name;
  std::optional<double> MetricsSample::*value;
};
constexpr SampleField sample_fields[] = {{"running", &MetricsSample::running},
                                         {"waiting", &MetricsSample::waiting},
                                         {"kv_usage", &MetricsSample::kv_usage},
                                         {"prefix_queries", &MetricsSample::prefix_queries},
                                         {"prefix_hits", &MetricsSample::prefix_hits},
                                         {"preemptions", &MetricsSample::preemptions},
                                         {"prompt_tokens", &MetricsSample::prompt_tokens},
                                         {"output_tokens", &MetricsSample::output_tokens}};

// "mean", "p50", "p99.9".
MeasuredLatency read_latency(const JsonView& view) {
  MeasuredLatency latency;
  for (const auto& [name, value] : view.members()) {
    if (name == "mean") {
      latency.mean = value.number(run_seconds);
      continue;
    }
    const auto percentile = name.starts_with('p') ? parse_number(std::string_view(name).substr(1)) : std::nullopt;
    if (!percentile || *percentile < 0 || *percentile > 100)
      value.fail("mean, or a percentile, for example p50 or p99.9");
    latency.percentiles[*percentile] = value.number(run_seconds);
  }
  return latency;
}

MeasuredSummary read_summary(const JsonView& view) {
  view.allow_only({"ttft_s", "tpot_s", "itl_s", "e2e_s", "request_throughput", "output_throughput", "total_throughput",
                   "completed", "failed"});
  MeasuredSummary summary;
  for (const LatencyField& field : latency_fields) {
    if (const auto found = view.find(field.name)) summary.*field.latency = read_latency(*found);
  }
  for (const ThroughputField& field : throughput_fields) {
    if (const auto found = view.find(field.name)) summary.*field.value = found->number(run_amounts);
  }
  if (const auto found = view.find("completed")) summary.completed = found->integer(run_counts);
  if (const auto found = view.find("failed")) summary.failed = found->integer(run_counts);
  return summary;
}

MeasuredLoad read_load(const JsonView& view) {
  view.allow_only(
      {"request_rate", "burstiness", "max_concurrency", "num_prompts", "input_len", "output_len", "dataset"});
  MeasuredLoad load;
  if (const auto rate = view.find("request_rate")) {
    const bool at_once = rate->is(Json::Kind::string) && rate->string() == "inf";
    if (!at_once && !rate->is_number()) rate->fail("requests per second, or \"inf\"");
    load.request_rate = at_once ? std::numeric_limits<double>::infinity() : rate->number({1e-9, 1e9});
  }
  if (const auto found = view.find("burstiness")) load.burstiness = found->number({1e-6, 1e6});
  if (const auto found = view.find("max_concurrency")) load.max_concurrency = found->integer(run_counts);
  if (const auto found = view.find("num_prompts")) load.num_prompts = found->integer(run_counts);
  if (const auto found = view.find("input_len")) load.input_len = found->number({0, 1e9});
  if (const auto found = view.find("output_len")) load.output_len = found->number({0, 1e9});
  if (const auto found = view.find("dataset")) load.dataset = found->string();
  return load;
}

void set_if(Json& object, const char* name, const std::optional<double>& value) {
  if (!value) return;
  object.set(name, std::isinf(*value) ? Json("inf") : Json(*value));
}
void set_if(Json& object, const char* name, const std::optional<int64_t>& value) {
  if (value) object.set(name, *value);
}
void set_if(Json& object, const char* name, const std::string& text) {
  if (!text.empty()) object.set(name, text);
}
void set_if(Json& object, const char* name, Json part) {
  if (!part.members().empty()) object.set(name, std::move(part));
}

Json summary_json(const MeasuredSummary& summary) {
  Json json = Json::object();
  for (const LatencyField& field : latency_fields) {
    const MeasuredLatency& latency = summary.*field.latency;
    Json part = Json::object();
    set_if(part, "mean", latency.mean);
    for (const auto& [percentile, seconds] : latency.percentiles) part.set("p" + number_text(percentile), seconds);
    set_if(json, field.name, std::move(part));
  }
  for (const ThroughputField& field : throughput_fields) set_if(json, field.name, summary.*field.value);
  set_if(json, "completed", summary.completed);
  set_if(json, "failed", summary.failed);
  return json;
}

Json load_json(const MeasuredLoad& load) {
  Json json = Json::object();
  set_if(json, "request_rate", load.request_rate);
  set_if(json, "burstiness", load.burstiness);
  set_if(json, "max_concurrency", load.max_concurrency);
  set_if(json, "num_prompts", load.num_prompts);
  set_if(json, "input_len", load.input_len);
  set_if(json, "output_len", load.output_len);
  set_if(json, "dataset", load.dataset);
  return json;
}

// Columns of a table that may be missing, and cells that may be empty.
class OptionalCells {
 public:
  explicit OptionalCells(const CsvReader& table) : table_(table) {}

  std::optional<double> number(std::optional<size_t> column, Range<double> allowed) const {
    if (!is_given(column)) return std::nullopt;
    return table_.number(*column, allowed);
  }
  std::optional<int64_t> integer(std::optional<size_t> column, Range<int64_t> allowed) const {
    if (!is_given(column)) return std::nullopt;
    return table_.integer(*column, allowed);
  }
  std::string text(std::optional<size_t> column) const {
    return is_given(column) ? std::string(table_.cell(*column)) : std::string();
  }
  // Numbers separated by spaces.
  std::vector<std::string_view> words(std::optional<size_t> column) const {
    return is_given(column) ? split_words(table_.cell(*column), " ") : std::vector<std::string_view>();
  }

 private:
  bool is_given(std::optional<size_t> column) const { return column && !table_.cell(*column).empty(); }
  const CsvReader& table_;
};

constexpr std::string_view blocks_column = "block_ids_";  // and the tokens of a block, as in traces

struct BlocksColumn {
  std::optional<size_t> column;
  int32_t tokens = 0;
};
BlocksColumn find_blocks(const CsvReader& table) {
  for (size_t i = 0; i < table.columns().size(); ++i) {
    const std::string_view name = table.columns()[i];
    if (!name.starts_with(blocks_column)) continue;
    const auto tokens = parse_integer(name.substr(blocks_column.size()));
    if (tokens && *tokens >= 1 && *tokens <= 1'000'000) return {i, static_cast<int32_t>(*tokens)};
  }
  return {};
}

std::string joined(const std::vector<double>& numbers) {
  std::string text;
  for (const double number : numbers) text += (text.empty() ? "" : " ") + number_text(number);
  return text;
}
std::string joined(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
  return text;
}
template <class Number>
std::string text_of(const std::optional<Number>& value) {
  if (!value) return {};
  if constexpr (std::is_same_v<Number, double>) {
    return number_text(*value);
  } else {
    return std::to_string(*value);
  }
}

// The file or its compressed twin; nothing where there is neither.
std::optional<fs::path> file_in(const fs::path& folder, const std::string& name) {
  for (const fs::path& file : {folder / name, folder / (name + ".gz")}) {
    if (fs::exists(file)) return file;
  }
  return std::nullopt;
}

}  // namespace

MeasuredRun parse_run_json(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source, {.max_bytes = most_run_bytes});
  const JsonView root(document, source);
  root.allow_only({"format", "name", "tool", "tool_version", "engine", "engine_version", "model", "device", "started",
                   "seconds", "deployment", "load", "summary", "stages", "notes"});
  if (const JsonView format = root.at("format"); format.integer({1, 1'000'000}) > 1) {
    format.fail("1: a later version of foretoken wrote this");
  }
  MeasuredRun run;
  for (const RunTextField& field : run_text_fields) {
    if (const auto found = root.find(field.name)) run.*field.text = found->string();
  }
  if (const auto seconds = root.find("seconds")) run.seconds = seconds->number(run_seconds);
  if (const auto deployment = root.find("deployment")) {
    deployment->members();  // an object, or an error
    run.deployment = deployment->value();
  }
  if (const auto load = root.find("load")) run.load = read_load(*load);
  if (const auto summary = root.find("summary")) run.summary = read_summary(*summary);
  if (const auto stages = root.find("stages")) {
    for (const JsonView& view : stages->items()) {
      if (run.stages.size() == most_run_stages) stages->fail(fmt::format("at most {} stages", most_run_stages));
      view.allow_only({"start_s", "seconds", "load", "summary"});
      MeasuredStage& stage = run.stages.emplace_back();
      const double earliest = run.stages.size() > 1 ? run.stages[run.stages.size() - 2].start_s : 0;
      stage.start_s = view.at("start_s").number({earliest, run_seconds.most});
      if (const auto seconds = view.find("seconds")) stage.seconds = seconds->number(run_seconds);
      if (const auto load = view.find("load")) stage.load = read_load(*load);
      if (const auto summary = view.find("summary")) stage.summary = read_summary(*summary);
    }
  }
  if (const auto notes = root.find("notes")) {
    for (const JsonView& note : notes->items()) run.notes.push_back(with_literal_braces(note.string()));
  }
  return run;
}

void read_run_requests(CsvReader& table, MeasuredRun& run) {
  const size_t arrival = table.column("arrival_s"), input = table.column("input_tokens"),
               output = table.column("output_tokens");
  const auto sent = table.find_column("sent_s"), cached = table.find_column("cached_tokens"),
             ttft = table.find_column("ttft_s"), e2e = table.find_column("e2e_s"), gaps = table.find_column("itl_s"),
             stage = table.find_column("stage"), session = table.find_column("session"),
             status = table.find_column("status"), error = table.find_column("error"),
             retries = table.find_column("retries");
  const BlocksColumn blocks = find_blocks(table);
  const OptionalCells cells(table);
  const int64_t last_stage = std::max<int64_t>(static_cast<int64_t>(run.stages.size()), 1) - 1;
  size_t numbers = 0;
  while (table.next()) {
    if (run.requests.size() == most_run_requests) {
      table.fail(arrival, fmt::format("at most {} requests in a run", most_run_requests));
    }
    MeasuredRequest request{.arrival_s = table.number(arrival, run_seconds),
                            .sent_s = cells.number(sent, run_seconds),
                            .input_tokens = table.integer(input, run_counts),
                            .output_tokens = table.integer(output, run_counts),
                            .cached_tokens = cells.integer(cached, run_counts),
                            .ttft_s = cells.number(ttft, run_seconds),
                            .e2e_s = cells.number(e2e, run_seconds),
                            .stage = cells.integer(stage, {0, last_stage}).value_or(0),
                            .session = cells.integer(session, {-1, run_counts.most}).value_or(-1),
                            .error = cells.text(error),
                            .retries = cells.integer(retries, run_counts).value_or(0)};
    if (!run.requests.empty() && request.arrival_s < run.requests.back().arrival_s) {
      table.fail(arrival, "arrivals in ascending order");
    }
    if (request.ttft_s && request.e2e_s && *request.e2e_s < *request.ttft_s) {
      table.fail(*e2e, "a time no shorter than ttft_s");
    }
    if (const std::string name = cells.text(status); !name.empty()) {
      const auto known = measured_status_from_name(name);
      const std::vector<std::string> names = measured_status_names();
      if (!known) table.fail(*status, one_of(names), nearest_name(name, names).value_or(""));
      request.status = *known;
    }
    for (const std::string_view word : cells.words(gaps)) {
      const auto gap = parse_number(word);
      if (!gap || !run_seconds.holds(*gap)) table.fail(*gaps, "seconds between tokens, separated by spaces");
      request.gaps_s.push_back(*gap);
    }
    for (const std::string_view word : cells.words(blocks.column)) {
      const auto block = parse_integer(word);
      if (!block) table.fail(*blocks.column, "whole numbers separated by spaces");
      request.prefix_blocks.push_back(*block);
    }
    if (!request.prefix_blocks.empty()) request.prefix_block_tokens = blocks.tokens;
    numbers += request.gaps_s.size() + request.prefix_blocks.size();
    if (numbers > most_run_numbers) {
      table.fail(arrival, fmt::format("at most {} token gaps and block numbers in a run", most_run_numbers));
    }
    run.requests.push_back(std::move(request));
  }
}

void read_run_metrics(CsvReader& table, MeasuredRun& run) {
  const size_t time = table.column("time_s");
  std::vector<std::pair<size_t, std::optional<double> MetricsSample::*>> columns;
  for (const SampleField& field : sample_fields) {
    if (const auto column = table.find_column(field.name)) columns.emplace_back(*column, field.value);
  }
  const OptionalCells cells(table);
  while (table.next()) {
    if (run.samples.size() == most_run_samples) {
      table.fail(time, fmt::format("at most {} samples in a run", most_run_samples));
    }
    MetricsSample sample{.time_s = table.number(time, run_seconds)};
    if (!run.samples.empty() && sample.time_s < run.samples.back().time_s) table.fail(time, "times in ascending order");
    for (const auto& [column, value] : columns) {
      const bool is_share = value == &MetricsSample::kv_usage;
      sample.*value = cells.number(column, is_share ? Range<double>{0, 1} : run_amounts);
    }
    run.samples.push_back(sample);
  }
}

void check_run(const MeasuredRun& run, const std::string& source) {
  const bool has_times = std::any_of(run.requests.begin(), run.requests.end(),
                                     [](const MeasuredRequest& request) { return request.has_times(); });
  const bool has_stages = std::any_of(run.stages.begin(), run.stages.end(),
                                      [](const MeasuredStage& stage) { return !stage.summary.is_empty(); });
  if (has_times || has_stages || !run.summary.is_empty()) return;
  throw InputError({.source = source,
                    .value = run.requests.empty() ? "no requests" : "no request with ttft_s and e2e_s",
                    .expected = "request times in requests.csv, or a summary in run.json"});
}

MeasuredRun read_run_folder(const fs::path& given) {
  const fs::path folder = given.filename() == "run.json" ? given.parent_path() : given;
  const fs::path file = folder / "run.json";
  MeasuredRun run = parse_run_json(read_file(file, most_run_bytes), file.string());
  if (run.name.empty()) {
    const fs::path whole = fs::absolute(folder).lexically_normal();
    run.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  }
  if (const auto requests = file_in(folder, "requests.csv")) {
    CsvReader table(*requests, run_csv_limits);
    read_run_requests(table, run);
  }
  if (const auto metrics = file_in(folder, "metrics.csv")) {
    CsvReader table(*metrics, run_csv_limits);
    read_run_metrics(table, run);
  }
  check_run(run, folder.string());
  return run;
}

Json run_json(const MeasuredRun& run) {
  Json json = Json::object({{"format", 1}});
  for (const RunTextField& field : run_text_fields) set_if(json, field.name, run.*field.text);
  set_if(json, "seconds", run.seconds);
  set_if(json, "deployment", run.deployment);
  set_if(json, "load", load_json(run.load));
  set_if(json, "summary", summary_json(run.summary));
  if (!run.stages.empty()) {
    Json stages = Json::array();
    for (const MeasuredStage& stage : run.stages) {
      Json item = Json::object({{"start_s", stage.start_s}});
      set_if(item, "seconds", stage.seconds);
      set_if(item, "load", load_json(stage.load));
      set_if(item, "summary", summary_json(stage.summary));
      stages.push(std::move(item));
    }
    json.set("stages", std::move(stages));
  }
  if (!run.notes.empty()) {
    Json notes = Json::array();
    for (const std::string& note : run.notes) notes.push(without_literal_marks(note));
    json.set("notes", std::move(notes));
  }
  return json;
}

std::string run_requests_csv(const MeasuredRun& run) {
  int32_t block_tokens = 0;
  bool has_gaps = false;
  for (const MeasuredRequest& request : run.requests) {
    has_gaps |= !request.gaps_s.empty();
    if (request.prefix_blocks.empty()) continue;
    ensure(block_tokens == 0 || block_tokens == request.prefix_block_tokens, "blocks of a run have one size");
    block_tokens = request.prefix_block_tokens;
  }
  std::string text =
      "stage,arrival_s,sent_s,input_tokens,output_tokens,cached_tokens,ttft_s,e2e_s,status,retries,error,session";
  if (has_gaps) text += ",itl_s";
  if (block_tokens > 0) text += fmt::format(",{}{}", blocks_column, block_tokens);
  text += '\n';
  for (const MeasuredRequest& request : run.requests) {
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}", request.stage, number_text(request.arrival_s),
                    text_of(request.sent_s), request.input_tokens, request.output_tokens,
                    text_of(request.cached_tokens), text_of(request.ttft_s), text_of(request.e2e_s),
                    measured_status_name(request.status), request.retries, csv_cell(request.error), request.session);
    if (has_gaps) text += ',' + joined(request.gaps_s);
    if (block_tokens > 0) text += ',' + joined(request.prefix_blocks);
    text += '\n';
  }
  return text;
}

std::string run_metrics_csv(const MeasuredRun& run) {
  std::string text = "time_s";
  for (const SampleField& field : sample_fields) text += fmt::format(",{}", field.name);
  text += '\n';
  for (const MetricsSample& sample : run.samples) {
    text += number_text(sample.time_s);
    for (const SampleField& field : sample_fields) text += ',' + text_of(sample.*field.value);
    text += '\n';
  }
  return text;
}

void write_run_folder(const fs::path& folder, const MeasuredRun& run) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    throw InputError(
        {.source = folder.string(), .value = failed.message(), .expected = "a folder that can be created and written"});
  }
  write_file(folder / "run.json", run_json(run).dump() + "\n");
  // A compressed twin would be read as well as, or in place of, what is written here.
  for (const char* name : {"requests.csv", "metrics.csv"}) {
    fs::remove(folder / name, failed);
    fs::remove(folder / (std::string(name) + ".gz"), failed);
  }
  if (!run.requests.empty()) write_file(folder / "requests.csv", run_requests_csv(run));
  if (!run.samples.empty()) write_file(folder / "metrics.csv", run_metrics_csv(run));
}

}  // namespace foretoken
