#include "accelerator/validate/loop_nest_cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "accelerator/validate/case_parts.h"
#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

AcceleratorLevel read_case_level(const JsonView& view, bool innermost) {
  const JsonView attributes = view.at("attr");
  AcceleratorLevel level{.name = bare_name(view.at("name").string()), .component = view.at("class").string()};
  level.instances_x = integer_or(attributes, "meshX", 1);
  level.instances_y = integer_or(attributes, "meshY", 1);
  if (innermost) {
    level.kind = LevelKind::compute;
    return level;
  }
  if (level.component == "dummy_storage") {
    level.kind = LevelKind::network;
    return level;
  }
  level.word_bits = static_cast<int>(integer_or(attributes, "datawidth", 8));
  const int64_t width = integer_or(attributes, "width", level.word_bits);
  level.words_per_access = static_cast<int>(width / level.word_bits * integer_or(attributes, "cluster_size", 1));
  level.depth = integer_or(attributes, "depth", 0);
  level.buffers = static_cast<int>(integer_or(attributes, "multiple_buffering", 1));
  if (const auto rate = attributes.find("read_bandwidth")) level.bandwidth.read = rate->number();
  if (const auto rate = attributes.find("write_bandwidth")) level.bandwidth.write = rate->number();
  if (const auto rate = attributes.find("shared_bandwidth")) level.bandwidth.shared = rate->number();
  return level;
}

std::optional<double> optional_number(const JsonView& view, size_t index) {
  const auto items = view.items();
  if (index >= items.size() || items[index].is(Json::Kind::null)) return std::nullopt;
  return items[index].number();
}

// The small design of DRAM, a buffer and a grid of register files, with its defaults.
Architecture read_small_design(const JsonView& view) {
  view.allow_only({"levels", "defaults", "x", "y", "glb_kb", "rf", "word", "glb_bw", "dram_bw", "rf_bw"});
  const int64_t x = integer_or(view, "x", 16), y = integer_or(view, "y", 16);
  const int64_t word_bits = integer_or(view, "word", 8);
  constexpr int64_t bus_bits = 64;
  const auto words_per_access = static_cast<int>(bus_bits / word_bits);
  AcceleratorLevel dram{.name = "DRAM", .words_per_access = words_per_access};
  AcceleratorLevel buffer{.name = "GLB",
                          .words_per_access = words_per_access,
                          .depth = integer_or(view, "glb_kb", 64) * 1024 * 8 / word_bits / words_per_access};
  AcceleratorLevel registers{.name = "RF", .instances_x = x, .instances_y = y, .depth = integer_or(view, "rf", 64)};
  const auto set_bandwidth = [&](std::string_view key, AcceleratorLevel& level) {
    if (const auto rates = view.find(key)) {
      level.bandwidth = {.read = optional_number(*rates, 0), .write = optional_number(*rates, 1)};
    }
  };
  set_bandwidth("dram_bw", dram);
  set_bandwidth("glb_bw", buffer);
  set_bandwidth("rf_bw", registers);
  AcceleratorLevel multipliers{.name = "MAC", .kind = LevelKind::compute, .instances_x = x, .instances_y = y};
  return {.name = "small", .levels = {dram, buffer, registers, multipliers}};
}

Architecture read_case_architecture(const JsonView& view) {
  if (!view.is(Json::Kind::array)) return read_small_design(view);
  Architecture architecture{.name = "case"};
  const auto items = view.items();
  for (const JsonView& item : items) {
    architecture.levels.push_back(read_case_level(item, &item == &items.back()));
  }
  return architecture;
}

