#include "validate/schedules/validate_schedules.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/statistics.h"

namespace foretoken {
namespace {

struct TimedSchedule {
  RankedSchedule ranked;
  double measured_us = 0;
};

struct TimedProduct {
  std::string device;
  GemmShape shape;
  std::vector<TimedSchedule> schedules;
};

ScheduleChoice choice_of(TimedProduct product) {
  std::vector<TimedSchedule>& all = product.schedules;
  std::stable_sort(all.begin(), all.end(),
                   [](const TimedSchedule& a, const TimedSchedule& b) { return ranks_before(a.ranked, b.ranked); });
  const auto fastest_of = [&](size_t first) {
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(first, all.size()));
    return *std::min_element(
        all.begin(), end, [](const TimedSchedule& a, const TimedSchedule& b) { return a.measured_us < b.measured_us; });
  };
  std::vector<double> predicted, measured;
  for (const TimedSchedule& one : all) {
    predicted.push_back(one.ranked.time.seconds);
    measured.push_back(one.measured_us);
  }
  const TimedSchedule best = fastest_of(all.size());
  return {.shape = product.shape,
          .chosen = all.front().ranked.schedule,
          .best = best.ranked.schedule,
          .chosen_us = all.front().measured_us,
          .best_of_five_us = fastest_of(5).measured_us,
          .best_us = best.measured_us,
          .rank_correlation = spearman(predicted, measured)};
}

GemmShape shape_in(const CsvReader& table) {
  const auto size = [&](const char* column) { return table.integer(table.column(column), {1, 10'000'000}); };
  return {.m = size("m"), .n = size("n"), .k = size("k")};
}

GemmSchedule schedule_in(const CsvReader& table) {
  const auto size = [&](const char* column, int64_t most) { return table.integer(table.column(column), {1, most}); };
  return {.bm = size("bm", 1024),
          .bn = size("bn", 1024),
          .bk = size("bk", 1024),
          .stages = size("stages", 16),
          .warps = size("warps", 32),
          .group = size("group", 1024)};
}

}  // namespace

ScheduleValidation validate_schedules(const std::filesystem::path& data, const HardwareCatalogue& hardware) {
  CsvReader table{data};
  ScheduleValidation result;
  ValidationTally tally(long_row_us);
  std::vector<TimedProduct> products;
  while (table.next()) {
    try {
      const Device device = hardware.device(std::string(table.cell(table.column("device"))));
      const GemmShape shape = shape_in(table);
      const GemmSchedule schedule = schedule_in(table);
      const double measured = table.number(table.column("us"), {1e-3, 1e9});
      check_schedules_known(shape, device);
      const std::optional<ScheduleTime> time = schedule_time(shape, schedule, device);
      if (!time) throw InputError({.value = "tile and stages", .expected = "a schedule that fits in shared memory"});
      const bool another =
          products.empty() || products.back().device != device.name || !(products.back().shape == shape);
      if (another) products.push_back({.device = device.name, .shape = shape, .schedules = {}});
      products.back().schedules.push_back({.ranked = {schedule, *time}, .measured_us = measured});
      tally.add(fmt::format("{} x {} x {}", shape.m, shape.n, shape.k),
                {.measured = measured, .predicted = 1e6 * time->seconds}, 0);
    } catch (const InputError& error) {
      result.errors.skipped.push_back({.file = table.source(), .row = table.row(), .why = error.sentence()});
    }
  }
  tally.write(result.errors);
  result.errors.has_intervals = false;
  for (TimedProduct& product : products) result.choices.push_back(choice_of(std::move(product)));
  return result;
}

}  // namespace foretoken
