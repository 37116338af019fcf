// What no device can do, whatever is asked: multiply above its peak, stream above its bandwidth, draw above its power
// limit, finish before its slowest part or after everything one after another.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "command_test.h"

namespace foretoken::physical_bounds_test {

using testing::HasSubstr;

class PhysicalBounds : public CommandTest {
 protected:
  static Json answer(const std::string& line) {
    const Outcome run = run_foretoken(line + " --json");
    // What does not fit in memory is bounded alike; its answer has status 3.
    EXPECT_TRUE(run.status == 0 || run.status == 3) << line << "\n" << run.err;
    return parse_json(run.out, line);
  }
  // A number of the device's sheet, in the unit of its key; 0 = not published.
  static double fact_of(const std::string& device, const std::string& key) {
    const Json sheet = answer("devices " + device);
    const Json* fact = sheet.find("facts")->find(key);
    return fact == nullptr ? 0 : fact->find("value")->number();
  }
  static double value_of(const Json& object, const std::string& key) {
    return object.find(key)->find("value")->number();
  }
};

struct Formats {
  std::string device;
  std::map<std::string, std::string> math;  // by --quantization: what the linear layers must multiply in
};

TEST_F(PhysicalBounds, no_operator_is_above_the_roof_of_its_own_number_format) {
  const std::vector<Formats> devices = {
      {"h100_sxm", {{"", "bf16"}, {"fp8", "fp8"}, {"int8", "int8"}, {"int4_wo", "bf16"}, {"w4a16_mxfp4", "bf16"}}},
      {"b200_sxm", {{"fp8", "fp8"}, {"nvfp4", "fp4"}, {"int4_wo", "bf16"}}},
      {"a100_sxm", {{"int8", "int8"}, {"int8_wo", "bf16"}}},
      {"l40s", {{"fp8", "fp8"}}},
      {"mi300x", {{"fp8", "fp8"}}},
      {"tpu_v5e", {{"int8", "int8"}}}};
  const std::vector<std::string> steps = {" --phase prefill --batch 4 --input-len 4096",
                                          " --phase prefill --batch 1 --input-len 256",
                                          " --phase decode --batch 256 --context-len 2048"};
  for (const Formats& on : devices) {
    const double bandwidth = fact_of(on.device, "memory_bandwidth_gb_per_s") * 1e9;
    const double cache = fact_of(on.device, "last_level_cache_mib") * 1024 * 1024;
    ASSERT_GT(bandwidth, 0);
    for (const auto& [quantization, math] : on.math) {
      for (const std::string model : {"Llama-3.1-8B", "Qwen3-30B-A3B"}) {
        for (const std::string& step : steps) {
          if (model != "Llama-3.1-8B" && step != steps.front()) continue;
          std::string line = "step --model " + model + " --device " + on.device + step;
          if (!quantization.empty()) line += " --quantization " + quantization;
          const Json json = answer(line);
          for (const Json& one : json.find("stages")->items()[0].find("operators")->items()) {
            const std::string& name = one.find("name")->string();
            const std::string where = line + ": " + name;
            const Json& work = *one.find("work");
            const double flops = work.find("flops")->number(), seconds = value_of(one, "seconds");
            const double bytes = work.find("weight_bytes")->number() + work.find("activation_bytes")->number() +
                                 work.find("written_bytes")->number();
            if (name == "gate_up_proj" || name == "experts") {
              EXPECT_EQ(one.find("multiplies_in")->string(), math) << where;
              EXPECT_EQ(one.find("work")->find("math")->string(), math) << where;
            }
            if (const double peak = one.find("peak_flops_per_second")->number(); peak > 0) {
              EXPECT_LE(flops / seconds, peak * (1 + 1e-9)) << where;
            }
            // What fits in the last-level cache need not come from memory.
            const double calls = one.find("count")->number();
            if (bytes / calls > 2 * cache) {
              EXPECT_LE(bytes / seconds, bandwidth * (1 + 1e-9)) << where;
            }
          }
        }
      }
    }
  }
}

TEST_F(PhysicalBounds, no_share_of_the_roof_in_a_report_is_above_100_percent) {
  const std::string file = path("step.html");
  const Outcome run = run_foretoken(
      "step --model Llama-3.1-8B --device h100_sxm --phase prefill --batch 4 --input-len 4096 "
      "--quantization fp8 --roofline --html " +
      file);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("% of the fp8 roof"));
  EXPECT_THAT(run.out, HasSubstr("% of the bf16 roof"));
  std::ifstream stream(file);
  const std::string page((std::istreambuf_iterator<char>(stream)), {});
  size_t shares = 0;
  for (const std::string* text : {&run.out, &page}) {
    for (size_t at = text->find('%'); at != std::string::npos; at = text->find('%', at + 1)) {
      size_t first = at;
      while (first > 0 && std::isdigit(static_cast<unsigned char>((*text)[first - 1])) != 0) --first;
      const std::string before = text->substr(first, at - first);
      if (before.empty() || (first > 0 && (*text)[first - 1] == '.')) continue;
      const bool of_roof = text == &page ? text->compare(at, 6, "%</td>") == 0 : text->compare(at, 8, "% of the") == 0;
      if (!of_roof) continue;
      ++shares;
      EXPECT_LE(std::stoi(before), 100) << text->substr(first > 60 ? first - 60 : 0, 80);
    }
  }
  EXPECT_GT(shares, 8u);
}

