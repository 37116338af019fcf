#include "hardware/check.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken::check_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// A folder with one good device, to plant problems in.
class HardwareCheck : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("foretoken_check_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    for (const char* kind : {"devices", "nodes", "clusters"}) fs::create_directories(folder_ / kind);
    write("devices/good.json", device("good", R"("link_bandwidth_gb_per_s": {"value": 300, "source": "s"})"));
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& file, const std::string& text) { std::ofstream(folder_ / file) << text; }

  static std::string device(const std::string& name, const std::string& more) {
    return R"({"name": ")" + name + R"(", "title": "T", "vendor": "V", "kind": "gpu", )" + more + "}";
  }

  static std::string node(const std::string& device, const std::string& bandwidth) {
    return R"({"name": "box", "title": "T", "device": ")" + device + R"(", "device_count": 8,
      "network_cards": {"count": {"value": 8, "source": "s"}, "bandwidth_gb_per_s": {"value": 25, "source": "s"}},
      "fabric": {"kind": "nvswitch", "bandwidth_gb_per_s": {"value": )" +
           bandwidth + R"(, "source": "s"}}})";
  }

  static std::string cluster(const std::string& node, const std::string& bandwidth) {
    return R"({"name": "farm", "title": "T", "node": ")" + node + R"(", "node_count": 2, "fabric": {
      "kind": "fat_tree", "technology": "T", "nic_bandwidth_gb_per_s": {"value": )" +
           bandwidth + R"(, "source": "s"},
      "oversubscription": {"value": 1, "source": "s"}, "nodes_per_leaf": {"value": 2, "source": "s"}}})";
  }

  // The one problem the folder has.
  std::string only_problem() const {
    const auto problems = check_hardware_data(folder_);
    std::string all;
    for (const DataProblem& problem : problems) all += problem.message + "\n";
    EXPECT_EQ(problems.size(), 1U) << all;
    return all;
  }

  fs::path folder_;
};

TEST(HardwareData, what_ships_has_no_problem) {
  for (const DataProblem& problem : check_hardware_data(FORETOKEN_SOURCE_DIR "/data/hardware"))
    ADD_FAILURE() << problem.message;
}

