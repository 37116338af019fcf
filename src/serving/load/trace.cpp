#include "serving/load/trace.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/simulated_time.h"
#include "base/text.h"
#include "serving/load/listed_source.h"
#include "serving/load/trace_date.h"
#include "serving/load/trace_rows.h"

namespace foretoken {
namespace {

// Add your line here: a format is the names of its fields.
constexpr TraceFormat formats[] = {
    {"foretoken", "arrival_s", TraceClock::seconds, "input_tokens", "output_tokens", "our own tables"},
    {"azure", "TIMESTAMP", TraceClock::date, "ContextTokens", "GeneratedTokens", "Azure LLM inference, 2023 and 2024"},
    {"mooncake", "timestamp", TraceClock::milliseconds, "input_length", "output_length",
     "Mooncake, and vllm bench serve's timed_trace"},
    {"burstgpt", "Timestamp", TraceClock::seconds, "Request tokens", "Response tokens", "BurstGPT"},
    {"vidur", "arrived_at", TraceClock::seconds, "num_prefill_tokens", "num_decode_tokens", "VIDUR"},
    {"vidur-replay", "arrived_at_s", TraceClock::seconds, "num_prefill_tokens", "num_decode_tokens", "VIDUR replays"},
    {"run", "arrival_client_s", TraceClock::seconds, "input_tokens", "output_tokens", "a measured run's requests"},
    {"lengths", "", TraceClock::none, "input_tokens", "output_tokens", "lengths of prompts and outputs"},
    {"vidur-lengths", "", TraceClock::none, "num_prefill_tokens", "num_decode_tokens", "VIDUR's lengths"},
};

constexpr Range<int64_t> tokens_allowed{.least = 0, .most = 1'000'000'000};
constexpr double latest_s = longest_simulated_time.value();
constexpr int mooncake_block_tokens = 512;
constexpr size_t most_lengths = 1'000'000;

std::string known_fields() {
  std::vector<std::string> all;
  for (const TraceFormat& format : formats) {
    if (format.clock == TraceClock::none) continue;
    all.push_back(fmt::format("{}: {},{},{}", format.name, format.arrival, format.input, format.output));
  }
  return fmt::format("the columns of a known trace ({})", fmt::join(all, "; "));
}

const TraceFormat& recognise(const TraceRows& rows) {
  const std::vector<std::string> names = rows.names();
  const auto has = [&](std::string_view name) {
    return name.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const TraceFormat& format : formats) {
    if (has(format.arrival) && has(format.input) && has(format.output)) return format;
  }
  throw rows.format_error(known_fields());
}

// hash_ids -> 512, block_ids_16 -> 16; 0 for any other name.
int32_t block_tokens_of(std::string_view name) {
  if (name == "hash_ids") return mooncake_block_tokens;
  for (const std::string_view prefix : {"block_ids_", "prefix_block_ids_"}) {
    if (!name.starts_with(prefix)) continue;
    const std::optional<int64_t> tokens = parse_integer(name.substr(prefix.size()));
    if (tokens && *tokens >= 1 && *tokens <= 1'000'000) return static_cast<int32_t>(*tokens);
  }
  return 0;
}

// Rows as requests, by the fields of their format.
class TraceReader {
 public:
  explicit TraceReader(std::unique_ptr<TraceRows> rows) : rows_(std::move(rows)), format_(recognise(*rows_)) {
    if (format_.clock != TraceClock::none) arrival_ = rows_->field(format_.arrival);
    input_ = rows_->field(format_.input);
    output_ = rows_->field(format_.output);
    session_ = rows_->field("session");
    priority_ = rows_->field("priority");
    adapter_ = rows_->field("adapter");
    for (const std::string& name : rows_->names()) {
      if (const int32_t tokens = block_tokens_of(name); tokens > 0) {
        blocks_ = rows_->field(name);
        block_tokens_ = tokens;
      }
    }
  }

  const TraceFormat& format() const { return format_; }
  const TraceRows& rows() const { return *rows_; }
  bool next() { return rows_->next(); }

  RequestLengths lengths() const {
    return {.input_tokens = rows_->integer(input_, tokens_allowed),
            .output_tokens = rows_->integer(output_, tokens_allowed)};
  }

  // Never before the row above.
  Picoseconds arrival(double scale) {
    const double seconds = arrival_seconds() * scale;
    if (seconds > latest_s) rows_->fail(arrival_, "an arrival within 90 days, after scaling by {time_scale}");
    const Picoseconds time = to_picoseconds(Seconds(seconds));
    if (time < last_arrival_) {
      rows_->fail(arrival_, fmt::format("rows in order of arrival; the previous one arrived {} s later",
                                        number_text(to_seconds(last_arrival_ - time).value())));
    }
    return last_arrival_ = time;
  }

  void add_optional_fields(Request& request) const {
    if (rows_->is_given(session_)) request.session = rows_->integer(session_, {.least = -1});  // -1 = none
    if (rows_->is_given(priority_)) {
      request.priority = static_cast<int32_t>(rows_->integer(priority_, {.least = -1'000'000, .most = 1'000'000}));
    }
    if (rows_->is_given(adapter_)) {
      request.adapter = static_cast<int32_t>(rows_->integer(adapter_, {.least = -1, .most = 1'000'000'000}));
    }
    if (block_tokens_ == 0 || !rows_->is_given(blocks_)) return;
    request.prefix_block_tokens = block_tokens_;
    rows_->integers(blocks_, request.prefix_blocks);
    // The last block of a published trace may be partial: it is not shared as a whole.
    const auto full = static_cast<size_t>(request.input_tokens / block_tokens_);
    if (request.prefix_blocks.size() > full) request.prefix_blocks.resize(full);
  }

 private:
  double arrival_seconds() {
    constexpr Range<double> in_seconds{.least = 0, .most = latest_s},
        in_milliseconds{.least = 0, .most = latest_s * 1e3};
    switch (format_.clock) {
      case TraceClock::date:
        return seconds_since_first_date();
      case TraceClock::milliseconds:
        return rows_->number(arrival_, in_milliseconds) * 1e-3;
      case TraceClock::seconds:
      case TraceClock::none:
        break;
    }
    return rows_->number(arrival_, in_seconds);
  }

  double seconds_since_first_date() {
    const std::optional<DateTime> date = parse_date_time(rows_->text(arrival_));
    if (!date) rows_->fail(arrival_, "a date, for example 2023-11-16 18:15:46.6805900");
    if (!first_date_) first_date_ = date;
    const double since = static_cast<double>(date->seconds - first_date_->seconds) +
                         static_cast<double>(date->picoseconds - first_date_->picoseconds) * 1e-12;
    if (since < 0 || since > latest_s) rows_->fail(arrival_, "a date at most 90 days after that of the first row");
    return since;
  }

  std::unique_ptr<TraceRows> rows_;
  const TraceFormat& format_;
  size_t arrival_ = 0, input_ = 0, output_ = 0, session_ = 0, priority_ = 0, adapter_ = 0, blocks_ = 0;
  int32_t block_tokens_ = 0;
  std::optional<DateTime> first_date_;
  Picoseconds last_arrival_ = 0;
};

class TraceLoad : public ListedSource {
 public:
  TraceLoad(std::unique_ptr<TraceRows> rows, const TraceOptions& options)
      : reader_(std::move(rows)), options_(options) {
    if (reader_.format().clock == TraceClock::none) {
      throw reader_.rows().format_error("an arrival column (lengths alone are read with {dataset_path}): " +
                                        known_fields());
    }
  }

 protected:
  std::optional<Request> read() override {
    if (next_id_ == options_.max_requests) return std::nullopt;
    if (!reader_.next()) {
      if (next_id_ == 0) throw reader_.rows().format_error("at least one request after the header");
      return std::nullopt;
    }
    const RequestLengths lengths = reader_.lengths();
    Request request{.id = next_id_++,
                    .arrival = reader_.arrival(options_.time_scale),
                    .input_tokens = lengths.input_tokens,
                    .output_tokens = lengths.output_tokens};
    reader_.add_optional_fields(request);
    return request;
  }

 private:
  TraceReader reader_;
  TraceOptions options_;
  int64_t next_id_ = 0;
};

}  // namespace

std::span<const TraceFormat> trace_formats() {
  return formats;
}

std::unique_ptr<RequestSource> open_trace(const std::filesystem::path& file, const TraceOptions& options) {
  return std::make_unique<TraceLoad>(open_trace_rows(file), options);
}

std::unique_ptr<RequestSource> trace_from_text(std::string text, const std::string& name, const TraceOptions& options) {
  return std::make_unique<TraceLoad>(trace_rows_from_text(std::move(text), name), options);
}

std::vector<RequestLengths> read_lengths(const std::filesystem::path& file) {
  TraceReader reader(open_trace_rows(file));
  std::vector<RequestLengths> all;
  while (all.size() < most_lengths && reader.next()) {
    const RequestLengths lengths = reader.lengths();
    if (lengths.input_tokens > 0 && lengths.output_tokens > 0) all.push_back(lengths);
  }
  if (all.empty()) {
    throw InputError(
        {.source = file.string(), .value = "no row has tokens", .expected = "at least one row with tokens"});
  }
  return all;
}

}  // namespace foretoken
