#include "accelerator/formats/architecture_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "accelerator/formats/compute_in_memory.h"
#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr std::array<std::string_view, 3> level_kind_names = {"storage", "network",
                                                              "compute"};  // in the order of LevelKind
constexpr Range<double> energy_bounds{.least = 0, .most = 1e12};
constexpr Range<double> rate_bounds{.least = 1e-9, .most = 1e12};
constexpr Range<double> cycle_bounds{.least = 0, .most = 1e6};
constexpr std::string_view in_memory_kind = "compute_in_memory";
constexpr std::array<std::string_view, 4> dimension_roles = {"reduced", "input_channels", "output_channels",
                                                             "positions"};

struct LevelEntry {
  JsonView view;
  AcceleratorLevel level;
  LevelTensors tensors;
  bool has_energy = false, has_area = false;
  std::string inside;
  int64_t grid_x = 1, grid_y = 1;
  int parent = -1;
  std::vector<int> children;
  bool computes = false;  // itself or a level inside it
};

template <class Number>
void set_integer(const JsonView& view, std::string_view key, Range<int64_t> allowed, Number& value) {
  if (const auto found = view.find(key)) value = static_cast<Number>(found->integer(allowed));
}

void set_flag(const JsonView& view, std::string_view key, bool& value) {
  if (const auto found = view.find(key)) value = found->boolean();
}

LevelKind read_kind(const JsonView& view) {
  const std::string typed = view.string();
  const auto* const found = std::find(level_kind_names.begin(), level_kind_names.end(), typed);
  if (found == level_kind_names.end()) {
    const std::vector<std::string> names(level_kind_names.begin(), level_kind_names.end());
    view.fail("storage, network, compute or compute_in_memory", nearest_name(typed, names).value_or(""));
  }
  return static_cast<LevelKind>(found - level_kind_names.begin());
}

AccessEnergy read_energy(const JsonView& view, LevelKind kind) {
  const auto pj = [&](std::string_view key, double otherwise) {
    const auto found = view.find(key);
    return found ? found->number(energy_bounds) : otherwise;
  };
  AccessEnergy energy{.leak_pj_per_cycle = pj("leak_pj_per_cycle", 0), .hop_pj_per_word = pj("hop_pj_per_word", 0)};
  if (kind == LevelKind::compute) {
    view.allow_only({"compute_pj", "leak_pj_per_cycle"});
    energy.compute_pj = view.at("compute_pj").number(energy_bounds);
  } else if (kind == LevelKind::storage) {
    view.allow_only({"read_pj", "fill_pj", "update_pj", "leak_pj_per_cycle", "hop_pj_per_word"});
    energy.read_pj = view.at("read_pj").number(energy_bounds);
    energy.fill_pj = view.at("fill_pj").number(energy_bounds);
    energy.update_pj = pj("update_pj", energy.fill_pj);  // a write like any other
  } else {
    view.allow_only({"hop_pj_per_word", "leak_pj_per_cycle"});
  }
  return energy;
}

void read_capacity(const JsonView& view, AcceleratorLevel& level) {
  constexpr Range<int64_t> allowed{.least = 1, .most = max_dimension_size};
  if (view.has("depth") && view.has("capacity_bytes"))
    view.at("capacity_bytes").fail("depth or capacity_bytes, not both");
  set_integer(view, "depth", allowed, level.depth);
  if (const auto bytes = view.find("capacity_bytes")) {
    const int64_t access_bits = int64_t{level.word_bits} * level.words_per_access;
    const int64_t bits = bytes->integer(allowed) * 8;
    if (bits < access_bits) bytes->fail(fmt::format("room for an access of {} bits", access_bits));
    level.depth = bits / access_bits;
  }
}

void read_bandwidth(const JsonView& view, LevelBandwidth& bandwidth) {
  view.allow_only({"read", "write", "shared"});
  const auto rate = [&](std::string_view key, std::optional<double>& value) {
    if (const auto found = view.find(key)) value = found->number(rate_bounds);
  };
  rate("read", bandwidth.read);
  rate("write", bandwidth.write);
  rate("shared", bandwidth.shared);
}

