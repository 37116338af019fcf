#include "report/chip/accelerator_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "accelerator/energy/power.h"
#include "accelerator/mapping_text.h"
#include "base/text.h"
#include "report/drawing/html_page.h"
#include "report/drawing/svg.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

std::string words_text(double words) {
  return words < 1e6 ? fmt::format("{:.0f}", words) : count_text(words);
}

double seconds_of(double cycles, const Architecture& architecture) {
  return cycles / architecture.clock_hz;
}

// Energy-delay product in joules times cycles, the unit Timeloop prints.
double energy_delay(const Evaluation& evaluation) {
  return evaluation.energy_pj * 1e-12 * evaluation.cycles;
}

std::string limit_text(const MappingReport& report) {
  const int slowest = report.evaluation.slowest_level;
  if (slowest < 0) return "the multipliers";
  const LevelUse& use = report.evaluation.levels[slowest];
  const std::string& name = report.architecture.levels[slowest].name;
  if (use.mesh_cycles >= use.cycles) return fmt::format("links between {} and the level below", name);
  return fmt::format("bandwidth of {}{}", name, use.row_cycles > 0 ? " and its rows" : "");
}

std::string level_table(const MappingReport& report) {
  const Evaluation& result = report.evaluation;
  Table table({{.title = "level", .align = Table::Align::left},
               {.title = "used"},
               {.title = "words"},
               {.title = "full"},
               {.title = "reads"},
               {.title = "fills"},
               {.title = "updates"},
               {.title = "energy"},
               {.title = "share"}});
  const size_t tensors = report.problem.tensors.size();
  const size_t compute = report.architecture.levels.size() - 1;
  for (size_t i = 0; i <= compute; ++i) {
    const AcceleratorLevel& level = report.architecture.levels[i];
    const LevelUse& use = result.levels[i];
    const double used_pj = use.access_pj + use.leakage_pj + use.network_pj + (i == compute ? result.compute_pj : 0);
    const double share = result.energy_pj > 0 ? used_pj / result.energy_pj : 0;
    double reads = 0, fills = 0, updates = 0;
    for (size_t t = 0; i < compute && t < tensors; ++t) {
      const TensorTraffic& traffic = traffic_at(result, report.problem, i, t);
      reads += traffic.reads * traffic.instances;
      fills += traffic.fills * traffic.instances;
      updates += traffic.updates * traffic.instances;
    }
    const bool keeps = i < compute && level.kind == LevelKind::storage;
    const double held = static_cast<double>(words_held(level));
    table.add({level.name, fmt::format("{:.0f}/{}", use.instances, instances(level)),
               keeps ? words_text(use.used_words) : "",
               keeps && held > 0 ? fmt::format("{:.0f}%", 100 * use.used_words / held) : "",
               keeps ? words_text(reads) : "", keeps ? words_text(fills) : "", keeps ? words_text(updates) : "",
               used_pj > 0 ? picojoule_text(used_pj) : "", used_pj > 0 ? fmt::format("{:.1f}%", 100 * share) : ""});
  }
  return table.text(accelerator_page_width) + "used: active instances / all instances; words: stored in one instance\n";
}

// Words read and written at a level, of one instance.
double moved_words(const MappingReport& report, size_t level) {
  double words = 0;
  for (size_t t = 0; t < report.problem.tensors.size(); ++t) {
    const TensorTraffic& traffic = traffic_at(report.evaluation, report.problem, level, t);
    words += traffic.reads + traffic.fills + traffic.updates;
  }
  return words;
}

// Accesses of a DRAM that find their row open.
double row_hits(const MappingReport& report, size_t level) {
  const double accesses = moved_words(report, level) / report.architecture.levels[level].words_per_access;
  return accesses > 0 ? std::max(0.0, 1 - report.evaluation.levels[level].rows_opened / accesses) : 1;
}

std::string links_and_rows_text(const MappingReport& report) {
  std::string text;
  for (size_t i = 0; i + 1 < report.architecture.levels.size(); ++i) {
    const AcceleratorLevel& level = report.architecture.levels[i];
    const LevelUse& use = report.evaluation.levels[i];
    if (level.mesh.words_per_cycle > 0) {
      text += fmt::format("  {:<12} mesh of {:.0f} x {:.0f}: {} word-hops, {:.0f} cycles on the busiest link\n",
                          level.name, use.across, use.down, words_text(use.mesh_words), use.mesh_cycles);
    }
    if (level.rows.row_bytes > 0) {
      text += fmt::format("  {:<12} {} rows opened, row hit rate {:.1f}%, {:.0f} cycles added\n", level.name,
                          words_text(use.rows_opened), 100 * row_hits(report, i), use.row_cycles);
    }
  }
  return text;
}

