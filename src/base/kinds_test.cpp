#include "base/kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken::kinds_test {

using testing::ElementsAre;

struct Shape {
  std::string_view name;
  int corners;
};

constexpr Shape shapes[] = {{"circle", 0}, {"triangle", 3}, {"square", 4}};

template <class Action>
InputProblem problem_of(const Action& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << "no InputError";
  return {};
}

TEST(Kinds, are_found_by_their_names_in_the_order_of_the_list) {
  EXPECT_THAT(kind_names(shapes), ElementsAre("circle", "triangle", "square"));
  EXPECT_THAT(kind_names(std::span(shapes).subspan(1)), ElementsAre("triangle", "square"));
  EXPECT_EQ(find_kind(shapes, "square"), &shapes[2]);
  EXPECT_EQ(find_kind(shapes, "Square"), nullptr);
  EXPECT_EQ(&kind_named(shapes, "triangle", {.field = "shape"}), &shapes[1]);
}

TEST(Kinds, a_name_that_nobody_has_is_an_input_error_with_the_nearest_one) {
  const InputProblem all = problem_of([] { kind_named(shapes, "sqare", {.field = "shape"}); });
  EXPECT_EQ(all.field, "shape");
  EXPECT_EQ(all.value, "sqare");
  EXPECT_EQ(all.expected, "one of circle, triangle, square");
  EXPECT_EQ(all.suggestion, "square");
  const InputProblem said = problem_of([] { kind_named(shapes, "zzz", {.expected = "a shape"}); });
  EXPECT_EQ(said.expected, "a shape");
  EXPECT_EQ(said.suggestion, "");
}

TEST(Kinds, a_name_in_a_file_is_refused_at_its_place) {
  const Json document = parse_json(R"({"shape": "circel"})", "drawing.json");
  const JsonView shape = JsonView(document, "drawing.json").at("shape");
  const InputProblem problem = problem_of([&] { kind_in(shape, shapes); });
  EXPECT_EQ(problem.path, "shape");
  EXPECT_EQ(problem.expected, "one of circle, triangle, square");
  EXPECT_EQ(problem.suggestion, "circle");
  EXPECT_EQ(problem_of([&] { kind_in(shape, shapes, "a shape"); }).expected, "a shape");
}

}  // namespace foretoken::kinds_test
