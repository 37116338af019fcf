#include "base/number_format.h"

#include <set>

#include <gtest/gtest.h>

namespace foretoken::number_format_test {

TEST(NumberFormat, every_element_type_is_found_by_its_name_in_any_case) {
  const std::vector<std::string> names = dtype_names();
  ASSERT_EQ(names.size(), size_t{dtype_count});
  for (int i = 0; i < dtype_count; ++i) {
    const auto type = static_cast<DType>(i);
    EXPECT_EQ(names[i], dtype_name(type));
    EXPECT_EQ(dtype_from_name(dtype_name(type)), type);
  }
  EXPECT_EQ(dtype_from_name("BFloat16"), DType::bf16);
  EXPECT_EQ(dtype_from_name("half"), DType::fp16);
  EXPECT_EQ(dtype_from_name("float8_e4m3fn"), DType::fp8);
  EXPECT_EQ(dtype_from_name("float"), DType::fp32);
}

TEST(NumberFormat, an_unknown_or_partial_name_is_nothing) {
  for (const char* name : {"", " ", "fp", "fp17", "float16 half", "bf16 ", "bfloat"}) {
    EXPECT_EQ(dtype_from_name(name), std::nullopt) << name;
    EXPECT_EQ(scheme_from_name(name), std::nullopt) << name;
  }
}

TEST(NumberFormat, elements_have_their_bytes) {
  EXPECT_EQ(bytes_per_element(DType::fp64), 8);
  EXPECT_EQ(bytes_per_element(DType::fp32), 4);
  EXPECT_EQ(bytes_per_element(DType::tf32), 4);
  EXPECT_EQ(bytes_per_element(DType::bf16), 2);
  EXPECT_EQ(bytes_per_element(DType::fp16), 2);
  EXPECT_EQ(bytes_per_element(DType::fp8), 1);
  EXPECT_EQ(bytes_per_element(DType::int8), 1);
  EXPECT_EQ(bytes_per_element(DType::fp4), 0.5);
  EXPECT_EQ(bytes_per_element(DType::int4), 0.5);
}

TEST(NumberFormat, every_scheme_stands_at_its_own_place_in_the_table) {
  ASSERT_EQ(all_schemes().size(), size_t{scheme_count});
  for (int i = 0; i < scheme_count; ++i) {
    const auto scheme = static_cast<Scheme>(i);
    EXPECT_EQ(facts(scheme).scheme, scheme);
    EXPECT_EQ(scheme_from_name(facts(scheme).name), scheme);
    EXPECT_EQ(scheme_names()[i], facts(scheme).name);
    EXPECT_FALSE(facts(scheme).summary.empty());
  }
}

TEST(NumberFormat, no_spelling_means_two_schemes) {
  std::set<std::string> seen;
  for (const SchemeFacts& scheme : all_schemes()) {
    std::string spellings = std::string(scheme.name) + " " + std::string(scheme.also);
    for (size_t begin = 0; begin < spellings.size();) {
      const size_t end = std::min(spellings.find(' ', begin), spellings.size());
      const std::string word = spellings.substr(begin, end - begin);
      begin = end + 1;
      if (word.empty()) continue;
      EXPECT_TRUE(seen.insert(word).second) << word;
      EXPECT_EQ(scheme_from_name(word), scheme.scheme) << word;
    }
  }
}

TEST(NumberFormat, weights_in_mxfp4_meet_wider_activations_in_two_schemes) {
  for (const SchemeFacts& scheme : all_schemes()) {
    const bool is_wider = scheme.scheme == Scheme::mxfp4_wo || scheme.scheme == Scheme::mxfp4_mxfp8;
    EXPECT_EQ(widens_mxfp4(scheme.scheme), is_wider) << scheme.name;
    if (is_wider) {
      EXPECT_GT(scheme.activation_bytes, scheme.weight_bytes) << scheme.name;
    }
  }
}

TEST(NumberFormat, a_scheme_stores_at_least_its_element_and_little_more) {
  for (const SchemeFacts& scheme : all_schemes()) {
    EXPECT_GE(scheme.weight_bytes, 0.5) << scheme.name;
    EXPECT_LE(scheme.weight_bytes, 4) << scheme.name;
    EXPECT_EQ(scheme.quantizes_activations, scheme.activation_bytes < bytes_per_element(scheme.result)) << scheme.name;
  }
  EXPECT_DOUBLE_EQ(facts(Scheme::mxfp4_wo).weight_bytes, 17.0 / 32);  // 32 nibbles and one scale byte
  EXPECT_DOUBLE_EQ(facts(Scheme::nvfp4).weight_bytes, 9.0 / 16);      // 16 nibbles and one scale byte
  EXPECT_DOUBLE_EQ(facts(Scheme::int4_wo).weight_bytes, 66.5 / 128);  // 128 nibbles, fp16 scale, 4-bit zero point
}

}  // namespace foretoken::number_format_test
