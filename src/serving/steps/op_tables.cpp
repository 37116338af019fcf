#include "serving/steps/op_tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "base/csv.h"
#include "base/error.h"
#include "base/portable_math.h"
#include "base/statistics.h"
#include "serving/steps/nested_table.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr Range<double> microseconds_allowed{.least = 0, .most = 1e9};
// Sums of such tables explain the steps of two measured runs to about 2% (docs/serving.md).
constexpr double table_error = 0.03;

// Gives a table by its name; nothing where there is none.
using TableSource = std::function<std::optional<CsvReader>(const std::string& name)>;

CsvReader needed(const TableSource& tables, const std::string& name, const std::string& source) {
  std::optional<CsvReader> csv = tables(name);
  if (!csv) {
    throw InputError(
        {.source = source, .expected = "a folder of operator tables: " + name + ".csv or " + name + ".csv.gz in it"});
  }
  return std::move(*csv);
}

[[noreturn]] void fail_empty(const CsvReader& csv) {
  throw InputError({.source = csv.source(), .expected = "at least one row"});
}

// `layer,<size>,time_us`: one table per layer.
std::map<std::string, NestedTable, std::less<>> read_layers(CsvReader csv, std::string_view size_name) {
  const size_t layer = csv.column("layer"), size = csv.column(size_name), time = csv.column("time_us");
  std::map<std::string, NestedTable, std::less<>> tables;
  while (csv.next()) {
    const std::array<int64_t, 1> key{csv.integer(size, {0, most_table_tokens})};
    tables[std::string(csv.cell(layer))].add(key, csv.number(time, microseconds_allowed));
  }
  if (tables.empty()) fail_empty(csv);
  return tables;
}

struct OneChunk {
  double tokens = 0, context = 0;
};

// The tables have one chunk: of as many tokens and as much work as all; where that would need a context below zero
// (several short prompts), of as much work without context.
OneChunk one_chunk(const EqualChunks& chunks) {
  const double tokens = static_cast<double>(chunks.count) * chunks.new_tokens;
  const double context = chunks.context_tokens + (chunks.new_tokens - tokens) / 2;
  if (context >= 0) return {tokens, context};
  return {std::sqrt(2 * tokens * (chunks.context_tokens + chunks.new_tokens / 2)), 0};
}

// From (chunk, kv of the prefill, decodes, kv of the decodes) to microseconds.
class AttentionTable {
 public:
  explicit AttentionTable(CsvReader csv) {
    const std::array<size_t, 4> columns{csv.column("prefill_chunk"), csv.column("kv_prefill"), csv.column("n_decode"),
                                        csv.column("kv_decode")};
    const size_t time = csv.column("time_us");
    while (csv.next()) {
      std::array<int64_t, 4> keys{};
      for (size_t i = 0; i < keys.size(); ++i) keys[i] = csv.integer(columns[i], {0, most_table_tokens});
      table_.add(keys, csv.number(time, microseconds_allowed));
    }
    if (table_.keys().empty()) fail_empty(csv);
  }

  double microseconds(double chunk, double chunk_context, double decodes, double decode_context) const {
    const std::array<double, 3> rest{chunk_context, decodes, decode_context};
    const NestedTable::Place place = table_.place(chunk);
    const double lower = table_.below(place.lower).at(rest, NestedTable::Between::bends);
    if (place.share == 0) return lower;
    const double upper = table_.below(place.upper).at(rest, NestedTable::Between::bends);
    const auto work = [&](double tokens) { return tokens * (chunk_context + tokens / 2); };
    const double least = work(table_.keys()[place.lower]), most = work(table_.keys()[place.upper]);
    return lower + (upper - lower) * (work(chunk) - least) / (most - least);
  }

 private:
  NestedTable table_;
};

// What decodes of unequal context take beyond decodes of their mean.
class UnequalDecodes {
 public:
  explicit UnequalDecodes(const OpTableOptions& options)
      : sequences_at_once_(2.0 * static_cast<double>(options.processors) / static_cast<double>(options.key_heads)),
        // Blocks go out head by head: the longest context's last one is, on average, amid those of the last head.
        place_of_longest_(1 - 0.5 / static_cast<double>(options.key_heads)) {}