void set_number(const JsonView& view, std::string_view key, Range<double> allowed, double& value) {
  if (const auto found = view.find(key)) value = found->number(allowed);
}

MeshLinks read_mesh(const JsonView& view) {
  view.allow_only({"words_per_cycle", "ports", "hop_cycles", "hop_pj_per_word"});
  MeshLinks mesh{.words_per_cycle = view.at("words_per_cycle").number(rate_bounds)};
  set_integer(view, "ports", {.least = 0, .most = 1 << 20}, mesh.ports);
  set_number(view, "hop_cycles", cycle_bounds, mesh.hop_cycles);
  set_number(view, "hop_pj_per_word", energy_bounds, mesh.hop_pj_per_word);
  return mesh;
}

DramRows read_rows(const JsonView& view) {
  view.allow_only({"row_bytes", "banks", "channels", "switch_ns", "gap_ns", "refresh_share", "activate_pj"});
  constexpr Range<double> nanoseconds{.least = 0, .most = 1e6};
  DramRows rows{.row_bytes = view.at("row_bytes").integer({.least = 1, .most = 1 << 30})};
  set_integer(view, "banks", {.least = 1, .most = 1 << 16}, rows.banks);
  set_integer(view, "channels", {.least = 1, .most = 1 << 16}, rows.channels);
  set_number(view, "switch_ns", nanoseconds, rows.switch_ns);
  set_number(view, "gap_ns", nanoseconds, rows.gap_ns);
  set_number(view, "refresh_share", {.least = 0, .most = 0.9}, rows.refresh_share);
  set_number(view, "activate_pj", energy_bounds, rows.activate_pj);
  return rows;
}

AnalogConverter read_converter(const JsonView& view) {
  view.allow_only({"bits", "conversions", "conversions_per_second", "extra_pj"});
  AnalogConverter own{.bits = static_cast<int>(view.at("bits").integer({.least = 1, .most = 24}))};
  set_number(view, "conversions", {.least = 1, .most = 1e6}, own.conversions);
  set_number(view, "conversions_per_second", {.least = 0, .most = 1e15}, own.conversions_per_second);
  set_number(view, "extra_pj", energy_bounds, own.extra_pj);
  return own;
}

std::vector<std::string> read_names(const JsonView& view, std::string_view key) {
  std::vector<std::string> names;
  const auto found = view.find(key);
  if (!found) return names;
  for (const JsonView& item : found->items()) names.push_back(item.string());
  return names;
}

std::vector<std::string> read_roles(const JsonView& view) {
  std::vector<std::string> roles = read_names(view, "spread");
  for (const std::string& role : roles) {
    if (std::find(dimension_roles.begin(), dimension_roles.end(), role) != dimension_roles.end()) continue;
    const std::vector<std::string> names(dimension_roles.begin(), dimension_roles.end());
    view.at("spread").fail("reduced, input_channels, output_channels or positions",
                           nearest_name(role, names).value_or(""));
  }
  return roles;
}

void read_grid(const JsonView& view, LevelEntry& entry) {
  const auto grid = view.find("grid");
  if (!grid) return;
  const auto sides = grid->items();
  if (sides.size() != 2) grid->fail("[across, down]");
  constexpr Range<int64_t> side{.least = 1, .most = 1 << 20};
  entry.grid_x = sides[0].integer(side);
  entry.grid_y = sides[1].integer(side);
}

// An array of cells as the levels that it amounts to, each inside the one before.
void add_compute_in_memory(const JsonView& view, double clock_hz, std::vector<LevelEntry>& entries) {
  std::string inside = view.find("inside") ? view.at("inside").string() : "";
  LevelEntry placed{.view = view};
  read_grid(view, placed);
  bool outermost = true;
  for (CellArrayLevel& part : compute_in_memory_levels(view, clock_hz)) {
    LevelEntry entry{.view = view,
                     .level = std::move(part.level),
                     .tensors = std::move(part.tensors),
                     .has_energy = part.has_energy,
                     .has_area = true,
                     .inside = inside,
                     .grid_x = outermost ? placed.grid_x : part.across,
                     .grid_y = outermost ? placed.grid_y : part.down};
    entry.computes = entry.level.kind == LevelKind::compute;
    inside = entry.level.name;
    outermost = false;
    entries.push_back(std::move(entry));
  }
}

