#include "model/shape_fields.h"

#include <set>

#include <gtest/gtest.h>

namespace foretoken::shape_fields_test {

constexpr std::string_view families[] = {
    "gemm",    "attention_prefill", "attention_decode", "attention_encoder", "norm",     "rope", "activation",
    "softmax", "elementwise",       "embedding",        "kv_write",          "sampling", "moe"};

TEST(ShapeFields, every_field_that_reads_can_be_set_and_no_other_changes) {
  for (const std::string_view family : families) {
    const std::optional<KernelShape> shape = default_shape(family);
    ASSERT_TRUE(shape) << family;
    EXPECT_EQ(family_name(*shape), family);
    const auto before = shape_fields(*shape);
    ASSERT_FALSE(before.empty()) << family;
    for (const auto& [name, old] : before) {
      KernelShape changed = *shape;
      const double wanted = old == 1 ? 0 : 1;  // fits sizes and switches alike
      ASSERT_TRUE(set_shape_field(changed, name, wanted)) << family << " " << name;
      for (const auto& [other, value] : shape_fields(changed)) {
        double expected = 0;
        for (const auto& [known, known_value] : before) {
          if (known == other) expected = known == name ? wanted : known_value;
        }
        EXPECT_EQ(value, expected) << family << ": " << other << " after setting " << name;
      }
    }
  }
}

TEST(ShapeFields, names_of_one_shape_are_distinct) {
  for (const std::string_view family : families) {
    std::set<std::string_view> seen;
    for (const auto& [name, value] : shape_fields(default_shape(family).value())) {
      EXPECT_TRUE(seen.insert(name).second) << family << " " << name;
    }
  }
}

TEST(ShapeFields, an_unknown_field_is_not_set) {
  KernelShape shape = GemmShape{.m = 3};
  EXPECT_FALSE(set_shape_field(shape, "rows", 1));
  EXPECT_EQ(std::get<GemmShape>(shape).m, 3);
}

TEST(ShapeFields, a_size_is_rounded_to_a_whole_number) {
  KernelShape shape = GemmShape{};
  ASSERT_TRUE(set_shape_field(shape, "m", 6.6));
  EXPECT_EQ(std::get<GemmShape>(shape).m, 7);
}

TEST(ShapeFields, an_element_type_that_is_set_is_read_back) {
  for (const std::string_view family : families) {
    KernelShape shape = default_shape(family).value();
    for (const DType type : {DType::fp32, DType::fp16, DType::bf16}) {
      if (set_element_type(shape, type)) {
        EXPECT_EQ(element_type(shape), type) << family;
      }
    }
  }
}

TEST(ShapeFields, no_shape_is_made_of_an_unknown_family) {
  EXPECT_FALSE(default_shape("gem"));
  EXPECT_FALSE(default_shape(""));
}

}  // namespace foretoken::shape_fields_test
