#include "accelerator/formats/timeloop_files.h"

#include <gtest/gtest.h>

#include "accelerator/evaluator.h"
#include "accelerator/formats/timeloop_output.h"
#include "accelerator/mapping_text.h"
#include "base/error.h"

namespace foretoken::timeloop_files_test {

constexpr const char* arch_v3 = R"(
architecture:
  version: 0.3
  subtree:
  - name: system
    attributes: {technology: 32nm, global_cycle_seconds: 2e-9}
    local:
    - name: Main
      class: DRAM
      attributes: {type: LPDDR4, width: 64, datawidth: 8}
    subtree:
    - name: chip
      local:
      - name: Buffer
        class: smartbuffer_SRAM
        attributes: {depth: 256, width: 2*32, datawidth: 8, n_banks: 2, read_bandwidth: 16, write_bandwidth: 8}
      subtree:
      - name: PE[0..15]
        local:
        - name: Spad
          class: regfile
          attributes: {depth: 32, width: datawidth, datawidth: 8, meshX: 4}
        - name: mac
          class: intmac
          attributes: {datawidth: 8, meshX: 4}
)";

constexpr const char* arch_v4 = R"(
variables: {version: 0.4, global_cycle_seconds: 2e-9, technology: 32nm, bits: 8}
architecture:
  version: 0.4
  nodes:
  - !Container
    name: system
    attributes: {datawidth: bits}
  - !Component {name: Main, class: DRAM, attributes: {type: LPDDR4, width: 64}}
  - !Component
    name: Buffer
    class: smartbuffer_SRAM
    attributes: {depth: 256, width: 8*bits, n_banks: 2, read_bandwidth: 16, write_bandwidth: 8}
    constraints:
      temporal: {permutation: [M, N], factors: [K=4, M<=8]}
      dataspace: {keep: [A], bypass: [Z]}
  - !Container
    name: PE
    spatial: {meshX: 4, meshY: bits/2}
    constraints: {spatial: {permutation: N K, split: 1}}
  - !Parallel
    nodes:
    - !Component {name: Spad, class: regfile, attributes: {depth: 32, width: 8}}
    - !Component {name: Sums, class: regfile, attributes: {depth: 16, width: 8}}
  - !Component {name: mac, class: intmac}
)";

constexpr const char* gemm = R"(
problem:
  shape:
    name: gemm
    dimensions: [M, N, K]
    coefficients: [{name: stride, default: 1}]
    data_spaces:
    - {name: A, projection: [[[M, stride]], [[K]]]}
    - {name: B, projection: [[[K]], [[N]]]}
    - {name: Z, projection: [[[M]], [[N]]], read_write: true}
  instance: {M: 16, N: 8, K: 20}
)";

constexpr const char* map_v3 = R"(
mapping:
- {target: Main, type: temporal, factors: M=2 N=2 K=0, permutation: KNM}
- {target: Buffer, type: temporal, factors: "M=8, K=2", permutation: "M,K"}
- {target: Buffer, type: spatial, factors: N=4 K=4, permutation: NK, split: 1}
- {target: Spad, type: bypass, keep: [A, B], bypass: [Z]}
)";

constexpr const char* ert = R"(
ERT:
  version: 0.4
  tables:
  - name: system.Main[1..1]
    actions: [{name: read, energy: 512}, {name: write, energy: 500}, {name: update, energy: 490}]
  - name: system.chip.Buffer
    actions:
    - {name: read, arguments: {address_delta: 0}, energy: 3}
    - {name: read, arguments: {address_delta: 1}, energy: 18}
    - {name: write, energy: 14}
    - {name: leak, energy: 0.25}
  - {name: "system.chip.PE[0..15].Spad", actions: [{name: read, energy: 1}, {name: write, energy: 2}]}
  - {name: "system.chip.PE[0..15].mac", actions: [{name: compute, energy: 0.5}]}
  - {name: system.chip.other, actions: []}
)";

AcceleratorInputs read_all(std::initializer_list<std::string> texts) {
  std::vector<TimeloopText> named;
  for (const std::string& text : texts) named.push_back({.source = "in" + std::to_string(named.size()), .text = text});
  return read_timeloop_texts(named);
}

InputProblem timeloop_complaint(std::initializer_list<std::string> texts) {
  try {
    read_all(texts);
    return {};
  } catch (const InputError& error) {
    return error.problem();
  }
}

std::string with(std::string text, const std::string& old, const std::string& fresh) {
  const size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), fresh);
}

