#include "accelerator/sparse/sparse_evaluator.h"

#include <gtest/gtest.h>

#include "accelerator/sparse/arrival.h"

namespace foretoken::sparse_evaluator_test {

constexpr int dram = 0, buffer = 1;

// Z[16,8] += A[16,32] B[32,8] on one multiplier: a buffer holds half of the sum at a time.
struct SmallGemm {
  Problem problem = gemm_problem({.m = 16, .n = 8, .k = 32});
  Architecture architecture{
      .levels = {{.name = "DRAM", .words_per_access = 4, .energy = {.read_pj = 512, .fill_pj = 512, .update_pj = 512}},
                 {.name = "buffer",
                  .depth = 1024,
                  .bandwidth = {.read = 4, .write = 4},
                  .energy = {.read_pj = 2, .fill_pj = 2, .update_pj = 2, .leak_pj_per_cycle = 0.5}},
                 {.name = "MAC", .kind = LevelKind::compute, .energy = {.compute_pj = 1}}}};
  int a = find_tensor(problem, "A"), b = find_tensor(problem, "B"), z = find_tensor(problem, "Z");
  Mapping mapping;
  SparsityDescription sparsity = without_sparsity(architecture, problem);

  SmallGemm() {
    const int m = find_dimension(problem, "M"), n = find_dimension(problem, "N"), k = find_dimension(problem, "K");
    mapping = {.loops = {{.level = dram, .dimension = k, .bound = 2, .last = 2},
                         {.level = buffer, .dimension = m, .bound = 16, .last = 16},
                         {.level = buffer, .dimension = n, .bound = 8, .last = 8},
                         {.level = buffer, .dimension = k, .bound = 16, .last = 16}},
               .kept = {7, 7}};
    for (SparseLevel& level : sparsity.levels) {
      level.energy = {.gated_read_pj = 0.1,
                      .gated_write_pj = 0.1,
                      .metadata_read_pj = 0.3,
                      .metadata_write_pj = 0.3,
                      .decompress_pj = 0.01,
                      .compress_pj = 0.01,
                      .gated_compute_pj = 0.05};
    }
  }

