// Laws that hold from one layer to the next: more work is never faster, more hardware never slower, and what goes in
// comes out. Questions are drawn at random from a fixed seed.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/random.h"
#include "command_test.h"

namespace foretoken::laws_test {

Json answer(const std::string& line) {
  const Outcome run = run_foretoken(line + " --json");
  EXPECT_TRUE(run.status == 0 || run.status == 3) << line << "\n" << run.err;  // 3: does not fit in memory
  return parse_json(run.out.empty() ? "{}" : run.out, line);
}

double seconds_of(const std::string& line) {
  const Json json = answer(line);
  const Json* seconds = json.find("seconds");
  if (seconds == nullptr) return 0;
  EXPECT_GT(seconds->find("value")->number(), 0) << line;
  return seconds->find("value")->number();
}

template <class Value>
const Value& one_of(const std::vector<Value>& values, RandomStream& random) {
  return values[random.below(values.size())];
}

const std::vector<std::string> models = {"Llama-3.1-8B", "Qwen3-30B-A3B", "gpt-oss-20b", "gemma-2-9b",
                                         "DeepSeek-V2-Lite"};
const std::vector<std::string> devices = {"h100_sxm", "h200_sxm", "a100_sxm", "b200_sxm", "mi300x", "l40s"};

// The order of operands is the compiler's choice, that of an initializer list is not.
struct ModelOnDevice {
  std::string model;
  std::string device;

