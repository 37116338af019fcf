#include "validate/collectives/validate_communication.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "network/calibration/test_systems.h"

namespace foretoken::validate_communication_test {

TEST(ValidateCommunication, scores_what_it_is_asked_for_and_names_the_rest) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "validate_communication";
  std::filesystem::create_directories(folder);
  const SystemLibrary systems{test_support::catalogue()};
  write_file(folder / "table.csv",
             "system,ccl,version,collective,dtype,gpus,bytes,latency_us\n"
             "h100_sxm,nccl,2.27.3,all_reduce,half,4,4096,10\nh100_sxm,nccl,2.27.3,all_reduce,half,8,1048576,30\n"
             "h200_sxm,nccl,2.27.3,alltoall,half,8,1048576,20\n");
  const auto library =
      std::make_shared<const CommunicationLibrary>(read_communication_library(FORETOKEN_SOURCE_DIR "/data/networks"));
  const Validation all = validate_communication({.data = folder}, library, systems);
  EXPECT_EQ(all.overall.n, 3U);
  ASSERT_EQ(all.groups.size(), 2U);
  EXPECT_EQ(all.groups[0].name, "h100_sxm/all_reduce");
  const Validation given = validate_communication(
      {.data = folder, .systems = {"h100_sxm"}, .tier = Tier::cross, .gives_small_message = true}, library, systems);
  EXPECT_EQ(given.overall.n, 1U);  // the given one is not scored
  EXPECT_EQ(given.skipped.size(), 1U);
  EXPECT_THROW(validate_communication({.data = folder, .systems = {"nobody"}}, library, systems), InputError);
  EXPECT_EQ(validate_communication({.data = folder, .group_by = "system"}, library, systems).groups.size(), 2U);
  EXPECT_THROW(validate_communication({.data = folder, .group_by = "role"}, library, systems), InputError);
  const Validation none = validate_communication({.data = folder, .tier = Tier::roofline}, library, systems);
  EXPECT_EQ(none.skipped.size(), 3U);
  std::filesystem::remove_all(folder);
}

}  // namespace foretoken::validate_communication_test
