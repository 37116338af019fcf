#include "accelerator/formats/designs.h"

#include <gtest/gtest.h>

#include "accelerator/evaluator.h"
#include "base/error.h"

namespace foretoken::designs_test {

AcceleratorCatalogue shipped_designs() {
  return AcceleratorCatalogue(FORETOKEN_SOURCE_DIR "/data/accelerators");
}

TEST(Designs, every_shipped_design_has_sources_and_costs_for_every_level) {
  const AcceleratorCatalogue catalogue = shipped_designs();
  ASSERT_GE(catalogue.design_names().size(), 10);
  for (const std::string& name : catalogue.design_names()) {
    const LoadedDesign loaded = catalogue.design(name);
    const Architecture& own = loaded.design.architecture;
    EXPECT_EQ(own.name, name);
    EXPECT_FALSE(loaded.design.sources.empty()) << name;
    EXPECT_FALSE(loaded.design.summary.empty()) << name;
    EXPECT_GT(own.technology_nm, 0) << name;
    EXPECT_EQ(architecture_fault(own), "") << name;
    for (const AcceleratorLevel& level : own.levels) {
      // The cells' reads and the conversions of their sums are all that an array in memory takes.
      if (own.levels.back().operation_cycles != 1 && level.name.starts_with(own.levels.back().name)) continue;
      const bool storage = level.kind == LevelKind::storage;
      EXPECT_EQ(level.energy.read_pj > 0, storage) << name << " " << level.name;
      EXPECT_EQ(level.energy.fill_pj > 0, storage) << name << " " << level.name;
      EXPECT_EQ(level.energy.compute_pj > 0, level.kind == LevelKind::compute) << name << " " << level.name;
    }
  }
}

TEST(Designs, every_tensor_has_a_way_from_the_memory_to_the_multipliers) {
  const AcceleratorCatalogue catalogue = shipped_designs();
  const Problem gemm = gemm_problem({.m = 4, .n = 4, .k = 4});
  for (const std::string& name : catalogue.design_names()) {
    const AcceleratorDesign design = catalogue.design(name).design;
    EXPECT_EQ(tensors_allowed(design.tensors.front(), gemm), 7U) << name;
    uint32_t on_chip = 0;
    for (size_t i = 1; i < design.tensors.size(); ++i) on_chip |= tensors_allowed(design.tensors[i], gemm);
    EXPECT_EQ(on_chip, 7U) << name;
  }
}

TEST(Designs, peaks_are_those_their_makers_publish) {
  const AcceleratorCatalogue catalogue = shipped_designs();
  const auto tera_operations = [&](const char* name) {
    const Architecture own = catalogue.design(name).design.architecture;
    return 2e-12 * static_cast<double>(instances(own.levels.back())) * own.clock_hz;
  };
  EXPECT_NEAR(tera_operations("tpu_v1"), 92, 0.5);
  EXPECT_NEAR(tera_operations("tpu_v3"), 123, 0.5);
  EXPECT_NEAR(tera_operations("tpu_v4"), 275, 0.5);
  EXPECT_NEAR(tera_operations("eyeriss_v1"), 2 * 0.0336, 1e-6);
  EXPECT_NEAR(tera_operations("npu_pim"), 1.2288, 1e-6);
  EXPECT_NEAR(tera_operations("hbm_pim"), 4 * 1.2288, 1e-6);
  EXPECT_NEAR(tera_operations("tensor_core_sm") * 108, 312, 1);
}

TEST(Designs, a_name_is_found_in_any_spelling_and_a_slip_is_told) {
  const AcceleratorCatalogue catalogue = shipped_designs();
  EXPECT_EQ(catalogue.design("TPU-v1").design.architecture.name, "tpu_v1");
  try {
    catalogue.design("eyeris_v1");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().suggestion, "eyeriss_v1");
  }
  EXPECT_THROW(AcceleratorCatalogue("/nowhere"), InputError);
}

}  // namespace foretoken::designs_test