Json traffic_json(const MappingReport& report, size_t level) {
  Json tensors = Json::object();
  for (size_t t = 0; t < report.problem.tensors.size(); ++t) {
    const TensorTraffic& traffic = traffic_at(report.evaluation, report.problem, level, t);
    if (!traffic.kept) continue;
    tensors.set(report.problem.tensors[t].name, Json::object({{"tile_words", traffic.tile_words},
                                                              {"instances", traffic.instances},
                                                              {"reads", traffic.reads},
                                                              {"fills", traffic.fills},
                                                              {"updates", traffic.updates},
                                                              {"energy_pj", traffic.energy_pj}}));
  }
  return tensors;
}

Json loops_json(const MappingReport& report, size_t level) {
  Json loops = Json::array();
  for (const Loop& loop : report.mapping.loops) {
    if (loop.level != static_cast<int>(level)) continue;
    Json own = Json::object({{"dimension", report.problem.dimensions[loop.dimension].name}, {"bound", loop.bound}});
    if (loop.last != loop.bound) own.set("last", loop.last);
    if (is_spatial(loop)) own.set("spread", loop.kind == LoopKind::spatial_x ? "x" : "y");
    loops.push(std::move(own));
  }
  return loops;
}

// --- Drawing ---

constexpr std::string_view tensor_colours[] = {"#2374ab", "#f08a24", "#3a9d5d", "#8d5fb0",
                                               "#c81d25", "#7b8794", "#b58900", "#111827"};
constexpr std::string_view leakage_colour = "#cbd2d9", compute_colour = "#1f2933", network_colour = "#9fb3c8",
                           outline_colour = "#e4e7eb";
constexpr double figure_width = 920, bar_left = 190, bar_right = figure_width - 150, row_height = 30;

struct BarSlice {
  double value = 0;
  std::string_view colour;
  std::string tooltip;
};

// A row of parts that follow each other, at `scale` pixels for one.
void draw_bar(Svg& svg, double y, const std::string& label, const std::vector<BarSlice>& parts, double scale,
              const std::string& end_text) {
  svg.text({bar_left - 10, y + 16}, label, {.anchor = SvgAnchor::end});
  double x = bar_left;
  for (const BarSlice& part : parts) {
    const double width = part.value * scale;
    if (width <= 0) continue;
    const SvgPoint corners[] = {{x, y}, {x + width, y}, {x + width, y + row_height - 8}, {x, y + row_height - 8}};
    svg.polygon(corners, {.fill = part.colour}, part.tooltip);
    x += width;
  }
  svg.text({x + 8, y + 16}, end_text, {});
}

struct LevelEnergy {
  std::string name;
  double total = 0;
  std::vector<BarSlice> parts;
};

std::vector<LevelEnergy> energies_by_level(const MappingReport& report) {
  std::vector<LevelEnergy> levels;
  const size_t compute = report.architecture.levels.size() - 1;
  for (size_t i = 0; i <= compute; ++i) {
    LevelEnergy own{.name = report.architecture.levels[i].name};
    for (size_t t = 0; i < compute && t < report.problem.tensors.size(); ++t) {
      const TensorTraffic& traffic = traffic_at(report.evaluation, report.problem, i, t);
      if (!traffic.kept) continue;
      own.parts.push_back({.value = traffic.energy_pj,
                           .colour = tensor_colours[t],
                           .tooltip = fmt::format("{} at {}: {}", report.problem.tensors[t].name, own.name,
                                                  picojoule_text(traffic.energy_pj))});
    }
    if (i == compute) {
      own.parts.push_back({.value = report.evaluation.compute_pj,
                           .colour = compute_colour,
                           .tooltip = "multiplications: " + picojoule_text(report.evaluation.compute_pj)});
    }
    const double network = report.evaluation.levels[i].network_pj;
    own.parts.push_back({.value = network, .colour = network_colour, .tooltip = "network: " + picojoule_text(network)});
    const double leakage = report.evaluation.levels[i].leakage_pj;
    own.parts.push_back({.value = leakage, .colour = leakage_colour, .tooltip = "leakage: " + picojoule_text(leakage)});
    for (const BarSlice& part : own.parts) own.total += part.value;
    if (own.total > 0) levels.push_back(std::move(own));
  }
  return levels;
}

struct UseBar {
  std::string name;
  double share = 0;
};

