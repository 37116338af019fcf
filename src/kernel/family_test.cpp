#include "kernel/family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "hardware/catalogue.h"
#include "kernel/kernel.h"
#include "model/work.h"

namespace foretoken::family_test {

using testing::HasSubstr;
using Flags = std::vector<std::pair<std::string, std::string>>;

KernelShape example_shape(const KernelFamily& family) {
  Flags flags;
  for (const KernelParameter& parameter : family.parameters) flags.emplace_back(parameter.name, parameter.example);
  return shape_from_texts(family, flags);
}

// The shape of the first row of a table.
KernelShape first_row(const std::string& family, const std::string& text) {
  CsvReader csv = CsvReader::from_text(text, "table.csv");
  KernelRowReader reader(kernel_family(family, {}), csv);
  EXPECT_TRUE(csv.next());
  return reader.read(csv);
}

InputProblem problem_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << "no InputError";
  return {};
}

TEST(KernelFamily, names_are_unique_and_match_the_shapes_they_make) {
  std::set<std::string> names;
  for (const KernelFamily& family : kernel_families()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_FALSE(family.summary.empty());
    EXPECT_EQ(family_name(example_shape(family)), family.name);
    std::set<std::string> parameters;
    for (const KernelParameter& parameter : family.parameters) {
      EXPECT_TRUE(parameters.insert(parameter.name).second) << family.name << " " << parameter.name;
      EXPECT_FALSE(parameter.help.empty());
    }
  }
}

TEST(KernelFamily, every_family_is_predicted_on_every_device_of_the_catalogue) {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  for (const std::string& name : hardware.device_names()) {
    const KernelPredictor predictor(hardware.device(name));
    for (const KernelFamily& family : kernel_families()) {
      const KernelEstimate estimate = predictor.estimate(example_shape(family));
      EXPECT_TRUE(std::isfinite(estimate.seconds.value) && estimate.seconds.value > 0) << name << " " << family.name;
      EXPECT_GT(estimate.work.bytes().value(), 0) << family.name;
      EXPECT_LE(estimate.seconds.low, estimate.seconds.value);
      EXPECT_GE(estimate.seconds.high, estimate.seconds.value);
    }
  }
}

TEST(KernelFamily, texts_and_columns_make_the_same_shape) {
  const Flags flags = {{"m", "16"}, {"n", "32"}, {"k", "64"}, {"dtype", "FP8"}};
  const auto from_flags = std::get<GemmShape>(shape_from_texts(kernel_family("gemm", {}), flags));
  const auto from_row = std::get<GemmShape>(first_row("gemm", "k,n,m,latency_us,dtype\n64,32,16,1,fp8\n"));
  for (const GemmShape& shape : {from_flags, from_row}) {
    EXPECT_EQ(shape.m, 16);
    EXPECT_EQ(shape.n, 32);
    EXPECT_EQ(shape.k, 64);
    EXPECT_EQ(shape.batch, 1);
    EXPECT_EQ(shape.scheme, Scheme::fp8);
  }
}

TEST(KernelFamily, a_kernel_that_converts_multiplies_an_fp8_cache_in_bf16) {
  const std::string header = "kernel,kv_dtype,batch,heads,kv_heads,q_len,kv_len\n";
  const auto math = [&](const std::string& row) {
    return count_work(first_row("attention_prefill", header + row)).math;
  };
  EXPECT_EQ(math("fa3,fp8,1,8,8,64,64\n"), DType::fp8);
  EXPECT_EQ(math("fa2,fp8,1,8,8,64,64\n"), DType::bf16);
  EXPECT_EQ(math("fi_fiprefill,fp8,1,8,8,64,64\n"), DType::bf16);
  EXPECT_EQ(math("something_new,fp8,1,8,8,64,64\n"), DType::fp8);
  EXPECT_EQ(math("fa3,bf16,1,8,8,64,64\n"), DType::bf16);
}

TEST(KernelFamily, expert_tables_say_routing_and_gate_by_their_conventions) {
  const std::string header = "dtype,tokens,hidden,inter,topk,experts,tp,ep,routing\n";
  const auto moe = [&](const std::string& row) { return std::get<MoeShape>(first_row("moe", header + row)); };
  EXPECT_EQ(moe("bf16,8,4096,1536,8,128,1,1,balanced\n").routing, Routing::balanced);
  EXPECT_EQ(moe("bf16,8,4096,1536,8,128,1,1,pl1.2\n").power_law_exponent, 1.2);
  EXPECT_TRUE(moe("bf16,8,4096,1536,8,128,1,1,pl1.2\n").gated);
  EXPECT_FALSE(moe("bf16,8,2688,1856,6,128,1,1,balanced\n").gated);
  EXPECT_FALSE(moe("bf16,8,4096,2688,22,512,1,1,balanced\n").gated);
  EXPECT_FALSE(moe("fp8_block,8192,7168,2048,8,256,1,8,balanced\n").received) << "inside a node tokens are gathered";
  EXPECT_TRUE(moe("fp8_block,8192,7168,2048,8,256,1,64,balanced\n").received);
}

TEST(KernelFamily, convolution_kernels_are_told_from_recurrences_by_name) {
  const std::string header = "kernel,phase,batch,seq_len,k_heads,v_heads\n";
  const auto stage = [&](const std::string& kernel) {
    return std::get<LinearAttentionShape>(first_row("linattn_gdn", header + kernel + ",decode,1,1,2,2\n")).stage;
  };
  EXPECT_EQ(stage("causal_conv1d_update"), LinearAttentionStage::convolution);
  EXPECT_EQ(stage("fused_recurrent_gated_delta_rule"), LinearAttentionStage::recurrence);
}

