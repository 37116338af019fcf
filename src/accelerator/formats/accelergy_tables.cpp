#include "accelerator/formats/accelergy_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace foretoken {
namespace {

constexpr size_t most_tables = 4096;
constexpr Range<double> energy_range{.least = 0, .most = 1e15};

// system.chip.PE[0..167].mac -> mac; dots inside ranges separate nothing.
std::string component_name(const std::string& path) {
  std::string name;
  int brackets = 0;
  for (const char letter : path) {
    if (letter == '[') ++brackets;
    if (letter == '.' && brackets == 0) {
      name.clear();
    } else if (brackets == 0) {
      name += letter;
    }
    if (letter == ']' && brackets > 0) --brackets;
  }
  return name;
}

void add_action(const std::string& name, const JsonView& entry, AccelergyTable& table) {
  const double energy = entry.at("energy").number(energy_range);
  const auto [found, fresh] = table.actions.emplace(name, energy);
  if (!fresh) found->second = std::max(found->second, energy);
}

AccelergyTable read_listed_table(const JsonView& view) {
  AccelergyTable table{
      .component = component_name(view.at("name").string()), .source = view.source(), .line = view.value().line()};
  for (const JsonView& action : view.at("actions").items()) {
    add_action(action.at("name").string(), action, table);
  }
  return table;
}

// v0.2: an action is one {energy: ..} or a list of them, one for each setting of its arguments.
AccelergyTable read_nested_table(const std::string& path, const JsonView& view) {
  AccelergyTable table{.component = component_name(path), .source = view.source(), .line = view.value().line()};
  for (const auto& [name, action] : view.members()) {
    if (action.is(Json::Kind::array)) {
      for (const JsonView& entry : action.items()) add_action(name, entry, table);
    } else {
      add_action(name, action, table);
    }
  }
  return table;
}

std::optional<double> find_energy(const AccelergyTable& table, std::initializer_list<std::string_view> actions) {
  for (const std::string_view action : actions) {
    if (const auto found = table.actions.find(std::string(action)); found != table.actions.end()) return found->second;
  }
  return std::nullopt;
}

double needed_energy(const AccelergyTable& table, const AcceleratorLevel& level,
                     std::initializer_list<std::string_view> actions) {
  if (const auto energy = find_energy(table, actions)) return *energy;
  std::vector<std::string> names;
  for (const auto& [name, energy] : table.actions) names.push_back(name);
  const std::string_view wanted = *actions.begin();
  throw InputError({.source = table.source,
                    .line = table.line,
                    .path = "ERT." + table.component,
                    .value = fmt::format("{}", fmt::join(names, ", ")),
                    .expected = fmt::format("an energy for the action {} of {}", wanted, level.name),
                    .suggestion = nearest_name(wanted, names).value_or("")});
}

const AccelergyTable& table_of(const AcceleratorLevel& level, std::span<const AccelergyTable> tables) {
  std::vector<std::string> names;
  for (const AccelergyTable& table : tables) {
    if (table.component == level.name) return table;
    names.push_back(table.component);
  }
  throw InputError({.source = tables.empty() ? "ERT" : tables.front().source,
                    .path = "ERT.tables",
                    .value = level.name,
                    .expected = fmt::format("a table of energies for level {}", level.name),
                    .suggestion = nearest_name(level.name, names).value_or("")});
}

}  // namespace

std::vector<AccelergyTable> read_energy_tables(const JsonView& ert) {
  ert.allow_only({"version", "tables"});
  const JsonView tables = ert.at("tables");
  std::vector<AccelergyTable> result;
  if (tables.value().items().size() + tables.value().members().size() > most_tables) {
    tables.fail(fmt::format("at most {} tables", most_tables));
  }
  if (tables.is(Json::Kind::object)) {
    for (const auto& [path, table] : tables.members()) result.push_back(read_nested_table(path, table));
  } else {
    for (const JsonView& table : tables.items()) result.push_back(read_listed_table(table));
  }
  return result;
}

std::map<std::string, double> read_area_tables(const JsonView& art) {
  art.allow_only({"version", "tables"});
  const JsonView tables = art.at("tables");
  constexpr Range<double> area_range{.least = 0, .most = 1e15};
  std::map<std::string, double> areas;
  if (tables.is(Json::Kind::object)) {
    for (const auto& [path, area] : tables.members()) {
      areas[component_name(path)] = (area.is_number() ? area : area.at("area")).number(area_range);
    }
    return areas;
  }
  for (const JsonView& table : tables.items()) {
    areas[component_name(table.at("name").string())] = table.at("area").number(area_range);
  }
  return areas;
}

std::vector<std::string> apply_energy_tables(std::span<const AccelergyTable> tables, Architecture& architecture) {
  std::vector<std::string> notes;
  for (AcceleratorLevel& level : architecture.levels) {
    if (level.kind == LevelKind::network) continue;
    const AccelergyTable& table = table_of(level, tables);
    // Per cycle; older tables call it idle.
    level.energy.leak_pj_per_cycle = find_energy(table, {"leak", "idle"}).value_or(0);
    if (level.kind == LevelKind::compute) {
      level.energy.compute_pj = needed_energy(table, level, {"compute", "mac_random", "mac", "multiply"});
      continue;
    }
    level.energy.read_pj = needed_energy(table, level, {"read", "random_read"});
    level.energy.fill_pj = needed_energy(table, level, {"write", "fill", "random_fill"});
    const auto update = find_energy(table, {"update", "random_update"});
    level.energy.update_pj = update.value_or(level.energy.fill_pj);
    if (!update) notes.push_back(fmt::format("{}: its table has no update, which costs a write then", level.name));
  }
  return notes;
}

std::vector<std::string> apply_area_tables(const std::map<std::string, double>& areas, Architecture& architecture) {
  std::vector<std::string> notes;
  for (AcceleratorLevel& level : architecture.levels) {
    const auto found = areas.find(level.name);
    if (found != areas.end()) {
      level.area_um2 = found->second;
    } else if (level.kind != LevelKind::network) {
      notes.push_back(fmt::format("{}: the tables give no area for it", level.name));
    }
  }
  return notes;
}

}  // namespace foretoken
