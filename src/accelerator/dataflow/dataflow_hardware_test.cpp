#include "accelerator/dataflow/dataflow_hardware.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::dataflow_hardware_test {

TEST(DataflowHardware, keys_come_in_any_order_and_older_names_work) {
  const DataflowHardware hardware =
      parse_dataflow_hardware("noc_bw_cstr: 1000\nnum_pes: 256 // elements\noffchip_bw_cstr: 50\n", "hw.m");
  EXPECT_EQ(hardware.num_pes, 256);
  EXPECT_EQ(hardware.noc_bandwidth, 1000);
  EXPECT_EQ(hardware.offchip_bandwidth, 50);
  EXPECT_EQ(hardware.l1_bytes, unlimited_hardware);
  EXPECT_EQ(parse_dataflow_hardware("NumPEs: 64\nL2Size: 4096\n", "hw.m").l2_bytes, 4096);
}

TEST(DataflowHardware, an_unknown_key_or_number_is_refused_with_its_line) {
  try {
    parse_dataflow_hardware("num_pes: 4\nl2_size: 7\n", "hw.m");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().line, 2);
    EXPECT_EQ(error.problem().suggestion, "l2_size_cstr");
  }
  EXPECT_THROW(parse_dataflow_hardware("num_pes: 0", "hw.m"), InputError);
  EXPECT_THROW(parse_dataflow_hardware("num_pes", "hw.m"), InputError);
}

}  // namespace foretoken::dataflow_hardware_test
