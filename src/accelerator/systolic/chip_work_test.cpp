#include "accelerator/systolic/chip_work.h"

#include <gtest/gtest.h>

#include "accelerator/systolic/chip_networks.h"
#include "base/error.h"
#include "base/file.h"

namespace foretoken::chip_work_test {

const std::filesystem::path chips = std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data" / "accelerators" / "systolic";

SystolicChip chip(const std::string& name) {
  return read_systolic_chip(chips / (name + ".json"));
}

double macs(const ChipWork& work) {
  double sum = 0;
  for (const ArrayProduct& product : work.products) {
    sum += static_cast<double>(product.rows * product.depth) * static_cast<double>(product.columns) * product.repeats;
  }
  return sum;
}

// Published: 92 TOPS of TPU v1, 123 and 275 TFLOP/s of the two cores of v3 and v4.
TEST(SystolicChips, shipped_chips_have_their_published_peaks) {
  EXPECT_NEAR(chip("tpu_v1").peak().value() / 1e12, 92, 0.5);
  EXPECT_NEAR(2 * chip("tpu_v3").peak().value() / 1e12, 123, 0.5);
  EXPECT_NEAR(2 * chip("tpu_v4").peak().value() / 1e12, 275, 0.5);
}

TEST(SystolicChips, every_shipped_file_is_read_and_named_as_its_file) {
  const std::vector<std::string> names = file_stems(chips);
  ASSERT_GE(names.size(), 3);
  for (const std::string& name : names) EXPECT_EQ(chip(name).name, name);
}

TEST(SystolicChips, an_unknown_key_and_a_number_in_the_wrong_unit_are_refused) {
  const std::string text = read_file(chips / "tpu_v3.json", 1 << 20);
  EXPECT_NO_THROW(parse_systolic_chip(text, "chip"));
  std::string unknown = text;
  unknown.replace(unknown.find("\"arrays\""), 8, "\"arays\"");
  EXPECT_THROW(parse_systolic_chip(unknown, "chip"), InputError);
  std::string unit = text;
  unit.replace(unit.find("940"), 3, "940000000");
  EXPECT_THROW(parse_systolic_chip(unit, "chip"), InputError);
}

TEST(ChipWork, networks_have_their_published_multiplications) {
  EXPECT_NEAR(macs(resnet_work(18, 1)) / 1e9, 1.82, 0.02);  // torchvision, 224 x 224
  EXPECT_NEAR(macs(resnet_work(50, 1)) / 1e9, 4.09, 0.03);
  EXPECT_NEAR(resnet_work(50, 1).matrix_words / 1e6, 25.5, 0.3);  // weights and one picture
  const double block = 12.0 * 768 * 768 * 512 + 2.0 * 512 * 512 * 768;
  EXPECT_EQ(macs(bert_block_work(768, 12, 512)), block);
  EXPECT_THROW(resnet_work(20, 1), InputError);
  EXPECT_THROW(bert_block_work(768, 13, 512), InputError);
}

TEST(ChipWork, a_product_is_never_faster_than_its_multiplications_on_all_cells) {
  const SystolicChip tpu = chip("tpu_v3");
  const auto cells = static_cast<double>(tpu.array_rows.value * tpu.array_columns.value * tpu.arrays.value);
  for (const int64_t rows : {1, 100, 512}) {
    for (const int64_t depth : {1, 128, 200}) {
      for (const int64_t columns : {1, 64, 256, 700}) {
        const ChipWork work = gemm_work(rows, depth, columns);
        EXPECT_GE(chip_cycles(tpu, work).matrix * cells, macs(work));
      }
    }
  }
}

TEST(ChipWork, cycles_add_up_and_more_bandwidth_shortens_memory_alone) {
  SystolicChip tpu = chip("tpu_v3");
  const ChipWork work = bert_block_work(1024, 16, 512);
  const ChipCycles before = chip_cycles(tpu, work);
  tpu.memory_bandwidth.value = 2 * tpu.memory_bandwidth.value;
  const ChipCycles after = chip_cycles(tpu, work);
  EXPECT_DOUBLE_EQ(before.total(), before.matrix + before.memory + before.vector + before.launch);
  EXPECT_DOUBLE_EQ(after.memory, before.memory / 2);
  EXPECT_EQ(after.matrix, before.matrix);
}

}  // namespace foretoken::chip_work_test
