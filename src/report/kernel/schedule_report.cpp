#include "report/kernel/schedule_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/statistics.h"
#include "base/text.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

std::string tile_text(const GemmSchedule& one) {
  return fmt::format("{} x {} x {}", one.bm, one.bn, one.bk);
}

std::string settings_text(const GemmSchedule& one) {
  return fmt::format("{}, {}s {}w g{}", tile_text(one), one.stages, one.warps, one.group);
}

Json schedule_json(const GemmSchedule& one) {
  return Json::object({{"bm", one.bm},
                       {"bn", one.bn},
                       {"bk", one.bk},
                       {"stages", one.stages},
                       {"warps", one.warps},
                       {"group", one.group}});
}

double lost_percent(double us, const ScheduleChoice& choice) {
  return 100 * (us / choice.best_us - 1);
}

}  // namespace

std::string schedules_text(const GemmShape& shape, const Device& device, std::span<const RankedSchedule> ranked,
                           size_t shown) {
  Table table({{"rank"}, {"tile"}, {"stages"}, {"warps"}, {"group"}, {"time"}, {"tiles"}, {"per SM"}, {"bound by"}});
  for (size_t i = 0; i < std::min(shown, ranked.size()); ++i) {
    const auto& [schedule, time] = ranked[i];
    table.add({fmt::format("{}", i + 1), tile_text(schedule), fmt::format("{}", schedule.stages),
               fmt::format("{}", schedule.warps), fmt::format("{}", schedule.group), duration_text(time.seconds),
               fmt::format("{}", time.tiles), fmt::format("{}", time.tiles_per_processor), time.bound});
  }
  return fmt::format("{} x {} x {} in {} on {}: the {} fastest of {} schedules of a Triton kernel\n\n", shape.m,
                     shape.n, shape.k, facts(shape.scheme).name, device.title, std::min(shown, ranked.size()),
                     ranked.size()) +
         table.text() + "\n" +
         wrap_lines(
             "note: Use this model for ranking. It was checked only on an H200, with twelve matrix sizes, six of which "
             "were left out of the fit. The best of the top five schedules took at most 6% longer than the fastest of "
             "all 156, and the top-ranked schedule at most 18% longer. The median error of the times was 8%.\n",
             page_width(), 2);
}

Json schedules_json(const GemmShape& shape, const Device& device, std::span<const RankedSchedule> ranked,
                    size_t shown) {
  Json list = Json::array();
  for (size_t i = 0; i < std::min(shown, ranked.size()); ++i) {
    Json one = schedule_json(ranked[i].schedule);
    one.set("seconds", ranked[i].time.seconds);
    one.set("tiles", ranked[i].time.tiles);
    one.set("tiles_per_processor", ranked[i].time.tiles_per_processor);
    one.set("bound", ranked[i].time.bound);
    list.push(std::move(one));
  }
  return Json::object({{"device", device.name},
                       {"m", shape.m},
                       {"n", shape.n},
                       {"k", shape.k},
                       {"dtype", facts(shape.scheme).name},
                       {"schedules_considered", static_cast<int64_t>(ranked.size())},
                       {"schedules", std::move(list)}});
}

std::string schedule_choices_text(std::span<const ScheduleChoice> choices) {
  Table table({{"m x n x k", Table::Align::left},
               {"rank corr."},
               {"top 1"},
               {"top 5"},
               {"ranked first", Table::Align::left},
               {"fastest measured", Table::Align::left}});
  for (const ScheduleChoice& one : choices) {
    table.add({fmt::format("{} x {} x {}", one.shape.m, one.shape.n, one.shape.k),
               fmt::format("{:.3f}", one.rank_correlation), fmt::format("{:.1f}%", lost_percent(one.chosen_us, one)),
               fmt::format("{:.1f}%", lost_percent(one.best_of_five_us, one)), settings_text(one.chosen),
               settings_text(one.best)});
  }
  return "\nrank corr.: correlation of the predicted and measured order. top 1: how much longer the\n"
         "top-ranked schedule takes than the fastest one. top 5: the same for the best of the top five.\n\n" +
         table.text();
}

Json schedule_choices_json(std::span<const ScheduleChoice> choices) {
  Json list = Json::array();
  for (const ScheduleChoice& one : choices) {
    list.push(Json::object({{"m", one.shape.m},
                            {"n", one.shape.n},
                            {"k", one.shape.k},
                            {"rank_correlation", one.rank_correlation},
                            {"lost_percent", lost_percent(one.chosen_us, one)},
                            {"lost_of_five_percent", lost_percent(one.best_of_five_us, one)},
                            {"chosen", schedule_json(one.chosen)},
                            {"best", schedule_json(one.best)}}));
  }
  return list;
}

}  // namespace foretoken
