#include "training/pipeline_layout.h"

#include <gtest/gtest.h>

#include <numeric>

namespace foretoken::pipeline_layout_test {

// Two kinds of layers, the first three of one and the rest of the other.
const std::vector<size_t> two_kinds = {0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1};

TEST(PipelineLayout, holds_every_layer_embedding_and_head_as_often_as_the_model) {
  for (const auto& [schedule, stages, virtual_stages] : std::vector<std::tuple<std::string, int64_t, int64_t>>{
           {"1f1b", 1, 1}, {"1f1b", 4, 1}, {"interleaved", 2, 3}, {"zb-v", 2, 2}, {"dualpipe", 4, 1}}) {
    for (const int64_t recompute_layers : {0, 1, 2}) {
      const TrainingPlan plan{.parallel = {.pipeline = stages},
                              .global_batch = 16,
                              .schedule = schedule,
                              .virtual_stages = virtual_stages,
                              .recompute = Recompute::full,
                              .recompute_layers = recompute_layers};
      const PipelineLayout layout = pipeline_layout(plan, two_kinds, 2);
      std::vector<double> layers(2, 0);
      int embeddings = 0, heads = 0;
      for (const size_t index : layout.mix_of_chunk) {
        const ChunkMix& mix = layout.mixes[index];
        for (size_t kind = 0; kind < 2; ++kind) layers[kind] += mix.recomputed[kind] + mix.spared[kind];
        embeddings += mix.embedding ? 1 : 0;
        heads += mix.head ? 1 : 0;
        const double recomputed = std::accumulate(mix.recomputed.begin(), mix.recomputed.end(), 0.0);
        const double spared = std::accumulate(mix.spared.begin(), mix.spared.end(), 0.0);
        EXPECT_TRUE(recompute_layers == 0 ? spared == 0 : recomputed <= static_cast<double>(recompute_layers));
      }
      EXPECT_EQ(layers, (std::vector<double>{3, 9})) << schedule;
      EXPECT_EQ(embeddings, 1) << schedule;
      EXPECT_EQ(heads, 1) << schedule;
      EXPECT_EQ(layout.stage_of.size(), layout.copies * layout.mix_of_chunk.size()) << schedule;
    }
  }
}

TEST(PipelineLayout, has_few_mixes_where_layers_are_alike) {
  const TrainingPlan plan{
      .parallel = {.pipeline = 4}, .global_batch = 16, .schedule = "interleaved", .virtual_stages = 3};
  EXPECT_EQ(pipeline_layout(plan, std::vector<size_t>(24, 0), 1).mixes.size(), 3U);  // first, inner, last
}

}  // namespace foretoken::pipeline_layout_test
