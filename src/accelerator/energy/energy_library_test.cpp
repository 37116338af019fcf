#include "accelerator/energy/energy_library.h"

#include <gtest/gtest.h>

#include "accelerator/energy/power.h"
#include "base/error.h"

namespace foretoken::energy_library_test {

EnergyLibrary shipped_energies() {
  return EnergyLibrary::read_file(FORETOKEN_SOURCE_DIR "/data/accelerators/energy.json");
}

AcceleratorLevel memory_of(const char* component, int64_t bytes, int access_bits) {
  return {.name = "buffer", .component = component, .word_bits = access_bits, .depth = bytes * 8 / access_bits};
}

TEST(EnergyLibrary, published_figures_come_back_as_they_are) {
  const EnergyLibrary library = shipped_energies();
  const Architecture at_45{.technology_nm = 45};
  const ComponentCosts small = library.costs(memory_of("SRAM", 8192, 64), at_45, 0);
  EXPECT_NEAR(small.energy.read_pj, 10, 1e-9);
  EXPECT_EQ(small.kind, Confidence::interpolated);
  EXPECT_NEAR(library.costs(memory_of("smartbuffer_sram", 1 << 20, 64), at_45, 0).energy.read_pj, 100, 1e-9);
  const AcceleratorLevel mac{.name = "mac", .component = "intmac", .word_bits = 8};
  EXPECT_NEAR(library.costs(mac, at_45, 0).energy.compute_pj, 0.3, 1e-9);
  const AcceleratorLevel dram{.name = "DRAM", .component = "LPDDR4", .word_bits = 8, .words_per_access = 8};
  EXPECT_EQ(library.costs(dram, at_45, 0).energy.read_pj, 512);
}

TEST(EnergyLibrary, more_of_anything_never_costs_less) {
  const EnergyLibrary library = shipped_energies();
  double before = 0;
  for (int64_t bytes = 64; bytes <= 64 << 20; bytes *= 2) {
    const ComponentCosts costs = library.costs(memory_of("SRAM", bytes, 64), {.technology_nm = 28}, 0);
    EXPECT_GT(costs.energy.read_pj, before) << bytes;
    before = costs.energy.read_pj;
  }
  for (const char* component : {"SRAM", "regfile"}) {
    double finer = 0;
    for (const int nm : {5, 7, 10, 16, 28, 32, 45, 65, 90, 130}) {
      const ComponentCosts costs = library.costs(memory_of(component, 384, 16), {.technology_nm = nm}, 0);
      EXPECT_GT(costs.energy.read_pj, finer) << component << " at " << nm;
      finer = costs.energy.read_pj;
    }
  }
}

TEST(EnergyLibrary, what_is_beyond_the_figures_says_so) {
  const EnergyLibrary library = shipped_energies();
  const ComponentCosts large = library.costs(memory_of("SRAM", 32 << 20, 64), {.technology_nm = 45}, 0);
  EXPECT_EQ(large.kind, Confidence::extrapolated);
  EXPECT_NE(large.note.find("outside the published"), std::string::npos);
  const ComponentCosts finer = library.costs(memory_of("regfile", 64, 16), {.technology_nm = 7}, 0);
  EXPECT_EQ(finer.kind, Confidence::extrapolated);
  EXPECT_NE(finer.note.find("as multiplications between 45 nm"), std::string::npos);
  const ComponentCosts coarser = library.costs(memory_of("regfile", 64, 16), {.technology_nm = 65}, 0);
  EXPECT_NE(coarser.note.find("Stillmaker"), std::string::npos);
  EXPECT_NE(library.costs(memory_of("SRAM", 8192, 64), {}, 0).note.find("45 nm assumed"), std::string::npos);
}

// Registers and multipliers are the same transistors.
TEST(EnergyLibrary, a_register_file_keeps_its_share_of_a_multiplier_in_finer_technologies) {
  const EnergyLibrary library = shipped_energies();
  const auto share = [&](int nm) {
    const Architecture chip{.technology_nm = nm};
    const AcceleratorLevel mac{.name = "mac", .component = "intmac", .word_bits = 8};
    return library.costs(memory_of("regfile", 64, 8), chip, 0).energy.read_pj /
           library.costs(mac, chip, 0).energy.compute_pj;
  };
  for (const int nm : {7, 10, 16, 20, 28, 32}) EXPECT_NEAR(share(nm) / share(45), 1, 0.12) << nm;
}

TEST(EnergyLibrary, a_millimetre_of_wire_saves_less_than_a_gate) {
  const EnergyLibrary library = shipped_energies();
  const AcceleratorLevel wire{.name = "links", .kind = LevelKind::network, .component = "wire", .word_bits = 8};
  const AcceleratorLevel mac{.name = "mac", .component = "intmac", .word_bits = 8};
  const auto shrunk = [&](auto cost) {
    return cost(Architecture{.technology_nm = 7}) / cost(Architecture{.technology_nm = 45});
  };
  const double of_wire =
      shrunk([&](const Architecture& chip) { return library.costs(wire, chip, 1e6).energy.hop_pj_per_word; });
  const double of_gate =
      shrunk([&](const Architecture& chip) { return library.costs(mac, chip, 0).energy.compute_pj; });
  EXPECT_GT(of_wire, of_gate);
  EXPECT_LT(of_wire, 1);
}

TEST(EnergyLibrary, an_unknown_component_and_an_unlimited_memory_are_refused) {
  const EnergyLibrary library = shipped_energies();
  try {
    library.costs(memory_of("LPDDR44", 64, 8), {}, 0);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().suggestion, "LPDDR4");
  }
  EXPECT_THROW(library.costs(memory_of("SRAM", 0, 64), {}, 0), InputError);
}