TEST(TimeloopFiles, a_tree_of_version_3_becomes_levels) {
  const Architecture own = *read_all({arch_v3}).architecture;
  ASSERT_EQ(level_names(own), (std::vector<std::string>{"Main", "Buffer", "Spad", "mac"}));
  EXPECT_EQ(own.technology_nm, 32);
  EXPECT_DOUBLE_EQ(own.clock_hz, 5e8);
  EXPECT_EQ(own.levels[0].component, "LPDDR4");
  EXPECT_EQ(own.levels[0].depth, 0);
  EXPECT_EQ(own.levels[1].words_per_access, 8);
  EXPECT_EQ(words_held(own.levels[1]), 2048);
  EXPECT_EQ(own.levels[1].banks, 2);
  EXPECT_EQ(own.levels[1].bandwidth.write, 8);
  EXPECT_EQ(own.levels[2].instances_x, 4);
  EXPECT_EQ(own.levels[2].instances_y, 4);
  EXPECT_EQ(own.levels[3].kind, LevelKind::compute);
  EXPECT_EQ(instances(own.levels[3]), 16);
}

TEST(TimeloopFiles, nodes_of_version_4_inherit_attributes_and_carry_constraints) {
  const AcceleratorInputs inputs = read_all({arch_v4});
  const Architecture& own = *inputs.architecture;
  ASSERT_EQ(level_names(own), (std::vector<std::string>{"Main", "Buffer", "PE", "Spad", "Sums", "mac"}));
  EXPECT_EQ(own.technology_nm, 32);
  EXPECT_EQ(own.levels[1].word_bits, 8);
  EXPECT_EQ(own.levels[1].words_per_access, 8);
  EXPECT_EQ(own.levels[2].kind, LevelKind::network);
  EXPECT_EQ(fanout_x(own, 2), 4);
  EXPECT_EQ(fanout_y(own, 2), 4);
  ASSERT_EQ(inputs.constraints.size(), 3);
  EXPECT_EQ(inputs.constraints[0].target, "Buffer");
  ASSERT_EQ(inputs.constraints[0].factors.size(), 2);
  EXPECT_EQ(inputs.constraints[0].factors[1].relation, TimeloopFactor::Relation::at_most);
  EXPECT_EQ(inputs.constraints[0].factors[1].bound, 8);
  EXPECT_EQ(inputs.constraints[1].bypass, std::vector<std::string>{"Z"});
  EXPECT_EQ(inputs.constraints[2].kind, TimeloopDirective::Kind::spatial);
  EXPECT_EQ(inputs.constraints[2].split, 1);
}

TEST(TimeloopFiles, a_mapping_has_its_loops_outermost_first) {
  const AcceleratorInputs inputs = read_all({map_v3, gemm, arch_v3});  // in any order
  const Mapping& mapping = *inputs.mapping;
  EXPECT_TRUE(mapping_faults(mapping, *inputs.architecture, *inputs.problem).empty());
  // Main: M, N, K from the outside; K takes 20 / (2 * 4), rounded up.
  ASSERT_EQ(mapping.loops.size(), 7);
  EXPECT_EQ(mapping.loops[0].dimension, 0);
  EXPECT_EQ(mapping.loops[2].dimension, 2);
  EXPECT_EQ(mapping.loops[2].bound, 3);
  EXPECT_EQ(mapping.loops[3].dimension, 2);  // of Buffer: K outside M
  EXPECT_EQ(mapping.loops[5].kind, LoopKind::spatial_y);
  EXPECT_EQ(mapping.loops[5].dimension, 2);
  EXPECT_EQ(mapping.loops[6].kind, LoopKind::spatial_x);
  EXPECT_EQ(mapping.kept, (std::vector<uint32_t>{7, 7, 3}));
}

TEST(TimeloopFiles, energies_come_from_the_tables_and_the_dearest_of_several_counts) {
  const AcceleratorInputs inputs = read_all({arch_v3, ert});
  EXPECT_TRUE(inputs.energies_given);
  const auto& levels = inputs.architecture->levels;
  EXPECT_EQ(levels[0].energy.update_pj, 490);
  EXPECT_EQ(levels[1].energy.read_pj, 18);
  EXPECT_EQ(levels[1].energy.update_pj, 14);
  EXPECT_EQ(levels[1].energy.leak_pj_per_cycle, 0.25);
  EXPECT_EQ(levels[3].energy.compute_pj, 0.5);
  ASSERT_FALSE(inputs.notes.empty());
  EXPECT_NE(inputs.notes[0].find("Buffer"), std::string::npos);
}