  void read(CsvReader csv, const AttentionTable& attention) {
    const size_t count = csv.column("n"), chunk = csv.column("pc");
    const size_t mean = csv.column("kv_mean"), longest = csv.column("kv_big");
    const size_t at_mean = csv.column("t_mean_us"), at_most = csv.column("t_max_us"), real = csv.column("t_skew_us");
    double above_mean = 0, most_above_mean = 0;
    std::vector<double> paces;
    while (csv.next()) {
      const auto sequences = static_cast<double>(csv.integer(count, {1, most_table_tokens}));
      const double context = csv.number(mean, {0, 1e9}), t_mean = csv.number(at_mean, {1e-3, 1e9});
      const double t_real = csv.number(real, {0, 1e9});
      if (csv.integer(chunk, {0, most_table_tokens}) > 0) {
        if (sequences < 32 || sequences > 128 || context < 512 || context > 2048) continue;
        above_mean += t_real - t_mean;
        most_above_mean += csv.number(at_most, {0, 1e9}) - t_mean;
      } else if (is_unsplit(sequences) && t_real > clearly_longer * t_mean) {
        // These times are sums over a few calls, those of the attention table are of one. The longest come last here.
        const double one_call = attention.microseconds(0, 0, sequences, context) / t_mean;
        paces.push_back((t_real - waiting_share(sequences, 1) * t_mean) * one_call / csv.number(longest, {1, 1e9}));
      }
    }
    if (most_above_mean > 0) mixed_share_ = std::clamp(above_mean / most_above_mean, 0.0, 1.0);
    if (!paces.empty()) pace_ = quantile(paces, 0.5);
  }

  double alone_microseconds(double at_mean, double sequences, double longest) const {
    if (!is_unsplit(sequences)) return at_mean;
    return std::max(at_mean, waiting_share(sequences, place_of_longest_) * at_mean + pace_ * longest);
  }
  double mixed_share() const { return mixed_share_; }

 private:
  static constexpr double clearly_longer = 1.1;

  bool is_unsplit(double sequences) const { return sequences_at_once_ > 0 && sequences >= 0.8 * sequences_at_once_; }
  // Of the time at the mean that a block `place` of the way through all waits for its place.
  double waiting_share(double sequences, double place) const {
    return std::max(0.0, place - sequences_at_once_ / sequences);
  }

  double sequences_at_once_, place_of_longest_;
  double pace_ = 0;  // microseconds per token of context
  double mixed_share_ = 0;
};

// From (tokens, activated experts) to microseconds of one layer, by the ranks over which its experts were spread.
class ExpertTable {
 public:
  ExpertTable(const TableSource& tables, const std::string& source, const OpTableOptions& options) : options_(options) {
    if (std::optional<CsvReader> csv = tables("moe")) read(std::move(*csv), options.tensor == 1);
    if (table() != nullptr) return;
    // Experts that are spread are not cut: a rank has whole ones, as a single rank does.
    if (options.expert_ranks > 1) {
      if (std::optional<CsvReader> csv = tables("tp1/moe")) read(std::move(*csv), true);
    }
    if (table() != nullptr) return;
    throw InputError({.source = source,
                      .path = "moe.csv",
                      .value = "no times for these experts",
                      .expected = "columns tokens, activated_experts and time_us of the model's experts on one rank, "
                                  "or these columns and ep: steps of this model need expert times"});
  }

  double microseconds(double tokens_of_all_ranks) const {
    const auto ranks = static_cast<double>(options_.expert_ranks), experts = static_cast<double>(options_.experts);
    const double share = std::min(1.0, static_cast<double>(options_.top_k) / experts);
    const double awake = experts / ranks * (1 - portable_pow(1 - share, tokens_of_all_ranks));
    const bool of_ranks = by_ranks_.contains(options_.expert_ranks);
    const std::array<double, 2> point{of_ranks ? tokens_of_all_ranks : tokens_of_all_ranks / ranks,
                                      std::max(1.0, awake)};
    return table()->at(point);
  }

