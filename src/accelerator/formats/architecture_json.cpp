#include "accelerator/formats/architecture_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr std::array<std::string_view, 3> level_kind_names = {"storage", "network",
                                                              "compute"};  // in the order of LevelKind
constexpr Range<double> energy_bounds{.least = 0, .most = 1e12};
constexpr Range<double> rate_bounds{.least = 1e-9, .most = 1e12};

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
    view.fail("storage, network or compute", nearest_name(typed, names).value_or(""));
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

std::vector<std::string> read_names(const JsonView& view, std::string_view key) {
  std::vector<std::string> names;
  const auto found = view.find(key);
  if (!found) return names;
  for (const JsonView& item : found->items()) names.push_back(item.string());
  return names;
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
                   "keep",
                   "bypass",
                   "note"});
  LevelEntry entry{.view = view, .level = {.name = view.at("name").string()}};
  AcceleratorLevel& level = entry.level;
  if (level.name.empty()) view.at("name").fail("a name");
  if (const auto inside = view.find("inside")) entry.inside = inside->string();
  if (const auto kind = view.find("kind")) level.kind = read_kind(*kind);
  entry.computes = level.kind == LevelKind::compute;
  if (const auto component = view.find("component")) level.component = component->string();
  if (const auto grid = view.find("grid")) {
    const auto sides = grid->items();
    if (sides.size() != 2) grid->fail("[across, down]");
    constexpr Range<int64_t> side{.least = 1, .most = 1 << 20};
    entry.grid_x = sides[0].integer(side);
    entry.grid_y = sides[1].integer(side);
  }
  set_integer(view, "word_bits", {.least = 1, .most = 4096}, level.word_bits);
  set_integer(view, "words_per_access", {.least = 1, .most = 1 << 20}, level.words_per_access);
  read_capacity(view, level);
  set_integer(view, "banks", {.least = 1, .most = 1 << 20}, level.banks);
  set_integer(view, "cluster_size", {.least = 1, .most = 1 << 20}, level.cluster_size);
  set_integer(view, "buffers", {.least = 1, .most = 64}, level.buffers);
  if (const auto cycles = view.find("access_cycles")) level.access_cycles = cycles->number({.least = 0, .most = 1e6});
  if (const auto cycles = view.find("hop_cycles")) level.hop_cycles = cycles->number({.least = 0, .most = 1e6});
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
  entry.tensors = {.keep = read_names(view, "keep"), .bypass = read_names(view, "bypass")};
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

bool means_role(const std::string& name, const ProblemTensor& tensor) {
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

}  // namespace

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
  for (const JsonView& item : items) entries.push_back(read_level_entry(item));
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
    entry.set("multicast", level.multicast).set("spatial_reduction", level.spatial_reduction);
    entry.set("neighbour_links", level.neighbour_links);
    if (design.energies_given[i]) entry.set("energy", energy_json(level));
    if (design.areas_given[i]) entry.set("area_um2", level.area_um2);
    if (!design.tensors[i].keep.empty()) entry.set("keep", names_json(design.tensors[i].keep));
    if (!design.tensors[i].bypass.empty()) entry.set("bypass", names_json(design.tensors[i].bypass));
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

}  // namespace foretoken