TEST(TimeloopFiles, tables_of_version_2_are_nested_maps) {
  const std::string nested = R"(
ERT:
  version: 0.2
  tables:
    system.Main: {read: {energy: 5}, write: {energy: 6}}
    system.Buffer: {read: [{arguments: {x: 0}, energy: 1}, {arguments: {x: 1}, energy: 2}], write: {energy: 3}}
    system.PE.Spad: {read: {energy: 1}, write: {energy: 1}, idle: {energy: 0.5}}
    system.PE.mac: {mac_random: {energy: 0.7}, mac_gated: {energy: 0.1}}
ART:
  tables:
  - {name: system.Main, area: 0}
  - {name: system.Buffer, area: 1000}
  - {name: "system.PE[0..15].Spad", area: 10}
  - {name: system.mac, area: 5}
)";
  const AcceleratorInputs inputs = read_all({arch_v3, nested});
  EXPECT_EQ(inputs.architecture->levels[1].energy.read_pj, 2);
  EXPECT_EQ(inputs.architecture->levels[2].energy.leak_pj_per_cycle, 0.5);
  EXPECT_EQ(inputs.architecture->levels[3].energy.compute_pj, 0.7);
  EXPECT_EQ(area_um2(*inputs.architecture), 1000 + 16 * 15);
  EXPECT_TRUE(inputs.areas_given);
}

TEST(TimeloopFiles, an_energy_that_is_missing_is_never_a_default) {
  const InputProblem no_compute = timeloop_complaint({arch_v3, with(ert, "name: compute", "name: idle")});
  EXPECT_NE(no_compute.expected.find("action compute of mac"), std::string::npos) << no_compute.expected;
  const InputProblem no_write =
      timeloop_complaint({arch_v3, with(ert, "{name: write, energy: 14}", "{name: wrote, energy: 1}")});
  EXPECT_NE(no_write.expected.find("action write of Buffer"), std::string::npos);
  const InputProblem no_table = timeloop_complaint({arch_v3, with(ert, "].Spad", "].Spat")});
  EXPECT_EQ(no_table.value, "Spad");
  EXPECT_EQ(no_table.suggestion, "Spat");
}

TEST(TimeloopFiles, constraints_of_all_files_add_up) {
  const AcceleratorInputs inputs = read_all({R"(
architecture_constraints:
  targets:
  - {target: Spad, type: temporal, factors: R3 S1, permutation: RS}
)",
                                             R"(
mapspace_constraints:
- {target: Buffer, type: utilization, min: 0.5}
)"});
  ASSERT_EQ(inputs.constraints.size(), 2);
  EXPECT_EQ(inputs.constraints[0].factors[0].dimension, "R");
  EXPECT_EQ(inputs.constraints[0].factors[0].bound, 3);
  EXPECT_EQ(inputs.constraints[1].min_utilization, 0.5);
}

TEST(TimeloopFiles, a_named_convolution_takes_sizes_beside_it) {
  const Problem problem =
      *read_all({"problem: {shape: cnn-layer, C: 3, M: 8, R: 3, S: 3, P: 7, Q: 5, Wstride: 2, N: 1}"}).problem;
  EXPECT_EQ(operations(problem), 3 * 8 * 9 * 35);
  EXPECT_EQ(
      timeloop_complaint({"problem: {shape: cnn-layer, C: 3, M: 8, R: 3, S: 3, P: 7, Q: 5, Wstrid: 2}"}).suggestion,
      "Wstride");
}

TEST(TimeloopFiles, densities_are_handed_on) {
  const AcceleratorInputs inputs =
      read_all({with(gemm, "K: 20}", "K: 20, densities: {A: 0.5, B: {distribution: hypergeometric, density: 0.25}}}")});
  ASSERT_EQ(inputs.densities.size(), 2);
  EXPECT_EQ(inputs.densities[0].density, 0.5);
  EXPECT_EQ(inputs.densities[1].distribution, "hypergeometric");
}