 private:
  void read(CsvReader csv, bool has_whole_experts) {
    const size_t tokens = csv.column("tokens"), awake = csv.column("activated_experts"), time = csv.column("time_us");
    const std::optional<size_t> ranks = csv.find_column("ep");
    bool any = false;
    while (csv.next()) {
      any = true;
      const int64_t ep = ranks ? csv.integer(*ranks, {1, 1'000'000}) : 1;
      const std::array<int64_t, 2> keys{csv.integer(tokens, {0, most_table_tokens}),
                                        csv.integer(awake, {0, most_table_tokens})};
      const double us = csv.number(time, microseconds_allowed);
      // Those of one rank speak for several only where it holds whole experts.
      if (ep == options_.expert_ranks || (ep == 1 && has_whole_experts)) by_ranks_[ep].add(keys, us);
    }
    if (!any) fail_empty(csv);
  }
  const NestedTable* table() const {
    const auto own = by_ranks_.find(options_.expert_ranks), one = by_ranks_.find(1);
    return own != by_ranks_.end() ? &own->second : one != by_ranks_.end() ? &one->second : nullptr;
  }

  const OpTableOptions& options_;
  std::map<int64_t, NestedTable> by_ranks_;
};

class OpTables final : public StepTimes {
 public:
  OpTables(const TableSource& tables, const std::string& source, const OpTableOptions& options)
      : options_(options),
        source_(source),
        dense_(read_layers(needed(tables, "dense", source), "tokens")),
        per_sequence_(read_layers(needed(tables, "per_sequence", source), "sequences")),
        attention_(needed(tables, "attention", source)),
        unequal_(options) {
    if (std::optional<CsvReader> skew = tables("skew")) unequal_.read(std::move(*skew), attention_);
    if (options_.expert_layers > 0) experts_.emplace(tables, source, options_);
  }

  Estimate step_seconds(const StepBatch& batch) override {
    const double us = dense_microseconds(padded(batch.new_tokens())) + head_microseconds(batch.sampled_tokens()) +
                      static_cast<double>(options_.layers) * attention_microseconds(batch) + expert_microseconds(batch);
    const Estimate alone = tabulated_seconds(us * 1e-6, table_error, source_);
    if (!options_.communication) return alone;
    const std::array<Estimate, 2> parts{alone, options_.communication->seconds(batch)};
    return sum_of_correlated(parts);
  }

 private:
  int64_t padded(int64_t tokens) const {
    const auto size = std::lower_bound(options_.graph_sizes.begin(), options_.graph_sizes.end(), tokens);
    return size == options_.graph_sizes.end() ? tokens : *size;
  }

  double dense_microseconds(int64_t tokens) {
    return kept(dense_by_tokens_, tokens, [&] {
      double sum = 0;
      const std::array<double, 1> point{static_cast<double>(tokens)};
      for (const auto& [layer, table] : dense_) {
        const bool once = layer == "embedding" || layer == "final_layernorm";
        const bool dense_block = layer == "gate_up_proj" || layer == "act_fn" || layer == "down_proj";
        const double calls = once                   ? 1
                             : layer == "layernorm" ? 2.0 * static_cast<double>(options_.layers)
                             : dense_block          ? static_cast<double>(options_.layers - options_.expert_layers)
                                                    : static_cast<double>(options_.layers);
        sum += calls * table.at(point);
      }
      return sum;
    });
  }

  double expert_microseconds(const StepBatch& batch) {
    if (!experts_) return 0;
    const int64_t ranks = options_.lock_step_ranks;
    const int64_t all = batch.tokens_of_all_ranks > 0 ? batch.tokens_of_all_ranks : batch.new_tokens() * ranks;
    // Every rank brings as many tokens, padded to a captured size.
    const int64_t tokens = ranks * padded(std::max<int64_t>(1, (all + ranks - 1) / ranks));
    return static_cast<double>(options_.expert_layers) *
           kept(experts_by_tokens_, tokens, [&] { return experts_->microseconds(static_cast<double>(tokens)); });
  }

