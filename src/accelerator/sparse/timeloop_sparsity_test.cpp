#include "accelerator/sparse/timeloop_sparsity.h"

#include <gtest/gtest.h>

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