LevelEntry read_level_entry(const JsonView& view) {
  view.allow_only({"name",
                   "inside",
                   "kind",
                   "component",
                   "grid",
                   "word_bits",
                   "words_per_access",
                   "depth",
                   "capacity_bytes",
                   "banks",
                   "cluster_size",
                   "buffers",
                   "access_cycles",
                   "hop_cycles",
                   "bandwidth",
                   "multicast",
                   "spatial_reduction",
                   "neighbour_links",
                   "energy",
                   "area_um2",
                   "mesh",
                   "rows",
                   "converter",
                   "operation_cycles",
                   "keep",
                   "bypass",
                   "spread",
                   "note"});
  LevelEntry entry{.view = view, .level = {.name = view.at("name").string()}};
  AcceleratorLevel& level = entry.level;
  if (level.name.empty()) view.at("name").fail("a name");
  if (const auto inside = view.find("inside")) entry.inside = inside->string();
  if (const auto kind = view.find("kind")) level.kind = read_kind(*kind);
  entry.computes = level.kind == LevelKind::compute;
  if (const auto component = view.find("component")) level.component = component->string();
  read_grid(view, entry);
  set_integer(view, "word_bits", {.least = 1, .most = 4096}, level.word_bits);
  set_integer(view, "words_per_access", {.least = 1, .most = 1 << 20}, level.words_per_access);
  read_capacity(view, level);
  set_integer(view, "banks", {.least = 1, .most = 1 << 20}, level.banks);
  set_integer(view, "cluster_size", {.least = 1, .most = 1 << 20}, level.cluster_size);
  set_integer(view, "buffers", {.least = 1, .most = 64}, level.buffers);
  set_number(view, "access_cycles", cycle_bounds, level.access_cycles);
  set_number(view, "hop_cycles", cycle_bounds, level.hop_cycles);
  set_number(view, "operation_cycles", operation_cycle_bounds, level.operation_cycles);
  if (const auto mesh = view.find("mesh")) level.mesh = read_mesh(*mesh);
  if (const auto rows = view.find("rows")) level.rows = read_rows(*rows);
  if (const auto converter = view.find("converter")) level.converter = read_converter(*converter);
  if (const auto rates = view.find("bandwidth")) read_bandwidth(*rates, level.bandwidth);
  set_flag(view, "multicast", level.multicast);
  set_flag(view, "spatial_reduction", level.spatial_reduction);
  set_flag(view, "neighbour_links", level.neighbour_links);
  if (const auto energy = view.find("energy")) {
    level.energy = read_energy(*energy, level.kind);
    entry.has_energy = true;
  } else if (level.component.empty() && level.kind != LevelKind::network) {
    view.fail("energy, or a component whose energies the library knows");
  }
  if (const auto area = view.find("area_um2")) {
    level.area_um2 = area->number({.least = 0, .most = 1e15});
    entry.has_area = true;
  }
  entry.tensors = {.keep = read_names(view, "keep"), .bypass = read_names(view, "bypass"), .spread = read_roles(view)};
  return entry;
}

std::vector<std::string> entry_names(const std::vector<LevelEntry>& entries) {
  std::vector<std::string> names;
  for (const LevelEntry& entry : entries) names.push_back(entry.level.name);
  return names;
}

// Sets parents and children; returns the root.
int link_levels(const JsonView& list, std::vector<LevelEntry>& entries) {
  const std::vector<std::string> names = entry_names(entries);
  int root = -1;
  for (int i = 0; i < std::ssize(entries); ++i) {
    LevelEntry& entry = entries[i];
    if (std::find(names.begin(), names.begin() + i, entry.level.name) != names.begin() + i) {
      entry.view.at("name").fail("a name that no other level has");
    }
    if (entry.inside.empty()) {
      if (root >= 0) entry.view.fail(fmt::format("`inside`: {} is the outermost level already", names[root]));
      root = i;
      continue;
    }
    const auto found = std::find(names.begin(), names.end(), entry.inside);
    if (found == names.end()) {
      entry.view.at("inside").fail("the name of a level", nearest_name(entry.inside, names).value_or(""));
    }
    entry.parent = static_cast<int>(found - names.begin());
    entries[entry.parent].children.push_back(i);
  }
  if (root < 0) list.fail("one level without `inside`; these go round in a circle");
  return root;
}

