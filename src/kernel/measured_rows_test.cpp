#include "kernel/measured_rows.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "kernel/test_support.h"

namespace foretoken::measured_rows_test {

using namespace test_support;

class MeasuredRowsTest : public TestWithFolder {
 protected:
  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder / name).parent_path());
    write_file(folder / name, content);
  }
  std::vector<MeasuredRow> rows_like(const KernelShape& shape, const std::string& device = "h100_sxm") const {
    return measured_rows_like(shape, device, folder, hardware(),
                              [](const Device& measured, Caches /*caches*/) { return KernelPredictor(measured); });
  }
};

TEST_F(MeasuredRowsTest, the_nearest_sizes_come_first) {
  write("h100_sxm/gemm.csv",
        "kernel,dtype,m,n,k,latency_us\na,bf16,64,512,512,5\nb,bf16,1000,512,512,6\nc,bf16,128,512,512,7\n");
  const std::vector<MeasuredRow> rows = rows_like(GemmShape{.m = 130, .n = 512, .k = 512});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].variant, "c");
  EXPECT_EQ(rows[1].variant, "a");
  EXPECT_EQ(rows[2].variant, "b");
  EXPECT_EQ(rows[0].row, 3u);
  EXPECT_DOUBLE_EQ(rows[0].measured_seconds, 7e-6);
  EXPECT_GT(rows[0].predicted.seconds.value, 0);
  EXPECT_EQ(rows_like(GemmShape{.m = 64, .n = 512, .k = 512})[0].distance, 0);
}

TEST_F(MeasuredRowsTest, other_formats_families_and_devices_are_left_out) {
  write("h100_sxm/gemm.csv", "kernel,dtype,m,n,k,latency_us\na,fp8,64,512,512,5\nb,fp16,64,512,512,6\n");
  write("l40s/gemm.csv", "kernel,dtype,m,n,k,latency_us\nx,bf16,64,512,512,5\n");
  const std::vector<MeasuredRow> rows = rows_like(GemmShape{.m = 64, .n = 512, .k = 512});
  ASSERT_EQ(rows.size(), 1u) << "the two 16-bit formats run alike";
  EXPECT_EQ(rows[0].variant, "b");
  EXPECT_TRUE(rows_like(NormShape{.rows = 4, .width = 4}).empty());
  EXPECT_TRUE(rows_like(GemmShape{}, "a100_sxm").empty());
}

TEST_F(MeasuredRowsTest, a_missing_folder_is_the_users_mistake) {
  folder /= "nowhere";
  EXPECT_NE(problem_of([&] { rows_like(GemmShape{}); }).source.find("nowhere"), std::string::npos);
}

}  // namespace foretoken::measured_rows_test
