// Published energies and areas of components (data/accelerators/energy.json), scaled to a level's size and technology.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/architecture.h"
#include "base/estimate.h"
#include "base/json.h"

namespace foretoken {

// What one instance of a level costs.
struct ComponentCosts {
  AccessEnergy energy;
  double area_um2 = 0;
  Confidence kind = Confidence::interpolated;  // extrapolated beyond published sizes, or scaled to another technology
  std::string note;                            // the sources, and what was extrapolated
};

// A figure at one size of a component made in one technology.
struct ComponentPoint {
  double technology_nm = 0;
  double size = 0;  // bytes of a memory, bits of a multiplier or of a converter
  double read_pj = 0, write_pj = 0;
  std::string source;
};

struct EnergyComponent {
  enum class Kind { dram, memory, multiplier, wire, converter };

  std::string name;
  std::vector<std::string> also;  // other names
  Kind kind = Kind::memory;
  double access_bits = 0;              // of a memory: those its points read
  std::vector<ComponentPoint> points;  // dram: picojoules per bit; wire: per bit and millimetre
  // Energy grows as this power of the technology's nanometres, up to 45; all but a dram.
  double technology_exponent = 0;
  // Each in the technology its source gives.
  double area_um2_per_bit = 0, area_nm = 0;               // of a memory
  std::vector<std::pair<double, double>> multiplier_um2;  // bits -> um2, by bits
  double leak_uw_per_size = 0;                            // per byte of a memory; of one multiplier
  // Of a dram: what its interface takes of the chip, and the share of its power at full rate that it always draws.
  double interface_mm2_per_gb_s = 0, standing_share = 0;
  double fastest_per_second = 0;  // of a converter: those its points make; faster ones take more energy in proportion
  std::string scaling_source, area_source, leak_source, interface_source;
};

// Energy and area of logic relative to 45 nm.
struct TechnologyFactor {
  double technology_nm = 0, energy = 1, area = 1;
};

class EnergyLibrary {
 public:
  static EnergyLibrary read(const JsonView& view);
  static EnergyLibrary read_file(const std::filesystem::path& path);

  // Energies between published sizes follow a power law, and so do those between technologies that were both published;
  // beyond, the component's own power of the nanometres scales the nearest, and above 45 nm, where the supply rises,
  // the factors of Stillmaker and Baas (2017). InputError for a component nobody knows.
  // `below_um2` is the area of what hangs below one instance, which says how far a wire runs. A memory outside the chip
  // takes the area of its interface, and draws power by its bandwidth even when nothing crosses it.
  ComponentCosts costs(const AcceleratorLevel& level, const Architecture& architecture, double below_um2) const;

  // Whether costs() has figures for such a level: a component it knows, and of a memory the size.
  bool has_costs(const AcceleratorLevel& level) const;

  bool is_dram(const AcceleratorLevel& level) const;

  std::vector<std::string> component_names() const;  // sorted, without other names
  double energy_factor(double technology_nm) const;  // relative to 45 nm
  double area_factor(double technology_nm) const;

 private:
  const EnergyComponent* find(const std::string& name) const;  // null when there is none
  const EnergyComponent& component_of(const AcceleratorLevel& level) const;
  double technology_ratio(const EnergyComponent& component, double from_nm, double to_nm) const;
  double energy_at(const EnergyComponent& component, double size, double technology_nm, bool write,
                   ComponentCosts& costs) const;
  double technology_of(const Architecture& architecture, const EnergyComponent& component, ComponentCosts& costs) const;
  void add_dram(const EnergyComponent& component, const AcceleratorLevel& level, const Architecture& architecture,
                ComponentCosts& costs) const;
  void add_memory(const EnergyComponent& component, const AcceleratorLevel& level, double nm,
                  ComponentCosts& costs) const;
  void add_multiplier(const EnergyComponent& component, const AcceleratorLevel& level, double nm,
                      ComponentCosts& costs) const;
  void add_converter(const EnergyComponent& component, const AcceleratorLevel& level, double nm,
                     ComponentCosts& costs) const;
  void add_silicon(const EnergyComponent& component, const AcceleratorLevel& level, const Architecture& architecture,
                   double nm, ComponentCosts& costs) const;

  std::vector<EnergyComponent> components_;
  std::vector<TechnologyFactor> technologies_;  // by nm
  std::string technology_source_;
};

struct EnergyFill {
  std::string level, component;
  Confidence kind = Confidence::interpolated;
  std::string note;
};

// Fills the levels that give no energies or areas of their own, and says which and from where. A network without a
// component has none to fill.
std::vector<EnergyFill> fill_costs(Architecture& architecture, const std::vector<bool>& energies_given,
                                   const std::vector<bool>& areas_given, const EnergyLibrary& library);

// Costs of `changed`, which is `base` with other sizes. What the library filled in `base` it fills again. What was
// given is multiplied by the ratio of the library's figures for the two sizes: a figure measured on a chip stays the
// anchor, the library says only how it grows. A DRAM given without standing power draws what more bandwidth adds by the
// library. Figures of levels that the library does not know stay as they are.
void refill_costs(const Architecture& base, Architecture& changed, const std::vector<bool>& energies_given,
                  const std::vector<bool>& areas_given, const EnergyLibrary& library);

}  // namespace foretoken