// Levels from the root on, each before those inside it; the branch that computes last.
void order_levels(std::vector<LevelEntry>& entries, int at, std::vector<int>& order) {
  order.push_back(at);
  LevelEntry& entry = entries[at];
  if (entry.parent >= 0) {
    const AcceleratorLevel& outer = entries[entry.parent].level;
    entry.level.instances_x = outer.instances_x * entry.grid_x;
    entry.level.instances_y = outer.instances_y * entry.grid_y;
  } else {
    entry.level.instances_x = entry.grid_x;
    entry.level.instances_y = entry.grid_y;
  }
  constexpr int64_t most = int64_t{1} << 31;
  if (entry.level.instances_x > most || entry.level.instances_y > most) entry.view.fail("fewer instances");
  if (entry.children.size() > 1) {
    for (const int child : entry.children) {
      const LevelEntry& own = entries[child];
      if (own.level.kind == LevelKind::storage && own.tensors.keep.empty()) {
        own.view.fail(fmt::format("`keep`: the tensors of a level beside others inside {}", entry.level.name));
      }
    }
  }
  std::stable_partition(entry.children.begin(), entry.children.end(),
                        [&](int child) { return !entries[child].computes; });
  for (const int child : entry.children) order_levels(entries, child, order);
}

void mark_computing(std::vector<LevelEntry>& entries) {
  const LevelEntry* found = nullptr;
  for (LevelEntry& entry : entries) {
    if (entry.level.kind != LevelKind::compute) continue;
    if (found != nullptr) {
      entry.view.fail(fmt::format("one level of kind compute; {} is another", found->level.name));
    }
    found = &entry;
    size_t steps = 0;
    for (int at = entry.parent; at >= 0; at = entries[at].parent) {
      if (++steps > entries.size()) entry.view.fail("levels that are not inside each other in a circle");
      entries[at].computes = true;
    }
  }
}

void add_optional(Json& json, const char* key, const std::optional<double>& value) {
  if (value) json.set(key, *value);
}

Json names_json(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push(name);
  return list;
}

Json energy_json(const AcceleratorLevel& level) {
  const AccessEnergy& own = level.energy;
  Json json = Json::object();
  if (level.kind == LevelKind::compute) json.set("compute_pj", own.compute_pj);
  if (level.kind == LevelKind::storage) {
    json.set("read_pj", own.read_pj).set("fill_pj", own.fill_pj).set("update_pj", own.update_pj);
  }
  if (level.kind != LevelKind::compute && own.hop_pj_per_word > 0) json.set("hop_pj_per_word", own.hop_pj_per_word);
  if (own.leak_pj_per_cycle > 0) json.set("leak_pj_per_cycle", own.leak_pj_per_cycle);
  return json;
}

void add_links_and_rows(Json& json, const AcceleratorLevel& level) {
  if (const MeshLinks& mesh = level.mesh; mesh.words_per_cycle > 0) {
    json.set("mesh", Json::object({{"words_per_cycle", mesh.words_per_cycle},
                                   {"ports", mesh.ports},
                                   {"hop_cycles", mesh.hop_cycles},
                                   {"hop_pj_per_word", mesh.hop_pj_per_word}}));
  }
  if (const DramRows& rows = level.rows; rows.row_bytes > 0) {
    json.set("rows", Json::object({{"row_bytes", rows.row_bytes},
                                   {"banks", rows.banks},
                                   {"channels", rows.channels},
                                   {"switch_ns", rows.switch_ns},
                                   {"gap_ns", rows.gap_ns},
                                   {"refresh_share", rows.refresh_share},
                                   {"activate_pj", rows.activate_pj}}));
  }
  if (const AnalogConverter& converter = level.converter; converter.bits > 0) {
    json.set("converter", Json::object({{"bits", converter.bits},
                                        {"conversions", converter.conversions},
                                        {"conversions_per_second", converter.conversions_per_second},
                                        {"extra_pj", converter.extra_pj}}));
  }
  if (level.operation_cycles != 1) json.set("operation_cycles", level.operation_cycles);
}

}  // namespace

