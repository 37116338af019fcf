#include "serving/steps/vidur_tables.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "serving/steps/nested_table.h"

namespace foretoken {
namespace {

constexpr int64_t token_step = 8;
constexpr int64_t context_step = 64;
constexpr double grouped_query_overhead = 1.1;
constexpr double collective_launch_ms = 0.02;
constexpr double all_reduces_of_layer = 2;

int64_t rounded_up(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

// Milliseconds by ranges of a size.
class RangeTable {
 public:
  void add(const CsvReader& csv, int64_t from, int64_t to, double ms) {
    if (to < from || (!ends_.empty() && from <= ends_.back())) {
      throw InputError({.source = csv.source(),
                        .line = csv.line(),
                        .path = "row " + std::to_string(csv.row()),
                        .value = std::to_string(from) + " to " + std::to_string(to),
                        .expected = "a range that starts after the previous one"});
    }
    ends_.push_back(to);
    ms_.push_back(ms);
  }
  // Beyond the last range its value holds.
  double at(int64_t size) const {
    const auto end = std::lower_bound(ends_.begin(), ends_.end(), size);
    return ms_[std::min(static_cast<size_t>(end - ends_.begin()), ms_.size() - 1)];
  }

 private:
  std::vector<int64_t> ends_;
  std::vector<double> ms_;
};

// One RangeTable for each value of the first column, found as the nearest at or above.
using RangeTables = std::map<int64_t, RangeTable>;

RangeTables read_ranges(CsvReader csv, const std::string& key, const std::string& from, const std::string& to) {
  const size_t key_column = csv.column(key), from_column = csv.column(from), to_column = csv.column(to);
  const size_t ms = csv.column("ms");
  RangeTables tables;
  while (csv.next()) {
    const int64_t first = csv.integer(from_column, {0, most_table_tokens});
    tables[csv.integer(key_column, {0, most_table_tokens})].add(
        csv, first, csv.integer(to_column, {0, most_table_tokens}), csv.number(ms, {0, 1e9}));
  }
  if (tables.empty()) throw InputError({.source = csv.source(), .expected = "at least one row"});
  return tables;
}

// Of a layer by the tokens of a step.
struct TokenOps {
  RangeTable computing;
  RangeTable saving;  // into the KV cache: by the tokens themselves, not rounded up
  std::optional<RangeTable> all_reduce, send_recv;
};

TokenOps read_token_ops(CsvReader csv) {
  const size_t from = csv.column("num_tokens_from"), to = csv.column("num_tokens_to");
  const auto saves = csv.find_column("attn_kv_cache_save");
  const auto reduces = csv.find_column("all_reduce"), sends = csv.find_column("send_recv");
  TokenOps ops;
  if (reduces) ops.all_reduce.emplace();
  if (sends) ops.send_recv.emplace();
  while (csv.next()) {
    const int64_t first = csv.integer(from, {0, most_table_tokens}), last = csv.integer(to, {0, most_table_tokens});
    const auto ms = [&](size_t column) { return csv.number(column, {0, 1e9}); };
    double sum = 0;
    for (size_t i = 0; i < csv.columns().size(); ++i) {
      if (i != from && i != to && i != saves && i != reduces && i != sends) sum += ms(i);
    }
    ops.computing.add(csv, first, last, sum);
    ops.saving.add(csv, first, last, saves ? ms(*saves) : 0);
    if (reduces) ops.all_reduce->add(csv, first, last, ms(*reduces));
    if (sends) ops.send_recv->add(csv, first, last, ms(*sends));
  }
  if (csv.row() == 0) throw InputError({.source = csv.source(), .expected = "at least one row"});
  return ops;
}

double at(const RangeTables& tables, int64_t key, int64_t size) {
  auto table = tables.lower_bound(key);
  if (table == tables.end()) --table;
  return table->second.at(size);
}

class VidurTables final : public StepTimes {
 public:
  VidurTables(const std::function<CsvReader(const std::string& name)>& table, const std::string& source,
              const VidurTableOptions& options)
      : options_(options),
        source_(source),
        token_ops_(read_token_ops(table("per_token_ops_ms"))),
        decode_(read_ranges(table("attn_decode_ms"), "batch_size", "kv_from", "kv_to")),
        prefill_(read_ranges(table("attn_prefill_ms"), "kv", "chunk_from", "chunk_to")) {
    const auto need = [&](bool needed, const std::optional<RangeTable>& column, const char* name, const char* why) {
      if (!needed || column) return;
      throw InputError({.source = source_ + "/per_token_ops_ms.csv",
                        .path = "header",
                        .value = std::string("no column ") + name,
                        .expected = std::string("that column in a run with ") + why});
    };
    need(options.tensor > 1, token_ops_.all_reduce, "all_reduce", "tensor parallelism");
    need(options.pipeline_stages > 1, token_ops_.send_recv, "send_recv", "pipeline stages");
  }

  Estimate step_seconds(const StepBatch& batch) override {
    const Stage stage = stage_ms(batch);
    const auto stages = static_cast<double>(options_.pipeline_stages);
    return seconds(stages * stage.layers + (stages - 1) * stage.send);
  }

  void stage_seconds(const StepBatch& batch, std::span<Estimate> stages) override {
    const Stage stage = stage_ms(batch);
    std::fill(stages.begin(), stages.end(), seconds(stage.layers + stage.send));
    stages.back() = seconds(stage.layers);
  }

  // Only a step of the rounded mean changes the time.
  Estimate decode_run_seconds(const StepBatch& batch, int64_t steps) override {
    double sum = 0;
    for (int64_t done = 0; done < steps;) {
      const StepBatch now = grown(batch, done);
      const int64_t context = mean_context(now);
      const int64_t equal = std::min(steps - done, rounded_up(context, context_step) - context + 1);
      sum += static_cast<double>(equal) * step_seconds(now).value;
      done += equal;
    }
    return exactly(sum);
  }

 private:
  struct Stage {
    double layers = 0, send = 0;
  };

  Stage stage_ms(const StepBatch& batch) const {
    const int64_t tokens = rounded_up(batch.new_tokens(), token_step);
    double layer = token_ops_.computing.at(tokens) + token_ops_.saving.at(batch.new_tokens());
    if (options_.tensor > 1) {
      layer += all_reduces_of_layer * (token_ops_.all_reduce->at(tokens) + collective_launch_ms);
    }
    if (batch.decodes > 0) {
      layer += at(decode_, batch.decodes, rounded_up(mean_context(batch), context_step)) * overhead(batch.decodes);
    }
    if (!batch.prompts.empty()) {
      int64_t context = 0;
      double squares = 0;
      for (const PromptChunk& chunk : batch.prompts) {
        context += rounded_up(chunk.context_tokens, context_step);
        squares += static_cast<double>(chunk.new_tokens) * static_cast<double>(chunk.new_tokens);
      }
      // Python's round(): halves to even.
      const auto chunk = static_cast<int64_t>(std::nearbyint(std::sqrt(squares)));
      layer += at(prefill_, context, chunk) * overhead(static_cast<int64_t>(batch.prompts.size()));
    }
    return {.layers = static_cast<double>(options_.layers / options_.pipeline_stages) * layer,
            .send = options_.pipeline_stages > 1 ? token_ops_.send_recv->at(tokens) : 0};
  }

  Estimate seconds(double ms) const { return tabulated_seconds(ms * 1e-3, 0, source_); }

  // VIDUR counts the token that is being computed as cached.
  static int64_t mean_context(const StepBatch& batch) { return batch.decode_context_tokens / batch.decodes + 1; }

  double overhead(int64_t requests) const {
    return options_.grouped_query && requests > 1 ? grouped_query_overhead : 1;
  }

  VidurTableOptions options_;
  std::string source_;
  TokenOps token_ops_;
  RangeTables decode_;   // by decodes, then context
  RangeTables prefill_;  // by context, then chunk
};

}  // namespace

std::unique_ptr<StepTimes> read_vidur_tables(const std::filesystem::path& folder, const VidurTableOptions& options) {
  for (const std::string_view name : {"per_token_ops_ms", "attn_decode_ms", "attn_prefill_ms"}) {
    std::error_code failed;
    if (std::filesystem::is_regular_file(folder / fmt::format("{}.csv", name), failed)) continue;
    throw InputError({.field = "vidur_tables",
                      .value = fmt::format("no {}.csv in {}", name, printable(folder.string())),
                      .expected = "a folder with per_token_ops_ms.csv, attn_decode_ms.csv and attn_prefill_ms.csv"});
  }
  const auto table = [&](const std::string& name) {
    return CsvReader(folder / (name + ".csv"), {.max_bytes = most_table_bytes});
  };
  return std::make_unique<VidurTables>(table, folder.string(), options);
}

std::unique_ptr<StepTimes> vidur_tables_from_text(const std::map<std::string, std::string>& texts,
                                                  const VidurTableOptions& options) {
  const auto table = [&](const std::string& name) {
    const auto text = texts.find(name);
    return CsvReader::from_text(text == texts.end() ? "" : text->second, name);
  };
  return std::make_unique<VidurTables>(table, "VIDUR's tables", options);
}

}  // namespace foretoken
