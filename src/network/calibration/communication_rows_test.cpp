#include "network/calibration/communication_rows.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "network/calibration/test_systems.h"

namespace foretoken::communication_rows_test {

class CommunicationRowsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  CommunicationRows read(const std::string& text) const {
    write_file(folder / "table.csv", text);
    return read_communication_rows(folder, systems);
  }
  std::filesystem::path folder;
  const SystemLibrary systems{test_support::catalogue()};
};

TEST_F(CommunicationRowsTest, a_table_of_nccl_tests_is_read_by_its_columns) {
  const CommunicationRows rows = read(
      "system,ccl,version,collective,dtype,gpus,bytes,latency_us,rep\n"
      "h100_sxm,nccl,2.27.3,all_reduce,half,8,1024,15.6,1\nb60,oneccl,2021,all_gather,half,2,1024,13,0\n");
  ASSERT_EQ(rows.rows.size(), 2U);
  EXPECT_EQ(rows.rows[0].call.law, "nccl");
  EXPECT_EQ(rows.rows[0].call.variant, "2.27.3 half");
  EXPECT_EQ(rows.rows[0].group, "h100_sxm/all_reduce");
  EXPECT_EQ(rows.rows[0].repetition, "1");
  EXPECT_NEAR(rows.rows[0].seconds, 15.6e-6, 1e-15);
  EXPECT_EQ(rows.rows[1].call.law, "oneccl");
}

TEST_F(CommunicationRowsTest, a_row_of_deepep_is_two_calls_and_a_rack_has_four_devices_to_a_host) {
  const CommunicationRows rows = read(
      "system,framework,version,node_num,hidden_size,num_token,num_topk,num_experts,dispatch_avg_t_us,"
      "combine_avg_t_us\nh100_sxm,sglang,0.5,2,7168,64,8,256,58,102\ngb200,sglang,0.5,1,7168,64,8,256,30,40\n");
  ASSERT_EQ(rows.rows.size(), 4U);
  EXPECT_EQ(rows.rows[0].call.ranks, 16);
  EXPECT_EQ(rows.rows[0].call.nodes, 2);
  EXPECT_EQ(rows.rows[1].call.operation, "combine");
  EXPECT_EQ(rows.rows[2].call.ranks, 4);
}

TEST_F(CommunicationRowsTest, the_time_of_a_normal_dispatch_includes_its_notification) {
  const CommunicationRows rows = read(
      "system,version,node_num,hidden_size,num_token,num_topk,num_experts,dispatch_sms,dispatch_transmit_us,"
      "dispatch_notify_us,combine_sms,combine_transmit_us,combine_notify_us\n"
      "h100_sxm,0.5,1,7168,64,8,256,20,30,5,24,40,0\n");
  ASSERT_EQ(rows.rows.size(), 2U);
  EXPECT_NEAR(rows.rows[0].seconds, 35e-6, 1e-15);
  EXPECT_EQ(rows.rows[1].call.expert.processors, 24);
}

TEST_F(CommunicationRowsTest, what_cannot_be_expressed_is_skipped_with_its_row_and_reason) {
  const CommunicationRows rows = read(
      "system,collective,gpus,gpus_per_node_used,bytes,median_us\n"
      "a100_dgx,all_reduce,8,8,1024,60\na100_dgx,all_reduce,16,8,1024,60\n"
      "a100_pairwise_nvlink,all_reduce,2,2,1024,7\nx100_dgx,all_reduce,8,8,1024,60\n");
  ASSERT_EQ(rows.rows.size(), 1U);
  EXPECT_EQ(rows.rows[0].device, "a100_sxm");
  EXPECT_TRUE(rows.rows[0].is_check_only);
  ASSERT_EQ(rows.skipped.size(), 3U);
  EXPECT_EQ(rows.skipped[0].row, 2U);
  for (const SkippedRows& skipped : rows.skipped) EXPECT_FALSE(skipped.why.empty());
}

TEST_F(CommunicationRowsTest, broken_cells_and_unknown_tables_are_input_errors) {
  EXPECT_THROW(read("a,b\n1,2\n"), InputError);
  EXPECT_THROW(read("system,ccl,version,collective,dtype,gpus,bytes,latency_us\n"
                    "h100_sxm,nccl,2,all_reduce,half,8,1024,-3\n"),
               InputError);
  EXPECT_THROW(read_communication_rows(folder / "nothing.csv", systems), InputError);
}

}  // namespace foretoken::communication_rows_test
