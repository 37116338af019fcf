#include "training/flop_conventions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hardware/catalogue.h"
#include "model/step_test_models.h"
#include "training/decoder_sizes.h"
#include "training/runs/run_row.h"

namespace foretoken::flop_conventions_test {

// GPT-3 175B as arXiv 2104.04473 has it.
DecoderSizes gpt_sizes() {
  return {.name = "gpt",
          .layers = 96,
          .hidden = 12288,
          .heads = 96,
          .kv_heads = 96,
          .head_dim = 128,
          .ffn = 4 * 12288,
          .vocabulary = 51200,
          .positions = 2048,
          .gated = false,
          .learned_positions = true,
          .tied_embeddings = true,
          .biases = true,
          .layer_norm = true};
}

double per_token(std::string_view convention, const Model& model, const FlopQuestion& question) {
  return flop_convention_named(convention).per_token(token_flops(model, question));
}

TEST(FlopConventions, megatron_is_the_formula_of_its_paper) {
  const DecoderSizes sizes = gpt_sizes();
  const double s = 2048, h = 12288, layers = 96, vocabulary = 51200;
  const double paper = 96 * layers * h * h * (1 + s / (6 * h) + vocabulary / (16 * layers * h));
  EXPECT_NEAR(per_token("megatron", decoder_model(sizes), {.sequence_length = 2048}) / paper, 1, 1e-12);
}

TEST(FlopConventions, matmul_parameters_and_attention_give_the_textbook_forms) {
  const Model model = decoder_model(gpt_sizes());
  const double a = 96.0 * 12288 * 2048, p = 96.0 * 12 * 12288 * 12288 + 12288.0 * 51200;
  const FlopQuestion question{.sequence_length = 2048};
  EXPECT_NEAR(per_token("model-3x-full-attn", model, question) / (6 * p + 12 * a), 1, 1e-12);
  EXPECT_NEAR(per_token("model-3x-causal-half", model, question) / (6 * p + 6 * a), 1, 1e-12);
  EXPECT_NEAR(per_token("hw-4x-full-attn", model, question) / (8 * p + 16 * a), 1, 1e-12);
  EXPECT_NEAR(per_token("lora-2x-causal-half", model, question) / (4 * p + 6 * a), 1, 1e-12);
}

TEST(FlopConventions, only_the_experts_of_a_token_count) {
  DecoderSizes sizes = gpt_sizes();
  sizes.experts = 8;
  sizes.top_k = 2;
  sizes.expert_ffn = sizes.ffn;
  sizes.shared_ffn = sizes.ffn;
  const FlopQuestion question{.sequence_length = 2048};
  const double moe = token_flops(decoder_model(sizes), question).layers;
  const double dense = token_flops(decoder_model(gpt_sizes()), question).layers;
  const double mlp = 2 * 96.0 * 2 * 12288 * 4 * 12288, router = 2 * 96.0 * 12288 * 8;
  EXPECT_NEAR(moe / (dense + 2 * mlp + router), 1, 1e-12);
  sizes.dense_layers = 96;
  EXPECT_NEAR(token_flops(decoder_model(sizes), question).layers / dense, 1, 1e-12);
}

TEST(FlopConventions, a_window_is_seen_in_full_but_for_the_first_tokens) {
  DecoderSizes sizes = gpt_sizes();
  const FlopQuestion question{.sequence_length = 2048};
  const TokenFlops all = token_flops(decoder_model(sizes), question);
  sizes.window = 256;  // on every second layer
  const TokenFlops some = token_flops(decoder_model(sizes), question);
  EXPECT_NEAR(some.full_attention / all.full_attention, (1 + 256.0 / 2048) / 2, 1e-12);
  EXPECT_NEAR(some.causal_attention / all.causal_attention, (1 + (256 - 256.0 * 256 / 4096) / 1024) / 2, 1e-12);
  sizes.window = 4096;  // beyond the sequence
  EXPECT_NEAR(token_flops(decoder_model(sizes), question).causal_attention / all.causal_attention, 1, 1e-12);
}

TEST(FlopConventions, packed_sequences_attend_as_far_as_they_are_long) {
  const Model model = decoder_model(gpt_sizes());
  const TokenFlops whole = token_flops(model, {.sequence_length = 2048});
  const TokenFlops packed = token_flops(model, {.sequence_length = 2048, .attended_length = 512});
  EXPECT_NEAR(packed.full_attention / whole.full_attention, 0.25, 1e-12);
  EXPECT_NEAR(packed.causal_attention / whole.causal_attention, 0.25, 1e-12);
  EXPECT_EQ(packed.layers, whole.layers);
  EXPECT_LT(packed.executed, whole.executed);
}

TEST(FlopConventions, kernels_execute_what_the_model_needs_and_half_a_score_more) {
  const Model model = decoder_model(gpt_sizes());
  const TokenFlops plain = token_flops(model, {.sequence_length = 2048});
  // Forward and 2.5 forwards of attention; a causal mask leaves (s + 1)/2 keys.
  const double exact = plain.causal_attention * 2049 / 2048;
  EXPECT_NEAR(plain.executed / (3 * (plain.layers + plain.head) + 3.5 * exact), 1, 1e-9);
  const TokenFlops again = token_flops(model, {.sequence_length = 2048, .recomputed = 1});
  EXPECT_NEAR((again.executed - plain.executed) / (plain.layers + exact), 1, 1e-9);
  const TokenFlops half = token_flops(model, {.sequence_length = 2048, .recomputed = 0.5});
  EXPECT_NEAR((half.executed - plain.executed) / (again.executed - plain.executed), 0.5, 1e-9);
  const TokenFlops multiplies = token_flops(model, {.sequence_length = 2048, .recomputed_multiplies = 0.5});
  EXPECT_NEAR((multiplies.executed - plain.executed) / plain.layers, 0.5, 1e-9);
}

TEST(FlopConventions, modules_that_are_computed_again_are_executed_again) {
  const Model model = decoder_model(gpt_sizes());
  const auto executed = [&](const LayerModules& modules) {
    return token_flops(model, {.sequence_length = 2048, .recomputed_modules = modules}).executed;
  };
  const TokenFlops plain = token_flops(model, {.sequence_length = 2048});
  // Of 24 h^2 FLOPs of a layer, 16 h^2 are those of its MLP.
  EXPECT_NEAR((executed({LayerModule::mlp}) - plain.executed) / plain.layers, 2.0 / 3, 1e-9);
  EXPECT_EQ(executed({LayerModule::core_attn}), plain.executed) << "inside the backward pass of a flash kernel";
}

TEST(FlopConventions, frozen_weights_execute_about_two_thirds) {
  const Model model = decoder_model(gpt_sizes());
  const TokenFlops full = token_flops(model, {.sequence_length = 2048});
  const TokenFlops lora = token_flops(model, {.sequence_length = 2048, .lora = {.rank = 16, .on_mlp = false}});
  const double without = 2 * (full.layers + full.head) + 3.5 * full.causal_attention;
  EXPECT_GT(lora.executed, without);
  EXPECT_LT(lora.executed, 1.02 * without);
}

TEST(FlopConventions, a_draft_layer_brings_its_projection_and_the_head_again) {
  DecoderSizes sizes = gpt_sizes();
  const FlopQuestion question{.sequence_length = 2048};
  const TokenFlops plain = token_flops(decoder_model(sizes), question);
  sizes.draft_layers = 1;
  const TokenFlops drafted = token_flops(decoder_model(sizes), question);
  EXPECT_NEAR(drafted.head / plain.head, 2, 1e-12);
  EXPECT_NEAR(drafted.layers / (plain.layers * 97 / 96 + 2 * 2.0 * 12288 * 12288), 1, 1e-12);
}

TEST(FlopConventions, a_wrong_name_is_told_the_nearest) {
  try {
    flop_convention_named("model-3x-full");
    FAIL() << "not the name of a convention";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().suggestion, "model-3x-full-attn");
  }
}

