#include "accelerator/sparse/sparse_search.h"

#include <gtest/gtest.h>

#include "accelerator/sparse/description_file.h"
#include "accelerator/workload/network_map.h"
#include "base/error.h"

namespace foretoken::sparse_search_test {

Architecture small_array(int64_t buffer_words) {
  return {.name = "array",
          .levels = {{.name = "DRAM", .energy = {.read_pj = 64, .fill_pj = 64, .update_pj = 64}},
                     {.name = "buffer",
                      .depth = buffer_words,
                      .bandwidth = {.read = 8, .write = 8},
                      .energy = {.read_pj = 3, .fill_pj = 2, .update_pj = 2}},
                     {.name = "registers",
                      .instances_x = 4,
                      .instances_y = 4,
                      .depth = 16,
                      .energy = {.read_pj = 0.25, .fill_pj = 0.2, .update_pj = 0.2}},
                     {.name = "mac",
                      .kind = LevelKind::compute,
                      .instances_x = 4,
                      .instances_y = 4,
                      .energy = {.compute_pj = 0.2}}}};
}

// Nine of ten weights are zero; they are stored as coordinates, and what they meet is skipped.
Json pruned_weights() {
  return parse_json(R"({
    "densities": {"weights": {"distribution": "uniform", "density": 0.1}},
    "levels": {
      "DRAM": {"formats": {"weights": ["CP"]}, "energy_pj": {"metadata_read": 4}},
      "buffer": {"formats": {"weights": ["CP"]}, "energy_pj": {"metadata_read": 0.5, "metadata_write": 0.5},
                 "reads": [{"action": "skip", "target": "inputs", "on": ["weights"]}]}},
    "compute": "skip"})",
                    "test");
}

MapperOptions few_tries(MappingMetric first) {
  return {.objective = {.first = first, .second = MappingMetric::delay},
          .most_tries = 4'000,
          .remainders = Remainders::never};
}

// The best of the mappings that a dense search finds on its frontier, with zeros.
double best_of_dense_frontier(const Architecture& architecture, const Problem& problem, MapperOptions options,
                              const SparsityDescription& sparsity) {
  options.frontier = true;
  options.most_tries /= 2;
  const MapperResult dense = search_mappings(architecture, problem, {}, options);
  double best = 1e300;
  for (const FoundMapping& found : dense.frontier) {
    const SparseEvaluation sparse = evaluate_sparse(architecture, problem, found.mapping, found.evaluation, sparsity);
    best = std::min(best, metric_value(options.objective.first, sparse_costs(sparse, found.evaluation)));
  }
  return best;
}

TEST(SparseSearch, zeros_rank_the_mappings) {
  const Json file = pruned_weights();
  int better = 0;
  for (const int64_t n : {24, 48, 96}) {
    for (const MappingMetric metric : {MappingMetric::energy, MappingMetric::delay, MappingMetric::edp}) {
      const Architecture architecture = small_array(512);
      const Problem problem = gemm_problem({.m = 32, .n = n, .k = 64});
      const SparsityDescription sparsity = read_sparsity(JsonView(file, "test"), architecture, problem);
      const MapperOptions options = few_tries(metric);
      const MapperResult found = search_sparse_mappings(architecture, problem, {}, options, sparsity);
      ASSERT_TRUE(found.best.has_value());
      const double value = metric_value(metric, found.best->costs);
      const double before = best_of_dense_frontier(architecture, problem, options, sparsity);
      EXPECT_LE(value, before) << n << " " << metric_name(metric);
      better += value < 0.98 * before ? 1 : 0;
      EXPECT_EQ(found.bound, 0);
    }
  }
  EXPECT_GE(better, 3);  // otherwise ranking with zeros would be of no use
}

TEST(SparseSearch, what_it_promises_is_what_the_mapping_costs) {
  const Json file = pruned_weights();
  const Architecture architecture = small_array(512);
  const Problem problem = gemm_problem({.m = 32, .n = 48, .k = 64});
  const SparsityDescription sparsity = read_sparsity(JsonView(file, "test"), architecture, problem);
  const MapperResult found =
      search_sparse_mappings(architecture, problem, {}, few_tries(MappingMetric::energy), sparsity);
  const SparseEvaluation again =
      evaluate_sparse(architecture, problem, found.best->mapping, found.best->evaluation, sparsity);
  EXPECT_EQ(found.best->costs.energy_pj, again.energy_pj);
  EXPECT_EQ(found.best->costs.cycles, again.cycles);
  for (const SparseLevelUse& level : again.levels) EXPECT_TRUE(level.fits);
}