void read_case_energies(const JsonView& table, Architecture& architecture) {
  for (const auto& [name, actions] : table.members()) {
    const int index = find_level(architecture, name);
    if (index < 0) continue;
    AcceleratorLevel& level = architecture.levels[static_cast<size_t>(index)];
    if (!actions.is(Json::Kind::object)) {
      level.energy.compute_pj = actions.number();
      continue;
    }
    const auto pj = [&actions = actions](std::string_view key, double otherwise) {
      const auto found = actions.find(key);
      return found ? found->number() : otherwise;
    };
    level.energy.read_pj = pj("read", 0);
    level.energy.fill_pj = pj("write", 0);
    level.energy.update_pj = pj("update", level.energy.fill_pj);
    level.energy.compute_pj = pj("compute", 0);
    level.energy.leak_pj_per_cycle = pj("leak", 0);
  }
}

void read_case_expectations(const JsonView& view, LoopNestCase& own) {
  const JsonView summary = view.at("summary");
  own.cycles = summary.at("cycles").number();
  own.operations = summary.at("computes").number();
  own.energy_pj = summary.at("energy_pj_sum_of_levels").number();
  for (const auto& [level_name, level] : view.at("levels").members()) {
    const auto tensors = level.find("tensors");
    if (!tensors) continue;
    for (const auto& [tensor_name, tensor] : tensors->members()) {
      own.traffic.push_back({.level = bare_name(level_name),
                             .tensor = tensor_name,
                             .utilized_words = tensor.at("utilized_capacity").number(),
                             .instances = tensor.at("instances").number(),
                             .reads = tensor.at("reads").number(),
                             .fills = tensor.at("fills").number(),
                             .updates = tensor.at("updates").number(),
                             .energy_pj = tensor.at("energy_pj").number()});
    }
  }
}

// What a later version counts differently: `GLB.Inputs.fills` -> words, or a pair of both versions' figures.
void read_replacements(const JsonView& item, LoopNestCase& own) {
  for (const auto& [key, value] : item.members()) {
    if (key.find("master") == std::string::npos || !value.is(Json::Kind::object)) continue;
    for (const auto& [name, figure] : value.members()) {
      if (figure.is_number()) own.replaced[name] = figure.number();
      if (figure.is(Json::Kind::array) && figure.items().size() == 2) {
        own.replaced[name] = figure.items()[1].number();
      }
    }
  }
}

}  // namespace

double timeloop_3_0_3_energy_pj(const Evaluation& evaluation, const Architecture& architecture) {
  const double charged = evaluation.compute_cycles * evaluation.levels.back().instances;
  return evaluation.energy_pj + (charged - evaluation.operations) * architecture.levels.back().energy.compute_pj;
}

std::vector<LoopNestCase> read_loop_nest_cases(const JsonView& document) {
  std::vector<LoopNestCase> cases;
  const auto items = document.at("cases").items();
  if (items.empty()) return cases;
  // The part under `key`, of the first case where this one refers to it.
  const auto part = [&](const JsonView& item, std::string_view key) {
    const auto own = item.find(key);
    return own && !own->is(Json::Kind::string) ? *own : items.front().at(key);
  };
  for (const JsonView& item : items) {
    LoopNestCase own{.id = item.at("id").string()};
    own.architecture = read_case_architecture(part(item, "arch"));
    // Energies of versions without leakage say nothing of it in what they expect; the table may still hold it.
    const std::string_view energies =
        item.has("energy_pJ_per_action") ? "energy_pJ_per_action" : "energy_table_pJ_per_action";
    read_case_energies(part(item, energies), own.architecture);
    const JsonView problem = item.at("problem");
    own.problem =
        read_case_problem(problem.has("tensors") ? problem : items.front().at("problem"), problem.at("instance"));
    own.mapping = read_case_mapping(item.at("mapping_outer_to_inner"), own.architecture, own.problem);
    read_case_expectations(item.at("expected"), own);
    read_replacements(item, own);
    bool counts_leakage = false;
    for (const auto& [name, level] : item.at("expected").at("levels").members()) {
      counts_leakage = counts_leakage || level.has("leakage_total");
    }
    if (!counts_leakage) {
      for (AcceleratorLevel& level : own.architecture.levels) level.energy.leak_pj_per_cycle = 0;
    }
    cases.push_back(std::move(own));
  }
  return cases;
}

}  // namespace foretoken
