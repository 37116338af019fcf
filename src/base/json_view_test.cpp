#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"

namespace foretoken::json_view_test {

template <class Action>
std::string complaint(Action action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no complaint";
  return "";
}

class View : public testing::Test {
 protected:
  Json document_ = parse_json(R"({
  "name": "h100",
  "memory": {"bandwidth": 3.35, "capacity": -80},
  "links": [{"kind": "nvlink"}, {"kind": 4}],
  "count": 4096.0,
  "half": 4096.5,
  "huge": 1e30,
  "nothing": null,
  "yes": true
})",
                              "h100.json");
  JsonView view_{document_, "h100.json"};
};

TEST_F(View, values_of_the_right_kind_come_out) {
  EXPECT_EQ(view_.at("name").string(), "h100");
  EXPECT_EQ(view_.at("memory").at("bandwidth").number(), 3.35);
  EXPECT_EQ(view_.at("memory").at("capacity").integer(), -80);
  EXPECT_EQ(view_.at("count").integer(), 4096);
  EXPECT_TRUE(view_.at("yes").boolean());
  EXPECT_EQ(view_.at("links").items()[0].at("kind").string(), "nvlink");
  EXPECT_EQ(view_.members().size(), 8u);
  EXPECT_EQ(view_.members()[1].first, "memory");
}

TEST_F(View, a_complaint_names_file_line_path_value_and_expectation) {
  EXPECT_EQ(complaint([&] {
              view_.at("memory").at("bandwidth").number({10, 100000});
            }),
            "h100.json:3: memory.bandwidth = 3.35\n  expected a number between 10 and 100000");
  EXPECT_EQ(complaint([&] { view_.at("memory").at("capacity").integer({.least = 0}); }),
            "h100.json:3: memory.capacity = -80\n  expected a whole number of at least 0");
  EXPECT_EQ(complaint([&] { view_.at("links").items()[1].at("kind").string(); }),
            "h100.json:4: links[1].kind = 4\n  expected a string");
  EXPECT_EQ(complaint([&] { view_.at("name").number(); }), "h100.json:2: name = \"h100\"\n  expected a number");
  EXPECT_EQ(complaint([&] { view_.at("name").boolean(); }), "h100.json:2: name = \"h100\"\n  expected true or false");
  EXPECT_EQ(complaint([&] { view_.at("name").items(); }), "h100.json:2: name = \"h100\"\n  expected a list");
  EXPECT_EQ(complaint([&] { view_.at("name").at("x"); }), "h100.json:2: name = \"h100\"\n  expected an object");
}

TEST_F(View, a_whole_number_is_whole_and_within_what_a_double_holds_exactly) {
  EXPECT_EQ(complaint([&] { view_.at("half").integer(); }), "h100.json:6: half = 4096.5\n  expected a whole number");
  EXPECT_EQ(complaint([&] { view_.at("huge").integer({.least = 1}); }),
            "h100.json:7: huge = 1e+30\n  expected a whole number between 1 and 9007199254740992");
}

TEST_F(View, a_missing_key_suggests_the_nearest_one) {
  EXPECT_EQ(complaint([&] { view_.at("memory").at("bandwith"); }),
            "h100.json:3: memory\n  expected a key `bandwith`; did you mean bandwidth?");
  EXPECT_EQ(complaint([&] { view_.at("quantization"); }), "h100.json:1\n  expected a key `quantization`");
}

TEST_F(View, null_counts_as_absent) {
  EXPECT_FALSE(view_.has("nothing"));
  EXPECT_FALSE(view_.has("never"));
  EXPECT_TRUE(view_.has("name"));
  EXPECT_EQ(view_.find("nothing"), std::nullopt);
  EXPECT_EQ(complaint([&] { view_.at("nothing"); }), "h100.json:1\n  expected a key `nothing`");
}

TEST_F(View, a_key_nobody_asked_for_is_a_typo) {
  EXPECT_EQ(complaint([&] {
              view_.at("memory").allow_only({"bandwidth_gbps", "capacity"});
            }),
            "h100.json:3: memory.bandwidth\n  expected one of the keys bandwidth_gbps, capacity; did you mean "
            "bandwidth_gbps?");
  EXPECT_NO_THROW(view_.at("memory").allow_only({"bandwidth", "capacity", "more"}));
}

TEST_F(View, a_key_with_control_characters_is_escaped_in_messages) {
  const Json odd = parse_json("{\"a\\u001bb\": 1}", "odd");
  EXPECT_EQ(JsonView(odd, "odd").members()[0].second.path(), "a\\x1bb");
}

}  // namespace foretoken::json_view_test