TEST(KernelFamily, a_wrong_parameter_is_named_with_what_was_expected) {
  const KernelFamily& gemm = kernel_family("gemm", {});
  const Flags good = {{"m", "16"}, {"n", "32"}, {"k", "64"}};
  const auto with = [&](const std::string& name, const std::string& text) {
    Flags flags = good;
    flags.emplace_back(name, text);
    return problem_of([&] { shape_from_texts(gemm, flags); });
  };
  for (const char* text : {"0", "-1", "1.5", "nan", "1e30", "", "many"}) {
    const InputProblem problem = with("batch", text);
    EXPECT_EQ(problem.field, "batch");
    EXPECT_THAT(problem.expected, HasSubstr("whole number"));
  }
  EXPECT_EQ(with("dtype", "fp9").suggestion, "fp8");
  EXPECT_EQ(with("bach", "1").suggestion, "batch");
  const Flags lacking = {{"m", "16"}, {"n", "32"}};
  EXPECT_EQ(problem_of([&] { shape_from_texts(gemm, lacking); }).field, "k");
  EXPECT_EQ(problem_of([] { kernel_family("attention_prefil", {}); }).suggestion, "attention_prefill");
  const Flags far = {{"tokens", "8"}, {"hidden", "64"}, {"inter", "64"},
                     {"topk", "1"},   {"experts", "8"}, {"routing", "pl99"}};
  EXPECT_THAT(problem_of([&] { shape_from_texts(kernel_family("moe", {}), far); }).expected,
              HasSubstr("balanced, plA with A up to 10"));
}

TEST(KernelFamily, sparse_products_take_the_formats_that_were_measured) {
  const auto dtype_of = [](const char* family, const char* dtype) {
    const std::pair<std::string, std::string> texts[] = {
        {"rows", "64"}, {"nnz", "256"}, {"features", "32"}, {"dtype", dtype}};
    return std::get<SparseShape>(shape_from_texts(kernel_family(family, {}), texts)).dtype;
  };
  EXPECT_EQ(dtype_of("spmm", "fp32"), DType::fp32);
  EXPECT_EQ(dtype_of("spmm", "bf16"), DType::bf16);
  EXPECT_EQ(dtype_of("sddmm", "fp32"), DType::fp32);
  for (const auto& [family, dtype, known] :
       {std::tuple("spmm", "fp16", "fp32, bf16"), std::tuple("sddmm", "bf16", "fp32")}) {
    try {
      dtype_of(family, dtype);
      ADD_FAILURE() << family << " took " << dtype;
    } catch (const InputError& error) {
      EXPECT_NE(error.problem().expected.find(known), std::string::npos) << error.what();
    }
  }
}

TEST(KernelFamily, values_that_do_not_fit_together_are_refused) {
  const Flags flags = {{"batch", "1"}, {"heads", "8"}, {"kv_heads", "3"}, {"kv_len", "10"}};
  const InputProblem problem = problem_of([&] { shape_from_texts(kernel_family("attention_decode", {}), flags); });
  EXPECT_EQ(problem.field, "kv_heads");
  EXPECT_EQ(problem.value, "3");
  EXPECT_EQ(problem_of([] { first_row("moe", "tokens,hidden,inter,topk,experts\n1,64,64,8,4\n"); }).path,
            "row 1, column topk");
}

TEST(KernelFamily, a_bad_cell_is_named_by_file_row_and_column) {
  for (const char* cell : {"0", "-4", "nan", "1e30", "2.5", ""}) {
    const InputProblem problem = problem_of([&] { first_row("gemm", fmt::format("m,n,k\n{},32,64\n", cell)); });
    EXPECT_EQ(problem.source, "table.csv");
    EXPECT_EQ(problem.path, "row 1, column m");
    EXPECT_EQ(problem.line, 2);
  }
  const InputProblem dtype = problem_of([] { first_row("gemm", "dtype,m,n,k\nbf61,1,32,64\n"); });
  EXPECT_EQ(dtype.path, "row 1, column dtype");
  EXPECT_EQ(dtype.suggestion, "bf16");
}

TEST(KernelFamily, a_missing_or_misspelt_column_is_an_error) {
  EXPECT_THAT(problem_of([] { first_row("gemm", "m,n\n1,2\n"); }).expected, HasSubstr("`k`"));
  const InputProblem problem =
      problem_of([] { first_row("attention_decode", "batch,heads,kv_heads,kv_len,windw\n1,8,8,10,4\n"); });
  EXPECT_EQ(problem.value, "windw");
  EXPECT_EQ(problem.suggestion, "window");
}

TEST(KernelFamily, a_row_that_cannot_be_expressed_says_why) {
  CsvReader csv = CsvReader::from_text("dtype,m,n,k\nint3,1,32,64\nbf16,1,32,64\n", "table.csv");
  KernelRowReader reader(kernel_family("gemm", {}), csv);
  std::string why;
  ASSERT_TRUE(csv.next());
  EXPECT_FALSE(reader.read_if_expressible(csv, why).has_value());
  EXPECT_THAT(why, HasSubstr("dtype = int3"));
  ASSERT_TRUE(csv.next());
  EXPECT_TRUE(reader.read_if_expressible(csv, why).has_value());
}

}  // namespace foretoken::family_test