TEST(FlopConventions, utilisation_states_its_peak) {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  const Model model = decoder_model(gpt_sizes());
  const TokenFlops flops = token_flops(model, {.sequence_length = 2048, .recomputed = 1});
  const FlopConvention& convention = flop_convention_named("model-3x-full-attn");
  const Device a100 = hardware.device("a100_sxm");
  const FlopUse use = flop_use(convention, flops, 100, a100, DType::fp8);
  EXPECT_EQ(use.peak_type, *a100.type_or_fallback(DType::fp8));  // an A100 has no fp8
  EXPECT_NE(use.peak_type, DType::fp8);
  EXPECT_EQ(use.convention, "model-3x-full-attn");
  EXPECT_NEAR(use.mfu, 100 * convention.per_token(flops) / use.peak.value(), 1e-12);
  EXPECT_GT(use.hfu, use.mfu);
}

// The convention that a published row says it counts in; null where it says nothing we know.
const FlopConvention* convention_of(const TrainingRow& row) {
  if (row.source == "mosaic-foundry") return &flop_convention_named("llm-foundry");
  if (row.source.starts_with("megatron-sc21")) return &flop_convention_named("megatron");
  return find_flop_convention(row.tflops_def);
}

// FLOP/s that a row reports over those that follow from its tokens per second.
double reported_over_counted(const TrainingRow& row, const FlopConvention& convention, double attended_length) {
  const TokenFlops flops = token_flops(model_of(row), {.sequence_length = row.seq, .attended_length = attended_length});
  return *row.tflops_per_gpu * 1e12 / (*row.tokens_per_s_per_gpu * convention.per_token(flops));
}