std::vector<UseBar> uses(const MappingReport& report) {
  std::vector<UseBar> bars;
  bars.push_back({"multipliers", utilization(report.evaluation, report.architecture)});
  for (size_t i = 0; i + 1 < report.architecture.levels.size(); ++i) {
    const AcceleratorLevel& level = report.architecture.levels[i];
    const LevelUse& use = report.evaluation.levels[i];
    if (words_held(level) > 0) {
      bars.push_back({level.name + " space", use.used_words / static_cast<double>(words_held(level))});
    }
    double reads = 0, writes = 0;
    for (size_t t = 0; t < report.problem.tensors.size(); ++t) {
      const TensorTraffic& traffic = traffic_at(report.evaluation, report.problem, i, t);
      reads += traffic.reads;
      writes += traffic.fills + traffic.updates;
    }
    const double cycles = report.evaluation.cycles;
    if (level.bandwidth.read) bars.push_back({level.name + " reads", reads / cycles / *level.bandwidth.read});
    if (level.bandwidth.write) bars.push_back({level.name + " writes", writes / cycles / *level.bandwidth.write});
    if (level.bandwidth.shared) {
      bars.push_back({level.name + " traffic", (reads + writes) / cycles / *level.bandwidth.shared});
    }
  }
  return bars;
}

void draw_legend(Svg& svg, const MappingReport& report, double y) {
  double x = bar_left;
  const auto entry = [&](std::string_view colour, std::string_view name) {
    svg.rectangle({x, y - 10}, 12, 12, {.fill = colour});
    svg.text({x + 17, y}, name, {});
    x += 34 + svg_text_width(name, 12);
  };
  for (size_t t = 0; t < report.problem.tensors.size(); ++t) entry(tensor_colours[t], report.problem.tensors[t].name);
  entry(compute_colour, "multiplications");
  entry(network_colour, "network");
  entry(leakage_colour, "leakage");
}

std::string summary_text(const MappingReport& report) {
  const Evaluation& result = report.evaluation;
  std::string text = fmt::format("{} on {}: {:.0f} multiply-accumulates\n\n", report.problem.name,
                                 report.architecture.name, result.operations);
  text += fmt::format("  cycles       {:.0f}  ({} at {:.4g} MHz), limited by {}\n", result.cycles,
                      duration_text(seconds_of(result.cycles, report.architecture)), report.architecture.clock_hz / 1e6,
                      limit_text(report));
  text += fmt::format(
      "  latency      {:.0f}  = {:.0f} of compute and hidden transfers, {:.0f} to fill, {:.0f} to drain, {:.0f} in "
      "stalls, {:.0f} to feed the array\n",
      result.latency_cycles(), result.latency.overlapped_cycles, result.latency.fill_cycles,
      result.latency.drain_cycles, result.latency.stall_cycles, result.latency.feed_cycles);
  text += fmt::format("  utilization  {:.1f}% of {} multipliers\n", 100 * utilization(result, report.architecture),
                      instances(report.architecture.levels.back()));
  text += fmt::format("  energy       {}, {:.4g} pJ for each multiply-accumulate, {:.4g} J x cycles\n",
                      picojoule_text(result.energy_pj), result.energy_pj / result.operations, energy_delay(result));
  text += fmt::format("  power        {:.4g} W", average_watts(result, report.architecture));
  if (const double area = area_um2(report.architecture); area > 0) text += fmt::format(", area {:.4g} mm2", area / 1e6);
  return text + "\n" + links_and_rows_text(report);
}

}  // namespace

std::string picojoule_text(double picojoules) {
  constexpr std::pair<double, std::string_view> units[] = {{1e12, "J"}, {1e9, "mJ"}, {1e6, "uJ"}, {1e3, "nJ"}};
  for (const auto& [size, name] : units) {
    if (picojoules >= size) return fmt::format("{:.4g} {}", picojoules / size, name);
  }
  return fmt::format("{:.4g} pJ", picojoules);
}

std::string mapping_report_text(const MappingReport& report) {
  return summary_text(report) + "\nWords moved, over all instances:\n" + level_table(report) + "\nMapping:\n" +
         loop_nest_text(report.mapping, report.architecture, report.problem);
}

