#include "kernel/forms/sparse_form.h"

#include "base/error.h"
#include "kernel/forms/form_math.h"
#include "model/work.h"

namespace foretoken {
namespace sparse_form {
namespace {

// A warp takes one row and 128 features of it, so that the nonzeros are walked once for each 128 features.
constexpr double spmm_tile_features = 128;
constexpr double sector_bytes = 32;  // what a miss fetches from L2

const SparseShape& sparse_shape_of(const FormCall& call) {
  const auto* s = std::get_if<SparseShape>(&call.shape);
  ensure(s != nullptr, "a sparse form is asked about a sparse product");
  return *s;
}

// Rows of the dense matrix that start on 16 bytes are loaded four words at a time.
bool is_aligned(const SparseShape& s) {
  return s.features * static_cast<int64_t>(8 * bytes_per_element(s.dtype)) % 128 == 0;
}

// Limits of one call, in seconds, and the traffic behind them.
struct SparseTimes {
  double hit_share = 0, cache_bytes = 0, dram_bytes = 0;
  double floor = 0, instructions = 0, cache = 0, dram = 0, longest_row = 0, total = 0;
};

class SparseForm : public Form {
 public:
  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& /*device*/) const override {
    return {"common", "class " + std::string(dtype_name(sparse_shape_of(call).dtype))};
  }

  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    choice = 0;
    return times(sparse_shape_of(call), device, constants).total;
  }

  std::vector<Explained> explain(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                                 int /*choice*/) const override {
    using enum Explained::Kind;
    const SparseShape& s = sparse_shape_of(call);
    const SparseTimes t = times(s, device, constants);
    return {
        {fact, "nonzeros_per_row", as_double(s.nonzeros) / as_double(s.rows), "", "mean of all rows"},
        {fact, "longest_row", as_double(s.longest_row), "", "nonzeros of the longest row"},
        {fact, "hit_share", t.hit_share, "share", "of the fetched dense values that a cache holds"},
        {fact, "l2_bytes", t.cache_bytes, "B", "that L2 serves"},
        {fact, "dram_bytes", t.dram_bytes, "B", "that DRAM serves"},
        {part, "launch", t.floor, "s", "an empty call"},
        {part, "product", t.total - t.floor, "s", "the nonzeros; their limits partly hide one another"},
        {limit, "instructions", t.instructions, "s", "nonzeros and rows walked by the processors"},
        {limit, "l2", t.cache, "s", "dense values from L2"},
        {limit, "dram", t.dram, "s", "structure, dense values that miss, and results"},
        {limit, "one_row", t.longest_row, "s", "the longest row from start to end"},
    };
  }

  size_t feature_count() const override { return 13; }
  void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int /*choice*/,
                std::span<float> out) const override {
    const SparseShape& s = sparse_shape_of(call);
    const SparseTimes t = times(s, device, constants);
    const auto log = [](double x) { return static_cast<float>(quick_log2(std::max(x, 1e-6))); };
    const double mean = as_double(s.nonzeros) / as_double(s.rows), features = as_double(s.features);
    size_t i = 0;
    for (const double limit : {t.floor, t.instructions, t.cache, t.dram, t.longest_row})
      out[i++] = log(limit / t.total);
    out[i++] = static_cast<float>(t.hit_share);
    out[i++] = static_cast<float>(s.pattern);
    out[i++] = log(mean);
    out[i++] = log(as_double(s.longest_row) / mean);
    out[i++] = log(as_double(s.columns) * features * bytes_per_element(s.dtype) / device.cache);
    out[i++] = log(as_double(s.rows) / device.processors);
    out[i++] = is_aligned(s) ? 1 : 0;
    out[i++] = static_cast<float>(features / (spmm_tile_features * ceil_ratio(features, spmm_tile_features)));
  }

 protected:
  virtual SparseTimes times(const SparseShape& s, const DeviceTraits& device, std::span<const double> c) const = 0;

  // Limits hide one another only in part: a warp that waits for data issues nothing.
  static double join(const SparseTimes& t, double power) {
    return t.floor + soft_maximum(t.instructions, soft_maximum(t.cache, t.dram, power), t.longest_row, power);
  }
};

namespace spmm {

enum Constant {
  floor_cycles,
  nonzero_cycles,
  row_cycles,
  unaligned,
  cache_share,
  gather_slowdown,
  dram_slowdown,
  cache_rate,
  join_power,
  constant_count
};

constexpr FormConstant table[constant_count] = {
    {"floor_cycles", 39000, 5000, 200000, "clocks of an empty call"},
    {"nonzero_cycles", 12, 2, 100, "clocks of a processor for a nonzero and 128 features"},
    {"row_cycles", 50, 5, 500, "clocks of a processor for a row and 128 features"},
    {"unaligned", 1.25, 1, 4, "times as many clocks where dense rows are no multiple of 16 bytes"},
    {"cache_share", 0.46, 0.1, 1.5, "of L2 that holds dense rows"},
    {"gather_slowdown", 1.1, 0.5, 4, "dense rows from DRAM: time over time at the spec bandwidth"},
    {"dram_slowdown", 1.5, 0.5, 4, "structure and results: time over time at the spec bandwidth"},
    {"cache_rate", 60, 10, 300, "bytes per clock and processor from L2"},
    {"join_power", 1.3, 1, 6, "how far the limits hide one another"},
};

class SpmmForm final : public SparseForm {
 public:
  std::string_view name() const override { return "spmm"; }
  std::span<const FormConstant> constants() const override { return table; }