Architecture with_dram(const char* component, std::optional<double> words_per_cycle) {
  return {.clock_hz = 1e9,
          .levels = {{.name = "DRAM",
                      .component = component,
                      .word_bits = 8,
                      .words_per_access = 8,
                      .bandwidth = {.shared = words_per_cycle}},
                     {.name = "mac", .kind = LevelKind::compute, .component = "intmac"}}};
}

TEST(EnergyLibrary, a_faster_interface_takes_more_of_the_chip_and_draws_more) {
  const EnergyLibrary library = shipped_energies();
  for (const char* component : {"LPDDR", "LPDDR4", "DDR3", "DDR4", "GDDR5", "GDDR6", "HBM2", "HBM3"}) {
    const auto costs = [&](std::optional<double> rate) {
      const Architecture own = with_dram(component, rate);
      return library.costs(own.levels.front(), own, 0);
    };
    EXPECT_GT(costs(16).area_um2, 0) << component;
    EXPECT_DOUBLE_EQ(costs(32).area_um2, 2 * costs(16).area_um2) << component;
    EXPECT_DOUBLE_EQ(costs(32).energy.leak_pj_per_cycle, 2 * costs(16).energy.leak_pj_per_cycle) << component;
    // At its full rate, less than what its words cost.
    EXPECT_LT(costs(8).energy.leak_pj_per_cycle, costs(8).energy.read_pj) << component;
    EXPECT_EQ(costs({}).area_um2, 0) << component;
    EXPECT_EQ(costs({}).energy.leak_pj_per_cycle, 0) << component;
  }
  // 256 GB/s of HBM2 are a stack, with a PHY of 10.45 mm2.
  const Architecture stack = with_dram("HBM2", 256);
  EXPECT_NEAR(library.costs(stack.levels.front(), stack, 0).area_um2 * 1e-6, 10.45, 0.05);
}

TEST(EnergyLibrary, memory_inside_the_chip_has_no_interface) {
  Architecture own = with_dram("HBM2", 16);
  own.levels.insert(own.levels.begin(), {.name = "outside", .component = "LPDDR4"});
  EXPECT_EQ(shipped_energies().costs(own.levels[1], own, 0).area_um2, 0);
}

TEST(EnergyLibrary, only_levels_that_give_nothing_are_filled) {
  Architecture own{.clock_hz = 1e9,
                   .technology_nm = 45,
                   .levels = {{.name = "DRAM", .component = "HBM2", .energy = {.read_pj = 1, .fill_pj = 1}},
                              {.name = "array", .kind = LevelKind::network, .component = "noc", .word_bits = 8},
                              memory_of("SRAM", 8192, 64),
                              {.name = "mac", .kind = LevelKind::compute, .component = "intmac"}}};
  const auto fills = fill_costs(own, {true, false, false, false}, {true, false, false, false}, shipped_energies());
  EXPECT_EQ(own.levels[0].energy.read_pj, 1);
  ASSERT_EQ(fills.size(), 3);
  EXPECT_EQ(fills[1].level, "buffer");
  EXPECT_GT(own.levels[1].energy.hop_pj_per_word, 0);
  EXPECT_NEAR(own.levels[2].energy.read_pj, 10, 1e-9);
  EXPECT_GT(area_um2(own), 8192 * 8 * 0.69);
}

TEST(Power, energy_over_the_time_of_the_run) {
  const Evaluation run{.cycles = 1000, .energy_pj = 5e6};
  EXPECT_NEAR(average_watts(run, {.clock_hz = 2e9}), 10, 1e-9);  // 5 uJ in 0.5 us
}

}  // namespace foretoken::energy_library_test
