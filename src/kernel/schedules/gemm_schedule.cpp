#include "kernel/schedules/gemm_schedule.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/portable_math.h"
#include "hardware/generation.h"

namespace foretoken {
namespace {

// Fitted to data/measured_schedules/fitted.csv; unfitted.csv checks them.
constexpr double slice_latency = 0.826e-6;      // from asking for a slice until it is there
constexpr double tile_start = 0.488e-6;         // before the first multiply of a tile and after its last
constexpr double turn_overhead = 9.6e-9;        // of each turn of a tile's loop
constexpr double reached_of_peak = 0.736;       // by the multiplies of a full tile
constexpr double narrow_share = 0.348;          // tiles below 64 rows: multiplies of single warps
constexpr double spilled = 4.28;                // slowdown where the sums of a tile do not fit the registers
constexpr double cache_bytes_per_clock = 56.6;  // of a processor, from L2
constexpr double shared_bytes_per_clock = 147;  // of a processor
constexpr double more_registers = 8.1;          // of a thread, beside its sums
constexpr double blend = 2.59;                  // how sharply the longest of several times hides the others

constexpr std::string_view measured_generation = "Hopper";

constexpr double launch = 3e-6;               // of the measurements, between two events
constexpr double streamed_share = 0.833;      // of the sheet's bandwidth, as streams reach
constexpr double shared_memory = 227 * 1024;  // of a processor, for one program (CUDA C++ Programming Guide, 9.0)
constexpr double shared_of_block = 1024;      // taken by the system for each block
constexpr double registers = 65536;           // of a processor
constexpr double most_registers = 255;        // of a thread
constexpr int64_t most_threads = 2048;        // of a processor
constexpr int64_t rows_of_a_multiply = 64;    // of one asynchronous multiply
constexpr double bytes_of_value = 2;
constexpr double usable_cache = 0.7;  // the rest is taken by results and by uneven sets

double of(int64_t count) {
  return static_cast<double>(count);
}

double ceil_of(double a, double b) {
  return std::ceil(a / b - 1e-9);
}

// Work that overlaps in part: at least the longest, at most the sum.
double blended(std::initializer_list<double> times) {
  const double longest = std::max(times);
  double sum = 0;
  for (const double time : times) sum += portable_pow(time / longest, blend);
  return longest * portable_pow(sum, 1 / blend);
}

// What one turn of a tile's loop takes, by what it waits for.
struct Turn {
  double multiply = 0, shared = 0, cache = 0;
  double between = 0;  // the earliest that the next slice can be there
  double least = 0;    // with two slices, loading waits for multiplying

