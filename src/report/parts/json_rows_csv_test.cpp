#include "report/parts/json_rows_csv.h"

#include <gtest/gtest.h>

namespace foretoken::json_rows_csv_test {

TEST(JsonRowsCsv, writes_a_header_and_quotes_what_must_be) {
  Json rows = Json::array();
  rows.push(Json::object({{"layer", "a,b"}, {"cycles", 12}, {"share", 0.5}, {"inner", Json::array()}}));
  rows.push(Json::object({{"layer", "c"}, {"cycles", Json()}}));
  EXPECT_EQ(json_rows_csv(rows), "layer,cycles,share\n\"a,b\",12,0.5\nc,,\n");
}

TEST(JsonRowsCsv, no_rows_are_no_text) {
  EXPECT_EQ(json_rows_csv(Json::array()), "");
}

}  // namespace foretoken::json_rows_csv_test
