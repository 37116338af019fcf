#include "accelerator/formats/compute_in_memory.h"

#include <gtest/gtest.h>

#include "accelerator/formats/designs.h"
#include "accelerator/formats/mapper_constraints.h"
#include "accelerator/mapper/mapper.h"
#include "base/error.h"

namespace foretoken::compute_in_memory_test {

const AcceleratorCatalogue& catalogue() {
  static const AcceleratorCatalogue own(FORETOKEN_SOURCE_DIR "/data/accelerators");
  return own;
}

AcceleratorDesign read(const std::string& text) {
  const Json document = parse_json(text, "design");
  return catalogue().design_in(JsonView(document, "design")).design;
}

std::string small(const std::string& bits, const std::string& converter) {
  return R"({"name": "small", "clock_ghz": 1, "technology_nm": 32, "levels": [
    {"name": "DRAM", "component": "LPDDR4", "words_per_access": 8},
    {"name": "buffer", "inside": "DRAM", "component": "SRAM", "words_per_access": 8, "capacity_bytes": 65536,
     "buffers": 2, "keep": ["inputs", "outputs"]},
    {"name": "array", "inside": "buffer", "kind": "compute_in_memory", "rows": 64, "columns": 64, )" +
         bits + R"(, "cell_pj": 0.001, "row_pj": 0.01, "converter": {)" + converter + "}}]}";
}

Evaluation best(const AcceleratorDesign& design, const Problem& problem) {
  const MapperOptions options{.objective = {.first = MappingMetric::energy, .second = MappingMetric::delay},
                              .most_tries = 20'000};
  const MapperResult found =
      search_mappings(design.architecture, problem, design_constraints(design, problem), options);
  EXPECT_TRUE(found.best) << found.reason;
  return found.best->evaluation;
}

double converting_pj(const AcceleratorDesign& design, const Evaluation& result) {
  return result.levels[find_level(design.architecture, "array_columns")].access_pj;
}

TEST(ComputeInMemory, inputs_in_steps_and_weights_in_slices_take_conversions_and_cycles) {
  const AcceleratorDesign own =
      read(small(R"("weight_bits": 8, "cell_bits": 2, "input_bits": 8, "input_bits_per_step": 1)",
                 R"("bits": 8, "columns_each": 4, "conversions_per_second": 1e9)"));
  const Architecture& chip = own.architecture;
  EXPECT_EQ(instances(chip.levels.back()), 64 * 16);  // four columns to a weight
  EXPECT_DOUBLE_EQ(chip.levels.back().operation_cycles, 8 * 4);
  EXPECT_DOUBLE_EQ(operations_per_cycle(chip), 64 * 16 / 32.0);
  const AcceleratorLevel& columns = chip.levels[find_level(chip, "array_columns")];
  EXPECT_DOUBLE_EQ(columns.energy.update_pj, 8 * 4 * 1.67);
}

TEST(ComputeInMemory, a_full_column_is_converted_once_for_all_its_rows) {
  const AcceleratorDesign own = read(
      small(R"("weight_bits": 1, "input_bits": 1)", R"("bits": 6, "columns_each": 1, "conversions_per_second": 1e8)"));
  const Problem full = gemm_problem({.m = 32, .n = 64, .k = 64}), quarter = gemm_problem({.m = 32, .n = 64, .k = 16});
  const double conversions = 32 * 64 * 1.20;
  EXPECT_NEAR(converting_pj(own, best(own, full)), conversions, 1e-6 * conversions);
  EXPECT_NEAR(converting_pj(own, best(own, quarter)), conversions, 1e-6 * conversions);  // four times a multiply-add's
}

TEST(ComputeInMemory, more_bits_and_faster_conversions_take_more_energy) {
  const auto update_pj = [](const std::string& converter) {
    const AcceleratorDesign own = read(small(R"("weight_bits": 1, "input_bits": 1)", converter));
    return own.architecture.levels[find_level(own.architecture, "array_columns")].energy.update_pj;
  };
  EXPECT_LT(update_pj(R"("bits": 5, "conversions_per_second": 1e8)"),
            update_pj(R"("bits": 7, "conversions_per_second": 1e8)"));
  EXPECT_DOUBLE_EQ(update_pj(R"("bits": 8, "conversions_per_second": 2.4e9)"),
                   2 * update_pj(R"("bits": 8, "conversions_per_second": 1e9)"));
  EXPECT_DOUBLE_EQ(update_pj(R"("bits": 8, "conversions_per_second": 1e9, "conversion_pj": 3)"), 3);
}

TEST(ComputeInMemory, weights_wider_than_the_array_are_refused) {
  EXPECT_THROW(
      read(small(R"("weight_bits": 64, "cell_bits": 1, "columns": 32)", R"("bits": 8, "conversions_per_second": 1e9)")),
      InputError);
  EXPECT_THROW(read(small(R"("weight_bits": 8, "adcs": 3)", R"("bits": 8, "conversions_per_second": 1e9)")),
               InputError);
}

// Jia et al., JSSC 2020, table II: 2.185 TOPS and 192 TOPS/W with one-bit inputs and weights at 1.2 V, of the array and
// its converters. The energy of a conversion is the library's.
TEST(ComputeInMemory, a_published_macro_has_its_efficiency) {
  AcceleratorDesign own = catalogue().design("cim_sram_65nm").design;
  const int columns = find_level(own.architecture, "array_columns"),
            cells = find_level(own.architecture, "array_cells");
  const AnalogConverter& converter = own.architecture.levels[columns].converter;
  const double conversions = converter.conversions;  // of eight bits each
  EXPECT_EQ(conversions, 64);
  const double conversion_pj = own.architecture.levels[columns].energy.update_pj / conversions - converter.extra_pj;
  EXPECT_NEAR(conversion_pj, 3.56, 0.25 * 3.56);  // measured
  const double cell_pj = own.architecture.levels[cells].energy.read_pj / conversions;
  const double rows = 2304, operations = 2 * rows;
  EXPECT_NEAR(operations / (conversion_pj + rows * cell_pj), 192, 0.1 * 192);
  // Of one-bit operations: 64 to each of eight bits.
  const double tops = 2 * operations_per_cycle(own.architecture) * own.architecture.clock_hz * conversions / 1e12;
  EXPECT_NEAR(tops, 2.185, 0.01 * 2.185);
}

TEST(ComputeInMemory, the_slowest_and_the_most_expensive_array_read_back_or_are_refused) {
  const std::string converter = R"("bits": 8, "conversions_per_second": 1e9, "conversion_pj": 1e8)";
  const std::string widest = R"("weight_bits": 64, "input_bits": 64, "column_pj": 1e8, )";
  for (const char* step_ns : {"1e9", "1e6", "0"}) {
    const AcceleratorDesign own = read(small(widest + R"("step_ns": )" + step_ns, converter));
    const Json written = architecture_json(own);
    const AcceleratorDesign again = catalogue().design_in(JsonView(written, "again")).design;
    EXPECT_EQ(own.architecture.levels.back().operation_cycles, again.architecture.levels.back().operation_cycles);
  }
  EXPECT_THROW(read(small(R"("cell_bits": 8)", R"("bits": 8, "columns_each": 1000000, "conversions_per_second": 1)")),
               InputError);
}

TEST(ComputeInMemory, levels_written_as_a_chain_read_back) {
  const AcceleratorDesign own = catalogue().design("cim_sram_65nm").design;
  const Json written = architecture_json(own);
  const AcceleratorDesign again = catalogue().design_in(JsonView(written, "again")).design;
  const Problem problem = gemm_problem({.m = 64, .n = 32, .k = 512});
  EXPECT_EQ(best(own, problem).energy_pj, best(again, problem).energy_pj);
  EXPECT_EQ(best(own, problem).latency_cycles(), best(again, problem).latency_cycles());
}

}  // namespace foretoken::compute_in_memory_test