std::vector<TrainingRow> rows_with_both_rates(const char* data) {
  TrainingRowReader reader(std::filesystem::path(data) / "training" / "runs.csv.gz");
  std::vector<TrainingRow> rows;
  while (reader.next()) {
    TrainingRow row = reader.read();
    if (row.tokens_per_s_per_gpu && row.tflops_per_gpu) rows.push_back(std::move(row));
  }
  return rows;
}

TEST(FlopConventionsNeedsData, published_rates_follow_from_published_tokens) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  size_t agree = 0, other = 0;
  for (const TrainingRow& row : rows_with_both_rates(data)) {
    const FlopConvention* convention = convention_of(row);
    if (convention == nullptr) continue;
    const double ratio = reported_over_counted(row, *convention, 0);
    if (std::abs(ratio - 1) <= 0.02) {
      ++agree;
      continue;
    }
    ++other;
    // Megatron-Bridge counted 17% less for this model before its release 26.06; how is not published.
    EXPECT_EQ(row.model, "GPT OSS 120B") << row.id << " " << ratio;
  }
  EXPECT_GE(agree, 10 * other);
}

TEST(FlopConventionsNeedsData, fine_tuning_rates_are_those_of_short_packed_sequences) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  size_t rows = 0;
  for (const TrainingRow& row : rows_with_both_rates(data)) {
    if (!row.tflops_def.starts_with("source-defined")) continue;
    const FlopConvention& convention =
        flop_convention_named(row.task == "lora" ? "lora-2x-causal-half" : "model-3x-full-attn");
    EXPECT_LT(reported_over_counted(row, convention, 0), 1) << row.id;
    EXPECT_NEAR(reported_over_counted(row, convention, 256), 1, 0.02) << row.id;
    ++rows;
  }
  EXPECT_GT(rows, 0);
}

TEST(FlopConventions, dropped_tokens_are_not_executed_but_count_for_the_model) {
  const Model model = step_test::mixtral_like();
  const TokenFlops all = token_flops(model, {.sequence_length = 512});
  const TokenFlops half = token_flops(model, {.sequence_length = 512, .expert_share = 0.5});
  EXPECT_NEAR(half.layers, all.layers, 1e-9 * all.layers);
  EXPECT_LT(half.executed, 0.9 * all.executed);
  EXPECT_GT(half.executed, 0.5 * all.executed);
}

}  // namespace foretoken::flop_conventions_test