bool means_role(std::string_view name, const ProblemTensor& tensor) {
  const auto named_any = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view other) { return equal_ignoring_case(tensor.name, other); });
  };
  const bool weights = !tensor.written && named_any({"weights", "w", "b", "filter", "filters", "kernel"});
  if (equal_ignoring_case(name, "outputs")) return tensor.written;
  if (equal_ignoring_case(name, "weights")) return weights;
  if (equal_ignoring_case(name, "inputs")) return !tensor.written && !weights;
  return false;
}

AcceleratorDesign read_architecture_json(const JsonView& view) {
  view.allow_only({"name", "summary", "clock_ghz", "technology_nm", "sources", "sum_bits", "vector", "levels"});
  AcceleratorDesign design;
  Architecture& own = design.architecture;
  own.name = view.at("name").string();
  if (const auto summary = view.find("summary")) design.summary = summary->string();
  if (const auto clock = view.find("clock_ghz")) own.clock_hz = clock->number({.least = 1e-6, .most = 100}) * 1e9;
  set_integer(view, "technology_nm", {.least = 1, .most = 1000}, own.technology_nm);
  design.sources = read_names(view, "sources");
  set_integer(view, "sum_bits", {.least = 1, .most = 4096}, own.sum_bits);
  if (const auto vector = view.find("vector")) {
    vector->allow_only({"operations_per_cycle", "operation_pj"});
    own.vector.operations_per_cycle = vector->at("operations_per_cycle").number(rate_bounds);
    if (const auto energy = vector->find("operation_pj")) own.vector.operation_pj = energy->number(energy_bounds);
  }

  const JsonView list = view.at("levels");
  const auto items = list.items();
  if (items.size() < 2 || items.size() > max_accelerator_levels) {
    list.fail(fmt::format("2 to {} levels", max_accelerator_levels));
  }
  std::vector<LevelEntry> entries;
  for (const JsonView& item : items) {
    const auto kind = item.find("kind");
    if (kind && kind->string() == in_memory_kind) {
      add_compute_in_memory(item, own.clock_hz, entries);
    } else {
      entries.push_back(read_level_entry(item));
    }
  }
  if (entries.size() > max_accelerator_levels) {
    list.fail(fmt::format("at most {} levels (a compute_in_memory level counts as four)", max_accelerator_levels));
  }
  const int root = link_levels(list, entries);
  mark_computing(entries);
  std::vector<int> order;
  order_levels(entries, root, order);
  if (order.size() != entries.size()) {
    for (int i = 0; i < std::ssize(entries); ++i) {
      if (std::find(order.begin(), order.end(), i) == order.end()) {
        entries[i].view.at("inside").fail("a level that is not inside this one in turn: levels go round in a circle");
      }
    }
  }
  for (const int i : order) {
    own.levels.push_back(std::move(entries[i].level));
    design.tensors.push_back(std::move(entries[i].tensors));
    design.energies_given.push_back(entries[i].has_energy);
    design.areas_given.push_back(entries[i].has_area);
  }
  const std::string fault = architecture_fault(own);
  if (!fault.empty()) list.fail("an architecture that can be evaluated: " + fault);
  return design;
}

