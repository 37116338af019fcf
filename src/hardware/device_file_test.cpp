#include "hardware/device_file.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "hardware/catalogue.h"

namespace foretoken::device_file_test {

using testing::AllOf;
using testing::HasSubstr;

// A device file with `more` after the required keys.
std::string file_with(const std::string& more) {
  return R"({"name": "x", "title": "X", "vendor": "V", "kind": "gpu")" + (more.empty() ? "" : ",\n" + more) + "}";
}

std::string complaint_about(const std::string& text) {
  try {
    parse_device(text, "x.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(DeviceFile, what_is_written_reads_as_the_same_device) {
  const HardwareCatalogue shipped(FORETOKEN_SOURCE_DIR "/data/hardware");
  for (const std::string& name : shipped.device_names()) {
    const Device device = shipped.device(name);
    const Device read = parse_device(device_file_text(device), name, shipped.like_finder());
    EXPECT_EQ(device_file_text(read), device_file_text(device)) << name;
    EXPECT_EQ(read.aliases, device.aliases) << name;
    EXPECT_EQ(device_facts(read).size(), device_facts(device).size()) << name;
    EXPECT_EQ(read.mig.has_value(), device.mig.has_value()) << name;
  }
}

Device device_with_peaks(std::initializer_list<std::pair<DType, double>> peaks, DeviceKind kind = DeviceKind::gpu) {
  Device device{.kind = kind};
  for (const auto& [type, tflops] : peaks) {
    device.dense_peak[static_cast<size_t>(type)] = {.value = FlopsPerSecond(tflops * tera), .source = "test"};
  }
  return device;
}

double fallback_tflops(const Device& device, DType type) {
  const auto peak = device.peak_or_fallback(type);
  return peak ? peak->value() / tera : 0;
}

TEST(DeviceFile, a_number_is_kept_in_base_units_with_its_source) {
  const Device device = parse_device(
      file_with(R"("memory_bandwidth_gb_per_s": {"value": 3350, "source": "sheet", "assumed": true, "note": "odd"},
                   "last_level_cache_mib": {"value": 50, "source": "sheet"},
                   "dense_peak_tflops": {"fp8": {"value": 1978.9, "source": "sheet"}})"),
      "x.json");
  ASSERT_TRUE(device.memory_bandwidth);
  EXPECT_EQ(device.memory_bandwidth->value.value(), 3350e9);
  EXPECT_EQ(device.memory_bandwidth->source, "sheet");
  EXPECT_TRUE(device.memory_bandwidth->assumed);
  EXPECT_EQ(device.memory_bandwidth->note, "odd");
  EXPECT_EQ(device.last_level_cache->value.value(), 50.0 * 1024 * 1024);
  EXPECT_FALSE(device.last_level_cache->assumed);
  EXPECT_EQ(device.dense_peak[static_cast<size_t>(DType::fp8)]->value.value(), 1978.9e12);
}

TEST(DeviceFile, memory_that_computes_is_read_and_written_back) {
  const std::string entry = R"("computing_memory": {"design": "attacc", "beside": true, "source": "paper"})";
  const Device device = parse_device(file_with(entry), "x.json");
  ASSERT_TRUE(device.computing_memory);
  EXPECT_EQ(device.computing_memory->design, "\"attacc\"");
  EXPECT_TRUE(device.computing_memory->beside);
  const Device again = parse_device(device_file_text(device), "x.json");
  ASSERT_TRUE(again.computing_memory);
  EXPECT_EQ(again.computing_memory->design, device.computing_memory->design);
  EXPECT_EQ(again.computing_memory->source, "paper");
  EXPECT_THAT(complaint_about(file_with(R"("computing_memory": {"design": "attacc"})")), HasSubstr("source"));
  EXPECT_THAT(complaint_about(file_with(R"("computing_memory": {"desing": "attacc", "source": "x"})")),
              HasSubstr("design"));
}

TEST(DeviceFile, numbers_left_out_are_unknown) {
  const Device device = parse_device(file_with(""), "x.json");
  EXPECT_FALSE(device.processors);
  EXPECT_FALSE(device.boost_clock);
  EXPECT_FALSE(device.memory);
  EXPECT_FALSE(device.peak_or_fallback(DType::fp8));
  EXPECT_TRUE(device_facts(device).empty());
  EXPECT_EQ(unknown_device_facts(device).size(), 10U);
}

TEST(DeviceFile, words_and_parts_are_read_with_their_source) {
  const Device device = parse_device(file_with(R"("memory_type": {"value": "hbm3e", "source": "sheet"},
      "asynchronous_multiplies": {"value": true, "source": "guide"},
      "mig": {"processor_slices": 7, "memory_slices": 8, "source": "guide",
              "profiles": {"3g": {"processors": 3, "memory": 4}, "7g": {"processors": 7, "memory": 8}}})"),
                                     "x.json");
  ASSERT_TRUE(device.memory_type && device.asynchronous_multiplies && device.mig);
  EXPECT_EQ(device.memory_type->value, MemoryType::hbm3e);
  EXPECT_TRUE(device.asynchronous_multiplies->value);
  ASSERT_EQ(device.mig->profiles.size(), 2U);
  EXPECT_EQ(device.mig->profiles[0].name, "3g");
  EXPECT_EQ(device.mig->profiles[0].memory, 4);
  std::string words;
  for (const DeviceFact& fact : device_facts(device)) words += fact.key + "=" + fact.word + ";";
  EXPECT_EQ(words, "asynchronous_multiplies=yes;memory_type=hbm3e;mig=3g 7g;");
}

TEST(DeviceFile, wrong_words_and_parts_are_refused) {
  EXPECT_THAT(complaint_about(file_with(R"("memory_type": {"value": "hbm3f", "source": "s"})")),
              AllOf(HasSubstr("memory_type.value"), HasSubstr("did you mean")));
  EXPECT_THAT(complaint_about(file_with(R"("memory_type": "hbm3")")), HasSubstr("cites its source"));
  const std::string start = R"("mig": {"processor_slices": 7, "memory_slices": 8, "source": "s", "profiles": )";
  EXPECT_THAT(complaint_about(file_with(start + R"({"9g": {"processors": 9, "memory": 8}}})")),
              HasSubstr("mig.profiles.9g.processors = 9"));
  EXPECT_THAT(complaint_about(file_with(start + "{}}")), HasSubstr("at least one profile"));
}

Device known_or_not(const std::string& name) {
  if (name == "old") return {.name = "old", .title = "Old GPU", .instruction_set = "sm_90"};
  if (name == "tpu") return {.name = "tpu", .kind = DeviceKind::tpu};
  throw InputError({.source = "device", .expected = "a name", .suggestion = "old"});
}

TEST(DeviceFile, a_gpu_of_an_unknown_generation_must_be_like_another) {
  const std::string unknown = R"("instruction_set": "sm_140")";
  EXPECT_THAT(complaint_about(file_with(unknown)), AllOf(HasSubstr("instruction_set = \"sm_140\""), HasSubstr("sm_100"),
                                                         HasSubstr("gfx942"), HasSubstr(R"("like": "b200_sxm")")));
  const Device device = parse_device(file_with(unknown + R"(, "like": "old")"), "x.json", known_or_not);
  ASSERT_TRUE(device.like);
  EXPECT_EQ(device.like->title, "Old GPU");
  EXPECT_EQ(device.like->instruction_set, "sm_90");
  // Nobody asks a CPU for its kernels.
  EXPECT_NO_THROW(parse_device(
      R"({"name": "x", "title": "X", "vendor": "V", "kind": "cpu", "instruction_set": "RISC-V"})", "x.json"));
}

TEST(DeviceFile, a_device_is_like_nothing_but_a_gpu_of_the_library) {
  const auto complaint = [](const std::string& more) -> std::string {
    try {
      parse_device(file_with(more), "x.json", known_or_not);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no complaint";
  };
  EXPECT_THAT(complaint(R"("like": "odl")"), AllOf(HasSubstr("like = \"odl\""), HasSubstr("did you mean old?")));
  EXPECT_THAT(complaint(R"("like": "tpu")"), HasSubstr("a GPU whose kernels are known"));
  EXPECT_THAT(complaint(R"("like": "old.json")"), HasSubstr("the name of a GPU in the library"));
  EXPECT_THAT(complaint(R"("instruction_set": "sm_80", "like": "old")"), HasSubstr("the kernels of sm_80 are known"));
}

TEST(DeviceFile, a_value_in_the_wrong_unit_is_rejected_with_the_value_meant) {
  EXPECT_THAT(complaint_about(file_with(R"("memory_bandwidth_gb_per_s": {"value": 3.35, "source": "s"})")),
              HasSubstr("x.json:2: memory_bandwidth_gb_per_s.value = 3.35\n"
                        "  expected GB/s between 10 and 100000; did you mean 3350?"));
  EXPECT_THAT(complaint_about(file_with(R"("boost_clock_mhz": {"value": 1.98, "source": "s"})")),
              HasSubstr("did you mean 1980?"));
  EXPECT_THAT(complaint_about(file_with(R"("dense_peak_tflops": {"bf16": {"value": 989400, "source": "s"}})")),
              AllOf(HasSubstr("dense_peak_tflops.bf16.value = 989400"), HasSubstr("did you mean 989.4?")));
}

TEST(DeviceFile, absurd_numbers_are_rejected_without_a_guess) {
  for (const char* value : {"-3350", "0", "1e30", "1e300", "-1e30", "\"3350\"", "true", "[3350]", "{}"}) {
    const std::string text = complaint_about(
        file_with(R"("memory_bandwidth_gb_per_s": {"value": )" + std::string(value) + R"(, "source": "s"})"));
    EXPECT_THAT(text, AllOf(HasSubstr("memory_bandwidth_gb_per_s.value"), HasSubstr("expected GB/s"))) << value;
    EXPECT_THAT(text, testing::Not(HasSubstr("did you mean"))) << value;
  }
}

TEST(DeviceFile, a_reached_rate_is_kept_by_scheme_and_lies_below_the_peak) {
  const std::string peak = R"("dense_peak_tflops": {"fp8": {"value": 2614.9, "source": "s"}},)";
  const Device device = parse_device(
      file_with(peak + R"("reached_peak_tflops": {"fp8_block": {"value": 1038, "source": "one multiply"}})"), "x.json");
  EXPECT_EQ(device.reached_peak[static_cast<size_t>(Scheme::fp8_block)]->value.value(), 1038e12);
  EXPECT_FALSE(device.reached_peak[static_cast<size_t>(Scheme::fp8)]);
  EXPECT_EQ(device_facts(device).back().key, "reached_peak_tflops.fp8_block");
  EXPECT_THAT(complaint_about(file_with(peak + R"("reached_peak_tflops": {"fp8": {"value": 2700, "source": "s"}})")),
              AllOf(HasSubstr("reached_peak_tflops.fp8"), HasSubstr("at most dense_peak_tflops.fp8")));
  EXPECT_THAT(complaint_about(file_with(peak + R"("reached_peak_tflops": {"bf16": {"value": 700, "source": "s"}})")),
              HasSubstr("at most dense_peak_tflops.bf16"));
  EXPECT_THAT(complaint_about(file_with(peak + R"("reached_peak_tflops": {"fp9": {"value": 1, "source": "s"}})")),
              HasSubstr("did you mean fp8?"));
}

TEST(DeviceFile, counts_are_whole_numbers) {
  EXPECT_THAT(complaint_about(file_with(R"("processors": {"value": 13.5, "source": "s"})")),
              HasSubstr("expected a whole number between 1 and 4096"));
}

TEST(DeviceFile, every_number_must_cite_its_source) {
  EXPECT_THAT(complaint_about(file_with(R"("memory_gb": 80)")), HasSubstr("each number cites its source"));
  EXPECT_THAT(complaint_about(file_with(R"("memory_gb": {"value": 80})")), HasSubstr("a key `source`"));
  EXPECT_THAT(complaint_about(file_with(R"("memory_gb": {"value": 80, "source": "  "})")), HasSubstr("not blank"));
  EXPECT_THAT(complaint_about(file_with(R"("memory_gb": {"value": 80, "source": 7})")), HasSubstr("a string"));
}

TEST(DeviceFile, a_misspelt_key_is_rejected_with_the_nearest_one) {
  EXPECT_THAT(complaint_about(file_with(R"("memory_bandwith_gb_per_s": {"value": 80, "source": "s"})")),
              HasSubstr("did you mean memory_bandwidth_gb_per_s?"));
  EXPECT_THAT(complaint_about(file_with(R"("dense_peak_tflops": {"bf61": {"value": 80, "source": "s"}})")),
              HasSubstr("did you mean bf16?"));
  EXPECT_THAT(complaint_about(file_with(R"("memory_gb": {"value": 80, "sorce": "s"})")),
              HasSubstr("did you mean source?"));
  EXPECT_THAT(complaint_about(R"({"name": "x", "title": "X", "vendor": "V", "kind": "gpus"})"),
              HasSubstr("did you mean gpu?"));
}

TEST(DeviceFile, a_document_of_the_wrong_kind_is_rejected) {
  EXPECT_THAT(complaint_about("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(complaint_about("{}"), HasSubstr("a key `name`"));
  EXPECT_THAT(complaint_about("nonsense"), HasSubstr("valid JSON"));
  EXPECT_THAT(complaint_about(file_with(R"("aliases": "h100")")), HasSubstr("expected a list"));
}

TEST(DeviceFile, a_missing_file_or_a_folder_in_its_place_is_an_input_error) {
  EXPECT_THROW(read_device_file("no/such/device.json"), InputError);
  EXPECT_THROW(read_device_file(FORETOKEN_SOURCE_DIR "/data/hardware"), InputError);
}

TEST(DeviceFile, facts_read_back_as_they_were_written) {
  const Device device = parse_device(file_with(R"("memory_gb": {"value": 141, "source": "a"},
      "dense_peak_tflops": {"bf16": {"value": 989.4, "source": "b"}, "int8": {"value": 1978.9, "source": "c"}})"),
                                     "x.json");
  const auto facts = device_facts(device);
  ASSERT_EQ(facts.size(), 3U);
  EXPECT_EQ(facts[0].key, "memory_gb");
  EXPECT_EQ(facts[0].unit, "GB");
  EXPECT_EQ(facts[0].value, 141);
  EXPECT_EQ(facts[1].key, "dense_peak_tflops.bf16");
  EXPECT_EQ(facts[1].value, 989.4);
  EXPECT_EQ(facts[1].source, "b");
  EXPECT_EQ(facts[2].unit, "TOP/s");
}

TEST(PeakFallback, a_listed_peak_is_used_as_it_is) {
  const Device device = device_with_peaks({{DType::fp8, 4}, {DType::bf16, 2}, {DType::fp16, 3}, {DType::fp32, 1}});
  EXPECT_EQ(fallback_tflops(device, DType::fp8), 4);
  EXPECT_EQ(fallback_tflops(device, DType::bf16), 2);
  EXPECT_EQ(fallback_tflops(device, DType::fp16), 3);
  EXPECT_EQ(fallback_tflops(device, DType::fp32), 1);
}

TEST(PeakFallback, narrow_floats_fall_to_the_narrowest_listed_float) {
  const Device hopper = device_with_peaks({{DType::fp8, 4}, {DType::bf16, 2}, {DType::fp32, 1}});
  EXPECT_EQ(fallback_tflops(hopper, DType::fp4), 4);
  const Device ampere = device_with_peaks({{DType::bf16, 2}, {DType::int8, 8}, {DType::fp32, 1}});
  EXPECT_EQ(fallback_tflops(ampere, DType::fp4), 2);
  EXPECT_EQ(fallback_tflops(ampere, DType::fp8), 2);
  EXPECT_EQ(fallback_tflops(ampere, DType::int4), 8);
  const Device pascal = device_with_peaks({{DType::fp32, 1}});
  for (const DType type : {DType::fp4, DType::fp8, DType::int4, DType::int8, DType::bf16, DType::fp16, DType::tf32}) {
    EXPECT_EQ(fallback_tflops(pascal, type), 1) << dtype_name(type);
  }
}

TEST(PeakFallback, bf16_and_fp16_stand_in_for_each_other) {
  EXPECT_EQ(fallback_tflops(device_with_peaks({{DType::fp16, 125}, {DType::fp32, 15}}), DType::bf16), 125);
  EXPECT_EQ(fallback_tflops(device_with_peaks({{DType::bf16, 432}}), DType::fp16), 432);
}

TEST(PeakFallback, fp32_is_never_computed_in_a_narrower_type_except_in_passes_on_a_tpu) {
  EXPECT_EQ(fallback_tflops(device_with_peaks({{DType::bf16, 432}}), DType::fp32), 0);
  EXPECT_EQ(fallback_tflops(device_with_peaks({{DType::bf16, 432}}, DeviceKind::tpu), DType::fp32), 72);
  EXPECT_EQ(fallback_tflops(device_with_peaks({{DType::fp32, 1}}), DType::fp64), 0);
}

}  // namespace foretoken::device_file_test