  std::string flags() const { return " --model " + model + " --device " + device; }
};

ModelOnDevice drawn(RandomStream& random) {
  return {one_of(models, random), one_of(devices, random)};
}

// Latent decodes of 4 sequences with 128 heads took 29.4 us for 4,096 keys on B200 and 23.3 us for 8,192. Trees carry
// such falls to other numbers of heads, where they are smaller.
bool may_fall_with_context(const ModelOnDevice& one) {
  return one.model == "DeepSeek-V2-Lite" && one.device == "b200_sxm";
}

// Trees correct measured kernels by shape and need not rise from one shape to the next: neighbors may lie this much
// apart the wrong way.
constexpr double of_trees = 0.01;

TEST(Laws, a_step_of_more_sequences_or_more_context_is_not_faster) {
  RandomStream random(30, "laws of steps");
  for (int i = 0; i < 40; ++i) {
    const ModelOnDevice one = drawn(random);
    const std::string where = "step --phase decode" + one.flags();
    const int64_t batch = int64_t{1} << random.below(8), context = int64_t{64} << random.below(8);
    const auto step = [&](int64_t sequences, int64_t keys) {
      return seconds_of(where + " --batch " + std::to_string(sequences) + " --context-len " + std::to_string(keys));
    };
    const double base = step(batch, context);
    EXPECT_GE(step(batch + batch / 2 + 1, context), base * (1 - of_trees)) << where << " " << batch << " " << context;
    if (may_fall_with_context(one)) continue;
    EXPECT_GE(step(batch, context + context / 2), base * (1 - of_trees)) << where << " " << batch << " " << context;
  }
}

TEST(Laws, experts_with_8_bits_do_not_decode_slower_than_with_16) {
  for (const char* model : {"Mixtral-8x7B", "Qwen3-30B-A3B"}) {
    for (const char* device : {"h100_sxm", "h200_sxm", "b200_sxm", "l40s", "mi300x"}) {
      for (const char* stack : {"vllm", "sglang"}) {
        const std::string line = std::string("step -tp 4 --batch 64 --context-len 512 --model ") + model +
                                 " --device " + device + " --stack " + stack;
        EXPECT_LT(seconds_of(line + " -q fp8"), seconds_of(line)) << line;
      }
    }
  }
}

TEST(Laws, a_longer_prompt_is_not_faster) {
  RandomStream random(31, "laws of prompts");
  for (int i = 0; i < 30; ++i) {
    const std::string where = "step --phase prefill" + drawn(random).flags() + " --input-len ";
    const int64_t tokens = int64_t{16} << random.below(9);
    EXPECT_GE(seconds_of(where + std::to_string(tokens + tokens / 2)),
              seconds_of(where + std::to_string(tokens)) * (1 - of_trees))
        << where << tokens;
  }
}

// A device that is known by its sheet alone: nothing measured stands between the fact and the answer.
class LawsOfSheets : public CommandTest {
 protected:
  std::string device(const std::string& name, double tflops, double gb_per_s) const {
    const auto fact = [](double value) { return Json::object({{"value", value}, {"source", "test"}}); };
    const Json file = Json::object({{"name", name},
                                    {"title", name},
                                    {"vendor", "test"},
                                    {"kind", "npu"},
                                    {"architecture", "test"},
                                    {"memory_gb", fact(80)},
                                    {"memory_bandwidth_gb_per_s", fact(gb_per_s)},
                                    {"dense_peak_tflops", Json::object({{"bf16", fact(tflops)}})}});
    return write(name + ".json", file.dump());
  }
};

TEST_F(LawsOfSheets, more_bandwidth_and_more_multiply_units_are_not_slower) {
  const std::vector<std::string> steps = {" --phase decode --batch 8 --context-len 1024",
                                          " --phase prefill --input-len 1024",
                                          " --phase decode --batch 256 --context-len 4096"};
  const std::string slow = device("slow", 400, 1000), wide = device("wide", 400, 3000),
                    strong = device("strong", 1200, 1000);
  for (const std::string model : {"Llama-3.1-8B", "Qwen3-30B-A3B"}) {
    for (const std::string& step : steps) {
      const auto seconds = [&](const std::string& on) {
        return seconds_of("step --model " + model + step + " --device " + on);
      };
      const double base = seconds(slow);
      EXPECT_LT(seconds(wide), base) << model << step;
      EXPECT_LE(seconds(strong), base) << model << step;
      EXPECT_GE(seconds(wide), base / 3 * (1 - 1e-9)) << "no more than the bandwidth gives: " << model << step;
    }
  }
}

TEST(Laws, more_gpus_in_a_tensor_parallel_group_are_not_slower_and_no_more_than_proportional) {
  // The host launches as many kernels on each rank: a step that it holds up gains nothing, so the model is large.
  for (const std::string device : {"h100_sxm", "b200_sxm", "mi300x"}) {
    // In a full mesh each GPU of a larger group has more links, which may gain more than GPUs alone.
    const double gain_of_links = device == "mi300x" ? 1.01 : 1;
    for (const std::string step :
         {" --phase decode --batch 16 --context-len 2048", " --phase prefill --input-len 2048"}) {
      const std::string line = "step --model Llama-3.1-70B --device " + device + step + " -tp ";
      double before = seconds_of(line + "1");
      for (const char* ranks : {"2", "4", "8"}) {
        const double now = seconds_of(line + ranks);
        EXPECT_LT(now, before) << line << ranks;
        EXPECT_GT(now, before / 2 / gain_of_links) << line << ranks;
        before = now;
      }
    }
  }
}

TEST(Laws, a_training_step_of_more_tokens_is_not_faster_and_gpus_do_not_gain_beyond_their_number) {
  const auto seconds = [](int64_t batch, int64_t nodes) {
    const Json json =
        answer("train --model Llama-3.1-8B --cluster h100_ib_rail --nodes " + std::to_string(nodes) +
               " -tp 8 --global-batch-size " + std::to_string(batch) + " --micro-batch-size 1 --seq-length 4096");
    return json.find("seconds")->find("value")->number();
  };
  const double base = seconds(64, 2);
  EXPECT_GE(seconds(128, 2), base);
  EXPECT_LE(seconds(128, 2), 2 * base * 1.001);
  EXPECT_LE(seconds(64, 4), base);
  EXPECT_GE(seconds(64, 4), base / 2);
}

TEST(Laws, a_serving_run_returns_the_tokens_that_were_asked_for_and_its_energy_adds_up) {
  RandomStream random(33, "laws of serving");
  for (int i = 0; i < 12; ++i) {
    const int64_t requests = 20 + static_cast<int64_t>(random.below(60));
    const int64_t input = 16 + static_cast<int64_t>(random.below(1500)),
                  output = 1 + static_cast<int64_t>(random.below(200));
    const std::string device = one_of(devices, random);
    const std::string rate = std::to_string(1 + random.below(20));
    const std::string line = "serve --model Llama-3.1-8B --device " + device +
                             " --random-range-ratio 0 --energy --num-prompts " + std::to_string(requests) +
                             " --random-input-len " + std::to_string(input) + " --random-output-len " +
                             std::to_string(output) + " --request-rate " + rate + " --seed " + std::to_string(i);
    const Json json = answer(line);
    ASSERT_NE(json.find("completed"), nullptr) << line;
    EXPECT_EQ(json.find("completed")->number(), static_cast<double>(requests)) << line;
    EXPECT_EQ(json.find("total_input_tokens")->number(), static_cast<double>(requests * input)) << line;
    EXPECT_EQ(json.find("total_output_tokens")->number(), static_cast<double>(requests * output)) << line;
    const Json& energy = *json.find("energy");
    double parts = energy.find("idle_joules")->find("value")->number();
    for (const auto& [kind, joules] : energy.find("steps_joules_above_idle")->members())
      parts += joules.find("value")->number();
    const double boards = energy.find("board_joules")->find("value")->number();
    EXPECT_NEAR(parts, boards, 1e-6 * boards) << line;
    EXPECT_LE(energy.find("mean_board_watts")->find("value")->number(),
              energy.find("limit_watts")->number() * (1 + 1e-9))
        << line;
  }
}

// What each rank must send: 2(n-1)/n of a tensor that is summed, (n-1)/n of one that is gathered. Hidden states and
// residual go to the next stage in shares, 1/n, and are gathered there: together all of their bytes.
struct DenseModel {
  std::string name;
  int64_t layers, hidden, vocabulary;
};

double tensor_parallel_bytes(const DenseModel& model, int64_t tokens, int64_t logits, int64_t ranks) {
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  const int64_t reduced =
      (2 * model.layers + 1) * tokens * model.hidden * 2;  // two in each layer, one of the embedding
  return 2 * share * static_cast<double>(reduced) + share * static_cast<double>(logits * model.vocabulary * 2);
}

double bytes_on_links(const JsonView& step) {
  double bytes = 0;
  for (const JsonView& link : step.at("links").items()) bytes += link.at("bytes").number();
  return bytes;
}

TEST(Laws, links_carry_the_bytes_of_the_collectives_of_a_step) {
  const std::vector<DenseModel> dense = {
      {"Llama-3.1-8B", 32, 4096, 128256}, {"Llama-3.1-70B", 80, 8192, 128256}, {"Qwen3-32B", 64, 5120, 151936}};
  RandomStream random(34, "laws of bytes");
  for (int i = 0; i < 20; ++i) {
    const DenseModel& model = one_of(dense, random);
    const int64_t ranks = int64_t{2} << random.below(3), batch = 1 + static_cast<int64_t>(random.below(300));
    const int64_t prompt = 1 + static_cast<int64_t>(random.below(4000));
    const std::string device = one_of<std::string>({"h100_sxm", "b200_sxm", "mi300x", "l40s"}, random);
    const std::string line = "step --model " + model.name + " --device " + device + " -tp " + std::to_string(ranks);
    const Json decode = answer(line + " --context-len 512 --batch " + std::to_string(batch));
    const JsonView decoded(decode, "decode");
    const int64_t padded = decoded.at("padded_batch").integer();  // of the CUDA graph
    EXPECT_EQ(bytes_on_links(decoded), tensor_parallel_bytes(model, padded, padded, ranks)) << line << " " << batch;
    const Json prefill = answer(line + " --phase prefill --input-len " + std::to_string(prompt));
    EXPECT_EQ(bytes_on_links(JsonView(prefill, "prefill")), tensor_parallel_bytes(model, prompt, 1, ranks))
        << line << " " << prompt;
    const Json stages = answer(line + " -pp 2 --phase prefill --input-len " + std::to_string(prompt));
    const double sent = 2.0 * static_cast<double>(prompt * model.hidden * 2);
    EXPECT_EQ(bytes_on_links(JsonView(stages, "stages")), tensor_parallel_bytes(model, prompt, 1, ranks) + sent)
        << line << " " << prompt;
  }
}

// Each layer gathers the hidden states of all other ranks' tokens for the experts, and scatters as many results.
TEST(Laws, links_carry_every_token_to_the_ranks_of_the_experts) {
  RandomStream random(36, "laws of experts' bytes");
  constexpr int64_t layers = 48, hidden = 2048;
  for (const int64_t ranks : {2, 4, 8}) {
    const Json json = answer(
        "step --model Qwen3-30B-A3B --device h100_sxm --enable-expert-parallel --context-len 512 "
        "--all2all-backend allgather_reducescatter -dp " +
        std::to_string(ranks) + " --batch " + std::to_string(1 + random.below(200)));
    const JsonView step(json, "step");
    const int64_t tokens = (ranks - 1) * step.at("padded_batch").integer();
    EXPECT_EQ(bytes_on_links(step), static_cast<double>(layers * 2 * tokens * hidden * 2)) << ranks;
  }
}

TEST(Laws, no_way_around_two_nodes_needs_fewer_bytes_than_a_ring) {
  const DenseModel model = {"Llama-3.1-70B", 80, 8192, 128256};
  for (const int64_t ranks : {16, 32}) {
    const Json json = answer("step --model Llama-3.1-70B --device h100_sxm --batch 32 --context-len 512 -tp " +
                             std::to_string(ranks));
    EXPECT_GE(bytes_on_links(JsonView(json, "step")), tensor_parallel_bytes(model, 32, 32, ranks)) << ranks;
  }
}

// The time between the prefill of one request alone and its first decode step, without what does not depend on bytes.
TEST(Laws, separate_pools_move_the_kv_cache_of_each_prompt_token) {
  RandomStream random(35, "laws of KV caches");
  // Keys and values of every layer: heads of a rank x size of a head x bytes.
  const std::vector<std::pair<std::string, int64_t>> cases = {
      {"--model Llama-3.1-8B --device h100_sxm --link bandwidth=10", 32 * 2 * 8 * 128 * 2},
      {"--model Llama-3.1-8B --device h100_sxm -tp 2", 32 * 2 * 4 * 128 * 2},
      {"--model Qwen3-30B-A3B --device h200_sxm --kv-cache-dtype fp8", 48 * 2 * 4 * 128}};
  for (const auto& [flags, bytes_per_token] : cases) {
    double rest_before = 0;
    for (int i = 0; i < 4; ++i) {
      const int64_t tokens = 100 + static_cast<int64_t>(random.below(3000));
      const std::string line = "serve " + flags +
                               " --max-model-len 4096 --request-rate 1 --num-prompts 1 --random-range-ratio 0 "
                               "--random-output-len 4 --prefill-pool count=1 --decode-pool count=1 --trace-in-json "
                               "--random-input-len " +
                               std::to_string(tokens);
      const Json json = answer(line);
      const JsonView run(json, "serve");
      double prefilled = 0, decoding = 0;  // microseconds
      for (const JsonView& event : run.at("trace").at("traceEvents").items()) {
        if (!event.find("cat") || event.at("cat").string() != "step") continue;
        const double start = event.at("ts").number();
        if (event.at("pid").integer() == 0) prefilled = start + event.at("dur").number();
        if (event.at("pid").integer() == 1 && decoding == 0) decoding = start;
      }
      const JsonView link = run.at("replica_groups").items().front().at("kv_transfer");
      EXPECT_EQ(link.at("bytes_per_token").integer(), bytes_per_token) << line;
      const double moving =
          static_cast<double>(tokens * bytes_per_token) / link.at("bandwidth_bytes_per_second").number() * 1e6;
      const double rest = decoding - prefilled - moving;
      EXPECT_GE(rest, 0) << line;
      if (i == 0) rest_before = rest;
      EXPECT_NEAR(rest, rest_before, 1e-4) << line;  // times are whole picoseconds
    }
  }
}

TEST(Laws, a_collective_of_more_bytes_is_not_faster_and_more_bandwidth_is_not_slower) {
  RandomStream random(32, "laws of collectives");
  const std::vector<std::string> operations = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"};
  for (int i = 0; i < 30; ++i) {
    const int64_t bytes = int64_t{1024} << random.below(18), ranks = int64_t{2} << random.below(4);
    const int64_t bandwidth = int64_t{25} << random.below(5);
    const std::string operation = one_of(operations, random);
    const auto seconds = [&](int64_t size, int64_t rate) {
      const Json json = answer("collective --topology switch:" + std::to_string(ranks) + "@" + std::to_string(rate) +
                               "GB/s,1us --op " + operation + " --bytes " + std::to_string(size));
      return json.find("rows")->items()[0].find("seconds")->find("value")->number();
    };
    const double base = seconds(bytes, bandwidth);
    EXPECT_GE(seconds(2 * bytes, bandwidth), base * (1 - 1e-9)) << operation << " " << bytes << " " << ranks;
    EXPECT_LE(seconds(bytes, 2 * bandwidth), base * (1 + 1e-9)) << operation << " " << bytes << " " << ranks;
  }
}

}  // namespace foretoken::laws_test