TEST(SparseSearch, tiles_that_fit_only_when_compressed_are_found) {
  const Json file = parse_json(R"({
    "densities": {"weights": {"distribution": "structured", "nonzeros": 1, "block": 8, "along": "reduced"}},
    "levels": {"DRAM": {"formats": {"weights": ["U", "CP"]}}, "buffer": {"formats": {"weights": ["U", "CP"]}}}})",
                               "test");
  const Architecture architecture = small_array(1200);
  const Problem problem = gemm_problem({.m = 32, .n = 48, .k = 64});
  const SparsityDescription sparsity = read_sparsity(JsonView(file, "test"), architecture, problem);
  // All of B, 3,072 words of which 384 are not zero, stays in the buffer.
  const auto once = [&](const char* name) -> FactorRule {
    return {.dimension = find_dimension(problem, name), .kind = FactorRule::Kind::exactly, .value = 1};
  };
  Constraints constraints;
  constraints.storage.push_back({.level = 1, .tensor = find_tensor(problem, "B"), .keep = true});
  constraints.loops.push_back({.level = 0, .factors = {once("K"), once("N")}});
  const MapperOptions options = few_tries(MappingMetric::energy);
  EXPECT_FALSE(search_mappings(architecture, problem, constraints, options).best.has_value());
  const MapperResult found = search_sparse_mappings(architecture, problem, constraints, options, sparsity);
  ASSERT_TRUE(found.best.has_value());
  EXPECT_EQ(traffic_at(found.best->evaluation, problem, 1, find_tensor(problem, "B")).tile_words, 3072);
}

TEST(SparseSearch, the_result_depends_on_no_threads) {
  const Json file = pruned_weights();
  const Architecture architecture = small_array(512);
  const Problem problem = gemm_problem({.m = 32, .n = 48, .k = 64});
  const SparsityDescription sparsity = read_sparsity(JsonView(file, "test"), architecture, problem);
  MapperOptions options = few_tries(MappingMetric::edp);
  const MapperResult one = search_sparse_mappings(architecture, problem, {}, options, sparsity);
  options.threads = 3;
  const MapperResult three = search_sparse_mappings(architecture, problem, {}, options, sparsity);
  EXPECT_EQ(one.best->costs.energy_pj, three.best->costs.energy_pj);
  EXPECT_EQ(one.tried, three.tried);
}

struct SmallNetwork {
  Architecture architecture = small_array(512);
  std::vector<AcceleratorLayer> layers = {
      {.name = "conv", .problem = convolution_problem({.in_channels = 8, .out_channels = 16, .out_width = 8})},
      {.name = "first", .problem = gemm_problem({.m = 8, .n = 32, .k = 32})},
      {.name = "second", .problem = gemm_problem({.m = 8, .n = 32, .k = 32}), .count = 3}};

  NetworkMap map(const Json& file) {
    const JsonView view(file, "test");
    for (AcceleratorLayer& layer : layers) {
      if (has_own_densities(view, layer.name)) layer.zeros = layer.name;
    }
    const NetworkZeros zeros{.of_layer = [&](const AcceleratorLayer& layer) {
      return read_layer_sparsity(view, architecture, layer.name, layer.problem);
    }};
    return map_network(
        architecture, layers, [](const Problem&) { return Constraints(); }, few_tries(MappingMetric::energy), zeros);
  }
};

TEST(SparseNetwork, layers_have_the_zeros_of_the_file_or_their_own) {
  SmallNetwork network;
  Json file = pruned_weights();
  EXPECT_EQ(network.map(file).layers.size(), 2u);  // both products are alike
  file.set("layers", parse_json(R"({"second": {"B": 1}})", "test"));
  const NetworkMap map = network.map(file);
  ASSERT_EQ(map.layers.size(), 3u);
  EXPECT_LT(map.layers[1].sparse->operations.actual, 0.2 * map.layers[1].result.best->evaluation.operations);
  EXPECT_EQ(map.layers[2].sparse->operations.actual, map.layers[2].result.best->evaluation.operations);
}

TEST(SparseNetwork, totals_add_up_with_zeros_and_without) {
  SmallNetwork network;
  const NetworkMap map = network.map(pruned_weights());
  double energy = 0, dense = 0;
  for (const SearchedLayer& own : map.layers) {
    energy += own.layer.count * own.sparse->energy_pj;
    dense += own.layer.count * own.result.best->evaluation.energy_pj;
  }
  EXPECT_DOUBLE_EQ(map.totals.energy_pj, energy);
  EXPECT_DOUBLE_EQ(map.dense.energy_pj, dense);
  EXPECT_LT(energy, dense);
}

TEST(SparseNetwork, names_that_no_layer_has_are_refused) {
  const SmallNetwork network;
  std::vector<NamedProblem> layers;
  for (const AcceleratorLayer& layer : network.layers) layers.push_back({layer.name, &layer.problem});
  const auto check = [&](const char* text) {
    const Json file = parse_json(text, "test");
    check_network_sparsity(JsonView(file, "test"), layers);
  };
  EXPECT_NO_THROW(check(R"({"densities": {"B": 0.5, "Weights": 0.5, "inputs": 0.5}, "layers": {"first": {"A": 0}}})"));
  EXPECT_THROW(check(R"({"densities": {"Weihgts": 0.5}})"), InputError);
  EXPECT_THROW(check(R"({"layers": {"frist": {"A": 0.5}}})"), InputError);
  EXPECT_THROW(check(R"({"levels": {"buffer": {"formats": {"C": ["CP"]}}}})"), InputError);
  const auto reads = [](const std::string& target, const std::string& on) {
    return R"({"levels": {"buffer": {"reads": [{"action": "skip", "target": ")" + target + R"(", "on": [")" + on +
           "\"]}]}}}";
  };
  EXPECT_NO_THROW(check(reads("weights", "inputs").c_str()));
  EXPECT_THROW(check(reads("wieghts", "inputs").c_str()), InputError);
  EXPECT_THROW(check(reads("weights", "inpust").c_str()), InputError);
}

}  // namespace foretoken::sparse_search_test