 protected:
  SparseTimes times(const SparseShape& s, const DeviceTraits& device, std::span<const double> c) const override {
    const double rows = as_double(s.rows), nonzeros = as_double(s.nonzeros), features = as_double(s.features);
    const double element = bytes_per_element(s.dtype), rate = device.processors * device.clock;
    const double tiles = ceil_ratio(features, spmm_tile_features), width = std::min(features, spmm_tile_features);
    SparseTimes t;
    t.floor = c[floor_cycles] / device.clock;
    t.instructions = tiles * (nonzeros * c[nonzero_cycles] + rows * c[row_cycles]) / rate;
    if (!is_aligned(s)) t.instructions *= c[unaligned];
    // Of each nonzero's dense row, one tile at a time; the tiles of all rows come one after the other.
    const double fetched = nonzeros * tiles * sector_bytes * ceil_ratio(width * element, sector_bytes);
    const double touched = touched_lines(as_double(s.columns), nonzeros, s.pattern) * features * element;
    t.hit_share = sparse_hit_share(s.pattern, as_double(s.columns) * width * element, c[cache_share] * device.cache);
    // In a band the rows in flight share their neighbors in L1.
    t.cache_bytes = s.pattern == SparsePattern::band ? touched : fetched;
    const double missed = std::max(touched, fetched * (1 - t.hit_share));
    const double streamed = nonzeros * (4 + element) + rows * features * element;
    t.dram_bytes = missed + streamed;
    t.cache = t.cache_bytes / (c[cache_rate] * rate);
    t.dram = (missed * c[gather_slowdown] + streamed * c[dram_slowdown]) / device.bandwidth;
    t.total = join(t, c[join_power]);
    return t;
  }
};

}  // namespace spmm

namespace sddmm {

enum Constant {
  floor_cycles,
  product_cycles,
  row_feature_cycles,
  row_cycles,
  cache_share,
  gather_slowdown,
  dram_slowdown,
  cache_rate,
  band_sectors,
  serial_cycles,
  serial_feature_cycles,
  serial_miss_cycles,
  join_power,
  constant_count
};

constexpr FormConstant table[constant_count] = {
    {"floor_cycles", 39000, 5000, 200000, "clocks of an empty call"},
    {"product_cycles", 0.2, 0.02, 5, "clocks of a processor for a nonzero and a feature"},
    {"row_feature_cycles", 4, 0.2, 40, "clocks of a processor for a row and a feature"},
    {"row_cycles", 100, 5, 1000, "clocks of a processor for a row"},
    {"cache_share", 0.72, 0.1, 1.5, "of L2 that holds the second dense matrix"},
    {"gather_slowdown", 3.2, 0.8, 10, "single sectors from DRAM: time over time at the spec bandwidth"},
    {"dram_slowdown", 2, 0.5, 6, "structure and results: time over time at the spec bandwidth"},
    {"cache_rate", 22, 5, 100, "bytes per clock and processor from L2"},
    {"band_sectors", 4, 0.5, 20, "sectors that a row of a band fetches for each feature, however many its nonzeros"},
    {"serial_cycles", 50, 5, 500, "clocks of one nonzero after the other in a row"},
    {"serial_feature_cycles", 1.1, 0.1, 20, "the same, for each feature"},
    {"serial_miss_cycles", 12, 0.5, 100, "the same, for each feature that comes from DRAM"},
    {"join_power", 1.4, 1, 6, "how far the limits hide one another"},
};

class SddmmForm final : public SparseForm {
 public:
  std::string_view name() const override { return "sddmm"; }
  std::span<const FormConstant> constants() const override { return table; }

 protected:
  SparseTimes times(const SparseShape& s, const DeviceTraits& device, std::span<const double> c) const override {
    const double rows = as_double(s.rows), nonzeros = as_double(s.nonzeros), features = as_double(s.features);
    const double columns = as_double(s.columns);
    const double element = bytes_per_element(s.dtype), rate = device.processors * device.clock;
    SparseTimes t;
    t.floor = c[floor_cycles] / device.clock;
    t.instructions =
        (nonzeros * features * c[product_cycles] + rows * features * c[row_feature_cycles] + rows * c[row_cycles]) /
        rate;
    // b[features, columns] lies row after row, so that a column of it takes a sector for each feature.
    const double sectors = s.pattern == SparsePattern::band ? std::min(nonzeros, rows * c[band_sectors]) : nonzeros;
    t.cache_bytes = sectors * features * sector_bytes;
    const double touched = touched_lines(columns, nonzeros, s.pattern) * features * element;
    t.hit_share = sparse_hit_share(s.pattern, columns * features * element, c[cache_share] * device.cache);
    const double missed = std::max(touched, t.cache_bytes * (1 - t.hit_share));
    const double streamed = nonzeros * (8 + element) + rows * features * element;
    t.dram_bytes = missed + streamed;
    t.cache = t.cache_bytes / (c[cache_rate] * rate);
    t.dram = (missed * c[gather_slowdown] + streamed * c[dram_slowdown]) / device.bandwidth;
    const double feature = c[serial_feature_cycles] + c[serial_miss_cycles] * (1 - t.hit_share);
    t.longest_row = as_double(s.longest_row) * (c[serial_cycles] + features * feature) / device.clock;
    t.total = join(t, c[join_power]);
    return t;
  }
};

}  // namespace sddmm
}  // namespace
}  // namespace sparse_form

double sparse_hit_share(SparsePattern pattern, double bytes, double capacity) {
  if (pattern == SparsePattern::band || bytes <= capacity) return 1;
  const double kept = capacity / bytes;
  if (pattern == SparsePattern::uniform) return kept;
  return quick_exp2(busiest_share_exponent * quick_log2(kept));
}

std::unique_ptr<Form> make_spmm_form() {
  return std::make_unique<sparse_form::spmm::SpmmForm>();
}

std::unique_ptr<Form> make_sddmm_form() {
  return std::make_unique<sparse_form::sddmm::SddmmForm>();
}

}  // namespace foretoken