Json architecture_json(const AcceleratorDesign& design) {
  const Architecture& own = design.architecture;
  Json json = Json::object({{"name", own.name}});
  if (!design.summary.empty()) json.set("summary", design.summary);
  json.set("clock_ghz", own.clock_hz / 1e9);
  if (own.technology_nm > 0) json.set("technology_nm", own.technology_nm);
  if (!design.sources.empty()) json.set("sources", names_json(design.sources));
  if (own.sum_bits > 0) json.set("sum_bits", own.sum_bits);
  if (own.vector.operations_per_cycle > 0) {
    Json vector = Json::object({{"operations_per_cycle", own.vector.operations_per_cycle}});
    if (own.vector.operation_pj > 0) vector.set("operation_pj", own.vector.operation_pj);
    json.set("vector", std::move(vector));
  }
  Json levels = Json::array();
  for (size_t i = 0; i < own.levels.size(); ++i) {
    const AcceleratorLevel& level = own.levels[i];
    Json entry = Json::object({{"name", level.name}});
    if (i > 0) entry.set("inside", own.levels[i - 1].name);
    entry.set("kind", level_kind_names[static_cast<size_t>(level.kind)]);
    if (!level.component.empty()) entry.set("component", level.component);
    const int64_t x = i > 0 ? fanout_x(own, i - 1) : level.instances_x;
    const int64_t y = i > 0 ? fanout_y(own, i - 1) : level.instances_y;
    entry.set("grid", Json::array({x, y}));
    entry.set("word_bits", level.word_bits).set("words_per_access", level.words_per_access);
    if (level.depth > 0) entry.set("depth", level.depth);
    entry.set("banks", level.banks).set("buffers", level.buffers).set("access_cycles", level.access_cycles);
    if (level.cluster_size > 1) entry.set("cluster_size", level.cluster_size);
    if (level.hop_cycles > 0) entry.set("hop_cycles", level.hop_cycles);
    Json bandwidth = Json::object();
    add_optional(bandwidth, "read", level.bandwidth.read);
    add_optional(bandwidth, "write", level.bandwidth.write);
    add_optional(bandwidth, "shared", level.bandwidth.shared);
    if (!bandwidth.members().empty()) entry.set("bandwidth", bandwidth);
    add_links_and_rows(entry, level);
    entry.set("multicast", level.multicast).set("spatial_reduction", level.spatial_reduction);
    entry.set("neighbour_links", level.neighbour_links);
    if (design.energies_given[i]) entry.set("energy", energy_json(level));
    if (design.areas_given[i]) entry.set("area_um2", level.area_um2);
    if (!design.tensors[i].keep.empty()) entry.set("keep", names_json(design.tensors[i].keep));
    if (!design.tensors[i].bypass.empty()) entry.set("bypass", names_json(design.tensors[i].bypass));
    if (!design.tensors[i].spread.empty()) entry.set("spread", names_json(design.tensors[i].spread));
    levels.push(entry);
  }
  return json.set("levels", levels);
}

uint32_t tensors_allowed(const LevelTensors& tensors, const Problem& problem) {
  const auto listed = [&](const std::vector<std::string>& names, const ProblemTensor& tensor) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return name == tensor.name || means_role(name, tensor); });
  };
  uint32_t allowed = 0;
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    const ProblemTensor& tensor = problem.tensors[t];
    const bool kept = tensors.keep.empty() || listed(tensors.keep, tensor);
    if (kept && !listed(tensors.bypass, tensor)) allowed |= 1U << t;
  }
  return allowed;
}

uint32_t dimensions_allowed(const LevelTensors& tensors, const Problem& problem) {
  const auto has_role = [&](int d, const std::string& role) {
    bool of_output = false, of_input = false, of_weights = false, alone = false;
    for (const ProblemTensor& tensor : problem.tensors) {
      if (!uses_dimension(tensor, d)) continue;
      of_output = of_output || tensor.written;
      of_weights = of_weights || means_role("weights", tensor);
      if (!means_role("inputs", tensor)) continue;
      of_input = true;
      alone =
          alone || std::any_of(tensor.ranks.begin(), tensor.ranks.end(), [d](const std::vector<ProjectionTerm>& rank) {
            return rank.size() == 1 && rank.front().dimension == d;
          });
    }
    // Groups of channels, batches of products: a channel of what comes in and of what goes out.
    const bool of_all = of_output && of_weights && alone;
    if (role == "reduced") return !of_output;
    if (role == "input_channels") return (!of_output && alone) || of_all;
    if (role == "output_channels") return (of_output && !of_input) || of_all;
    return of_output && of_input;
  };
  uint32_t allowed = 0;
  for (int d = 0; d < std::ssize(problem.dimensions); ++d) {
    const bool may = tensors.spread.empty() || std::any_of(tensors.spread.begin(), tensors.spread.end(),
                                                           [&](const std::string& role) { return has_role(d, role); });
    if (may) allowed |= 1U << d;
  }
  return allowed;
}

}  // namespace foretoken