  double head_microseconds(int64_t sequences) {
    if (sequences == 0) return 0;
    return kept(head_by_sequences_, sequences, [&] {
      double sum = 0;
      const std::array<double, 1> point{static_cast<double>(sequences)};
      for (const auto& [layer, table] : per_sequence_) sum += table.at(point);
      return sum;
    });
  }

  double attention_microseconds(const StepBatch& batch) const {
    const auto [chunk, chunk_context] = one_chunk(equal_chunks(batch.prompts));
    if (batch.decodes == 0) return attention_.microseconds(chunk, chunk_context, 0, 0);
    const auto decodes = static_cast<double>(batch.decodes);
    const double mean = static_cast<double>(batch.decode_context_tokens) / decodes;
    const double at_mean = attention_.microseconds(chunk, chunk_context, decodes, mean);
    const auto longest = static_cast<double>(batch.longest_decode_context);
    if (chunk == 0) return unequal_.alone_microseconds(at_mean, decodes, longest);
    const double share = unequal_.mixed_share();
    if (share == 0 || longest <= mean) return at_mean;
    return at_mean + share * (attention_.microseconds(chunk, chunk_context, decodes, longest) - at_mean);
  }

  template <class Compute>
  static double kept(std::vector<double>& values, int64_t index, const Compute& compute) {
    const auto i = static_cast<size_t>(index);
    if (i >= values.size()) values.resize(i + 1, -1);
    if (values[i] < 0) values[i] = compute();
    return values[i];
  }

  OpTableOptions options_;
  std::string source_;
  std::map<std::string, NestedTable, std::less<>> dense_, per_sequence_;
  AttentionTable attention_;
  UnequalDecodes unequal_;
  std::optional<ExpertTable> experts_;
  // Microseconds; below 0 = not worked out yet.
  std::vector<double> dense_by_tokens_, head_by_sequences_, experts_by_tokens_;
};

}  // namespace

OpTableOptions op_table_options(const ComposedStepsConfig& config) {
  const ParallelPlan& plan = config.plan;
  const Device& device = config.models.kernels.device();
  OpTableOptions options{.layers = static_cast<int64_t>(config.model.layers.size()),
                         .tensor = plan.tensor,
                         .graph_sizes = config.stack.graph_sizes,
                         .processors = device.processors ? device.processors->value : 0,
                         .expert_ranks = plan.expert,
                         .lock_step_ranks = lock_step_ranks(plan)};
  for (const Layer& layer : config.model.layers) {
    if (const auto* attention = std::get_if<Attention>(&layer.mixer)) {
      options.key_heads = std::max<int64_t>(1, attention->kv_heads / plan.tensor);
    }
    if (const auto* moe = std::get_if<Moe>(&layer.feed_forward)) {
      ++options.expert_layers;
      options.experts = moe->experts;
      options.top_k = moe->top_k;
    }
  }
  if (plan.tensor * plan.pipeline * plan.context * plan.expert > 1) {
    options.communication = std::make_shared<StepCommunication>(config);
  }
  return options;
}

std::unique_ptr<StepTimes> read_op_tables(const fs::path& folder, const OpTableOptions& options) {
  const fs::path of_rank = folder / ("tp" + std::to_string(options.tensor));
  const fs::path& found = fs::is_directory(of_rank) ? of_rank : folder;
  const TableSource tables = [&](const std::string& name) -> std::optional<CsvReader> {
    for (const char* ending : {".csv", ".csv.gz"}) {
      const fs::path file = (name.starts_with("tp1/") ? folder : found) / (name + ending);
      if (fs::exists(file)) return CsvReader(file, {.max_bytes = most_table_bytes});
    }
    return std::nullopt;
  };
  return std::make_unique<OpTables>(tables, found.string(), options);
}

std::unique_ptr<StepTimes> op_tables_from_text(const std::map<std::string, std::string>& texts,
                                               const OpTableOptions& options) {
  const TableSource tables = [&](const std::string& name) -> std::optional<CsvReader> {
    const auto text = texts.find(name);
    if (text == texts.end()) return std::nullopt;
    return CsvReader::from_text(text->second, name);
  };
  return std::make_unique<OpTables>(tables, "operator tables", options);
}

}  // namespace foretoken
