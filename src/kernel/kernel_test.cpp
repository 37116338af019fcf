#include "kernel/kernel.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "kernel/calibration.h"
#include "kernel/forms/call.h"
#include "kernel/roofline.h"
#include "kernel/test_support.h"

namespace foretoken::kernel_test {

using namespace test_support;

class KernelPredictorTest : public TestWithFolder {
 protected:
  KernelPredictorTest() {
    for (const FormKind& kind : form_kinds()) write(start_calibration(kind));
  }
  void write(const FormCalibration& calibration) const {
    write_file(form_calibration_path(folder, calibration.form), calibration_json(calibration));
  }
  KernelPredictor predictor(const char* name, Tier tier = Tier::best) const {
    const Device device = hardware().device(name);
    return KernelPredictor(device, {}, std::make_shared<LearnedKernels>(device, folder), tier);
  }
};

TEST_F(KernelPredictorTest, the_best_tier_answers_and_says_which_it_is) {
  const KernelShape shape = NormShape{.rows = 64, .width = 4096};
  EXPECT_EQ(predictor("h100_sxm").estimate(shape).tier, Tier::cross);
  EXPECT_EQ(predictor("h100_sxm", Tier::cross).estimate(shape).tier, Tier::cross);
  EXPECT_EQ(predictor("h100_sxm", Tier::roofline).estimate(shape).tier, Tier::roofline);
  // Nothing was measured here: what is left is the roofline.
  const KernelEstimate fallback = predictor("h100_sxm", Tier::measured).estimate(shape);
  EXPECT_EQ(fallback.tier, Tier::roofline);
  EXPECT_EQ(fallback.seconds.kind, Confidence::roofline);
  EXPECT_EQ(KernelPredictor(hardware().device("h100_sxm")).estimate(shape).tier, Tier::roofline);
}

TEST_F(KernelPredictorTest, one_that_remembers_answers_the_same_to_the_bit) {
  const KernelPredictor plain = predictor("h100_sxm"), remembering = plain.remembering();
  const KernelShape shapes[] = {
      GemmShape{.m = 64, .n = 4096, .k = 4096}, GemmShape{.m = 64, .n = 4096, .k = 4096, .scheme = Scheme::fp8},
      MoeShape{.tokens = 64, .hidden = 4096, .inter = 1024, .top_k = 2, .experts = 8},
      NormShape{.rows = 64, .width = 4096}, NormShape{.rows = 64, .width = 4096, .adds_residual = true}};
  for (int round = 0; round < 2; ++round) {
    for (const KernelShape& shape : shapes) {
      for (const std::string_view variant : {"", "eager"}) {
        const KernelEstimate a = plain.estimate(shape, variant), b = remembering.estimate(shape, variant);
        EXPECT_EQ(a.seconds.value, b.seconds.value);
        EXPECT_EQ(a.seconds.low, b.seconds.low);
        EXPECT_EQ(a.seconds.high, b.seconds.high);
        EXPECT_EQ(a.work.flops, b.work.flops);
        EXPECT_EQ(a.tier, b.tier);
      }
    }
  }
}

TEST_F(KernelPredictorTest, what_was_remembered_is_of_the_same_call) {
  const KernelPredictor remembering = predictor("h100_sxm").remembering();
  const KernelEstimate small = remembering.estimate(NormShape{.rows = 64, .width = 4096});
  EXPECT_GT(remembering.estimate(NormShape{.rows = 65536, .width = 4096}).seconds.value, small.seconds.value);
  EXPECT_GT(remembering.estimate(NormShape{.rows = 64, .width = 4096, .dtype = DType::fp32}).memory, small.memory);
  for (int64_t rows = 1; rows <= 20000; ++rows) remembering.estimate(NormShape{.rows = rows, .width = 64});  // too many
  EXPECT_EQ(remembering.estimate(NormShape{.rows = 64, .width = 4096}).seconds.value, small.seconds.value);
}

TEST_F(KernelPredictorTest, devices_without_the_facts_and_kernels_without_a_form_fall_back_to_the_roofline) {
  const KernelShape norm = NormShape{.rows = 64, .width = 4096};
  for (const char* name : {"tpu_v5e", "xeon_8480", "gaudi2"}) {
    const KernelEstimate estimate = predictor(name).estimate(norm);
    EXPECT_EQ(estimate.tier, Tier::roofline) << name;
    EXPECT_EQ(estimate.seconds.value, std::max(estimate.compute, estimate.memory).value());
  }
  const KernelEstimate pool = predictor("h100_sxm").estimate(PoolShape{.batch = 8, .height = 64, .width = 64});
  EXPECT_EQ(pool.tier, Tier::roofline);
  const KernelShape backward = NormShape{.rows = 4096, .width = 4096, .pass = Pass::backward};
  EXPECT_EQ(predictor("h100_sxm").estimate(backward).tier, Tier::roofline);
}

TEST_F(KernelPredictorTest, nvfp4_weights_are_weight_only_where_nothing_multiplies_in_fp4) {
  for (const bool experts : {false, true}) {
    const auto shape = [&](Scheme scheme) -> KernelShape {
      if (experts)
        return MoeShape{.tokens = 64, .hidden = 4096, .inter = 1024, .top_k = 2, .experts = 8, .scheme = scheme};
      return GemmShape{.m = 64, .n = 4096, .k = 4096, .scheme = scheme};
    };
    const KernelPredictor hopper = predictor("h100_sxm"), blackwell = predictor("b200_sxm");
    EXPECT_EQ(hopper.estimate(shape(Scheme::nvfp4)).seconds.value,
              hopper.estimate(shape(Scheme::int4_wo)).seconds.value);
    EXPECT_NE(blackwell.estimate(shape(Scheme::nvfp4)).seconds.value,
              blackwell.estimate(shape(Scheme::int4_wo)).seconds.value);
  }
}

TEST_F(KernelPredictorTest, a_batch_gives_the_bits_of_single_calls) {
  const KernelPredictor predict = predictor("h100_sxm");
  RandomStream random(5, "batch");
  std::vector<KernelShape> shapes;
  std::vector<std::string_view> variants;
  for (const FormKind& kind : form_kinds()) {
    for (int i = 0; i < 20; ++i) {
      shapes.push_back(random_call(kind, random).shape);
      variants.push_back(tried_attention_variants[random.below(std::size(tried_attention_variants))]);
    }
  }
  std::vector<KernelEstimate> named(shapes.size()), unnamed(shapes.size());
  predict.estimate_batch(shapes, variants, named);
  predict.estimate_batch(shapes, {}, unnamed);
  const KernelPredictor again = predictor("h100_sxm");  // nothing remembered
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Estimate single = again.estimate(shapes[i], variants[i]).seconds;
    EXPECT_EQ(named[i].seconds.value, single.value) << family_name(shapes[i]);
    EXPECT_EQ(named[i].seconds.low, single.low) << family_name(shapes[i]);
    EXPECT_EQ(named[i].seconds.high, single.high) << family_name(shapes[i]);
    EXPECT_EQ(unnamed[i].seconds.value, again.estimate(shapes[i]).seconds.value) << family_name(shapes[i]);
  }
  EXPECT_THROW(predict.estimate_batch(shapes, {}, std::span(named).first(1)), InternalError);
}

