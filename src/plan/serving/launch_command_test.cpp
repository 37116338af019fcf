// What a launch line says is read back as what was simulated: serving/engine/launch_line.h is the other end.
#include "plan/serving/launch_command.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "plan/serving/search_test_support.h"
#include "serving/engine/launch_line.h"

namespace foretoken::launch_command_test {

// As `serve` would have it, by name; nothing = the engine's own.
int64_t whole(const Json& fields, const char* name, int64_t otherwise) {
  const Json* value = fields.find(name);
  if (value == nullptr) return otherwise;
  return value->kind() == Json::Kind::string ? parse_integer(value->string()).value_or(-1) : value->integer();
}

double number(const Json& fields, const char* name) {
  const Json* value = fields.find(name);
  if (value == nullptr) return 0;
  return value->kind() == Json::Kind::string ? parse_number(value->string()).value_or(-1) : value->number();
}

std::string text(const Json& fields, const char* name) {
  const Json* value = fields.find(name);
  return value == nullptr ? "" : value->string();
}

void expect_same(const EnginePool& pool, const Json& fields, const std::string& line) {
  const EngineChoice& engine = pool.engine;
  const ParallelPlan plan = engine.plan();
  EXPECT_EQ(text(fields, "engine"), engine.engine) << line;
  EXPECT_EQ(text(fields, "model"), "org/model") << line;
  EXPECT_EQ(whole(fields, "tensor_parallel_size", 1), plan.tensor) << line;
  EXPECT_EQ(whole(fields, "pipeline_parallel_size", 1), plan.pipeline) << line;
  EXPECT_EQ(whole(fields, "data_parallel_size", 1), plan.data) << line;
  const Json* all = fields.find("enable_expert_parallel");
  const int64_t experts =
      all != nullptr && all->boolean() ? plan.tensor * plan.data : whole(fields, "expert_parallel_size", 1);
  EXPECT_EQ(experts, plan.expert) << line;
  EXPECT_EQ(whole(fields, "max_num_seqs", 0), pool.max_num_seqs) << line;
  EXPECT_EQ(whole(fields, "max_num_batched_tokens", 0), pool.max_num_batched_tokens) << line;
  EXPECT_EQ(whole(fields, "max_model_len", 0), 4096) << line;
  constexpr double gib = 1 << 30;
  EXPECT_NEAR(number(fields, "kv_offloading_size") * gib, host_cache_bytes(pool), 1) << line;
  EXPECT_EQ(text(fields, "gpu_memory_utilization"), "0.85") << line;
  EXPECT_EQ(text(fields, "quantization"), engine.scheme ? "fp8" : "") << line;
  EXPECT_EQ(text(fields, "kv_cache_dtype"), engine.kv_dtype == DType::fp8 ? "fp8" : "") << line;
}

// What TensorRT-LLM takes in a file stands in the note, in backquotes.
std::string options_in(const std::string& note) {
  std::string options;
  const std::vector<std::string_view> parts = split(note, "`");
  for (size_t i = 1; i < parts.size(); i += 2) {
    if (parts[i - 1].ends_with("options.yaml holds ")) options.append(parts[i]).append("\n");
  }
  return options;
}

TEST(LaunchCommand, every_line_is_read_back_as_the_layout) {
  ServingQuestion question = small_question();
  question.model.name = "org/model";
  question.memory_fraction = 0.85;
  question.hardware[0].node_devices = 8;
  int lines = 0;
  for (const char* name : {"vllm", "sglang", "trtllm"}) {
    for (const int64_t tensor : {1, 4}) {
      for (const int64_t pipeline : {1, 2}) {
        for (const int64_t ranks : {1, 2}) {
          for (const bool narrow : {false, true}) {
            if (name == std::string("trtllm") && tensor > 1 && ranks > 1) continue;  // it attends in whole ranks
            EngineChoice engine{.device = "l4", .engine = name, .tensor = tensor, .pipeline = pipeline};
            engine.attention_ranks = ranks;
            engine.expert_parallel = ranks > 1;
            if (narrow) engine.kv_dtype = DType::fp8;
            if (narrow && engine.engine != "trtllm") engine.scheme = Scheme::fp8;
            const EnginePool pool{.engine = engine,
                                  .replicas = 1,
                                  .max_num_seqs = narrow ? 64 : 0,
                                  .max_num_batched_tokens = narrow ? 8192 : 0,
                                  .host_gib = narrow && ranks == 1 ? 80 : 0};
            const auto commands = launch_commands(question, {.pool = pool, .decode = {}}, 4096);
            const LaunchCommand& command = commands.front();
            const auto file = [&](const std::string&) { return std::optional(options_in(command.note)); };
            const LaunchLine line = read_launch_line(command.line, "line", file);
            expect_same(pool, line.fields, command.line);
            EXPECT_TRUE(line.remarks.unknown.empty()) << command.line << ": " << line.remarks.unknown.front();
            EXPECT_TRUE(line.remarks.not_simulated.empty()) << command.line;
            ++lines;
          }
        }
      }
    }
  }
  EXPECT_EQ(lines, 44);
}

TEST(LaunchCommand, host_memory_is_in_whole_units_of_the_engine_and_no_more_than_asked_for) {
  constexpr double gib = 1 << 30;
  for (const char* name : {"vllm", "sglang", "trtllm"}) {
    const EnginePool pool{.engine = {.device = "l4", .engine = name, .tensor = 4}, .host_gib = 80};
    EXPECT_LE(host_cache_bytes(pool), 4 * 80 * gib) << name;
    EXPECT_GT(host_cache_bytes(pool), 4 * 79 * gib) << name;
  }
}

TEST(LaunchCommand, adapters_are_read_back) {
  ServingQuestion question = small_question();
  question.lora = LoraSettings{.max_cpu_loras = 100, .max_lora_rank = 32};
  const EnginePool pool{.engine = {.device = "l4"}, .max_loras = 8};
  const auto commands = launch_commands(question, {.pool = pool, .decode = {}}, 4096);
  const Json fields = read_launch_line(commands.front().line, "line").fields;
  ASSERT_NE(fields.find("enable_lora"), nullptr);
  EXPECT_TRUE(fields.find("enable_lora")->boolean());
  EXPECT_EQ(whole(fields, "max_loras", 0), 8);
  EXPECT_EQ(whole(fields, "max_lora_rank", 0), 32);
  EXPECT_EQ(whole(fields, "max_cpu_loras", 0), 100);
}

// Every line of a server on two nodes says the same of the engine.
TEST(LaunchCommand, lines_of_several_nodes_are_read_back_as_the_layout) {
  ServingQuestion question = small_question();
  question.model.name = "org/model";
  question.memory_fraction = 0.85;
  question.hardware[0].node_devices = 8;
  struct Wide {
    const char* engine;
    int64_t tensor, pipeline, ranks;
    size_t lines;
  };
  for (const Wide& wide :
       {Wide{"vllm", 8, 2, 1, 1}, Wide{"vllm", 1, 1, 16, 2}, Wide{"vllm", 2, 1, 16, 4}, Wide{"sglang", 8, 2, 1, 2},
        Wide{"sglang", 1, 1, 16, 2}, Wide{"trtllm", 8, 2, 1, 1}, Wide{"trtllm", 1, 1, 16, 1}}) {
    EngineChoice engine{.device = "l4", .engine = wide.engine, .tensor = wide.tensor, .pipeline = wide.pipeline};
    engine.attention_ranks = wide.ranks;
    engine.expert_parallel = wide.ranks > 1;
    const EnginePool pool{.engine = engine, .replicas = 1};
    const auto commands = launch_commands(question, {.pool = pool, .decode = {}}, 4096);
    ASSERT_EQ(commands.size(), wide.lines) << wide.engine;
    for (const LaunchCommand& command : commands) {
      const auto file = [&](const std::string&) { return std::optional(options_in(command.note)); };
      const LaunchLine line = read_launch_line(command.line, "line", file);
      expect_same(pool, line.fields, command.line);
      EXPECT_TRUE(line.remarks.unknown.empty()) << command.line << ": " << line.remarks.unknown.front();
    }
  }
}

TEST(LaunchCommand, lines_of_pools_are_read_back_together) {
  ServingQuestion question = small_question();
  question.model.name = "org/model";
  question.hardware[0].node_devices = 8;
  const EngineChoice engine{.device = "l4", .engine = "sglang", .tensor = 2};
  const ServingLayout layout{.pool = {.engine = engine, .replicas = 2},
                             .decode = EnginePool{.engine = engine, .max_num_seqs = 32}};
  std::string script;
  for (const LaunchCommand& command : launch_commands(question, layout, 4096)) script += command.line + "\n";
  EXPECT_EQ(read_launch_line(script, "lines").fields.dump(0),
            R"({"engine":"sglang","model":"org/model","tensor_parallel_size":2,"max_model_len":"4096",)"
            R"("prefill_pool":{"count":2},"decode_pool":{"count":1,"max_num_seqs":"32"}})");
}

}  // namespace foretoken::launch_command_test
