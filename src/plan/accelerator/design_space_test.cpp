#include "plan/accelerator/design_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "accelerator/formats/designs.h"
#include "base/error.h"

namespace foretoken::design_space_test {

using testing::ElementsAre;

AcceleratorCatalogue shipped() {
  return AcceleratorCatalogue(FORETOKEN_SOURCE_DIR "/data/accelerators");
}

TEST(Knob, automatic_ones_are_powers_of_two_around_the_base) {
  const Architecture base = shipped().design("gemm_array_16x16").design.architecture;
  std::vector<std::string> names;
  for (const Knob& knob : automatic_knobs(base)) names.push_back(knob.name());
  EXPECT_THAT(names, ElementsAre("GLB.capacity", "RF.capacity", "RF.x", "RF.y"));
  EXPECT_THAT(automatic_knobs(base)[0].values, ElementsAre(16384, 32768, 65536, 131072, 262144));
  EXPECT_THAT(automatic_knobs(base)[2].values, ElementsAre(8, 16, 32));
}

TEST(Knob, what_is_set_is_read_back_on_every_design_that_ships) {
  const AcceleratorCatalogue catalogue = shipped();
  for (const std::string& name : catalogue.design_names()) {
    const Architecture base = catalogue.design(name).design.architecture;
    for (const Knob& knob : automatic_knobs(base)) {
      for (const double value : knob.values) {
        Architecture changed = base;
        set_knob(changed, knob, value);
        EXPECT_EQ(architecture_fault(changed), "") << name << ": " << knob.name();
        const AcceleratorLevel& level = base.levels[find_level(base, knob.level)];
        const double access = knob.kind == KnobKind::capacity ? level.word_bits * level.words_per_access / 8.0 : 1e-9;
        EXPECT_LE(knob_value(changed, knob), value + 1e-9) << name << ": " << knob.name();
        EXPECT_GT(knob_value(changed, knob), value - access) << name << ": " << knob.name();  // whole accesses
      }
    }
  }
}

TEST(Knob, a_side_multiplies_all_levels_inside) {
  Architecture own = shipped().design("eyeriss_v1").design.architecture;
  const int64_t before = instances(own.levels.back());
  set_knob(own, parse_knob("--knob", "rows.x=28", own), 28);
  EXPECT_EQ(instances(own.levels.back()), 2 * before);
  EXPECT_EQ(instances(own.levels[find_level(own, "GLB")]), 1);
}

TEST(Knob, narrower_words_keep_the_bits_of_memories_and_links) {
  const Architecture base = shipped().design("eyeriss_v1").design.architecture;
  Architecture own = base;
  set_knob(own, parse_knob("--knob", "all.word-bits=8,16", base), 8);
  for (size_t i = 0; i < base.levels.size(); ++i) {
    EXPECT_EQ(own.levels[i].depth * own.levels[i].word_bits, base.levels[i].depth * base.levels[i].word_bits);
  }
  EXPECT_DOUBLE_EQ(*own.levels[0].bandwidth.shared, 2 * *base.levels[0].bandwidth.shared);
}

TEST(Knob, wrong_ones_are_named) {
  const Architecture base = shipped().design("eyeriss_v1").design.architecture;
  const auto message = [&](const std::string& text) -> std::string {
    try {
      parse_knob("--knob", text, base);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message("glb.capacity"), testing::HasSubstr("GLB.capacity=32K"));
  EXPECT_THAT(message("glbs.capacity=1K"), testing::HasSubstr("did you mean GLB"));
  EXPECT_THAT(message("glb.capacty=1K"), testing::HasSubstr("did you mean capacity"));
  EXPECT_THAT(message("glb.capacity=1"), testing::HasSubstr("at least the 8 of an access"));
  EXPECT_THAT(message("rows.x=1.5"), testing::HasSubstr("a whole number"));
  EXPECT_THAT(message("rows.capacity=1K"), testing::HasSubstr("a level of storage"));
  EXPECT_THAT(message("glb.capacity=32K,"), testing::HasSubstr("bytes"));
  EXPECT_EQ(message("glb.capacity=64KiB,32K"), "no error");
}

TEST(DesignSpace, every_point_is_a_design_of_its_own_and_the_base_is_one_of_them) {
  const AcceleratorCatalogue catalogue = shipped();
  const AcceleratorDesign base = catalogue.design("gemm_array_16x16").design;
  const DesignSpace space(base, automatic_knobs(base.architecture), catalogue.library());
  const ChoiceGrid grid = space.grid();
  EXPECT_EQ(grid.size(), 5 * 5 * 3 * 3);
  std::set<std::string> seen;
  for (int64_t i = 0; i < static_cast<int64_t>(grid.size()); ++i) {
    seen.insert(architecture_json(space.design(grid.at(i))).dump(0));
  }
  EXPECT_EQ(static_cast<double>(seen.size()), grid.size());
  ASSERT_TRUE(space.base_point());
  EXPECT_EQ(space.changes_text(*space.base_point()), "as it is");
}

TEST(DesignSpace, a_design_that_is_not_changed_costs_what_it_did) {
  const AcceleratorCatalogue catalogue = shipped();
  for (const std::string& name : catalogue.design_names()) {
    const AcceleratorDesign base = catalogue.design(name).design;
    const DesignSpace space(base, automatic_knobs(base.architecture), catalogue.library());
    ASSERT_TRUE(space.base_point()) << name;
    const AcceleratorDesign same = space.design(*space.base_point());
    EXPECT_EQ(architecture_json(same).dump(), architecture_json(base).dump()) << name;
    EXPECT_EQ(area_um2(same.architecture), area_um2(base.architecture)) << name;
    for (size_t i = 0; i < base.architecture.levels.size(); ++i) {
      EXPECT_EQ(same.architecture.levels[i].energy.read_pj, base.architecture.levels[i].energy.read_pj) << name;
    }
  }
}

TEST(DesignSpace, given_energies_grow_as_the_librarys_do) {
  const AcceleratorCatalogue catalogue = shipped();
  const AcceleratorDesign base = catalogue.design("gemm_array_16x16").design;
  const DesignSpace space(base, {parse_knob("--knob", "GLB.capacity=64K,256K", base.architecture)},
                          catalogue.library());
  const AcceleratorDesign changed = space.design({1});
  const AcceleratorLevel& before = base.architecture.levels[1];
  const AcceleratorLevel& after = changed.architecture.levels[1];
  const double ratio = catalogue.library().costs(after, base.architecture, 0).energy.read_pj /
                       catalogue.library().costs(before, base.architecture, 0).energy.read_pj;
  EXPECT_GT(ratio, 1);
  EXPECT_DOUBLE_EQ(after.energy.read_pj, before.energy.read_pj * ratio);
  EXPECT_DOUBLE_EQ(after.area_um2, 4 * before.area_um2);
  EXPECT_EQ(changed.architecture.levels[2].energy.read_pj, base.architecture.levels[2].energy.read_pj);
}

TEST(DesignSpace, more_bandwidth_of_the_memory_outside_costs_area_and_power_on_every_design_that_ships) {
  const AcceleratorCatalogue catalogue = shipped();
  int limited = 0;
  for (const std::string& name : catalogue.design_names()) {
    const AcceleratorDesign base = catalogue.design(name).design;
    Knob knob{.level = base.architecture.levels.front().name, .kind = KnobKind::bandwidth};
    const double now = knob_value(base.architecture, knob);
    if (now == 0) continue;
    ++limited;
    knob.values = {now, 2 * now};
    const DesignSpace space(base, {knob}, catalogue.library());
    const AcceleratorLevel same = space.design({0}).architecture.levels.front();
    const AcceleratorLevel faster = space.design({1}).architecture.levels.front();
    EXPECT_GT(faster.area_um2, same.area_um2) << name;
    EXPECT_GT(faster.energy.leak_pj_per_cycle, same.energy.leak_pj_per_cycle) << name;
    EXPECT_EQ(faster.energy.read_pj, same.energy.read_pj) << name;
  }
  EXPECT_GE(limited, 5);
}

TEST(DesignSpace, two_knobs_for_one_number_are_refused) {
  const AcceleratorCatalogue catalogue = shipped();
  const AcceleratorDesign base = catalogue.design("gemm_array_16x16").design;
  const auto knob = [&](const char* text) { return parse_knob("--knob", text, base.architecture); };
  EXPECT_THROW(DesignSpace(base, {knob("GLB.capacity=32K"), knob("GLB.depth=64")}, catalogue.library()), InputError);
  EXPECT_THROW(DesignSpace(base, {}, catalogue.library()), InputError);
}

}  // namespace foretoken::design_space_test