TEST_F(KernelPredictorTest, every_answer_is_positive_and_inside_its_interval_on_every_device) {
  RandomStream random(1, "answers");
  for (const std::string& name : hardware().device_names()) {
    const KernelPredictor predict = predictor(name.c_str());
    for (const KernelFamily& family : kernel_families()) {
      for (int i = 0; i < 4; ++i) {
        const KernelShape shape = random_shape(family, random);
        KernelEstimate estimate;
        try {
          estimate = predict.estimate(shape);
        } catch (const InputError& error) {
          ASSERT_EQ(error.problem().path, "peak FLOP/s") << name << " " << family.name;  // a dtype it lacks
          continue;
        }
        if (estimate.work.bytes().value() == 0) continue;  // nothing to do: no inputs, no outputs
        ASSERT_TRUE(std::isfinite(estimate.seconds.value) && estimate.seconds.value > 0) << name << " " << family.name;
        ASSERT_LE(estimate.seconds.low, estimate.seconds.value);
        ASSERT_GE(estimate.seconds.high, estimate.seconds.value);
      }
    }
  }
}

TEST_F(KernelPredictorTest, a_learned_time_never_beats_the_multiply_units_nor_dram_beyond_the_cache) {
  // A calibration gone mad: everything a hundred times too fast.
  for (const FormKind& kind : form_kinds()) {
    FormCalibration calibration = start_calibration(kind);
    calibration.residual = constant_trees(kind.make(Caches::benchmark)->feature_count(), -0.6F);
    for (auto& [name, offsets] : calibration.effects) {
      const std::unique_ptr<Form> form = kind.make(Caches::benchmark);
      for (size_t k = 0; k < offsets.size(); ++k) {
        const bool more_is_slower =
            form->constants()[k].name != "row_rate" && form->constants()[k].name != "cache_rate";
        offsets[k] = std::log(more_is_slower ? form->constants()[k].least : form->constants()[k].most);
      }
    }
    calibration.residual_strength = 1;
    write(calibration);
  }
  RandomStream random(2, "bounded");
  size_t held_back = 0;
  for (const char* name : {"a100_sxm", "h100_sxm", "b200_sxm", "l40s"}) {
    const KernelPredictor predict = predictor(name);
    const LearnedKernels learned(predict.device(), folder);
    const double cache = predict.device().last_level_cache->value.value();
    for (const FormKind& kind : form_kinds()) {
      for (int i = 0; i < 100; ++i) {
        const FormCall call = random_call(kind, random);
        const KernelEstimate estimate = predict.estimate(call.shape, call.variant);
        ASSERT_NE(estimate.tier, Tier::roofline) << kind.name;
        const double compute = estimate.compute.value() * estimate.wave_efficiency;
        ASSERT_GE(estimate.seconds.value, compute * (1 - 1e-9)) << name << " " << kind.name;
        if (estimate.work.bytes().value() > 2 * cache) {
          ASSERT_GE(estimate.seconds.value, estimate.memory.value() * (1 - 1e-9)) << name << " " << kind.name;
        }
        // Weight-only where nothing multiplies in fp4: another kernel than the one asked about.
        const bool has_fp4 = predict.device().type_or_fallback(DType::fp4) == DType::fp4;
        if (!has_fp4 && call_formats(call).find("nvfp4") != std::string::npos) continue;
        const double free = learned.estimate(call.shape, call.variant, Tier::best)->seconds.value;
        ASSERT_GE(estimate.seconds.value, free * (1 - 1e-12));
        if (estimate.seconds.value > free * 1.001) ++held_back;
        ASSERT_LE(estimate.seconds.low, estimate.seconds.value);
        ASSERT_GE(estimate.seconds.high, estimate.seconds.value);
      }
    }
  }
  EXPECT_GT(held_back, 50u);  // the bound was at work
}

TEST_F(KernelPredictorTest, copies_share_the_calibrations_and_answer_the_same) {
  const KernelShape shape = NormShape{.rows = 64, .width = 4096};
  const KernelPredictor first = predictor("h100_sxm");
  const double before = first.estimate(shape).seconds.value;
  const KernelPredictor second = first;
  std::filesystem::remove_all(folder);  // read already
  EXPECT_EQ(second.estimate(shape).seconds.value, before);
}

TEST_F(KernelPredictorTest, the_variant_reaches_the_form) {
  const KernelShape shape = AttentionShape{.batch = 4, .heads = 32, .kv_heads = 8, .q_len = 2048, .kv_len = 2048};
  const KernelPredictor predict = predictor("h100_sxm");
  EXPECT_GT(predict.estimate(shape, "triton_attn").seconds.value, predict.estimate(shape, "fa3").seconds.value);
  EXPECT_EQ(predict.estimate(shape, "unheard of").seconds.value, predict.estimate(shape).seconds.value);
}

}  // namespace foretoken::kernel_test
