#include "kernel/forms/list.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "kernel/test_support.h"

namespace foretoken::forms_list_test {

using namespace test_support;

std::string describe(const FormKind& kind, const FormCall& call) {
  std::string text = fmt::format("{}, variant `{}`, log2 sizes", kind.name, call.variant);
  for (const float value : raw_features(call)) text += fmt::format(" {:.2f}", value);
  return text;
}

TEST(Forms, every_family_and_variant_has_at_most_one_form_and_every_form_serves_real_families) {
  std::set<std::string_view> names;
  std::set<std::pair<std::string_view, std::string_view>> served;
  for (const FormKind& kind : form_kinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_GE(kind.residual_strength, 0);
    EXPECT_LE(kind.residual_strength, 1);
    for (const std::string_view family : kind.families) {
      EXPECT_NE(find_kernel_family(family), nullptr) << family;
      if (kind.fp32) {
        EXPECT_TRUE(kind.variants.empty()) << kind.name;
        EXPECT_TRUE(served.emplace(family, "plain fp32").second) << family;
        continue;
      }
      if (kind.amd) {
        EXPECT_TRUE(served.emplace(family, "amd").second) << family;
        EXPECT_NE(form_kind_of(family), &kind) << "no other maker's GPU runs AMD's kernels";
        continue;
      }
      if (kind.variants.empty()) {
        EXPECT_TRUE(served.emplace(family, "").second) << family;
        EXPECT_EQ(form_kind_of(family), &kind);
        EXPECT_EQ(form_kind_of(family, "a kernel nobody knows"), &kind);
      }
      for (const std::string_view variant : kind.variants) {
        EXPECT_TRUE(served.emplace(family, variant).second) << family << " " << variant;
        EXPECT_EQ(form_kind_of(family, variant), &kind);
        EXPECT_NE(form_kind_of(family), &kind) << "the general form of " << family << " is another";
      }
    }
  }
  EXPECT_EQ(form_kind_of("conv"), nullptr);
  EXPECT_EQ(form_kind_of(""), nullptr);
}

TEST(Forms, constants_start_within_their_bounds_and_have_names_of_their_own) {
  for (const FormKind& kind : form_kinds()) {
    const std::unique_ptr<Form> form = kind.make(Caches::benchmark);
    std::set<std::string_view> names;
    EXPECT_FALSE(form->constants().empty());
    EXPECT_LE(form->constants().size(), 64u);  // evaluate.cpp keeps them on the stack
    EXPECT_LE(form->feature_count() + 1 + raw_feature_count, 64u);
    for (const FormConstant& constant : form->constants()) {
      EXPECT_TRUE(names.insert(constant.name).second) << kind.name << " " << constant.name;
      EXPECT_GT(constant.least, 0) << constant.name;  // a logarithm is fitted
      EXPECT_LE(constant.least, constant.start) << constant.name;
      EXPECT_LE(constant.start, constant.most) << constant.name;
      EXPECT_FALSE(constant.reading.empty()) << constant.name;
    }
  }
}

TEST(Forms, times_are_positive_and_finite_for_every_gpu_and_call_and_any_constants_within_bounds) {
  const std::vector<Device>& devices = complete_gpus();
  ASSERT_GT(devices.size(), 20u);
  for (const FormKind& kind : form_kinds()) {
    RandomStream random(1, kind.name);
    const std::unique_ptr<Form> form = kind.make(Caches::benchmark);
    const std::vector<double> start = start_constants(*form);
    for (const Device& device : devices) {
      const DeviceTraits traits = traits_of(device).traits;
      for (int i = 0; i < 40; ++i) {
        const FormCall call = random_call(kind, random);
        std::vector<double> constants = start;
        if (i % 2 == 1) {
          for (size_t k = 0; k < constants.size(); ++k) {
            const FormConstant& c = form->constants()[k];
            constants[k] = c.least * std::pow(c.most / c.least, random.uniform());
          }
        }
        const double seconds = form_seconds(*form, call, traits, constants);
        ASSERT_TRUE(std::isfinite(seconds) && seconds > 0) << device.name << " " << describe(kind, call);
        // Nothing starts faster than a few hundred nanoseconds.
        ASSERT_GT(seconds, 2e-7) << device.name << " " << describe(kind, call);
      }
    }
  }
}

TEST(Forms, features_are_finite_and_as_many_as_announced) {
  for (const FormKind& kind : form_kinds()) {
    RandomStream random(2, kind.name);
    const std::unique_ptr<Form> form = kind.make(Caches::benchmark);
    const std::vector<double> constants = start_constants(*form);
    for (const Device& device : complete_gpus()) {
      const DeviceTraits traits = traits_of(device).traits;
      for (int i = 0; i < 20; ++i) {
        const FormCall call = random_call(kind, random);
        int choice = -1;
        form->seconds(call, traits, constants, choice);
        constexpr float untouched = 12345.5F;
        std::vector<float> features(form->feature_count() + 1, untouched);
        form->features(call, traits, constants, choice, std::span(features).first(form->feature_count()));
        for (size_t f = 0; f < form->feature_count(); ++f) {
          ASSERT_TRUE(std::isfinite(features[f])) << describe(kind, call) << " feature " << f;
          ASSERT_NE(features[f], untouched) << describe(kind, call) << " feature " << f;
        }
        ASSERT_EQ(features.back(), untouched) << kind.name;
      }
    }
  }
}

TEST(Forms, calls_of_one_kind_share_effects_and_usual_variant) {
  for (const FormKind& kind : form_kinds()) {
    RandomStream random(4, kind.name);
    const std::unique_ptr<Form> form = kind.make(Caches::benchmark);
    for (const Device& device : complete_gpus()) {
      const DeviceTraits traits = traits_of(device).traits;
      std::map<std::tuple<uint64_t, std::string, std::string>, std::vector<std::string>> seen;
      for (int i = 0; i < 60; ++i) {
        const FormCall call = random_call(kind, random);
        const std::optional<uint64_t> key = form->kind_key(call);
        if (!key) continue;
        std::vector<std::string> shared = form->effects(call, traits);
        shared.emplace_back(form->usual_variant(call, traits));
        const auto [first, is_new] = seen.emplace(std::tuple(*key, call.variant, call_formats(call)), shared);
        ASSERT_EQ(first->second, shared) << device.name << " " << describe(kind, call);
      }
    }
  }
}

TEST(Forms, seconds_and_features_together_are_the_two_apart) {
  for (const FormKind& kind : form_kinds()) {
    RandomStream random(5, kind.name);
    const std::unique_ptr<Form> form = kind.make(Caches::benchmark);
    const std::vector<double> constants = start_constants(*form);
    for (const Device& device : complete_gpus()) {
      const DeviceTraits traits = traits_of(device).traits;
      for (int i = 0; i < 20; ++i) {
        const FormCall call = random_call(kind, random);
        std::vector<float> apart(form->feature_count()), together(form->feature_count());
        int choice = -1;
        const double seconds = form->seconds(call, traits, constants, choice);
        form->features(call, traits, constants, choice, apart);
        int chosen = -1;
        ASSERT_EQ(form->seconds_and_features(call, traits, constants, chosen, together), seconds)
            << describe(kind, call);
        ASSERT_EQ(chosen, choice) << describe(kind, call);
        ASSERT_EQ(together, apart) << describe(kind, call);
      }
    }
  }
}

TEST(Forms, the_choice_that_was_returned_gives_the_same_time_again) {
  const DeviceTraits traits = traits_named("h100_sxm");
  for (const FormKind& kind : form_kinds()) {
    RandomStream random(3, kind.name);
    const std::unique_ptr<Form> form = kind.make(Caches::benchmark);
    const std::vector<double> constants = start_constants(*form);
    for (int i = 0; i < 200; ++i) {
      const FormCall call = random_call(kind, random);
      int choice = -1;
      const double free = form->seconds(call, traits, constants, choice);
      ASSERT_GE(choice, 0) << kind.name;
      int kept = choice;
      ASSERT_NEAR(form->seconds(call, traits, constants, kept), free, 1e-12 * free) << describe(kind, call);
      ASSERT_EQ(kept, choice);
    }
  }
}

TEST(Forms, the_parts_of_an_explanation_add_up_to_the_time_and_no_limit_exceeds_it) {
  for (const FormKind& kind : form_kinds()) {
    RandomStream random(7, kind.name);
    const std::unique_ptr<Form> form = kind.make(Caches::benchmark);
    const std::vector<double> constants = start_constants(*form);
    for (const char* name : {"a100_sxm", "h200_sxm", "b200_sxm", "l40s"}) {
      const DeviceTraits traits = traits_named(name);
      for (int i = 0; i < 50; ++i) {
        const FormCall call = random_call(kind, random);
        int choice = -1;
        const double seconds = form->seconds(call, traits, constants, choice);
        const std::vector<Explained> lines = form->explain(call, traits, constants, choice);
        if (lines.empty()) continue;  // a form need not explain itself
        double sum = 0;
        std::set<std::string_view> names;
        for (const Explained& line : lines) {
          ASSERT_TRUE(std::isfinite(line.value) && line.value >= 0) << line.name << " " << describe(kind, call);
          ASSERT_TRUE(names.insert(line.name).second) << line.name;
          ASSERT_FALSE(line.reading.empty()) << line.name;
          ASSERT_TRUE(line.unit != "share" || line.value <= 1 + 1e-9) << line.name << " " << describe(kind, call);
          if (line.kind == Explained::Kind::part) sum += line.value;
          ASSERT_TRUE(line.kind != Explained::Kind::limit || line.value <= seconds * (1 + 1e-9)) << line.name;
        }
        ASSERT_NEAR(sum, seconds, 1e-9 * seconds) << describe(kind, call);
      }
    }
  }
}

TEST(Forms, effects_begin_with_the_common_one_and_none_comes_twice) {
  for (const FormKind& kind : form_kinds()) {
    RandomStream random(4, kind.name);
    const std::unique_ptr<Form> form = kind.make(Caches::benchmark);
    for (const char* name : {"a100_sxm", "h200_sxm", "b200_sxm", "l40s", "rtx_4090", "v100_sxm"}) {
      const DeviceTraits traits = traits_named(name);
      for (int i = 0; i < 30; ++i) {
        const std::vector<std::string> effects = form->effects(random_call(kind, random), traits);
        ASSERT_FALSE(effects.empty());
        EXPECT_EQ(effects.front(), "common");
        EXPECT_EQ(std::set<std::string>(effects.begin(), effects.end()).size(), effects.size()) << kind.name;
        for (const std::string& effect : effects) {
          EXPECT_FALSE(effect.starts_with("device") || effect.starts_with("group")) << "those are the fitter's";
        }
      }
    }
  }
}

TEST(Forms, calls_of_one_group_on_one_device_have_the_same_effects) {
  for (const FormKind& kind : form_kinds()) {
    if (!kind.fp32) continue;
    RandomStream random(9, kind.name);
    const std::unique_ptr<Form> form = kind.make(Caches::benchmark);
    std::map<std::string, std::vector<std::string>> seen;
    for (int i = 0; i < 300; ++i) {
      const FormCall call = random_call(kind, random);
      const std::vector<std::string> effects = form->effects(call, traits_named("v100_pcie"));
      const auto [found, is_new] = seen.emplace(call_group(call), effects);
      EXPECT_EQ(found->second, effects) << kind.name << " " << call_group(call);
    }
    EXPECT_GT(seen.size(), 1u) << kind.name;
  }
}

// Soft maxima leave out terms below a ten-thousandth of the largest, which may reappear.
constexpr double left_out = 3e-4;

// `improve(traits, random)` gives a better device: no call of any form may take longer on it.
template <class Improve>
void expect_never_slower(uint64_t seed, const Improve& improve) {
  for (const FormKind& kind : form_kinds()) {
    RandomStream random(seed, kind.name);
    const std::unique_ptr<Form> form = kind.make(Caches::benchmark);
    const std::vector<double> constants = start_constants(*form);
    for (const Device& device : complete_gpus()) {
      const DeviceTraits traits = traits_of(device).traits;
      for (int i = 0; i < 20; ++i) {
        const FormCall call = random_call(kind, random);
        const DeviceTraits better = improve(traits, random);
        ASSERT_LE(form_seconds(*form, call, better, constants),
                  form_seconds(*form, call, traits, constants) * (1 + left_out))
            << device.name << " " << describe(kind, call);
      }
    }
  }
}

TEST(Forms, more_bandwidth_is_never_slower) {
  expect_never_slower(5, [](DeviceTraits traits, RandomStream& random) {
    traits.bandwidth *= random.uniform(1, 3);
    return traits;
  });
}

TEST(Forms, a_higher_clock_is_never_slower) {
  expect_never_slower(6, [](DeviceTraits traits, RandomStream& random) {
    const double factor = random.uniform(1, 2);
    traits.clock *= factor;
    for (double& peak : traits.peak) peak *= factor;
    return traits;
  });
}

TEST(Forms, a_prompt_of_one_token_runs_on_the_decode_kernel) {
  EXPECT_EQ(form_family(AttentionShape{.q_len = 1, .kv_len = 77}), "attention_decode");
  EXPECT_EQ(form_family(AttentionShape{.q_len = 2, .kv_len = 77}), "attention_prefill");
  EXPECT_EQ(form_family(AttentionShape{.phase = AttentionPhase::encoder, .q_len = 1}), "attention_encoder");
  EXPECT_EQ(form_family(LatentAttentionShape{.q_len = 1, .kv_len = 77}), "mla_decode");
  EXPECT_EQ(form_family(LatentAttentionShape{.q_len = 1, .kv_len = 1}), "mla_prefill") << "no cache to read";
  EXPECT_EQ(form_family(LatentAttentionShape{.q_len = 2, .kv_len = 77}), "mla_prefill");
  EXPECT_EQ(form_family(NormShape{}), "norm");
}

TEST(Forms, plain_fp32_has_forms_of_its_own_and_other_formats_never_use_them) {
  const auto name = [](const KernelShape& shape) {
    const FormKind* kind = form_kind_for(shape);
    return kind == nullptr ? std::string_view("none") : kind->name;
  };
  EXPECT_EQ(name(GemmShape{.scheme = Scheme::fp32}), "gemm_fp32");
  EXPECT_EQ(name(GemmShape{.scheme = Scheme::tf32}), "gemm");
  EXPECT_EQ(name(GemmShape{}), "gemm");
  EXPECT_EQ(name(ConvShape{.scheme = Scheme::fp32}), "conv_fp32");
  EXPECT_EQ(name(ConvShape{}), "none");
  EXPECT_EQ(name(SoftmaxShape{.dtype = DType::fp32}), "eager");
  EXPECT_EQ(name(SoftmaxShape{}), "memory");
  EXPECT_EQ(form_kind_for(SoftmaxShape{}, "eager softmax")->name, "eager");
  EXPECT_EQ(form_kind_for(SoftmaxShape{.dtype = DType::fp32}, "triton")->name, "memory") << "a kernel of its own";
  EXPECT_EQ(form_kind_for(GemmShape{}, "eager linear")->name, "gemm") << "the library's kernel either way";
  EXPECT_EQ(name(SamplingShape{.dtype = DType::fp32}), "memory") << "what has no fp32 form keeps the other";
  RandomStream random(8, "fp32");
  for (const FormKind& kind : form_kinds()) {
    for (int i = 0; i < 20; ++i) {
      const FormCall call = random_call(kind, random);
      const FormKind* found = form_kind_for(call.shape, call.variant);
      ASSERT_NE(found, nullptr) << kind.name;
      if (kind.fp32) {
        EXPECT_EQ(found, &kind) << kind.name;
      }
    }
  }
}

TEST(Forms, a_backward_pass_has_no_form_but_attentions_because_forms_know_the_forward_kernels) {
  EXPECT_EQ(form_kind_for(AttentionShape{.q_len = 64, .kv_len = 64, .pass = Pass::backward})->name,
            "attention_backward");
  EXPECT_EQ(form_kind_of(form_family(LatentAttentionShape{.q_len = 64, .kv_len = 64, .pass = Pass::backward})),
            nullptr);
  EXPECT_EQ(form_kind_of(form_family(NormShape{.pass = Pass::backward})), nullptr);
  EXPECT_EQ(form_kind_of(form_family(MoeShape{.pass = Pass::backward})), nullptr);
  EXPECT_NE(form_kind_of(form_family(NormShape{.pass = Pass::forward})), nullptr);
}

TEST(Forms, amd_gpus_have_forms_of_their_own_except_in_plain_fp32) {
  constexpr bool amd = true;
  for (const Scheme scheme : {Scheme::bf16, Scheme::fp8, Scheme::fp8_block, Scheme::int8, Scheme::mxfp4}) {
    const GemmShape gemm{.m = 64, .n = 4096, .k = 4096, .scheme = scheme};
    EXPECT_EQ(form_kind_for(gemm, "", amd)->name, "gemm_cdna");
    EXPECT_EQ(form_kind_for(gemm, "trtllm", amd)->name, "gemm_cdna") << "names of other makers' kernels mean nothing";
    EXPECT_EQ(form_kind_for(gemm)->name, "gemm");
    const MoeShape moe{.tokens = 64, .hidden = 4096, .inter = 1536, .top_k = 8, .experts = 128, .scheme = scheme};
    EXPECT_EQ(form_kind_for(moe, "", amd)->name, "moe_cdna");
    EXPECT_EQ(form_kind_for(moe)->name, "moe");
  }
  EXPECT_EQ(form_kind_for(GemmShape{.scheme = Scheme::fp32}, "", amd)->name, "gemm_fp32");
  EXPECT_EQ(form_kind_for(NormShape{.rows = 8, .width = 64}, "", amd)->name, "memory");
}

}  // namespace foretoken::forms_list_test
