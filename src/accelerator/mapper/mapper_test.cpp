#include "accelerator/mapper/mapper.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "accelerator/mapper/enumeration.h"
#include "accelerator/mapper/lower_bound.h"
#include "accelerator/mapping_text.h"
#include "accelerator/tile.h"
#include "accelerator/validate/loop_nest_cases.h"
#include "base/error.h"
#include "base/file.h"

namespace foretoken::mapper_test {

// Memory, buffer, x by y register files.
Architecture array_of(int64_t x, int64_t y, int64_t buffer_words, int64_t register_words) {
  return {.name = "array",
          .levels = {{.name = "dram", .energy = {.read_pj = 64, .fill_pj = 64, .update_pj = 64}},
                     {.name = "buffer", .depth = buffer_words, .energy = {.read_pj = 3, .fill_pj = 2, .update_pj = 2}},
                     {.name = "registers",
                      .instances_x = x,
                      .instances_y = y,
                      .depth = register_words,
                      .energy = {.read_pj = 0.25, .fill_pj = 0.2, .update_pj = 0.2}},
                     {.name = "mac",
                      .kind = LevelKind::compute,
                      .instances_x = x,
                      .instances_y = y,
                      .energy = {.compute_pj = 0.2}}}};
}

std::string text_of(const MapperResult& result, const Architecture& architecture, const Problem& problem) {
  return loop_nest_text(result.best->mapping, architecture, problem);
}

TEST(Mapper, the_result_depends_on_seed_and_tries_alone) {
  const Architecture architecture = array_of(8, 8, 4096, 32);
  const Problem problem = gemm_problem({.m = 96, .n = 130, .k = 77});
  MapperOptions options{.most_tries = 20'000};
  const MapperResult one = search_mappings(architecture, problem, {}, options);
  options.threads = 3;
  const MapperResult three = search_mappings(architecture, problem, {}, options);
  EXPECT_EQ(text_of(one, architecture, problem), text_of(three, architecture, problem));
  EXPECT_EQ(one.tried, three.tried);
  EXPECT_EQ(one.evaluations, three.evaluations);
  EXPECT_FALSE(one.out_of_time);
}

TEST(Mapper, looks_at_as_many_mappings_as_it_may) {
  const Architecture architecture = array_of(8, 8, 4096, 32);
  const Problem problem = gemm_problem({.m = 96, .n = 130, .k = 77});
  for (const int64_t tries : {100, 1'000, 4'321, 20'000}) {
    EXPECT_EQ(search_mappings(architecture, problem, {}, {.most_tries = tries}).tried, tries);
  }
  for (const int64_t tries : {1, 2, 17}) {
    EXPECT_LE(search_mappings(architecture, problem, {}, {.most_tries = tries}).tried, tries);
  }
}

TEST(Mapper, begins_with_mappings_that_are_given) {
  const Architecture architecture = array_of(8, 8, 4096, 32);
  const Problem problem = gemm_problem({.m = 96, .n = 130, .k = 77});
  Constraints constraints;
  constraints.loops.push_back({.level = 1, .permutation = {find_dimension(problem, "K")}});
  const MapperResult good = search_mappings(architecture, problem, constraints, {.most_tries = 20'000});
  const MappingSpace space(architecture, problem, constraints, Remainders::where_divisors_are_few);
  Mapping again;
  space.write_mapping(space.point_of(good.best->mapping), problem, again);
  EXPECT_EQ(loop_nest_text(again, architecture, problem), text_of(good, architecture, problem));
  const MapperResult few = search_mappings(architecture, problem, constraints,
                                           {.most_tries = 50, .seed = 7, .starts = {good.best->mapping}});
  EXPECT_LE(few.best->costs.energy_pj * few.best->costs.cycles, good.best->costs.energy_pj * good.best->costs.cycles);
  EXPECT_EQ(few.tried, 50);
}

TEST(Mapper, what_it_finds_is_sound_and_above_the_bound) {
  RandomStream random(3, "mapper test");
  const auto between = [&](uint64_t least, uint64_t most) {
    return static_cast<int64_t>(least + random.below(most - least + 1));
  };
  for (int i = 0; i < 40; ++i) {
    const Architecture architecture = array_of(between(1, 8), between(1, 8), between(16, 2000), between(3, 40));
    const Problem problem = i % 2 == 0 ? gemm_problem({.m = between(1, 60), .n = between(1, 60), .k = between(1, 60)})
                                       : convolution_problem({.in_channels = between(1, 8),
                                                              .out_channels = between(1, 8),
                                                              .out_width = between(1, 12),
                                                              .out_height = between(1, 12),
                                                              .kernel_width = between(1, 3),
                                                              .kernel_height = between(1, 3),
                                                              .stride_width = between(1, 2)});
    MapperOptions options{.objective = objective_named(i % 3 == 0   ? "delay,energy"
                                                       : i % 3 == 1 ? "energy"
                                                                    : "edp"),
                          .most_tries = 4000,
                          .remainders = i % 4 == 0 ? Remainders::always : Remainders::where_divisors_are_few,
                          .rules = {.idle_parts_leak = i % 5 == 0}};
    const MapperResult result = search_mappings(architecture, problem, {}, options);
    ASSERT_TRUE(result.best) << result.reason;
    EXPECT_EQ(mapping_faults(result.best->mapping, architecture, problem), std::vector<std::string>{});
    const double value = metric_value(options.objective.first, result.best->costs);
    EXPECT_LE(result.bound, value * (1 + 1e-12));
    EXPECT_GE(result.gap, 0);
  }
}

// Positions 2 p + 2 r take every other place of the box, 2 p + 3 r leave out its second and its last but one.
TEST(Mapper, windows_with_holes_stay_above_the_bound) {
  for (const auto& [stride, dilation, words] : {std::array{2, 2, 6}, std::array{2, 3, 11}, std::array{1, 3, 10}}) {
    EXPECT_EQ(distinct_sums({.coefficient = static_cast<double>(stride), .size = 4},
                            {.coefficient = static_cast<double>(dilation), .size = 3}),
              words);
    const Problem problem = convolution_problem({.in_channels = 2,
                                                 .out_channels = 2,
                                                 .out_width = 4,
                                                 .out_height = 4,
                                                 .kernel_width = 3,
                                                 .kernel_height = 3,
                                                 .stride_width = stride,
                                                 .stride_height = stride,
                                                 .dilation_width = dilation,
                                                 .dilation_height = dilation});
    // Every position of windows in both directions at once: each word of the inputs is read once.
    const double least = 2 * words * words + 2 * 2 * 9 + 2 * 16;
    Architecture architecture = array_of(12, 12, 0, 32);
    architecture.levels.erase(architecture.levels.begin() + 1);
    architecture.levels.front().bandwidth.shared = 0.125;
    const MappingSpace space(architecture, problem, {}, Remainders::never);
    EXPECT_EQ(lower_bound(architecture, problem, space, {}).cycles, least / 0.125);
    for (const char* objective : {"delay", "energy"}) {
      const MapperOptions options{.objective = objective_named(objective), .most_tries = 4000};
      const MapperResult result = search_mappings(architecture, problem, {}, options);
      ASSERT_TRUE(result.best) << result.reason;
      EXPECT_LE(result.bound, metric_value(options.objective.first, result.best->costs) * (1 + 1e-12));
    }
  }
}

TEST(Mapper, annealing_finds_the_optimum_of_spaces_that_can_be_enumerated) {
  const Architecture architecture = array_of(4, 2, 96, 6);
  Constraints constraints;  // what registers keep is free
  for (int t = 0; t < 3; ++t) constraints.storage.push_back({.level = 1, .tensor = t});
  for (const auto& [m, n, k] : {std::array{8, 3, 4}, std::array{4, 6, 2}, std::array{16, 2, 3}}) {
    const Problem problem = gemm_problem({.m = m, .n = n, .k = k});
    MapperOptions options{.most_tries = 30'000, .remainders = Remainders::never};
    const MapperResult annealed = search_mappings(architecture, problem, constraints, options);
    ASSERT_FALSE(annealed.exhausted);
    options.most_tries = 2'000'000;
    const MapperResult all = search_mappings(architecture, problem, constraints, options);
    ASSERT_TRUE(all.exhausted);
    EXPECT_EQ(all.gap, 0);
    EXPECT_EQ(annealed.best->evaluation.energy_pj * annealed.best->evaluation.cycles,
              all.best->evaluation.energy_pj * all.best->evaluation.cycles);
  }
}

TEST(Mapper, orders_left_out_are_no_better) {
  const Architecture architecture = array_of(2, 1, 0, 0);
  const Problem problem = convolution_problem(
      {.in_channels = 2, .out_channels = 3, .out_width = 6, .out_height = 1, .kernel_width = 3, .stride_width = 1});
  const MappingSpace space(architecture, problem, {}, Remainders::never);
  const MappingEvaluator evaluator(architecture, problem);
  Mapping mapping;
  Evaluation evaluation;
  const auto energy = [&](const MappingPoint& point) {
    space.write_mapping(point, problem, mapping);
    EXPECT_TRUE(evaluator.evaluate(mapping, evaluation));
    return evaluation.energy_pj;
  };
  MappingPoint point = space.outermost();
  uint32_t active = 0;
  std::vector<int> order;
  for (int d = 0; d < space.dimensions; ++d) {
    order.push_back(d);
    if (space.size[d] > 1) active |= 1U << d;
  }
  double best_of_all = INFINITY, best_of_distinct = INFINITY;
  do {
    std::ranges::copy(order, point.order.begin());
    best_of_all = std::min(best_of_all, energy(point));
  } while (std::ranges::next_permutation(order).found);
  const auto distinct = distinct_orders(space, active, {});
  EXPECT_LT(distinct.size(), 13U);
  for (std::vector<int> own : distinct) {
    for (int d = 0; d < space.dimensions; ++d) {
      if (std::ranges::find(own, d) == own.end()) own.push_back(d);
    }
    std::ranges::copy(own, point.order.begin());
    best_of_distinct = std::min(best_of_distinct, energy(point));
  }
  EXPECT_EQ(best_of_distinct, best_of_all);
}

TEST(Mapper, obeys_constraints) {
  const Architecture architecture = array_of(8, 4, 2048, 32);
  const Problem problem = gemm_problem({.m = 64, .n = 48, .k = 100});
  const int m = find_dimension(problem, "M"), n = find_dimension(problem, "N"), k = find_dimension(problem, "K");
  const auto exactly = [](int dimension, int64_t value) { return FactorRule{.dimension = dimension, .value = value}; };
  const Constraints constraints{
      .loops = {{.level = 1, .spatial = true, .factors = {exactly(m, 8), exactly(k, 1)}, .least_utilization = 0.5},
                {.level = 1,
                 .factors = {{.dimension = n, .kind = FactorRule::Kind::at_most, .value = 3}},
                 .permutation = {k, n}},
                {.level = 2, .factors = {exactly(k, 5), exactly(m, 1)}},
                {.level = 0, .factors = {{.dimension = m, .kind = FactorRule::Kind::remaining}}}},
      .storage = {{.level = 1, .tensor = find_tensor(problem, "B"), .keep = false},
                  {.level = 2, .tensor = find_tensor(problem, "Z")}}};
  const MapperResult result = search_mappings(architecture, problem, constraints, {.most_tries = 20'000});
  ASSERT_TRUE(result.best) << result.reason;
  double spread = 1;
  int64_t m_outside = 1, m_spread = 1, k_inside = 1;
  std::vector<int> buffer_order;  // outermost first
  for (const Loop& loop : result.best->mapping.loops) {
    if (is_spatial(loop)) {
      spread *= static_cast<double>(loop.bound);
      EXPECT_NE(loop.dimension, k);
      if (loop.dimension == m) m_spread *= loop.bound;
      continue;
    }
    if (loop.level == 1) {
      buffer_order.push_back(loop.dimension);
      if (loop.dimension == n) {
        EXPECT_LE(loop.bound, 3);
      }
      EXPECT_NE(loop.dimension, m);
    }
    if (loop.level == 2 && loop.dimension == k) k_inside *= loop.bound;
    if (loop.level == 0 && loop.dimension == m) m_outside *= loop.bound;
  }
  EXPECT_EQ(m_spread, 8);
  EXPECT_EQ(m_outside, 8);
  EXPECT_EQ(k_inside, 5);
  EXPECT_GE(spread, 16);
  if (buffer_order.size() == 2) {
    EXPECT_EQ(buffer_order.back(), k);
  }
  EXPECT_EQ(result.best->mapping.kept[1] >> find_tensor(problem, "B") & 1, 0U);
  EXPECT_EQ(result.best->mapping.kept[2] >> find_tensor(problem, "Z") & 1, 1U);
}

TEST(Mapper, contradictions_are_refused) {
  const Problem problem = gemm_problem({.m = 64, .n = 64, .k = 64});
  const Constraints constraints{.loops = {{.level = 1, .spatial = true, .factors = {{.dimension = 0, .value = 9}}}}};
  EXPECT_THROW(search_mappings(array_of(2, 2, 64, 8), problem, constraints, {}), InputError);
}

TEST(Mapper, says_why_nothing_fits) {
  const Problem problem = gemm_problem({.m = 8, .n = 8, .k = 8});
  Architecture architecture = array_of(2, 2, 64, 8);
  architecture.levels[0].depth = 100;  // of 192 words that come from there
  const MapperResult result = search_mappings(architecture, problem, {}, {.most_tries = 1000});
  EXPECT_FALSE(result.best);
  EXPECT_NE(result.reason.find("the tiles at dram need 192 words"), std::string::npos) << result.reason;
}

TEST(Mapper, the_frontier_holds_the_best_of_both_and_nothing_worse) {
  Architecture architecture = array_of(8, 8, 4096, 32);
  architecture.levels[1].bandwidth = {.read = 16, .write = 16};
  const Problem problem = gemm_problem({.m = 64, .n = 96, .k = 128});
  const MapperResult result = search_mappings(architecture, problem, {}, {.most_tries = 30'000, .frontier = true});
  ASSERT_GE(result.frontier.size(), 1U);
  for (size_t i = 1; i < result.frontier.size(); ++i) {
    EXPECT_GT(result.frontier[i].evaluation.cycles, result.frontier[i - 1].evaluation.cycles);
    EXPECT_LT(result.frontier[i].evaluation.energy_pj, result.frontier[i - 1].evaluation.energy_pj);
  }
  for (const FoundMapping& own : result.frontier) {
    EXPECT_GE(own.evaluation.energy_pj * own.evaluation.cycles,
              result.best->evaluation.energy_pj * result.best->evaluation.cycles);
  }
}

TEST(Mapper, a_huge_product_ends_with_its_gap) {
  const int64_t side = int64_t{1} << 20;
  const Problem problem = gemm_problem({.m = side, .n = side, .k = side});
  const MapperResult result = search_mappings(array_of(128, 128, 1 << 20, 64), problem, {}, {.most_tries = 20'000});
  ASSERT_TRUE(result.best) << result.reason;
  EXPECT_GT(result.log2_points, 40);
  EXPECT_EQ(result.best->evaluation.compute_cycles, std::ldexp(1, 46));
  EXPECT_GT(result.gap, 0);
  EXPECT_LT(result.gap, 1);
}

TEST(Mapper, ten_dimensions_end_with_their_gap) {
  Problem problem{.name = "einsum"};
  for (int d = 0; d < 10; ++d) problem.dimensions.push_back({.name = fmt::format("{:c}", 'a' + d), .size = 12 + d});
  const auto tensor = [&](std::string name, std::string_view indices, bool written) {
    ProblemTensor own{.name = std::move(name), .ranks = {}, .written = written};
    for (const char index : indices) own.ranks.push_back({{.dimension = index - 'a'}});
    problem.tensors.push_back(own);
  };
  tensor("U", "abcdef", false);
  tensor("V", "efghij", false);
  tensor("W", "abcdghij", true);
  const Architecture architecture = array_of(16, 16, 1 << 16, 64);
  const MapperResult result = search_mappings(architecture, problem, {}, {.most_tries = 20'000});
  ASSERT_TRUE(result.best) << result.reason;
  EXPECT_GT(result.log2_points, 40);
  EXPECT_EQ(mapping_faults(result.best->mapping, architecture, problem), std::vector<std::string>{});
  EXPECT_LT(result.gap, 1);
}

TEST(Mapper, a_time_limit_ends_an_endless_search_with_the_best_so_far) {
  const Problem problem = gemm_problem({.m = 4096, .n = 4096, .k = 4096});
  int reports = 0;
  const MapperOptions options{.most_tries = int64_t{1} << 50,
                              .time_limit_seconds = 0.05,
                              .progress = [&](const MapperProgress& own) { reports += own.tried > 0 ? 1 : 0; }};
  const MapperResult result = search_mappings(array_of(16, 16, 1 << 16, 64), problem, {}, options);
  EXPECT_TRUE(result.out_of_time);
  EXPECT_TRUE(result.best);
  EXPECT_FALSE(result.exhausted);
  EXPECT_GE(reports, 1);
}

TEST(MappingObjective, is_named_by_one_metric_or_two) {
  EXPECT_EQ(objective_named("delay").second, MappingMetric::energy);
  EXPECT_EQ(objective_named("energy").second, MappingMetric::delay);
  EXPECT_EQ(objective_named("edp,latency").second, MappingMetric::latency);
  for (const char* text : {"", "speed", "delay,", "delay,energy,edp"}) {
    EXPECT_THROW(objective_named(text), InputError) << text;
  }
}

// The published designs and what others reached on them.
class PublishedDesignsNeedsData : public testing::Test {
 protected:
  static std::vector<LoopNestCase> cases(const char* file) {
    const char* folder = std::getenv("FORETOKEN_DATA");
    if (folder == nullptr) return {};
    const auto path = std::filesystem::path(folder) / "accelerator" / file;
    const Json document = read_json_file(path);
    return read_loop_nest_cases(JsonView(document, path.string()));
  }

  static Constraints keeps_of(const LoopNestCase& own) {
    Constraints constraints;
    for (int i = 0; i < std::ssize(own.mapping.kept); ++i) {
      if (own.architecture.levels[i].kind != LevelKind::storage) continue;
      for (int t = 0; t < std::ssize(own.problem.tensors); ++t) {
        constraints.storage.push_back({.level = i, .tensor = t, .keep = (own.mapping.kept[i] >> t & 1) != 0});
      }
    }
    return constraints;
  }

  static Evaluation best(const Architecture& architecture, const Problem& problem, const Constraints& constraints,
                         std::string_view objective) {
    const MapperResult result = search_mappings(architecture, problem, constraints,
                                                {.objective = objective_named(objective), .rules = timeloop_rules});
    EXPECT_TRUE(result.best) << result.reason;
    return result.best ? result.best->evaluation : Evaluation{};
  }
};

TEST_F(PublishedDesignsNeedsData, conv1_needs_less_than_the_mapping_by_hand) {
  const auto all = cases("conv1_eyeriss_cases.json");
  if (all.empty()) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const LoopNestCase& own = all.front();
  EXPECT_LE(best(own.architecture, own.problem, keeps_of(own), "energy").energy_pj, 282.8e6);
  const Evaluation fast = best(own.architecture, own.problem, keeps_of(own), "delay,energy");
  EXPECT_EQ(fast.cycles, 702464);
  EXPECT_LE(fast.energy_pj, 349.8e6);
}

TEST_F(PublishedDesignsNeedsData, products_need_less_than_the_mapping_by_hand) {
  const auto all = cases("own_cases.json");
  if (all.empty()) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  for (const LoopNestCase& own : all) {
    if (own.id != "h_bert_os") continue;
    const Evaluation bert = best(own.architecture, own.problem, {}, "edp");
    EXPECT_LE(bert.energy_pj * 1e-12 * bert.cycles, 745);
    Problem llama = own.problem;
    llama.dimensions = {{.name = "M", .size = 512}, {.name = "N", .size = 4096}, {.name = "K", .size = 4096}};
    const Evaluation product = best(own.architecture, llama, {}, "edp");
    EXPECT_LE(product.energy_pj * 1e-12 * product.cycles, 5.84e5);
  }
}

}  // namespace foretoken::mapper_test
