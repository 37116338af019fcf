#include "serving/op_tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "base/csv.h"
#include "base/error.h"
#include "serving/nested_table.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr int64_t most_tokens = int64_t{1} << 24;
constexpr size_t most_bytes = size_t{256} << 20;  // of a table; those of a GPU have a few megabytes
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
    const std::array<int64_t, 1> key{csv.integer(size, {0, most_tokens})};
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
      for (size_t i = 0; i < keys.size(); ++i) keys[i] = csv.integer(columns[i], {0, most_tokens});
      table_.add(keys, csv.number(time, microseconds_allowed));
    }
    if (table_.keys().empty()) fail_empty(csv);
  }

  double microseconds(double chunk, double chunk_context, double decodes, double decode_context) const {
    const std::array<double, 3> rest{chunk_context, decodes, decode_context};
    const NestedTable::Place place = table_.place(chunk);
    const double lower = table_.below(place.lower).at(rest);
    if (place.share == 0) return lower;
    const double upper = table_.below(place.upper).at(rest);
    const auto work = [&](double tokens) { return tokens * (chunk_context + tokens / 2); };
    const double least = work(table_.keys()[place.lower]), most = work(table_.keys()[place.upper]);
    return lower + (upper - lower) * (work(chunk) - least) / (most - least);
  }

 private:
  NestedTable table_;
};

// How far decodes of unequal context lie between all at the mean and all at the longest.
struct SkewShares {
  double decodes_alone = 0;
  double mixed = 0;
};

SkewShares read_skew(CsvReader csv) {
  const size_t count = csv.column("n"), chunk = csv.column("pc"), mean = csv.column("kv_mean");
  const size_t at_mean = csv.column("t_mean_us"), at_most = csv.column("t_max_us"), real = csv.column("t_skew_us");
  struct Sums {
    double above_mean = 0, most_above_mean = 0;
    double share() const { return most_above_mean > 0 ? std::clamp(above_mean / most_above_mean, 0.0, 1.0) : 0; }
  };
  Sums alone, mixed;
  while (csv.next()) {
    const int64_t sequences = csv.integer(count, {1, most_tokens});
    const double context = csv.number(mean, {0, 1e9});
    if (sequences < 32 || sequences > 128 || context < 512 || context > 2048) continue;
    Sums& sums = csv.integer(chunk, {0, most_tokens}) == 0 ? alone : mixed;
    const double mean_us = csv.number(at_mean, microseconds_allowed);
    sums.above_mean += csv.number(real, microseconds_allowed) - mean_us;
    sums.most_above_mean += csv.number(at_most, microseconds_allowed) - mean_us;
  }
  return {.decodes_alone = alone.share(), .mixed = mixed.share()};
}

class OpTables final : public StepTimes {
 public:
  OpTables(const TableSource& tables, const std::string& source, const OpTableOptions& options)
      : options_(options),
        source_(source),
        dense_(read_layers(needed(tables, "dense", source), "tokens")),
        per_sequence_(read_layers(needed(tables, "per_sequence", source), "sequences")),
        attention_(needed(tables, "attention", source)) {
    if (std::optional<CsvReader> skew = tables("skew")) skew_ = read_skew(std::move(*skew));
  }

  Estimate step_seconds(const StepBatch& batch) override {
    const double us = dense_microseconds(padded(batch.new_tokens())) + head_microseconds(batch.sampled_sequences()) +
                      static_cast<double>(options_.layers) * attention_microseconds(batch);
    return tabulated_seconds(us * 1e-6, table_error, source_);
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
        const double calls = once                   ? 1
                             : layer == "layernorm" ? 2.0 * static_cast<double>(options_.layers)
                                                    : static_cast<double>(options_.layers);
        sum += calls * table.at(point);
      }
      return sum;
    });
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
    const double share = chunk > 0 ? skew_.mixed : skew_.decodes_alone;
    const auto longest = static_cast<double>(batch.longest_decode_context);
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
  SkewShares skew_;
  std::vector<double> dense_by_tokens_, head_by_sequences_;  // microseconds; below 0 = not worked out yet
};

}  // namespace

std::unique_ptr<StepTimes> read_op_tables(const fs::path& folder, const OpTableOptions& options) {
  const fs::path of_rank = folder / ("tp" + std::to_string(options.tensor));
  const fs::path& found = fs::is_directory(of_rank) ? of_rank : folder;
  const TableSource tables = [&](const std::string& name) -> std::optional<CsvReader> {
    for (const char* ending : {".csv", ".csv.gz"}) {
      const fs::path file = found / (name + ending);
      if (fs::exists(file)) return CsvReader(file, {.max_bytes = most_bytes});
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