TEST_F(PhysicalBounds, no_kernel_draws_more_than_its_board_allows) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> calls = {
      {"kernel gemm", {" --m 16 --n 8192 --k 8192", " --m 8192 --n 8192 --k 8192"}},
      {"kernel attention_prefill", {" --batch 4 --heads 32 --kv-heads 8 --q-len 4096 --kv-len 4096"}},
      {"kernel norm", {" --rows 16384 --width 8192"}}};
  const std::map<std::string, std::vector<std::string>> formats = {{"b200_sxm", {"bf16", "fp8", "nvfp4"}},
                                                                   {"h200_sxm", {"bf16", "fp8", "int4_wo"}},
                                                                   {"gb300", {"bf16", "fp8", "nvfp4"}},
                                                                   {"a100_sxm", {"bf16", "int8"}},
                                                                   {"l4", {"bf16", "fp8"}},
                                                                   {"mi300x", {"bf16", "fp8"}},
                                                                   {"t4", {"fp16", "int8"}}};
  size_t limited = 0;
  for (const auto& [device, types] : formats) {
    const double limit = fact_of(device, "power_limit_w");
    ASSERT_GT(limit, 0) << device;
    for (const auto& [kernel, sizes] : calls) {
      for (const std::string& size : sizes) {
        for (const std::string& type : types) {
          if (kernel != "kernel gemm" && type != types.front()) continue;
          std::string line = kernel + " --device " + device + size + " --sustained";
          if (kernel == "kernel gemm") line += " --dtype " + type;
          const Json json = answer(line);
          const Json& power = *json.find("power");
          for (const char* part : {"burst", "sustained"}) {
            const Json& drawn = *power.find(part);
            const double watts = value_of(drawn, "watts"), joules = value_of(drawn, "joules");
            EXPECT_LE(watts, limit * (1 + 1e-9)) << line << " " << part;
            EXPECT_LE(drawn.find("watts")->find("high")->number(), limit * (1 + 1e-9)) << line << " " << part;
            EXPECT_NEAR(joules / value_of(drawn, "seconds"), watts, 1e-6 * watts) << line << " " << part;
          }
          // A call that the limit slows down is said to take that long.
          const Json& burst = *power.find("burst");
          const double cool = value_of(*json.find("estimate"), "seconds");
          if (burst.find("power_limited")->boolean()) {
            ++limited;
            EXPECT_GE(value_of(burst, "seconds"), cool) << line;
          } else {
            EXPECT_EQ(value_of(burst, "seconds"), cool) << line;
          }
        }
      }
    }
  }
  EXPECT_GT(limited, 3u);
  const Outcome run = run_foretoken("kernel gemm --device b200_sxm --m 8192 --n 8192 --k 8192");
  EXPECT_THAT(in_one_line(run.out), HasSubstr("limited by the board's 1000 W"));
}

