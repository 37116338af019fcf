#include "hardware/catalogue.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "hardware/device_file.h"

namespace foretoken::hardware_catalogue_test {

using testing::AllOf;
using testing::HasSubstr;

HardwareCatalogue shipped() {
  return HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware");
}

template <class Call>
std::string complaint_of(const Call& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no complaint";
}

// A folder of devices of the user's, made from those that ship.
class OwnDevices : public testing::Test {
 protected:
  OwnDevices() { std::filesystem::create_directories(own_ / "devices"); }
  ~OwnDevices() override {
    std::error_code ignored;
    std::filesystem::remove_all(own_, ignored);
  }
  void add(const std::string& stem, const Device& device) const {
    write_file(own_ / "devices" / (stem + ".json"), device_file_text(device));
  }
  const std::filesystem::path& own_folder() const { return own_; }
  HardwareCatalogue catalogue() const { return HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware", own_); }

 private:
  std::filesystem::path own_ =
      std::filesystem::path(testing::TempDir()) /
      (std::string("own_hardware_") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(OwnDevices, are_found_beside_those_that_ship) {
  Device mine = shipped().device("h100_sxm");
  mine.name = "mine";
  mine.aliases.clear();
  add("mine", mine);
  EXPECT_EQ(catalogue().own_device_names(), std::vector<std::string>{"mine"});
  EXPECT_EQ(catalogue().device_names().size(), shipped().device_names().size() + 1);
  EXPECT_EQ(catalogue().device("Mine").name, "mine");
  EXPECT_EQ(catalogue().device("h100").name, "h100_sxm");
}

TEST_F(OwnDevices, a_copy_is_called_as_its_file_and_takes_no_alias_from_the_original) {
  add("better_h100", shipped().device("h100_sxm"));  // sorted before it, and its name and aliases are kept
  EXPECT_EQ(catalogue().device("better_h100").name, "better_h100");
  EXPECT_EQ(catalogue().device_file("better_h100"), own_folder() / "devices" / "better_h100.json");
  EXPECT_EQ(catalogue().device_file("h100_sxm"), FORETOKEN_SOURCE_DIR "/data/hardware/devices/h100_sxm.json");
  EXPECT_EQ(catalogue().device("h100_sxm").name, "h100_sxm");
  EXPECT_EQ(catalogue().device("H100").name, "h100_sxm");
}

TEST_F(OwnDevices, a_file_called_as_a_device_that_ships_is_refused) {
  add("l4", shipped().device("l4"));
  EXPECT_THAT(complaint_of([&] { catalogue().device("L4"); }),
              AllOf(HasSubstr("l4.json"), HasSubstr("built-in device"), HasSubstr("my_l4.json")));
  EXPECT_EQ(catalogue().device("h100_sxm").name, "h100_sxm");
  // Questions about other devices look at all devices and nodes.
  const HardwareCatalogue all = catalogue();
  EXPECT_EQ(all.device_names(), shipped().device_names());
  for (const std::string& name : all.device_names()) {
    EXPECT_EQ(all.find_device(name).name, name);
    EXPECT_EQ(all.is_refused(name), name == "l4") << name;
  }
  EXPECT_EQ(catalogue().node_with(catalogue().device("h100_sxm"))->name, "hgx_h100");
  EXPECT_EQ(catalogue().node("g6_48xlarge").device.name, "l4");
  add("H200-SXM", shipped().device("h200_sxm"));
  EXPECT_THAT(complaint_of([&] { catalogue().device("h200_sxm"); }), HasSubstr("H200-SXM.json"));
}

TEST_F(OwnDevices, a_copy_sits_in_the_node_of_the_original) {
  add("my_h100", shipped().device("h100_sxm"));
  const std::optional<Node> node = catalogue().node_with(catalogue().device("my_h100"));
  ASSERT_TRUE(node);
  EXPECT_EQ(node->name, "hgx_h100");
  EXPECT_EQ(node->device.name, "my_h100");
}

TEST(Catalogue, a_number_of_devices_in_a_name_is_told_its_flag) {
  for (const char* typed : {"8xH100", "h100:8", "8XH100"}) {
    EXPECT_THAT(complaint_of([&] { shipped().device(typed); }),
                AllOf(HasSubstr("give the number of devices separately, for example {tensor_parallel_size} 8"),
                      testing::Not(HasSubstr("did you mean"))))
        << typed;
  }
  EXPECT_THAT(complaint_of([] { shipped().device("8xh1000"); }), testing::Not(HasSubstr("separately")));
}

TEST(Catalogue, every_shipped_device_loads_and_cites_all_its_numbers) {
  const HardwareCatalogue catalogue = shipped();
  int accelerators = 0;
  int cpus = 0;
  for (const std::string& name : catalogue.device_names()) {
    const Device device = catalogue.device(name);
    EXPECT_EQ(device.name, name);
    EXPECT_TRUE(device.memory_bandwidth) << name;
    EXPECT_GE(device_facts(device).size(), 5U) << name;
    for (const DeviceFact& fact : device_facts(device)) EXPECT_GT(fact.source.size(), 5U) << name << " " << fact.key;
    ++(device.kind == DeviceKind::cpu ? cpus : accelerators);
  }
  EXPECT_EQ(accelerators, 63);
  EXPECT_EQ(cpus, 6);
}

TEST(Catalogue, nodes_on_pcie_say_what_is_known_of_their_links) {
  const HardwareCatalogue catalogue = shipped();
  const NodeFabric l40s = catalogue.node("l40s_pcie").fabric;
  EXPECT_FALSE(l40s.is_swept) << "one crawling host was swept; others are ten times as fast";
  EXPECT_TRUE(l40s.peer_access && l40s.peer_access->value);
  const NodeFabric rtx_4090 = catalogue.node("rtx_4090_server").fabric;
  EXPECT_FALSE(rtx_4090.is_swept);
  EXPECT_TRUE(rtx_4090.peer_access && !rtx_4090.peer_access->value);
  // Cards whose NVLink is a bridge between two of them reach the others over PCIe.
  for (const char* device : {"h100_pcie", "a100_pcie", "a100_pcie_40gb", "a30", "a40", "a6000", "rtx_3090"}) {
    const std::optional<Node> node = catalogue.node_with(catalogue.device(device));
    ASSERT_TRUE(node.has_value()) << device;
    EXPECT_EQ(node->fabric.kind, NodeFabricKind::pcie) << device;
    EXPECT_FALSE(node->fabric.bridge.has_value()) << device;
  }
}

TEST(Catalogue, every_shipped_device_has_a_peak_for_sixteen_bit_floats) {
  const HardwareCatalogue catalogue = shipped();
  for (const std::string& name : catalogue.device_names()) {
    EXPECT_TRUE(catalogue.device(name).peak_or_fallback(DType::bf16)) << name;
  }
}

// Routers of experts multiply in fp32 on every device.
TEST(Catalogue, every_shipped_device_multiplies_in_fp32) {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  for (const std::string& name : hardware.device_names()) {
    const Device device = hardware.device(name);
    EXPECT_TRUE(device.kind == DeviceKind::cpu || device.peak_or_fallback(DType::fp32)) << name;
  }
}

TEST(Catalogue, h100_has_the_numbers_of_its_sheet) {
  const Device h100 = shipped().device("h100_sxm");
  EXPECT_EQ(h100.processors->value, 132);
  EXPECT_EQ(h100.fp32_lanes_per_processor->value, 128);
  EXPECT_EQ(h100.boost_clock->value.value(), 1980e6);
  EXPECT_EQ(h100.last_level_cache->value.value(), 50 * mebi);
  EXPECT_EQ(h100.memory->value.value(), 80e9);
  EXPECT_EQ(h100.memory_bandwidth->value.value(), 3350e9);
  EXPECT_EQ(h100.power_limit->value.value(), 700);
  EXPECT_EQ(h100.link_bandwidth->value.value(), 450e9);  // one direction
  EXPECT_EQ(h100.host_bandwidth->value.value(), 64e9);
  EXPECT_EQ(h100.peak_or_fallback(DType::bf16)->value(), 989.4e12);
  EXPECT_EQ(h100.peak_or_fallback(DType::fp8)->value(), 1978.9e12);
  EXPECT_EQ(h100.peak_or_fallback(DType::fp4)->value(), 1978.9e12);  // no fp4 units: fp8
  EXPECT_EQ(h100.type_or_fallback(DType::fp4), DType::fp8);
  EXPECT_EQ(h100.type_or_fallback(DType::bf16), DType::bf16);
  EXPECT_EQ(h100.instruction_set, "sm_90");
}

TEST(Catalogue, what_nobody_published_is_unknown_not_invented) {
  const Device tpu = shipped().device("tpu_v5e");
  EXPECT_FALSE(tpu.boost_clock);
  EXPECT_FALSE(tpu.fp32_lanes_per_processor);
  EXPECT_FALSE(tpu.power_limit);
  EXPECT_TRUE(tpu.instruction_set.empty());
  const Device gb300 = shipped().device("gb300");
  EXPECT_TRUE(gb300.processors->assumed);
  EXPECT_FALSE(gb300.memory->assumed);
}

TEST(Catalogue, names_may_be_spelt_in_many_ways) {
  const HardwareCatalogue catalogue = shipped();
  for (const char* name :
       {"h100_sxm", "H100-SXM", "h100 sxm", "H100", "H100_SXM5_80GB", "H100-SXM5-80GB", "NVIDIA H100 80GB HBM3"}) {
    EXPECT_EQ(catalogue.device(name).name, "h100_sxm") << name;
  }
  EXPECT_EQ(catalogue.device("A100").name, "a100_sxm");
  EXPECT_EQ(catalogue.device("A100-80GB").name, "a100_sxm");
  EXPECT_EQ(catalogue.device("B200").name, "b200_sxm");
  EXPECT_EQ(catalogue.device("GB200 NVL").name, "gb200");
  EXPECT_EQ(catalogue.device("RTX4090").name, "rtx_4090");
  EXPECT_EQ(catalogue.node("DGX-H100").name, "hgx_h100");
  EXPECT_EQ(catalogue.cluster("DGX SuperPOD H100").name, "h100_ib_rail");
}

TEST(Catalogue, an_unknown_name_is_an_input_error_with_the_nearest_one) {
  const HardwareCatalogue catalogue = shipped();
  EXPECT_THAT(complaint_of([&] { catalogue.device("h100_smx"); }),
              AllOf(HasSubstr("device: h100_smx"), HasSubstr("did you mean h100_sxm?")));
  EXPECT_THAT(complaint_of([&] { catalogue.node("hgx_h1000"); }), HasSubstr("did you mean hgx_h100?"));
  EXPECT_THAT(complaint_of([&] { catalogue.cluster("h100_ib_rial"); }), HasSubstr("did you mean h100_ib_rail?"));
  EXPECT_THAT(complaint_of([&] { catalogue.device(""); }), HasSubstr("the name of a device"));
}

TEST(Catalogue, a_path_reads_the_users_own_file) {
  const HardwareCatalogue catalogue = shipped();
  EXPECT_EQ(catalogue.device(FORETOKEN_SOURCE_DIR "/data/hardware/devices/l4.json").name, "l4");
  EXPECT_THAT(complaint_of([&] { catalogue.device("my_gpu.json"); }), HasSubstr("my_gpu.json"));
  EXPECT_THAT(complaint_of([&] { catalogue.device("./h100_sxm"); }), HasSubstr("./h100_sxm"));
  EXPECT_THAT(complaint_of([&] { catalogue.device(FORETOKEN_SOURCE_DIR "/data/hardware/devices"); }),
              HasSubstr("devices"));
}

TEST(Catalogue, a_device_may_be_given_as_the_content_of_its_file) {
  const std::string text = read_file(FORETOKEN_SOURCE_DIR "/data/hardware/devices/h100_sxm.json", 1 << 20);
  EXPECT_EQ(device_facts(shipped().device(text)).size(), device_facts(shipped().device("h100_sxm")).size());
  EXPECT_THAT(complaint_of([] { shipped().device(R"({"name": "x", "colour": 1})"); }), HasSubstr("colour"));
}

TEST(Catalogue, a_users_node_may_point_at_a_device_file_beside_it) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "foretoken_user_node";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(FORETOKEN_SOURCE_DIR "/data/hardware/devices/l4.json", folder / "my_l4.json",
                             std::filesystem::copy_options::overwrite_existing);
  std::ofstream(folder / "box.json") << R"({"name": "box", "title": "Box", "device": "my_l4.json", "device_count": 2,
    "fabric": {"kind": "pcie", "bandwidth_gb_per_s": {"value": 32, "source": "measured"}}})";
  const Node node = shipped().node((folder / "box.json").string());
  EXPECT_EQ(node.device.name, "l4");
  EXPECT_EQ(node.device_count, 2);
  EXPECT_FALSE(network_bandwidth_per_device(node));

  std::ofstream(folder / "bad.json") << "{\"name\": \"box\", \"title\": \"Box\",\n \"device\": \"l5\"}";
  EXPECT_THAT(complaint_of([&] { shipped().node((folder / "bad.json").string()); }),
              AllOf(HasSubstr("bad.json:2: device = \"l5\""), HasSubstr("did you mean l4?")));
}

TEST(Catalogue, a_folder_without_devices_is_an_input_error) {
  EXPECT_THROW(HardwareCatalogue("no/such/folder"), InputError);
}

TEST(Catalogue, the_usual_node_of_a_device_is_found) {
  const HardwareCatalogue catalogue = shipped();
  EXPECT_EQ(catalogue.node_with(catalogue.device("h100"))->name, "hgx_h100");
  EXPECT_EQ(catalogue.node_with(catalogue.device("mi300x"))->name, "mi300x_platform");
  EXPECT_FALSE(catalogue.node_with(catalogue.device("p4")));
}

}  // namespace foretoken::hardware_catalogue_test
