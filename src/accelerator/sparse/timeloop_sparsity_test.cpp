#include "accelerator/sparse/timeloop_sparsity.h"

#include <gtest/gtest.h>

#include "accelerator/sparse/sparse_evaluator.h"
#include "base/error.h"

namespace foretoken::timeloop_sparsity_test {

constexpr const char* chip_of_two_levels = R"(
architecture:
  version: 0.3
  subtree:
  - name: system
    local:
    - name: Main
      class: DRAM
      attributes: {type: LPDDR4, width: 64, datawidth: 8}
    subtree:
    - name: chip
      local:
      - {name: Buffer, class: SRAM, attributes: {depth: 256, width: 8, datawidth: 8}}
      - {name: mac, class: intmac, attributes: {datawidth: 8}}
ERT:
  version: 0.3
  tables:
  - {name: "system.Main[1..1]", actions: [{name: read, energy: 512}, {name: write, energy: 512},
                                          {name: metadata_read, energy: 40}]}
  - {name: "system.chip.Buffer[1..1]", actions: [{name: read, energy: 2}, {name: write, energy: 2},
                                                 {name: gated_read, energy: 0.1}]}
  - {name: "system.chip.mac[1..1]", actions: [{name: mac_random, energy: 1}, {name: mac_gated, energy: 0.05}]}
)";

constexpr const char* sparse_matrix_product = R"(
problem:
  shape:
    name: gemm
    dimensions: [M, N, K]
    data-spaces:
    - {name: A, projection: [[[M]], [[K]]]}
    - {name: B, projection: [[[K]], [[N]]]}
    - {name: Z, projection: [[[M]], [[N]]], read-write: true}
  instance: {M: 8, N: 8, K: 8, densities: {A: 0.25, B: {distribution: hypergeometric, density: 0.5}}}
)";

constexpr const char* gated_buffer = R"(
sparse_optimizations:
  targets:
  - name: Main
    representation-format:
      data-spaces:
      - name: A
        ranks:
        - format: RLE
  - name: Buffer
    action-optimization:
    - type: gating
      options:
      - target: B
        condition-on: [A]
)";

SparsityDescription sparsity_of(std::initializer_list<const char*> texts) {
  std::vector<TimeloopText> files;
  for (const char* text : texts) files.push_back({.source = "chip.yaml", .text = text});
  return timeloop_sparsity(read_timeloop_texts(files));
}

TEST(TimeloopSparsity, is_gathered_from_all_files) {
  const SparsityDescription sparsity = sparsity_of({chip_of_two_levels, sparse_matrix_product, gated_buffer});
  // A bare number is Timeloop's fixed-structured: four words hold exactly one.
  EXPECT_EQ(sparsity.densities[0]->most_nonzeros(std::vector<double>{1, 4}), 1);
  EXPECT_EQ(sparsity.densities[1]->most_nonzeros(std::vector<double>{1, 4}), 4);
  ASSERT_EQ(sparsity.levels[0].formats[0].size(), 1U);
  EXPECT_EQ(sparsity.levels[0].formats[0][0].kind, FormatKind::run_length);
  ASSERT_EQ(sparsity.reads.size(), 1U);
  EXPECT_EQ(sparsity.reads[0].action, ZeroAction::gate);
  EXPECT_EQ(sparsity.levels[0].energy.metadata_read_pj, 40);
  EXPECT_EQ(sparsity.levels[1].energy.gated_read_pj, 0.1);
  EXPECT_EQ(sparsity.levels[2].energy.gated_compute_pj, 0.05);
}

// Of a dot product whose sum is read and written by every multiplication: where A is zero, neither happens.
TEST(TimeloopSparsity, a_sum_next_to_the_multipliers_is_skipped_word_by_word) {
  constexpr const char* dot_product = R"(
architecture:
  version: 0.4
  nodes:
  - !Component
    name: Buffer
    class: storage
    attributes: {depth: 64, width: 8, datawidth: 8, read_bandwidth: 4, write_bandwidth: 3, metadata_storage_width: 4,
                 metadata_datawidth: 4, metadata_storage_depth: 32}
    sparse_optimizations:
      representation_format: {data_spaces: [{name: A, ranks: [{format: CP}]}]}
      action_optimization:
      - {type: skipping, options: [{target: B, condition_on: [A]}]}
      - {type: skipping, options: [{target: Z, condition_on: [A]}]}
  - !Component {name: mac, class: intmac, attributes: {multiplier_width: 8, adder_width: 16}}
problem:
  version: 0.4
  shape:
    name: dot
    dimensions: [M, K]
    data_spaces:
    - {name: A, projection: [[[K]]]}
    - {name: B, projection: [[[K]]]}
    - {name: Z, projection: [[[M]]], read_write: true}
  instance: {M: 1, K: 16, densities: {A: {distribution: fixed_structured, density: 0.25}}}
mapping:
- {target: Buffer, type: datatype, keep: [A, B, Z], bypass: []}
- {target: Buffer, type: temporal, factors: K=16 M=1, permutation: KM}
)";
  const std::vector<TimeloopText> files = {{.source = "dot.yaml", .text = dot_product}};
  const AcceleratorInputs inputs = read_timeloop_texts(files);
  const SparsityDescription sparsity = timeloop_sparsity(inputs);
  EXPECT_EQ(sparsity.levels[0].metadata_word_bits, 4);
  EXPECT_EQ(sparsity.levels[0].metadata_access_bits, 4);
  Evaluation dense;
  const MappingEvaluator evaluator(*inputs.architecture, *inputs.problem, timeloop_rules);
  ASSERT_TRUE(evaluator.evaluate(*inputs.mapping, dense));
  const SparseEvaluation result =
      evaluate_sparse(*inputs.architecture, *inputs.problem, *inputs.mapping, dense, sparsity, sparseloop_rules);
  EXPECT_EQ(result.cycles, 4);
  EXPECT_EQ(result.traffic[1].reads.actual, 4);    // B
  EXPECT_EQ(result.traffic[2].updates.actual, 4);  // Z
  EXPECT_EQ(result.traffic[2].updates.skipped, 12);
}

TEST(TimeloopSparsity, is_dense_where_nothing_is_said) {
  const SparsityDescription sparsity = sparsity_of({chip_of_two_levels, sparse_matrix_product});
  EXPECT_TRUE(sparsity.reads.empty());
  EXPECT_TRUE(sparsity.levels[0].formats[0].empty());
}

TEST(TimeloopSparsity, complaints_say_the_line) {
  std::string slip = gated_buffer;
  slip.replace(slip.find("name: Buffer"), 12, "name: Bufer");
  try {
    sparsity_of({chip_of_two_levels, sparse_matrix_product, slip.c_str()});
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().line, 10);
    EXPECT_EQ(error.problem().suggestion, "Buffer");
  }
  EXPECT_THROW(sparsity_of({gated_buffer}), InputError);
}

}  // namespace foretoken::timeloop_sparsity_test