TEST_F(PhysicalBounds, a_step_held_busy_draws_at_most_the_limit) {
  for (const std::string device : {"b200_sxm", "h100_sxm", "l4"}) {
    const Outcome run = run_foretoken(
        "step --model Llama-3.1-8B --quantization fp8 --phase prefill --batch 8 --input-len 2048 "
        "--sustained --json --device " +
        device);
    ASSERT_EQ(run.status, 0) << run.err;
    const Json json = parse_json(run.out, device);
    const Json* held = json.find("sustained");
    ASSERT_NE(held, nullptr) << run.out.substr(0, 500);
    EXPECT_LE(value_of(*held, "watts"), fact_of(device, "power_limit_w") * (1 + 1e-9)) << device;
  }
}

TEST_F(PhysicalBounds, latency_of_an_accelerator_is_no_more_than_a_serial_run) {
  // Bound by memory: one row of activations meets a matrix of weights once.
  for (const std::string line : {"accel --arch eyeriss_v1 --gemm 1x2048x2048 --tries 300 --objective latency",
                                 "accel --arch eyeriss_v1 --gemm 1x8192x2048 --tries 300 --objective latency",
                                 "accel --arch simba --gemm 1x2048x2048 --tries 300 --objective latency"}) {
    const Json json = answer(line);
    const double cycles = json.find("cycles")->number(), latency = json.find("latency_cycles")->number();
    double serial = json.find("compute_cycles")->number() + json.find("feed_cycles")->number();
    // Of each level at least the cycles that its bandwidth asks for; access times are a few cycles.
    for (const Json& level : json.find("levels")->items()) {
      if (const Json* own = level.find("cycles")) serial += own->number() + 100;
    }
    EXPECT_GE(latency, cycles) << line;
    EXPECT_LE(latency, serial) << line;
  }
}

TEST_F(PhysicalBounds, a_device_is_what_software_sees_of_it_one_die_of_an_mi250) {
  EXPECT_EQ(fact_of("mi250", "memory_gb"), 64);
  EXPECT_EQ(fact_of("mi250", "processors"), fact_of("mi210", "processors"));
  const std::string step =
      "step --model openai-community/gpt2-large --phase prefill --batch 4 --input-len 1024 --device ";
  const double mi250 = value_of(answer(step + "mi250"), "seconds"), mi210 = value_of(answer(step + "mi210"), "seconds");
  EXPECT_NEAR(mi250, mi210, 0.1 * mi210) << "one die of the same chip";
}

TEST_F(PhysicalBounds, commands_agree_on_how_much_memory_a_device_has) {
  const std::string h100 = "85.0 GB (79.2 GiB)";
  EXPECT_THAT(in_one_line(run_foretoken("devices").out), HasSubstr(h100));
  EXPECT_THAT(
      in_one_line(run_foretoken("step --model Llama-3.1-8B --device h100_sxm --phase prefill --input-len 512").out),
      HasSubstr(h100 + " memory: fits"));
  EXPECT_THAT(in_one_line(run_foretoken("train --model Llama-3.1-8B --cluster h100_ib_rail --devices 16 -tp 2 -pp 2 "
                                        "--global-batch-size 32")
                              .out),
              HasSubstr(h100));
}

TEST_F(PhysicalBounds, a_kernel_that_was_not_measured_on_the_device_says_what_was_priced) {
  const std::string csv = write("rows.csv",
                                "kernel,dtype,m,n,k\nmy_own_gemm,bf16,64,4096,4096\ntorch_linear,bf16,64,4096,4096\n"
                                ",bf16,64,4096,4096\n");
  const Json json = answer("kernel gemm --device h100_sxm --csv " + csv);
  const std::vector<Json>& rows = json.find("rows")->items();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].find("priced_as")->string(), "any");
  EXPECT_EQ(rows[0].find("tier")->string(), "measured") << "the device's own sweep answers";
  EXPECT_EQ(value_of(rows[0], "seconds"), value_of(rows[2], "seconds"));
  EXPECT_EQ(rows[1].find("priced_as")->string(), "torch_linear");
  ASSERT_EQ(json.find("notes")->items().size(), 1u);
  EXPECT_THAT(json.find("notes")->items()[0].string(), HasSubstr("my_own_gemm is not a known implementation of gemm"));
  const Outcome written = run_foretoken("kernel gemm --device h100_sxm --csv " + csv + " --out " + path("out.csv"));
  EXPECT_THAT(in_one_line(written.out),
              HasSubstr("my_own_gemm is not a known implementation of gemm: 1 row is priced"));
}

}  // namespace foretoken::physical_bounds_test