TEST_F(HardwareCheck, a_gpu_whose_kernels_are_known_names_its_memory) {
  write("devices/new.json", device("new", R"("instruction_set": "sm_90")"));
  EXPECT_THAT(only_problem(), HasSubstr("new.json: memory_type is missing"));
  write("devices/new.json", device("new", R"("instruction_set": "sm_90",
      "memory_type": {"value": "hbm3", "source": "s"})"));
  EXPECT_TRUE(check_hardware_data(folder_).empty());
}

TEST_F(HardwareCheck, a_fact_that_contradicts_the_generation_needs_a_note) {
  const std::string start = R"("instruction_set": "sm_90", "memory_type": {"value": "hbm3", "source": "s"},
      "asynchronous_multiplies": {"value": false, "source": "s")";
  write("devices/new.json", device("new", start + "}"));
  EXPECT_THAT(only_problem(), HasSubstr("asynchronous_multiplies = false, but Hopper GPUs have them"));
  write("devices/new.json", device("new", start + R"(, "note": "fused off"})"));
  EXPECT_TRUE(check_hardware_data(folder_).empty());
}

TEST_F(HardwareCheck, a_device_may_be_like_one_whose_generation_is_known) {
  write("devices/old.json", device("old", R"("instruction_set": "sm_90",
      "memory_type": {"value": "hbm3", "source": "s"})"));
  write("devices/new.json", device("new", R"("instruction_set": "sm_140", "like": "old",
      "memory_type": {"value": "hbm4", "source": "s"})"));
  EXPECT_TRUE(check_hardware_data(folder_).empty());
  write("devices/newer.json", device("newer", R"("instruction_set": "sm_150", "like": "new",
      "memory_type": {"value": "hbm4", "source": "s"})"));
  EXPECT_THAT(only_problem(), HasSubstr("a GPU whose own generation is known"));
}

TEST_F(HardwareCheck, devices_that_are_like_each_other_are_refused) {
  write("devices/one.json", device("one", R"("instruction_set": "sm_140", "like": "two")"));
  write("devices/two.json", device("two", R"("instruction_set": "sm_140", "like": "one")"));
  EXPECT_EQ(check_hardware_data(folder_).size(), 2U);
}

TEST_F(HardwareCheck, mig_profiles_reach_the_whole_device) {
  write("devices/new.json", device("new", R"("mig": {"processor_slices": 7, "memory_slices": 8, "source": "s",
      "profiles": {"3g": {"processors": 3, "memory": 4}}})"));
  EXPECT_THAT(only_problem(), HasSubstr("mig.profiles has none that takes all slices"));
}

TEST_F(HardwareCheck, a_sound_folder_has_no_problem) {
  write("nodes/box.json", node("good", "300"));
  write("clusters/farm.json", cluster("box", "25"));
  EXPECT_TRUE(check_hardware_data(folder_).empty());
}

TEST_F(HardwareCheck, a_missing_folder_is_one_problem) {
  EXPECT_EQ(check_hardware_data(folder_ / "elsewhere").size(), 1U);
}

TEST_F(HardwareCheck, all_broken_files_are_listed_not_only_the_first) {
  write("devices/a.json", "{");
  write("devices/b.json", device("b", R"("memory_gb": 80)"));
  write("devices/notes.txt", "x");
  fs::create_directories(folder_ / "devices/c.json");
  const auto problems = check_hardware_data(folder_);
  ASSERT_EQ(problems.size(), 4U);
  EXPECT_THAT(problems[0].file, HasSubstr("a.json"));
  EXPECT_THAT(problems[1].message, AllOf(HasSubstr("b.json"), HasSubstr("source")));
  EXPECT_THAT(problems[2].message, HasSubstr("c.json"));
  EXPECT_THAT(problems[3].message, HasSubstr("only .json files"));
}

TEST_F(HardwareCheck, the_name_must_be_the_file_name) {
  write("devices/other.json", device("another", R"("note": "n")"));
  EXPECT_THAT(only_problem(), HasSubstr("name is `another`"));
}

TEST_F(HardwareCheck, aliases_must_not_collide_however_they_are_spelt) {
  write("devices/zz.json", device("zz", R"("aliases": ["GO-OD"])"));
  EXPECT_THAT(only_problem(), AllOf(HasSubstr("`GO-OD` also names"), HasSubstr("good.json")));
}

TEST_F(HardwareCheck, a_narrower_type_must_not_be_slower_unless_a_note_says_why) {
  const std::string peaks =
      R"("dense_peak_tflops": {"bf16": {"value": 100, "source": "s"}, "fp8": {"value": 50, "source": "s")";
  write("devices/odd.json", device("odd", peaks + "}}"));
  EXPECT_THAT(only_problem(), HasSubstr("dense_peak_tflops.fp8 = 50 is below bf16 = 100"));
  write("devices/odd.json", device("odd", peaks + R"(, "note": "emulated"}})"));
  EXPECT_TRUE(check_hardware_data(folder_).empty());
}

TEST_F(HardwareCheck, the_fp32_peak_must_follow_from_lanes_and_clock) {
  write("devices/odd.json", device("odd", R"("processors": {"value": 100, "source": "s"},
      "fp32_lanes_per_processor": {"value": 64, "source": "s"}, "boost_clock_mhz": {"value": 1000, "source": "s"},
      "dense_peak_tflops": {"fp32": {"value": 25.6, "source": "s"}})"));
  EXPECT_THAT(only_problem(), HasSubstr("processors x lanes x 2 x clock is 12.8"));
}

TEST_F(HardwareCheck, programs_get_most_of_the_memory_but_not_more_than_there_is) {
  const std::string boxed = R"("memory_gb": {"value": 24, "source": "s"}, "allocatable_memory_mib": {"value": )";
  for (const char* wrong : {"25000", "12000"}) {
    write("devices/odd.json", device("odd", boxed + wrong + R"(, "source": "s"})"));
    EXPECT_THAT(only_problem(), HasSubstr(std::string("allocatable_memory_mib = ") + wrong));
  }
  write("devices/odd.json", device("odd", boxed + R"(24080, "source": "s"})"));
  EXPECT_TRUE(check_hardware_data(folder_).empty());
}

TEST_F(HardwareCheck, a_node_must_refer_to_a_device_and_not_outrun_its_links) {
  write("nodes/box.json", node("goood", "300"));
  EXPECT_THAT(only_problem(), AllOf(HasSubstr("box.json"), HasSubstr("did you mean good?")));
  write("nodes/box.json", node("good", "600"));
  EXPECT_THAT(only_problem(), HasSubstr("fabric.bandwidth_gb_per_s = 600 exceeds link_bandwidth_gb_per_s = 300"));
}

TEST_F(HardwareCheck, a_cluster_must_refer_to_a_node_and_not_outrun_its_cards) {
  write("nodes/box.json", node("good", "300"));
  write("clusters/farm.json", cluster("boxx", "25"));
  EXPECT_THAT(only_problem(), AllOf(HasSubstr("farm.json"), HasSubstr("did you mean box?")));
  write("clusters/farm.json", cluster("box", "50"));
  EXPECT_THAT(only_problem(), HasSubstr("exceeds the 25 of the cards in box"));
}

}  // namespace foretoken::check_test