Json mapping_report_json(const MappingReport& report) {
  const Evaluation& result = report.evaluation;
  Json levels = Json::array();
  for (size_t i = 0; i < report.architecture.levels.size(); ++i) {
    const LevelUse& use = result.levels[i];
    Json own = Json::object({{"name", report.architecture.levels[i].name},
                             {"instances", instances(report.architecture.levels[i])},
                             {"used_instances", use.instances},
                             {"leakage_pj", use.leakage_pj},
                             {"network_pj", use.network_pj}});
    if (i + 1 < report.architecture.levels.size()) {
      own.set("used_words", use.used_words);
      own.set("cycles", use.cycles);
      own.set("access_pj", use.access_pj);
      own.set("loops", loops_json(report, i));
      own.set("tensors", traffic_json(report, i));
      const AcceleratorLevel& level = report.architecture.levels[i];
      if (level.mesh.words_per_cycle > 0) {
        own.set("mesh_link_words", use.mesh_words).set("mesh_cycles", use.mesh_cycles);
      }
      if (level.rows.row_bytes > 0) {
        own.set("rows_opened", use.rows_opened)
            .set("row_hit_share", row_hits(report, i))
            .set("row_cycles", use.row_cycles);
      }
    }
    levels.push(std::move(own));
  }
  return Json::object({{"architecture", report.architecture.name},
                       {"problem", report.problem.name},
                       {"operations", result.operations},
                       {"cycles", result.cycles},
                       {"compute_cycles", result.compute_cycles},
                       {"latency_cycles", result.latency_cycles()},
                       {"overlapped_cycles", result.latency.overlapped_cycles},
                       {"fill_cycles", result.latency.fill_cycles},
                       {"drain_cycles", result.latency.drain_cycles},
                       {"stall_cycles", result.latency.stall_cycles},
                       {"feed_cycles", result.latency.feed_cycles},
                       {"seconds", seconds_of(result.cycles, report.architecture)},
                       {"limited_by", limit_text(report)},
                       {"utilization", utilization(result, report.architecture)},
                       {"energy_pj", result.energy_pj},
                       {"compute_pj", result.compute_pj},
                       {"energy_delay_joule_cycles", energy_delay(result)},
                       {"area_um2", area_um2(report.architecture)},
                       {"levels", std::move(levels)}});
}

std::string mapping_report_csv(const MappingReport& report) {
  std::string text = "level,tensor,tile_words,instances,reads,fills,updates,energy_pj\n";
  for (size_t i = 0; i + 1 < report.architecture.levels.size(); ++i) {
    for (size_t t = 0; t < report.problem.tensors.size(); ++t) {
      const TensorTraffic& traffic = traffic_at(report.evaluation, report.problem, i, t);
      if (!traffic.kept) continue;
      text += fmt::format("{},{},{},{},{},{},{},{}\n", report.architecture.levels[i].name,
                          report.problem.tensors[t].name, traffic.tile_words, traffic.instances, traffic.reads,
                          traffic.fills, traffic.updates, traffic.energy_pj);
    }
  }
  return text;
}

std::string mapping_report_svg(const MappingReport& report) {
  const std::vector<LevelEnergy> levels = energies_by_level(report);
  const std::vector<UseBar> use_bars = uses(report);
  const double energy_top = 84, use_top = energy_top + row_height * static_cast<double>(levels.size()) + 70;
  const double height = use_top + row_height * static_cast<double>(use_bars.size()) + 20;
  Svg svg(figure_width, height, fmt::format("{} on {}", report.problem.name, report.architecture.name));
  svg.text({24, 30},
           fmt::format("{} on {}: {} in {:.0f} cycles", report.problem.name, report.architecture.name,
                       picojoule_text(report.evaluation.energy_pj), report.evaluation.cycles),
           {.size = 16, .bold = true});
  svg.text({24, 66}, "Energy by level", {.size = 13, .bold = true});
  draw_legend(svg, report, 66);
  double most = 0;
  for (const LevelEnergy& level : levels) most = std::max(most, level.total);
  for (size_t i = 0; i < levels.size(); ++i) {
    draw_bar(svg, energy_top + row_height * static_cast<double>(i), levels[i].name, levels[i].parts,
             (bar_right - bar_left) / most,
             fmt::format("{} ({:.0f}%)", picojoule_text(levels[i].total),
                         100 * levels[i].total / report.evaluation.energy_pj));
  }
  svg.text({24, use_top - 18}, "Use of what is there", {.size = 13, .bold = true});
  for (size_t i = 0; i < use_bars.size(); ++i) {
    const double y = use_top + row_height * static_cast<double>(i);
    svg.rectangle({bar_left, y}, bar_right - bar_left, row_height - 8, {.stroke = outline_colour});
    draw_bar(svg, y, use_bars[i].name, {{.value = use_bars[i].share, .colour = tensor_colours[0], .tooltip = ""}},
             bar_right - bar_left, fmt::format("{:.1f}%", 100 * use_bars[i].share));
  }
  return svg.finish();
}

std::string mapping_report_html(const MappingReport& report) {
  HtmlPage page(fmt::format("{} on {}", report.problem.name, report.architecture.name));
  page.figure(mapping_report_svg(report), "Energy by level, and how much of what is there is used");
  page.preformatted(mapping_report_text(report));
  return page.finish();
}

}  // namespace foretoken
