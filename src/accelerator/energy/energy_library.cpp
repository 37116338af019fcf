#include "accelerator/energy/energy_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/text.h"
#include "base/units.h"

namespace foretoken {
namespace {

constexpr double assumed_nm = 45;    // of a design that does not say, as most published figures are
constexpr double last_fine_nm = 45;  // finer ones differ little in supply, and published energies fall more slowly
constexpr size_t most_components = 256;
constexpr Range<double> positive{.least = 1e-12, .most = 1e12};

struct SizeFigure {
  double size = 0, value = 0;
};

double log_slope(const SizeFigure& a, const SizeFigure& b) {
  return portable_log(b.value / a.value) / portable_log(b.size / a.size);
}

// Straight between neighbours in the logarithms of both; the end pieces go on beyond the ends.
double power_law(const std::vector<SizeFigure>& figures, double size) {
  ensure(!figures.empty(), "a component has figures");
  if (figures.size() == 1) return figures.front().value;
  size_t upper = 1;
  while (upper + 1 < figures.size() && figures[upper].size < size) ++upper;
  const SizeFigure& a = figures[upper - 1];
  return a.value * portable_pow(size / a.size, log_slope(a, figures[upper]));
}

double bits_of_access(const AcceleratorLevel& level) {
  return static_cast<double>(level.word_bits) * level.words_per_access * level.cluster_size;
}

void add_note(ComponentCosts& costs, const std::string& note) {
  if (note.empty() || costs.note.find(note) != std::string::npos) return;
  costs.note += (costs.note.empty() ? "" : "; ") + note;
}

void extrapolate(ComponentCosts& costs, const std::string& note) {
  costs.kind = std::max(costs.kind, Confidence::extrapolated);
  add_note(costs, note);
}

// Words a cycle that cross the level's boundary; 0 = not limited, and so not known.
double words_per_cycle(const LevelBandwidth& bandwidth) {
  return bandwidth.shared ? *bandwidth.shared : bandwidth.read.value_or(0) + bandwidth.write.value_or(0);
}

bool is_outermost(const AcceleratorLevel& level, const Architecture& architecture) {
  return !architecture.levels.empty() && architecture.levels.front().name == level.name;
}

double memory_bytes(const AcceleratorLevel& level) {
  return static_cast<double>(level.depth) * level.words_per_access * level.word_bits / 8;
}

EnergyComponent::Kind component_kind(const JsonView& view) {
  const std::string name = view.string();
  if (name == "dram") return EnergyComponent::Kind::dram;
  if (name == "memory") return EnergyComponent::Kind::memory;
  if (name == "multiplier") return EnergyComponent::Kind::multiplier;
  if (name == "wire") return EnergyComponent::Kind::wire;
  if (name == "converter") return EnergyComponent::Kind::converter;
  view.fail("dram, memory, multiplier, wire or converter");
}

ComponentPoint read_point(const JsonView& view, EnergyComponent::Kind kind) {
  ComponentPoint point{.source = view.at("source").string()};
  const auto pj = [&](std::string_view key) { return view.at(key).number(positive); };
  switch (kind) {
    case EnergyComponent::Kind::dram:
      view.allow_only({"pj_per_bit", "source"});
      point.read_pj = pj("pj_per_bit");
      break;
    case EnergyComponent::Kind::memory:
      view.allow_only({"technology_nm", "bytes", "read_pj", "write_pj", "source"});
      point.size = pj("bytes");
      point.read_pj = pj("read_pj");
      break;
    case EnergyComponent::Kind::multiplier:
    case EnergyComponent::Kind::converter:
      view.allow_only({"technology_nm", "bits", "pj", "source"});
      point.size = pj("bits");
      point.read_pj = pj("pj");
      break;
    case EnergyComponent::Kind::wire:
      view.allow_only({"technology_nm", "pj_per_bit_mm", "source"});
      point.read_pj = pj("pj_per_bit_mm");
      break;
  }
  point.write_pj = view.has("write_pj") ? pj("write_pj") : point.read_pj;
  if (kind != EnergyComponent::Kind::dram)
    point.technology_nm = view.at("technology_nm").number({.least = 1, .most = 1000});
  return point;
}

EnergyComponent read_component(const std::string& name, const JsonView& view) {
  view.allow_only(
      {"kind", "also", "access_bits", "scaling", "points", "area", "leakage", "interface", "fastest_per_second"});
  EnergyComponent own{.name = name, .kind = component_kind(view.at("kind"))};
  if (const auto also = view.find("also")) {
    for (const JsonView& other : also->items()) own.also.push_back(other.string());
  }
  if (own.kind == EnergyComponent::Kind::memory)
    own.access_bits = view.at("access_bits").number({.least = 1, .most = 4096});
  if (own.kind != EnergyComponent::Kind::dram) {
    const JsonView scaling = view.at("scaling");
    scaling.allow_only({"exponent", "source"});
    own.technology_exponent = scaling.at("exponent").number({.least = 0, .most = 4});
    own.scaling_source = scaling.at("source").string();
  }
  if (own.kind == EnergyComponent::Kind::converter)
    own.fastest_per_second = view.at("fastest_per_second").number(positive);
  for (const JsonView& point : view.at("points").items()) own.points.push_back(read_point(point, own.kind));
  if (own.points.empty()) view.at("points").fail("at least one figure");
  for (size_t i = 1; i < own.points.size(); ++i) {
    const ComponentPoint& a = own.points[i - 1];
    const ComponentPoint& b = own.points[i];
    if (b.technology_nm > a.technology_nm || (b.technology_nm == a.technology_nm && b.size > a.size)) continue;
    view.at("points").items()[i].fail("figures in order of technology and size");
  }
  if (const auto area = view.find("area")) {
    own.area_nm = area->at("technology_nm").number({.least = 1, .most = 1000});
    own.area_source = area->at("source").string();
    if (own.kind == EnergyComponent::Kind::multiplier) {
      area->allow_only({"technology_nm", "um2_by_bits", "source"});
      for (const auto& [bits, um2] : area->at("um2_by_bits").members()) {
        const auto size = parse_number(bits);
        if (!size || *size < 1) um2.fail("bits as keys");
        own.multiplier_um2.emplace_back(*size, um2.number(positive));
      }
      std::sort(own.multiplier_um2.begin(), own.multiplier_um2.end());
    } else {
      area->allow_only({"technology_nm", "um2_per_bit", "source"});
      own.area_um2_per_bit = area->at("um2_per_bit").number(positive);
    }
  }
  if (const auto interface = view.find("interface")) {
    if (own.kind != EnergyComponent::Kind::dram) interface->fail("an interface of a dram only");
    interface->allow_only({"mm2_per_gb_s", "standing_share", "source"});
    own.interface_mm2_per_gb_s = interface->at("mm2_per_gb_s").number(positive);
    own.standing_share = interface->at("standing_share").number({.least = 0, .most = 1});
    own.interface_source = interface->at("source").string();
  }
  if (const auto leakage = view.find("leakage")) {
    leakage->allow_only({"microwatts_per_byte", "microwatts", "source"});
    const bool memory = own.kind == EnergyComponent::Kind::memory;
    own.leak_uw_per_size = leakage->at(memory ? "microwatts_per_byte" : "microwatts").number(positive);
    own.leak_source = leakage->at("source").string();
  }
  return own;
}

}  // namespace

EnergyLibrary EnergyLibrary::read(const JsonView& view) {
  view.allow_only({"technology", "components"});
  EnergyLibrary library;
  const JsonView technology = view.at("technology");
  technology.allow_only({"source", "factors"});
  library.technology_source_ = technology.at("source").string();
  for (const JsonView& item : technology.at("factors").items()) {
    item.allow_only({"technology_nm", "energy", "area"});
    const TechnologyFactor factor{.technology_nm = item.at("technology_nm").number({.least = 1, .most = 1000}),
                                  .energy = item.at("energy").number(positive),
                                  .area = item.at("area").number(positive)};
    if (!library.technologies_.empty() && factor.technology_nm <= library.technologies_.back().technology_nm) {
      item.fail("technologies in rising order");
    }
    library.technologies_.push_back(factor);
  }
  if (library.technologies_.size() < 2) technology.at("factors").fail("at least two technologies");
  const auto components = view.at("components").members();
  if (components.size() > most_components) view.at("components").fail(fmt::format("at most {}", most_components));
  for (const auto& [name, component] : components) library.components_.push_back(read_component(name, component));
  return library;
}

EnergyLibrary EnergyLibrary::read_file(const std::filesystem::path& path) {
  const Json document = read_json_file(path);
  return read(JsonView(document, path.string()));
}

std::vector<std::string> EnergyLibrary::component_names() const {
  std::vector<std::string> names;
  for (const EnergyComponent& component : components_) names.push_back(component.name);
  std::sort(names.begin(), names.end());
  return names;
}

double EnergyLibrary::energy_factor(double technology_nm) const {
  std::vector<SizeFigure> figures;
  for (const TechnologyFactor& factor : technologies_) figures.push_back({factor.technology_nm, factor.energy});
  return power_law(figures, technology_nm);
}

double EnergyLibrary::area_factor(double technology_nm) const {
  std::vector<SizeFigure> figures;
  for (const TechnologyFactor& factor : technologies_) figures.push_back({factor.technology_nm, factor.area});
  return power_law(figures, technology_nm);
}

const EnergyComponent* EnergyLibrary::find(const std::string& name) const {
  for (const EnergyComponent& component : components_) {
    if (equal_ignoring_case(component.name, name)) return &component;
    for (const std::string& other : component.also) {
      if (equal_ignoring_case(other, name)) return &component;
    }
  }
  return nullptr;
}

const EnergyComponent& EnergyLibrary::component_of(const AcceleratorLevel& level) const {
  if (const EnergyComponent* found = find(level.component)) return *found;
  std::vector<std::string> names;
  for (const EnergyComponent& component : components_) {
    names.push_back(component.name);
    names.insert(names.end(), component.also.begin(), component.also.end());
  }
  throw InputError({.path = fmt::format("level {}: component", level.name),
                    .value = printable(level.component),
                    .expected = "energies of the level, or a component of the library of energies",
                    .suggestion = nearest_name(level.component, names).value_or("")});
}

bool EnergyLibrary::has_costs(const AcceleratorLevel& level) const {
  const EnergyComponent* component = find(level.component);
  return component != nullptr && (component->kind != EnergyComponent::Kind::memory || memory_bytes(level) > 0);
}

bool EnergyLibrary::is_dram(const AcceleratorLevel& level) const {
  const EnergyComponent* component = find(level.component);
  return component != nullptr && component->kind == EnergyComponent::Kind::dram;
}

// Of energies of one component in two technologies.
double EnergyLibrary::technology_ratio(const EnergyComponent& component, double from_nm, double to_nm) const {
  const auto fine = [](double nm) { return std::min(nm, last_fine_nm); };
  const auto coarse = [](double nm) { return std::max(nm, last_fine_nm); };
  return portable_pow(fine(to_nm) / fine(from_nm), component.technology_exponent) * energy_factor(coarse(to_nm)) /
         energy_factor(coarse(from_nm));
}

// Between two technologies with figures a power law through both; else the nearest one, scaled. Below the smallest size
// all technologies follow the oldest one's law: their own, drawn on, would cross.
double EnergyLibrary::energy_at(const EnergyComponent& component, double size, double technology_nm, bool write,
                                ComponentCosts& costs) const {
  std::vector<SizeFigure> by_technology;
  double size_below = 1, slope_below = 0;
  for (size_t first = 0; first < component.points.size();) {
    const double own_nm = component.points[first].technology_nm;
    std::vector<SizeFigure> by_size;
    size_t end = first;
    for (; end < component.points.size() && component.points[end].technology_nm == own_nm; ++end) {
      const ComponentPoint& point = component.points[end];
      by_size.push_back({.size = point.size, .value = write ? point.write_pj : point.read_pj});
      add_note(costs, point.source);
    }
    const double smallest_size = by_size.front().size;
    if (size > 0 && (size < smallest_size || size > by_size.back().size)) {
      extrapolate(costs, fmt::format("size {} is outside the published {} to {}", number_text(size),
                                     number_text(smallest_size), number_text(by_size.back().size)));
    }
    size_below = size > 0 ? std::min(1.0, size / smallest_size) : 1;
    slope_below = by_size.size() > 1 ? log_slope(by_size[0], by_size[1]) : 0;
    by_technology.push_back({.size = own_nm, .value = power_law(by_size, std::max(size, smallest_size))});
    first = end;
  }
  for (SizeFigure& figure : by_technology) figure.value *= portable_pow(size_below, slope_below);
  const SizeFigure& smallest = by_technology.front();
  const SizeFigure& largest = by_technology.back();
  if (technology_nm >= smallest.size && technology_nm <= largest.size) return power_law(by_technology, technology_nm);
  const SizeFigure& nearest = technology_nm < smallest.size ? smallest : largest;
  extrapolate(costs, fmt::format("scaled from {} nm: {}", number_text(nearest.size),
                                 technology_nm > last_fine_nm ? technology_source_ : component.scaling_source));
  return nearest.value * technology_ratio(component, nearest.size, technology_nm);
}

double EnergyLibrary::technology_of(const Architecture& architecture, const EnergyComponent& component,
                                    ComponentCosts& costs) const {
  if (architecture.technology_nm != 0) return architecture.technology_nm;
  if (component.kind != EnergyComponent::Kind::dram) {
    extrapolate(costs, fmt::format("the design names no technology, {} nm assumed", number_text(assumed_nm)));
  }
  return assumed_nm;
}

void EnergyLibrary::add_dram(const EnergyComponent& component, const AcceleratorLevel& level,
                             const Architecture& architecture, ComponentCosts& costs) const {
  const ComponentPoint& point = component.points.front();
  costs.energy.read_pj = point.read_pj * bits_of_access(level);
  costs.energy.fill_pj = costs.energy.update_pj = costs.energy.read_pj;
  add_note(costs, point.source);
  // Memory inside the chip's package, such as banks with arithmetic, has no interface of this kind.
  if (component.interface_mm2_per_gb_s == 0 || !is_outermost(level, architecture)) return;
  const double bits_per_cycle = words_per_cycle(level.bandwidth) * level.word_bits;
  const double gb_per_second = bits_per_cycle / 8 * architecture.clock_hz / giga;
  costs.area_um2 = component.interface_mm2_per_gb_s * gb_per_second * mega;
  costs.energy.leak_pj_per_cycle = component.standing_share * point.read_pj * bits_per_cycle;
  add_note(costs, component.interface_source);
}

void EnergyLibrary::add_memory(const EnergyComponent& component, const AcceleratorLevel& level, double nm,
                               ComponentCosts& costs) const {
  const double bytes = memory_bytes(level) * level.cluster_size;
  if (bytes <= 0) {
    throw InputError({.path = fmt::format("level {}: depth", level.name),
                      .value = "unlimited",
                      .expected = fmt::format("a size, on which the energy of {} depends", component.name)});
  }
  const double width = bits_of_access(level) / component.access_bits;  // columns read together cost in proportion
  costs.energy.read_pj = energy_at(component, bytes, nm, false, costs) * width;
  costs.energy.fill_pj = energy_at(component, bytes, nm, true, costs) * width;
  costs.energy.update_pj = costs.energy.fill_pj;
  costs.area_um2 = component.area_um2_per_bit * bytes * 8 / level.cluster_size;
}

void EnergyLibrary::add_multiplier(const EnergyComponent& component, const AcceleratorLevel& level, double nm,
                                   ComponentCosts& costs) const {
  costs.energy.compute_pj = energy_at(component, level.word_bits, nm, false, costs);
  std::vector<SizeFigure> areas;
  for (const auto& [bits, um2] : component.multiplier_um2) areas.push_back({bits, um2});
  if (!areas.empty()) costs.area_um2 = power_law(areas, level.word_bits);
}

void EnergyLibrary::add_converter(const EnergyComponent& component, const AcceleratorLevel& level, double nm,
                                  ComponentCosts& costs) const {
  const AnalogConverter& own = level.converter;
  if (own.bits == 0) {
    throw InputError({.path = fmt::format("level {}: converter", level.name),
                      .value = "(not given)",
                      .expected = fmt::format("the number of bits, which sets the energy of {}", component.name)});
  }
  double conversion_pj = energy_at(component, own.bits, nm, false, costs);
  if (own.conversions_per_second > component.fastest_per_second) {
    conversion_pj *= own.conversions_per_second / component.fastest_per_second;
    extrapolate(costs, fmt::format("faster than the published {} conversions per second",
                                   number_text(component.fastest_per_second)));
  }
  costs.energy.update_pj = own.conversions * (conversion_pj + own.extra_pj);
}

// Of what lies on the chip: its area in this technology, and what it leaks.
void EnergyLibrary::add_silicon(const EnergyComponent& component, const AcceleratorLevel& level,
                                const Architecture& architecture, double nm, ComponentCosts& costs) const {
  if (component.area_nm > 0) {
    costs.area_um2 *= area_factor(nm) / area_factor(component.area_nm);
    add_note(costs, component.area_source);
  }
  if (component.leak_uw_per_size > 0) {
    constexpr double pj_per_microjoule = 1e6;
    const bool is_memory = component.kind == EnergyComponent::Kind::memory;
    const double leaking_size = is_memory ? memory_bytes(level) : 1;
    costs.energy.leak_pj_per_cycle =
        component.leak_uw_per_size * leaking_size * pj_per_microjoule / architecture.clock_hz;
    add_note(costs, component.leak_source);
  }
}

ComponentCosts EnergyLibrary::costs(const AcceleratorLevel& level, const Architecture& architecture,
                                    double below_um2) const {
  const EnergyComponent& component = component_of(level);
  ComponentCosts costs;
  const double nm = technology_of(architecture, component, costs);
  switch (component.kind) {
    case EnergyComponent::Kind::dram:
      add_dram(component, level, architecture, costs);
      return costs;
    case EnergyComponent::Kind::wire: {
      const double millimetres = std::sqrt(below_um2) * 1e-3;  // from one instance to its neighbour
      costs.energy.hop_pj_per_word = energy_at(component, 0, nm, false, costs) * level.word_bits * millimetres;
      return costs;
    }
    case EnergyComponent::Kind::memory:
      add_memory(component, level, nm, costs);
      break;
    case EnergyComponent::Kind::multiplier:
      add_multiplier(component, level, nm, costs);
      break;
    case EnergyComponent::Kind::converter:
      add_converter(component, level, nm, costs);
      break;
  }
  add_silicon(component, level, architecture, nm, costs);
  return costs;
}

std::vector<EnergyFill> fill_costs(Architecture& architecture, const std::vector<bool>& energies_given,
                                   const std::vector<bool>& areas_given, const EnergyLibrary& library) {
  const auto count = architecture.levels.size();
  ensure(energies_given.size() == count && areas_given.size() == count, "each level says what it gives");
  std::vector<EnergyFill> fills;
  // From the inside, so that the area below a network is known.
  double inside_um2 = 0;  // of all instances
  for (size_t i = count; i-- > 0;) {
    AcceleratorLevel& level = architecture.levels[i];
    // An area is worth less than an answer: a level with energies of its own may be of a kind that nobody knows here.
    const bool only_area_unknown = energies_given[i] && !library.has_costs(level);
    const bool nothing_to_fill = (energies_given[i] && areas_given[i]) || level.component.empty() || only_area_unknown;
    if (!nothing_to_fill) {
      const auto below = i + 1 < count ? static_cast<double>(instances(architecture.levels[i + 1])) : 1;
      const ComponentCosts costs = library.costs(level, architecture, inside_um2 / below);
      if (!energies_given[i]) level.energy = costs.energy;
      if (!areas_given[i]) level.area_um2 = costs.area_um2;
      if (!energies_given[i]) {
        fills.push_back({.level = level.name, .component = level.component, .kind = costs.kind, .note = costs.note});
      }
    }
    inside_um2 += level.area_um2 * static_cast<double>(instances(level));
  }
  std::reverse(fills.begin(), fills.end());
  return fills;
}

void refill_costs(const Architecture& base, Architecture& changed, const std::vector<bool>& energies_given,
                  const std::vector<bool>& areas_given, const EnergyLibrary& library) {
  ensure(base.levels.size() == changed.levels.size(), "a changed design has the levels of its base");
  std::vector<bool> unknown;
  for (const AcceleratorLevel& level : base.levels) unknown.push_back(!library.has_costs(level));
  Architecture of_base = base, of_changed = changed;
  fill_costs(of_base, unknown, unknown, library);
  fill_costs(of_changed, unknown, unknown, library);
  for (size_t i = 0; i < base.levels.size(); ++i) {
    if (unknown[i]) continue;
    const AcceleratorLevel& before = of_base.levels[i];
    const AcceleratorLevel& after = of_changed.levels[i];
    const auto grow = [](double& given, double library_before, double library_after) {
      if (library_before > 0) given *= library_after / library_before;
    };
    if (energies_given[i]) {
      AccessEnergy& own = changed.levels[i].energy;
      grow(own.read_pj, before.energy.read_pj, after.energy.read_pj);
      grow(own.fill_pj, before.energy.fill_pj, after.energy.fill_pj);
      grow(own.update_pj, before.energy.update_pj, after.energy.update_pj);
      grow(own.compute_pj, before.energy.compute_pj, after.energy.compute_pj);
      if (library.is_dram(before) && own.leak_pj_per_cycle == 0) {
        own.leak_pj_per_cycle = std::max(0.0, after.energy.leak_pj_per_cycle - before.energy.leak_pj_per_cycle);
      } else {
        grow(own.leak_pj_per_cycle, before.energy.leak_pj_per_cycle, after.energy.leak_pj_per_cycle);
      }
      grow(own.hop_pj_per_word, before.energy.hop_pj_per_word, after.energy.hop_pj_per_word);
    }
    if (areas_given[i]) grow(changed.levels[i].area_um2, before.area_um2, after.area_um2);
  }
  fill_costs(changed, energies_given, areas_given, library);
}

}  // namespace foretoken