TEST(TimeloopFiles, a_slip_is_named_with_the_nearest_name) {
  EXPECT_EQ(timeloop_complaint({"architectur: {}"}).suggestion, "architecture");
  EXPECT_EQ(timeloop_complaint({with(arch_v3, "depth: 256", "dept: 256")}).suggestion, "depth");
  EXPECT_EQ(timeloop_complaint({with(gemm, "N: 8", "NN: 8")}).expected, "a size for dimension N");
  EXPECT_EQ(timeloop_complaint({with(gemm, "K: 20", "K: 20, L: 3")}).source, "in0");
  EXPECT_EQ(timeloop_complaint({arch_v3, gemm, with(map_v3, "target: Spad", "target: Spat")}).suggestion, "Spad");
  EXPECT_FALSE(timeloop_complaint({arch_v3, gemm, with(map_v3, "keep: [A, B]", "keep: [A, C]")}).expected.empty());
  EXPECT_NE(
      timeloop_complaint({arch_v3, gemm, with(map_v3, "N=2 K=0", "N=3 K=0")}).expected.find("multiply to its size, 8"),
      std::string::npos);
  EXPECT_NE(timeloop_complaint({arch_v3, gemm, with(map_v3, "M=8, K=2", "M=6, K=2")}).expected.find("16; they make 12"),
            std::string::npos);
  EXPECT_EQ(timeloop_complaint({map_v3, gemm}).expected, "its architecture in the files beside it");
  EXPECT_NE(timeloop_complaint({gemm, gemm}).expected.find("problem once"), std::string::npos);
  EXPECT_NE(timeloop_complaint({"x: {{ jinja }}"}).expected.find("Jinja"), std::string::npos);
  EXPECT_NE(timeloop_complaint({with(arch_v3, "PE[0..15]", "PE[15..0]")}).expected.find("range"), std::string::npos);
  EXPECT_NE(timeloop_complaint({with(arch_v3, "meshX: 4", "meshX: 5")}).expected.find("16 instances"),
            std::string::npos);
  EXPECT_FALSE(timeloop_complaint({with(arch_v3, "width: datawidth", "width: width")}).expected.empty());
  EXPECT_NE(
      timeloop_complaint({with(arch_v4, "permutation: [M, N]", "permutations: [M, N]")}).suggestion.find("permutation"),
      std::string::npos);
}

TEST(TimeloopFiles, remainders_are_checked_against_the_size) {
  const std::string uneven = with(map_v3, "K=0", "K=3");
  const std::string right = with(uneven, "M=8, K=2", "M=8, K=2,1");
  EXPECT_TRUE(timeloop_complaint({arch_v3, gemm, right}).expected.empty());
  EXPECT_NE(timeloop_complaint({arch_v3, gemm, uneven}).suggestion.find("N=8,4"), std::string::npos);
  EXPECT_NE(timeloop_complaint({arch_v3, gemm, with(uneven, "M=8, K=2", "M=8, K=2,2")}).expected.find("remainder of 1"),
            std::string::npos);
}

constexpr const char* small_v4 = R"(
architecture:
  version: 0.4
  nodes:
  - !Container {name: system, attributes: {technology: 45nm}}
  - !Component
    name: Memory
    class: DRAM
    attributes: {width: 64, datawidth: 8}
    sparse_optimizations:
      representation_format:
        data_spaces: [{name: A, ranks: [{format: CP}]}]
  - !Container {name: PE, spatial: {meshX: 16}, constraints: {spatial: {permutation: [M, N, K], split: 999}}}
  - !Component
    name: Registers
    class: storage
    subclass: smartbuffer_RF
    attributes: {depth: 4, width: 64, cluster_size: 8, datawidth: 8}
  - !Component {name: mac, class: intmac, attributes: {multiplier_width: 8}}
)";

TEST(TimeloopFiles, a_dram_without_a_type_is_lpddr4_and_a_subclass_says_what_storage_is_made_of) {
  const Architecture own = *read_all({small_v4}).architecture;
  EXPECT_EQ(own.levels[0].component, "LPDDR4");
  EXPECT_EQ(own.levels[2].component, "smartbuffer_RF");
  EXPECT_EQ(own.levels[2].kind, LevelKind::storage);
}

TEST(TimeloopFiles, optimizations_of_nodes_become_targets) {
  const AcceleratorInputs inputs = read_all({small_v4, gemm});
  ASSERT_TRUE(inputs.sparse_optimizations);
  const auto& targets = inputs.sparse_optimizations->find("targets")->items();
  ASSERT_EQ(targets.size(), 1u);
  EXPECT_EQ(targets[0].find("name")->string(), "Memory");
  EXPECT_NE(targets[0].find("representation_format"), nullptr);
  EXPECT_NE(timeloop_complaint({small_v4, gemm, "sparse_optimizations: {targets: [{name: Memory}]}"})
                .expected.find("not both"),
            std::string::npos);
  EXPECT_TRUE(timeloop_complaint({small_v4, gemm, "sparse_optimizations: {targets: []}"}).expected.empty());
}

