#include "accelerator/pim/device.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/error.h"

namespace foretoken::device_test {

const std::filesystem::path upmem_file =
    std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data" / "accelerators" / "pim" / "upmem.json";

std::string upmem_text() {
  std::ifstream file(upmem_file);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string with(std::string text, const std::string& old, const std::string& replacement) {
  const size_t place = text.find(old);
  EXPECT_NE(place, std::string::npos) << old;
  return text.replace(place, old.size(), replacement);
}

TEST(PimDevice, the_shipped_machine_is_the_published_one) {
  const PimDevice device = read_pim_device(upmem_file);
  EXPECT_EQ(device.clock.value, Hertz(350e6));
  EXPECT_EQ(device.cycles_per_tasklet.value, 11);
  EXPECT_EQ(device.memory.value, Bytes(64 * mebi));
  for (const PimTransferLaw& law : device.transfers) EXPECT_FALSE(law.source.empty());
  for (const auto& [name, program] : device.programs) EXPECT_FALSE(program.source.empty()) << name;
}

TEST(PimDevice, shipped_parallel_transfers_are_never_slower_on_more_dpus_or_out_of_the_cache) {
  const PimDevice device = read_pim_device(upmem_file);
  for (const PimTransferKind kind : {PimTransferKind::to_dpus, PimTransferKind::to_dpus_cached,
                                     PimTransferKind::broadcast, PimTransferKind::from_dpus}) {
    BytesPerSecond before;
    for (double dpus = 1; dpus <= 256; dpus *= 1.5) {
      EXPECT_GE(device.transfer(kind).rate(dpus).value(), before.value() * (1 - 1e-12)) << dpus;
      before = device.transfer(kind).rate(dpus);
      EXPECT_GE(device.transfer(PimTransferKind::to_dpus_cached).rate(dpus),
                device.transfer(PimTransferKind::to_dpus).rate(dpus));
    }
  }
}

TEST(PimDevice, rates_are_those_given_at_their_numbers_of_dpus_and_lie_between_them_elsewhere) {
  const PimTransferLaw law{.rates = {{4, BytesPerSecond(1e9)}, {16, BytesPerSecond(4e9)}}};
  EXPECT_DOUBLE_EQ(law.rate(1).value(), 1e9);
  EXPECT_DOUBLE_EQ(law.rate(4).value(), 1e9);
  EXPECT_NEAR(law.rate(8).value(), 2e9, 1);  // halfway in logarithms
  EXPECT_NEAR(law.rate(16).value(), 4e9, 1);
  EXPECT_DOUBLE_EQ(law.rate(1000).value(), 4e9);
}

TEST(PimDevice, a_wrong_file_is_refused_with_its_place) {
  const std::string good = upmem_text();
  EXPECT_NO_THROW(parse_pim_device(good, "machine.json"));
  const std::pair<std::string, std::string> breaks[] = {
      {"\"value\": 350", "\"value\": -350"},
      {"\"call_ms\"", "\"call_s\""},
      {"\"dpus\": 4,", "\"dpus\": 1,"},  // numbers of DPUs must rise
      {"\"broadcast\"", "\"broadcasts\""},
      {"\"instructions_per_element\": ", "\"instructions_per_element\": -"},
      {"three launches\", \"assumed\": true", "three launches\""},  // neither assumed nor measured
      {"\"measured\": {", "\"assumed\": true, \"measured\": {"},    // both
  };
  for (const auto& [old, replacement] : breaks) {
    try {
      parse_pim_device(with(good, old, replacement), "machine.json");
      ADD_FAILURE() << replacement;
    } catch (const InputError& error) {
      EXPECT_EQ(error.problem().source, "machine.json");
      EXPECT_FALSE(error.problem().expected.empty());
    }
  }
}

}  // namespace foretoken::device_test