  // `busy`: share of the processors at work, which share the cache's bandwidth.
  double seconds(double tiles, double busy = 1) const {
    return blended({tiles * multiply, tiles * cache * busy, tiles * shared, between, least}) + tiles * turn_overhead;
  }
  std::string bound(double tiles) const {
    const double longest = std::max({tiles * multiply, tiles * cache, tiles * shared, between, least});
    if (longest == tiles * multiply) return "multiply";
    if (longest == tiles * cache) return "cache";
    if (longest == tiles * shared) return "shared memory";
    return "latency";
  }
};

Turn turn_of(const GemmSchedule& one, const Device& device) {
  const double clock = device.boost_clock->value.value(), processors = device.processors->value;
  double rate = device.dense_peak[static_cast<size_t>(DType::bf16)]->value.value() / processors * reached_of_peak;
  if (one.bm < rows_of_a_multiply) rate *= narrow_share;
  const double sums = of(one.bm * one.bn) / of(32 * one.warps);
  if (sums > most_registers) rate /= spilled;
  const double bytes = of((one.bm + one.bn) * one.bk) * bytes_of_value;
  Turn turn{.multiply = 2 * of(one.bm * one.bn * one.bk) / rate,
            .shared = bytes / (shared_bytes_per_clock * clock),
            .cache = bytes / (cache_bytes_per_clock * clock),
            .between = slice_latency / of(std::max<int64_t>(1, one.stages - 1))};
  if (one.stages == 2) turn.least = turn.multiply + std::min(turn.cache, slice_latency);
  return turn;
}

// Blocks that a processor holds at once; 0 = not one.
double resident_tiles(const GemmSchedule& one) {
  const double shared = of(one.stages * (one.bm + one.bn) * one.bk) * bytes_of_value;
  if (shared > shared_memory) return 0;
  const double threads = of(32 * one.warps);
  const double of_thread = std::min(of(one.bm * one.bn) / threads + more_registers, most_registers);
  const double by_registers = std::floor(registers / std::floor(threads * of_thread));
  const double by_shared = std::floor(shared_memory / (shared + shared_of_block));
  return std::max(1.0, std::min({by_shared, by_registers, std::floor(of(most_threads) / threads)}));
}

// Bytes from DRAM: each operand once where the cache holds them all, else once for each wave of tiles that reads it.
double memory_bytes(const GemmShape& shape, const GemmSchedule& one, double at_once, const Device& device) {
  const double rows = ceil_of(of(shape.m), of(one.bm)), columns = ceil_of(of(shape.n), of(one.bn));
  const double tiles = rows * columns, once = of((shape.m + shape.n) * shape.k) * bytes_of_value;
  const double written = of(shape.m * shape.n) * bytes_of_value;
  if (once < usable_cache * device.last_level_cache->value.value()) return once + written;
  const double together = std::min(tiles, at_once);
  double wave_rows = std::min(rows, of(one.group));
  const double wave_columns = std::min(columns, std::ceil(together / wave_rows));
  if (wave_columns == columns) wave_rows = std::max(wave_rows, std::ceil(together / wave_columns));
  const double wave = (wave_rows * of(one.bm) + wave_columns * of(one.bn)) * of(shape.k) * bytes_of_value;
  return std::max(once, tiles / together * wave) + written;
}

}  // namespace

void check_schedules_known(const GemmShape& shape, const Device& device) {
  if (kernel_generation(device).title != measured_generation) {
    throw InputError({.field = "device",
                      .value = device.name,
                      .expected = fmt::format("a GPU of NVIDIA's {} generation, such as h100_sxm; others were not "
                                              "measured",
                                              measured_generation)});
  }
  const bool known = device.processors && device.boost_clock && device.last_level_cache && device.memory_bandwidth &&
                     device.dense_peak[static_cast<size_t>(DType::bf16)];
  if (!known) {
    throw InputError({.field = "device",
                      .value = device.name,
                      .expected = "a device whose file has processors, clock, cache, bandwidth and the bf16 peak"});
  }
  if (shape.scheme != Scheme::bf16 && shape.scheme != Scheme::fp16) {
    throw InputError({.field = "dtype", .value = std::string(facts(shape.scheme).name), .expected = "bf16 or fp16"});
  }
}

std::optional<ScheduleTime> schedule_time(const GemmShape& shape, const GemmSchedule& schedule, const Device& device) {
  const double fitting = resident_tiles(schedule);
  if (fitting == 0) return std::nullopt;
  const double processors = device.processors->value;
  const double tiles = ceil_of(of(shape.m), of(schedule.bm)) * ceil_of(of(shape.n), of(schedule.bn)) * of(shape.batch);
  const double at_once = std::min(fitting, std::max(1.0, ceil_of(tiles, processors)));
  const double turns = ceil_of(of(shape.k), of(schedule.bk));
  const Turn turn = turn_of(schedule, device);
  const double waves = std::floor(tiles / (processors * at_once));
  const double rest = tiles - waves * processors * at_once;
  double seconds = waves * (tile_start + turns * turn.seconds(at_once));
  if (rest > 0) {
    seconds += tile_start + turns * turn.seconds(ceil_of(rest, processors), std::min(1.0, rest / processors));
  }
  const double bytes = of(shape.batch) * memory_bytes(shape, schedule, processors * at_once, device);
  const double from_memory = bytes / (streamed_share * device.memory_bandwidth->value.value());
  return ScheduleTime{.seconds = blended({seconds, from_memory}) + launch,
                      .tiles = static_cast<int64_t>(tiles),
                      .tiles_per_processor = static_cast<int64_t>(at_once),
                      .bound = from_memory > seconds ? "memory" : turn.bound(at_once)};
}

std::vector<GemmSchedule> usual_schedules() {
  constexpr int64_t tiles[][3] = {{16, 64, 128},  {16, 128, 128}, {32, 64, 128}, {32, 128, 64},  {64, 64, 64},
                                  {64, 128, 64},  {64, 256, 64},  {128, 64, 64}, {128, 128, 32}, {128, 128, 64},
                                  {128, 256, 64}, {256, 128, 64}, {256, 64, 64}};
  std::vector<GemmSchedule> result;
  for (const auto& [bm, bn, bk] : tiles) {
    for (const int64_t stages : {2, 3, 4}) {
      for (const int64_t warps : {4, 8}) {
        for (const int64_t group : {1, 8}) {
          result.push_back({.bm = bm, .bn = bn, .bk = bk, .stages = stages, .warps = warps, .group = group});
        }
      }
    }
  }
  return result;
}

bool ranks_before(const RankedSchedule& a, const RankedSchedule& b) {
  constexpr double alike = 1 + 1e-9;
  if (a.time.seconds * alike < b.time.seconds || b.time.seconds * alike < a.time.seconds) {
    return a.time.seconds < b.time.seconds;
  }
  return a.schedule.group > b.schedule.group;
}

std::vector<RankedSchedule> rank_schedules(const GemmShape& shape, std::span<const GemmSchedule> schedules,
                                           const Device& device) {
  check_schedules_known(shape, device);
  std::vector<RankedSchedule> ranked;
  for (const GemmSchedule& schedule : schedules) {
    if (const auto time = schedule_time(shape, schedule, device)) ranked.push_back({schedule, *time});
  }
  std::stable_sort(ranked.begin(), ranked.end(), ranks_before);
  return ranked;
}

}  // namespace foretoken
