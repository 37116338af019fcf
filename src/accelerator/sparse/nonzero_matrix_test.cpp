#include "accelerator/sparse/nonzero_matrix.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::nonzero_matrix_test {

InputProblem complaint_about(std::string_view text) {
  try {
    text.starts_with("%%") ? parse_matrix_market(text, "weights") : parse_csv_matrix(text, "weights");
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << "accepted: " << text;
  return {};
}

TEST(NonzeroMatrix, is_read_from_rows_of_values) {
  const NonzeroMatrix matrix = parse_csv_matrix("1,0,-0.5\r\n0,0,0\n", "weights");
  EXPECT_EQ(matrix.rows, 2);
  EXPECT_EQ(matrix.columns, 3);
  ASSERT_EQ(matrix.places.size(), 2U);
  EXPECT_EQ(matrix.places[1].row, 0);
  EXPECT_EQ(matrix.places[1].column, 2);
}

TEST(NonzeroMatrix, symmetric_coordinates_count_on_both_sides_and_repeated_ones_once) {
  const NonzeroMatrix matrix = parse_matrix_market(
      "%%MatrixMarket matrix coordinate real symmetric\n% a comment\n3 3 4\n1 1 2.5\n3 1 -1\n3 1 -1\n2 2 0\n",
      "weights");
  ASSERT_EQ(matrix.places.size(), 3U);
  EXPECT_EQ(matrix.places[1].row, 0);
  EXPECT_EQ(matrix.places[1].column, 2);
  EXPECT_EQ(matrix.places[2].row, 2);
}

TEST(NonzeroMatrix, arrays_run_down_the_columns) {
  const NonzeroMatrix matrix =
      parse_matrix_market("%%MatrixMarket matrix array integer general\n2 2\n0\n7\n0\n0\n", "w");
  ASSERT_EQ(matrix.places.size(), 1U);
  EXPECT_EQ(matrix.places[0].row, 1);
  EXPECT_EQ(matrix.places[0].column, 0);
}

TEST(NonzeroMatrix, complaints_name_the_line) {
  EXPECT_EQ(complaint_about("1,0\n1\n").line, 2);
  EXPECT_EQ(complaint_about("1,x\n").value, "x");
  EXPECT_EQ(complaint_about("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n3 1\n").line, 3);
  EXPECT_EQ(complaint_about("%%MatrixMarket matrix coordinate quaternion general\n").value, "quaternion");
  EXPECT_EQ(complaint_about("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n").expected, "2 entries");
  EXPECT_FALSE(complaint_about("%%MatrixMarket matrix array real general\n16777216 16777216\n").expected.empty());
  EXPECT_FALSE(complaint_about("").expected.empty());
}

}  // namespace foretoken::nonzero_matrix_test