  void set_uniform(int tensor, double density) {
    sparsity.densities[tensor] = make_uniform_density(density, tensor_words(problem.tensors[tensor], problem));
  }
  void read_b_where_a_is_nonzero(ZeroAction action, int level = buffer) {
    sparsity.reads.push_back({.action = action, .level = level, .options = {{.target = b, .on = {a}}}});
  }
  Evaluation dense() const {
    Evaluation result;
    const Architecture roomy = without_capacities(architecture);
    EXPECT_TRUE(MappingEvaluator(roomy, problem).evaluate(mapping, result));
    return result;
  }
  SparseEvaluation evaluate() const { return evaluate_sparse(architecture, problem, mapping, dense(), sparsity); }
  const SparseTraffic& at(const SparseEvaluation& result, int level, int tensor) const {
    return result.traffic[level * problem.tensors.size() + tensor];
  }
};

const std::vector<RankFormat> offsets_and_runs = {{.kind = FormatKind::offsets}, {.kind = FormatKind::run_length}};

TEST(SparseEvaluator, without_zeros_and_formats_everything_is_as_dense) {
  SmallGemm gemm;
  gemm.read_b_where_a_is_nonzero(ZeroAction::skip);
  gemm.sparsity.compute = ComputeOptimization::skip;
  const Evaluation dense = gemm.dense();
  const SparseEvaluation sparse = gemm.evaluate();
  EXPECT_EQ(sparse.cycles, dense.cycles);
  EXPECT_EQ(sparse.energy_pj, dense.energy_pj);
  EXPECT_EQ(sparse.operations.actual, dense.operations);
  for (size_t i = 0; i < dense.traffic.size(); ++i) {
    EXPECT_EQ(sparse.traffic[i].reads.actual, dense.traffic[i].reads);
    EXPECT_EQ(sparse.traffic[i].fills.actual, dense.traffic[i].fills);
    EXPECT_EQ(sparse.traffic[i].updates.actual, dense.traffic[i].updates);
    EXPECT_EQ(sparse.traffic[i].energy_pj, dense.traffic[i].energy_pj);
  }
}

TEST(SparseEvaluator, gating_saves_energy_and_no_time) {
  SmallGemm gemm;
  gemm.set_uniform(gemm.a, 0.25);
  gemm.read_b_where_a_is_nonzero(ZeroAction::gate);
  const Evaluation dense = gemm.dense();
  const SparseEvaluation sparse = gemm.evaluate();
  EXPECT_EQ(sparse.cycles, dense.cycles);
  EXPECT_LT(sparse.energy_pj, dense.energy_pj);
  EXPECT_EQ(sparse.operations.actual, dense.operations / 4);
  EXPECT_EQ(sparse.operations.gated, dense.operations * 3 / 4);
  const SparseTraffic& reads = gemm.at(sparse, buffer, gemm.b);
  EXPECT_EQ(reads.reads.actual, dense.operations / 4);
  EXPECT_EQ(reads.reads.gated, dense.operations * 3 / 4);
  EXPECT_EQ(reads.fills.gated, 0);
}

TEST(SparseEvaluator, skipping_saves_time_in_proportion) {
  SmallGemm gemm;
  gemm.set_uniform(gemm.a, 0.25);
  gemm.read_b_where_a_is_nonzero(ZeroAction::skip);
  const Evaluation dense = gemm.dense();
  const SparseEvaluation sparse = gemm.evaluate();
  EXPECT_EQ(sparse.compute_cycles, dense.compute_cycles / 4);
  EXPECT_EQ(sparse.operations.skipped, dense.operations * 3 / 4);
  EXPECT_EQ(sparse.operations.gated, 0);
}

TEST(SparseEvaluator, time_saved_ends_where_another_tensor_is_still_read_in_full) {
  SmallGemm gemm;
  gemm.set_uniform(gemm.a, 0.0625);
  gemm.read_b_where_a_is_nonzero(ZeroAction::skip);
  gemm.architecture.levels[buffer].bandwidth = {.read = 2};
  const SparseEvaluation sparse = gemm.evaluate();
  EXPECT_EQ(sparse.slowest_level, buffer);
  EXPECT_GT(sparse.cycles, sparse.compute_cycles);
}

TEST(SparseEvaluator, fewer_nonzeros_never_cost_more_and_skipping_is_never_slower_than_gating) {
  for (const bool compressed : {false, true}) {
    double gated_before = 0, skipped_before = 0;
    for (const double density : {0.0, 0.125, 0.25, 0.5, 0.75, 1.0}) {
      const auto evaluated = [&](ZeroAction action) {
        SmallGemm gemm;
        gemm.set_uniform(gemm.a, density);
        gemm.set_uniform(gemm.b, density);
        if (compressed) gemm.sparsity.levels[dram].formats[gemm.a] = offsets_and_runs;
        gemm.read_b_where_a_is_nonzero(action);
        return gemm.evaluate();
      };
      const SparseEvaluation gated = evaluated(ZeroAction::gate), skipped = evaluated(ZeroAction::skip);
      EXPECT_LE(skipped.cycles, gated.cycles) << density;
      EXPECT_LE(skipped.energy_pj, gated.energy_pj) << density;
      EXPECT_GE(gated.energy_pj, gated_before) << density;
      EXPECT_GE(skipped.energy_pj, skipped_before) << density;
      gated_before = gated.energy_pj;
      skipped_before = skipped.energy_pj;
    }
  }
}

TEST(SparseEvaluator, actions_on_all_words_of_a_tile_add_up) {
  SmallGemm gemm;
  gemm.set_uniform(gemm.a, 0.3);
  gemm.set_uniform(gemm.b, 0.6);
  gemm.sparsity.reads = {
      {.action = ZeroAction::gate, .level = buffer, .options = {{.target = gemm.a, .on = {gemm.b}}}},
      {.action = ZeroAction::skip, .level = buffer, .options = {{.target = gemm.b, .on = {gemm.a}}}}};
  gemm.sparsity.compute = ComputeOptimization::gate;
  const Evaluation dense = gemm.dense();
  const SparseEvaluation sparse = gemm.evaluate();
  for (size_t i = 0; i < dense.traffic.size(); ++i) {
    const SparseAccesses& reads = sparse.traffic[i].reads;
    EXPECT_EQ(reads.actual + reads.gated + reads.skipped, dense.traffic[i].reads);
  }
  const SparseAccesses& operations = sparse.operations;
  EXPECT_EQ(operations.actual + operations.gated + operations.skipped, dense.operations);
  EXPECT_NEAR(operations.actual / dense.operations, 0.3 * 0.6, 1e-3);
}

TEST(SparseEvaluator, two_of_four_pruning_with_skipping_halves_the_cycles) {
  SmallGemm gemm;
  gemm.architecture.levels[buffer].bandwidth = {};
  gemm.sparsity.densities[gemm.a] = make_structured_density(2, 4, 1);
  const std::vector<RankFormat> coordinates = {{.kind = FormatKind::uncompressed},
                                               {.kind = FormatKind::coordinates, .word_bits = 2}};
  gemm.sparsity.levels[dram].formats[gemm.a] = coordinates;
  gemm.sparsity.levels[buffer].formats[gemm.a] = coordinates;
  gemm.read_b_where_a_is_nonzero(ZeroAction::skip);
  const Evaluation dense = gemm.dense();
  const SparseEvaluation sparse = gemm.evaluate();
  EXPECT_EQ(sparse.cycles, dense.cycles / 2);
  const SparseTraffic& stored = gemm.at(sparse, buffer, gemm.a);
  EXPECT_EQ(stored.stored_words, stored.tile_words / 2);
  EXPECT_EQ(stored.most_words, stored.tile_words / 2);
  EXPECT_EQ(stored.metadata_bits, stored.tile_words / 2 * 2);
}

TEST(SparseEvaluator, zeros_seen_further_out_are_not_saved_again_further_in) {
  SmallGemm gemm;
  gemm.set_uniform(gemm.a, 0.25);
  gemm.read_b_where_a_is_nonzero(ZeroAction::skip, buffer);
  const double once = gemm.evaluate().operations.actual;
  gemm.read_b_where_a_is_nonzero(ZeroAction::skip, dram);
  EXPECT_EQ(gemm.evaluate().operations.actual, once);
}

TEST(SparseEvaluator, a_tile_that_is_not_read_is_not_filled_further_in) {
  SmallGemm gemm;
  gemm.set_uniform(gemm.a, 1.0 / 512);  // one nonzero: one of both halves of A is empty
  gemm.read_b_where_a_is_nonzero(ZeroAction::skip, dram);
  const SparseEvaluation sparse = gemm.evaluate();
  const SparseTraffic& filled = gemm.at(sparse, buffer, gemm.b);
  EXPECT_EQ(filled.fills.skipped, gemm.dense().traffic[buffer * 3 + gemm.b].fills / 2);
  EXPECT_EQ(gemm.at(sparse, dram, gemm.b).reads.skipped, filled.fills.skipped);
}

TEST(SparseEvaluator, of_several_options_the_one_that_saves_most_is_taken) {
  SmallGemm gemm;
  gemm.set_uniform(gemm.a, 0.5);
  gemm.set_uniform(gemm.b, 0.25);
  gemm.sparsity.reads = {{.action = ZeroAction::skip,
                          .level = buffer,
                          .options = {{.target = gemm.b, .on = {gemm.a}}, {.target = gemm.a, .on = {gemm.b}}}}};
  const SparseEvaluation sparse = gemm.evaluate();
  EXPECT_GT(gemm.at(sparse, buffer, gemm.a).reads.skipped, 0);
  EXPECT_EQ(gemm.at(sparse, buffer, gemm.b).reads.skipped, 0);
}

TEST(SparseEvaluator, multipliers_wait_where_two_streams_of_coordinates_do_not_meet) {
  SmallGemm gemm;
  gemm.set_uniform(gemm.a, 0.5);
  gemm.set_uniform(gemm.b, 0.5);
  gemm.sparsity.levels[buffer].formats[gemm.a] = {{.kind = FormatKind::coordinates}};
  const SparseEvaluation one = gemm.evaluate();
  EXPECT_EQ(one.operations.gated, 0);
  EXPECT_EQ(one.operations.skipped, gemm.dense().operations / 2);
  gemm.sparsity.levels[buffer].formats[gemm.b] = {{.kind = FormatKind::coordinates}};
  const SparseEvaluation both = gemm.evaluate();
  EXPECT_EQ(both.operations.gated, gemm.dense().operations * 3 / 4);
}

TEST(SparseEvaluator, a_tile_too_large_for_its_buffer_fits_when_it_is_compressed) {
  SmallGemm gemm;
  gemm.architecture.levels[buffer].depth = 400;  // of 256 + 128 + 128 words
  gemm.sparsity.densities[gemm.a] = make_even_density(0.25);
  EXPECT_FALSE(gemm.evaluate().levels[buffer].fits);
  gemm.sparsity.levels[buffer].formats[gemm.a] = {{.kind = FormatKind::bitmask}};
  EXPECT_TRUE(gemm.evaluate().levels[buffer].fits);
}

TEST(SparseEvaluator, what_comes_compressed_is_unpacked_once_a_word) {
  SmallGemm gemm;
  gemm.set_uniform(gemm.a, 0.5);
  gemm.sparsity.levels[dram].formats[gemm.a] = offsets_and_runs;
  gemm.sparsity.levels[dram].formats[gemm.z] = offsets_and_runs;
  const SparseEvaluation sparse = gemm.evaluate();
  const SparseTraffic& unpacked = gemm.at(sparse, buffer, gemm.a);
  EXPECT_EQ(unpacked.decompressions, unpacked.fills.actual);
  EXPECT_EQ(unpacked.compressions, 0);
  EXPECT_EQ(gemm.at(sparse, buffer, gemm.z).compressions, gemm.at(sparse, dram, gemm.z).updates.actual);
}

TEST(SparseEvaluator, wide_accesses_are_needed_if_one_of_their_words_is) {
  SmallGemm gemm;
  const auto density = make_uniform_density(0.25, 512);
  const double word = meets_nonzeros(gemm.problem, gemm.mapping, gemm.architecture, buffer, gemm.b, gemm.a, *density);
  gemm.architecture.levels[buffer].words_per_access = 4;
  const double access = meets_nonzeros(gemm.problem, gemm.mapping, gemm.architecture, buffer, gemm.b, gemm.a, *density);
  EXPECT_EQ(word, 0.25);
  EXPECT_EQ(access, 1 - density->empty_probability(std::vector<double>{1, 4}));
}

}  // namespace foretoken::sparse_evaluator_test
