#include "accelerator/workload/fusion.h"

#include <gtest/gtest.h>

#include "accelerator/workload/operator_problems.h"
#include "base/error.h"

namespace foretoken::fusion_test {

Architecture small_chip(int64_t buffer_words) {
  return {
      .name = "chip",
      .levels = {
          {.name = "DRAM", .energy = {.read_pj = 100, .fill_pj = 100, .update_pj = 100}},
          {.name = "buffer", .depth = buffer_words, .energy = {.read_pj = 2, .fill_pj = 2, .update_pj = 2}},
          {.name = "cell", .instances_x = 8, .depth = 16, .energy = {.read_pj = 0.1, .fill_pj = 0.1, .update_pj = 0.1}},
          {.name = "multiplier", .kind = LevelKind::compute, .instances_x = 8, .energy = {.compute_pj = 0.2}}}};
}

AcceleratorLayer conv_layer_of(const std::string& name, int64_t in, int64_t out, int64_t kernel, bool follows) {
  const ConvShape shape{.in_channels = in,
                        .out_channels = out,
                        .height = 32,
                        .width = 32,
                        .kernel_height = kernel,
                        .kernel_width = kernel,
                        .padding = kernel / 2};
  return {.name = name, .problem = operator_problems(shape).front().problem, .from_previous = follows};
}

const ConstraintsFor no_constraints = [](const Problem& /*problem*/) { return Constraints(); };

FusionOptions options() {
  return {.mapper = {.objective = {.first = MappingMetric::energy, .second = MappingMetric::delay}, .most_tries = 500},
          .level = 1,
          .most_layers = 3};
}

TEST(Fusion, what_passes_between_layers_stays_on_the_chip) {
  const std::vector<AcceleratorLayer> layers = {conv_layer_of("wide", 4, 32, 1, false),
                                                conv_layer_of("narrow", 32, 4, 3, true)};
  const FusionResult result = fuse_layers(small_chip(16'384), layers, no_constraints, options());
  ASSERT_EQ(result.groups.size(), 1u);
  const FusedGroup& group = result.groups.front();
  EXPECT_EQ(group.count, 2u);
  EXPECT_EQ(group.turns * static_cast<double>(group.rows), 32);
  EXPECT_LT(result.together.energy_pj, result.apart.energy_pj);
  // Apart, 32 channels go out and come back; together at least the inputs and outputs still pass.
  const double kept = 32.0 * 32 * 32;
  EXPECT_LE(result.together.outer_words, result.apart.outer_words - kept);
  EXPECT_EQ(result.together.operations, result.apart.operations);
}

TEST(Fusion, a_buffer_without_room_leaves_layers_apart) {
  const std::vector<AcceleratorLayer> layers = {conv_layer_of("wide", 4, 32, 1, false),
                                                conv_layer_of("narrow", 32, 4, 3, true)};
  const FusionResult result = fuse_layers(small_chip(512), layers, no_constraints, options());
  EXPECT_EQ(result.groups.size(), 2u);
  EXPECT_EQ(result.together.energy_pj, result.apart.energy_pj);
}

TEST(Fusion, is_never_worse_than_layers_alone_with_their_full_search) {
  const std::vector<AcceleratorLayer> layers = {conv_layer_of("wide", 4, 24, 1, false),
                                                conv_layer_of("between", 24, 24, 3, true),
                                                conv_layer_of("narrow", 24, 6, 1, true)};
  for (const MappingMetric metric : {MappingMetric::energy, MappingMetric::delay, MappingMetric::edp}) {
    FusionOptions few = options();
    few.mapper = {.objective = {.first = metric, .second = MappingMetric::energy}, .most_tries = 50};
    few.alone_tries = 2000;
    const FusionResult result = fuse_layers(small_chip(16'384), layers, no_constraints, few);
    MapperOptions full = few.mapper;
    full.most_tries = 2000;
    const NetworkTotals alone = map_network(small_chip(16'384), layers, no_constraints, full).totals;
    EXPECT_EQ(result.apart.energy_pj, alone.energy_pj);
    const auto value = [&](const NetworkTotals& totals) {
      return metric == MappingMetric::energy  ? totals.energy_pj
             : metric == MappingMetric::delay ? totals.cycles
                                              : totals.energy_pj * totals.cycles;
    };
    EXPECT_LE(value(result.together), value(alone));
  }
}

// 256 queries, 256 keys, heads of 16: scores are eight times as many as everything else.
std::vector<AcceleratorLayer> small_attention(int64_t heads) {
  const Operator attention{.name = "attention",
                           .shape = AttentionShape{.phase = AttentionPhase::encoder,
                                                   .heads = heads,
                                                   .kv_heads = heads,
                                                   .head_dim = 16,
                                                   .q_len = 256,
                                                   .kv_len = 256,
                                                   .causal = false}};
  return layers_to_fuse({&attention, 1});
}

TEST(Fusion, scores_of_attention_never_leave_the_chip) {
  for (const int64_t heads : {1, 6}) {
    const std::vector<AcceleratorLayer> layers = small_attention(heads);
    ASSERT_EQ(layers.size(), 2u);
    EXPECT_EQ(layers[0].name, "attention scores");
    const FusionResult result = fuse_layers(small_chip(16'384), layers, no_constraints, options());
    ASSERT_EQ(result.groups.size(), 1u) << heads;
    const FusedGroup& group = result.groups.front();
    EXPECT_EQ(group.heads, heads == 1 ? 0 : group.heads);
    const double parts = heads == 1 ? 1 : static_cast<double>(heads / group.heads);
    EXPECT_EQ(group.turns, parts * 256 / static_cast<double>(group.rows));
    // What is held at a time fits.
    EXPECT_LE(static_cast<double>(group.rows) * 256 * static_cast<double>(std::max<int64_t>(1, group.heads)), 16'384);
    // Queries, keys, values and results still pass; scores went out and came back.
    const double operands = static_cast<double>(heads) * 256 * 16;
    EXPECT_GE(result.together.outer_words, 4 * operands);
    EXPECT_LE(result.together.outer_words, result.apart.outer_words - 2.0 * static_cast<double>(heads) * 256 * 256);
    EXPECT_LT(result.together.energy_pj, result.apart.energy_pj);
    EXPECT_EQ(result.together.operations, result.apart.operations);
  }
}

TEST(Fusion, attention_without_room_for_one_query_stays_apart) {
  const FusionResult result = fuse_layers(small_chip(200), small_attention(2), no_constraints, options());
  EXPECT_EQ(result.groups.size(), 2u);
  EXPECT_EQ(result.together.energy_pj, result.apart.energy_pj);
}

TEST(Fusion, layers_that_do_not_follow_each_other_are_not_joined) {
  const std::vector<AcceleratorLayer> layers = {conv_layer_of("one", 4, 32, 1, false),
                                                conv_layer_of("other", 32, 4, 3, false)};
  EXPECT_EQ(fuse_layers(small_chip(16'384), layers, no_constraints, options()).groups.size(), 2u);
}

TEST(Fusion, a_layer_fed_by_one_with_other_channels_is_refused) {
  const std::vector<AcceleratorLayer> layers = {conv_layer_of("one", 4, 32, 1, false),
                                                conv_layer_of("other", 16, 4, 3, true)};
  try {
    fuse_layers(small_chip(16'384), layers, no_constraints, options());
    FAIL() << "channels differ";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("32 channels that one puts out"), std::string::npos) << error.what();
  }
}

TEST(NetworkMap, totals_are_the_sums_over_layers_for_any_number_of_threads) {
  std::vector<AcceleratorLayer> layers = {conv_layer_of("a", 4, 8, 3, false), conv_layer_of("b", 8, 4, 1, false),
                                          conv_layer_of("c", 4, 8, 3, false)};
  MapperOptions mapper = options().mapper;
  const NetworkMap one = map_network(small_chip(4096), layers, no_constraints, mapper);
  mapper.threads = 3;
  const NetworkMap three = map_network(small_chip(4096), layers, no_constraints, mapper);
  EXPECT_EQ(one.layers.size(), 2u);
  EXPECT_EQ(one.layers[0].layer.count, 2);
  EXPECT_EQ(one.totals.energy_pj, three.totals.energy_pj);
  double cycles = 0;
  for (const SearchedLayer& own : one.layers) cycles += own.layer.count * own.result.best->evaluation.cycles;
  EXPECT_EQ(one.totals.cycles, cycles);
}

}  // namespace foretoken::fusion_test