// Eight instances share a memory of eight words: an access costs all of it, whatever the instances at work.
TEST(TimeloopFiles, a_memory_that_instances_share_costs_its_whole_width_for_each_access) {
  const AcceleratorInputs inputs = read_all({small_v4, gemm, R"(
mapping:
- {target: Memory, type: temporal, factors: M=4 N=8 K=20, permutation: KNM}
- {target: PE, type: spatial, factors: M=4, permutation: M}
- {target: Registers, type: bypass, keep: [A], bypass: [B, Z]}
)"});
  Architecture own = *inputs.architecture;
  ASSERT_EQ(own.levels[2].cluster_size, 8);
  EXPECT_EQ(own.levels[2].words_per_access, 1);
  own.levels[2].energy = {.read_pj = 8, .fill_pj = 8};
  Evaluation evaluation;
  ASSERT_TRUE(MappingEvaluator(own, *inputs.problem).evaluate(*inputs.mapping, evaluation));
  const TensorTraffic& traffic = traffic_at(evaluation, *inputs.problem, 2, 0);
  EXPECT_EQ(traffic.instances, 4);
  // Timeloop spreads the four instances at work over both memories.
  EXPECT_EQ(traffic.energy_pj, 2 * 8 * (traffic.reads + traffic.fills));
  EXPECT_NE(timeloop_complaint({with(small_v4, "cluster_size: 8", "cluster_size: 5")}).expected.find("divisor"),
            std::string::npos);
}

TEST(TimeloopFiles, files_as_the_front_end_writes_them_are_read) {
  const AcceleratorInputs inputs = read_all({R"(
dumped_by_timeloop_front_end: true
architecture:
  version: '0.4'
  subtree:
  - name: System_top_level
    attributes: {version: '0.4', technology: SET ME, global_cycle_seconds: 1e-9, has_power_gating: false,
                 power_gated_at: null}
    local:
    - {name: "Memory[1..1]", class: DRAM, attributes: {width: 64, datawidth: 8, technology: 40nm}, enabled: true,
       required_actions: [read, write]}
    - {name: "mac[1..1]", class: intmac, attributes: {width: 8, technology: 40nm}}
architecture_constraints: {targets: []}
mapping: []
problem:
  version: '0.4'
  shape:
    name: gemm
    dimensions: [M, K]
    coefficients: []
    data_spaces:
    - {name: A, projection: [[[M]], [[K]]], read_write: false}
    - {name: Z, projection: [[[M]]], read_write: true}
  instance: {M: 4, K: 8, H: 4, Hpad: 1, densities: {}}
mapper: {version: '0.4'}
)"});
  EXPECT_EQ(inputs.architecture->technology_nm, 40);
  EXPECT_FALSE(inputs.mapping);
  EXPECT_TRUE(inputs.constraints_given);
  EXPECT_TRUE(inputs.constraints.empty());
}

TEST(TimeloopFiles, a_written_mapping_reads_back_as_itself) {
  const AcceleratorInputs inputs = read_all({arch_v3, gemm, map_v3, ert});
  const std::string text = timeloop_map_yaml(*inputs.mapping, *inputs.architecture, *inputs.problem);
  const AcceleratorInputs again = read_all({arch_v3, gemm, text});
  EXPECT_EQ(again.mapping->kept, inputs.mapping->kept);
  EXPECT_EQ(loop_nest_text(*again.mapping, *inputs.architecture, *inputs.problem),
            loop_nest_text(*inputs.mapping, *inputs.architecture, *inputs.problem));
}

TEST(TimeloopFiles, statistics_name_levels_counts_and_sums) {
  const AcceleratorInputs inputs = read_all({arch_v3, gemm, map_v3, ert});
  Evaluation evaluation;
  ASSERT_TRUE(MappingEvaluator(*inputs.architecture, *inputs.problem).evaluate(*inputs.mapping, evaluation));
  const std::string text = timeloop_stats_text(evaluation, *inputs.mapping, *inputs.architecture, *inputs.problem);
  EXPECT_NE(text.find("=== Buffer ==="), std::string::npos);
  EXPECT_NE(text.find("for K in [0:4) (Spatial-Y)"), std::string::npos);
  EXPECT_NE(text.find("Computes = 2560"), std::string::npos);
  EXPECT_NE(text.find("Scalar reads (per-instance)"), std::string::npos);
}

}  // namespace foretoken::timeloop_files_test
