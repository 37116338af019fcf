// What a launch line says is read back as what was simulated: serving/engine/launch_line.h is the other end.
#include "plan/serving/launch_command.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "model/exchange_name.h"
#include "plan/serving/search_test_support.h"
#include "serving/engine/launch_line.h"

namespace foretoken::launch_command_test {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

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
  EXPECT_EQ(text(fields, "all2all_backend"), engine.deepep ? deepep_name(*engine.deepep) : "") << line;
  EXPECT_EQ(whole(fields, "num_redundant_experts", 0), engine.expert_copies) << line;
  EXPECT_EQ(whole(fields, "max_num_seqs", 0), pool.max_num_seqs) << line;
  EXPECT_EQ(whole(fields, "max_num_batched_tokens", 0), pool.max_num_batched_tokens) << line;
  EXPECT_EQ(whole(fields, "max_model_len", 0), 4096) << line;
  constexpr double gib = 1 << 30;
  EXPECT_NEAR(number(fields, "kv_offloading_size") * gib, host_cache_bytes(pool), 1) << line;
  EXPECT_EQ(text(fields, "gpu_memory_utilization"), pool.memory_fraction > 0 ? "0.8" : "0.85") << line;
  EXPECT_EQ(text(fields, "quantization"), engine.scheme ? "fp8" : "") << line;
  EXPECT_EQ(text(fields, "kv_cache_dtype"), engine.kv_dtype == DType::fp8 ? "fp8" : "") << line;
  const bool needs_options = engine.engine == "trtllm";  // which has them off by itself
  const Json* chunks = fields.find("enable_chunked_prefill");
  EXPECT_EQ(chunks != nullptr && chunks->boolean(), needs_options) << line;
  const int64_t graph = !needs_options ? 0 : pool.max_num_seqs > 0 ? pool.max_num_seqs : 2048;
  EXPECT_EQ(whole(fields, "max_cudagraph_capture_size", 0), graph) << line;
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
  for (const Wide& wide : {Wide{"vllm", 8, 2, 1, 2}, Wide{"vllm", 16, 1, 1, 2}, Wide{"vllm", 16, 1, 2, 4},
                           Wide{"vllm", 1, 1, 16, 2}, Wide{"vllm", 2, 1, 16, 4}, Wide{"sglang", 8, 2, 1, 2},
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
      EXPECT_THAT(command.line, Not(HasSubstr("ray")));
    }
  }
}

// Servers whose ranks send tokens by DeepEP, with the memory that the layout sets.
TEST(LaunchCommand, deepep_is_turned_on_and_read_back) {
  ServingQuestion question = small_question();
  question.model.name = "org/model";
  question.memory_fraction = 0.85;
  question.hardware[0].node_devices = 8;
  struct Server {
    const char* engine;
    ExchangeKernels kernels;
    const char* flag;
  };
  for (const Server& server : {Server{"sglang", ExchangeKernels::by_tokens, " --moe-a2a-backend deepep"},
                               Server{"vllm", ExchangeKernels::normal, " --all2all-backend deepep_high_throughput"},
                               Server{"vllm", ExchangeKernels::low_latency, " --all2all-backend deepep_low_latency"}}) {
    EngineChoice engine{.device = "l4", .engine = server.engine, .attention_ranks = 16, .expert_parallel = true};
    engine.deepep = server.kernels;
    engine.expert_copies = server.kernels == ExchangeKernels::normal ? 0 : 8;
    const EnginePool pool{.engine = engine, .max_num_batched_tokens = 131072, .memory_fraction = 0.8};
    for (const LaunchCommand& command : launch_commands(question, {.pool = pool, .decode = {}}, 4096)) {
      EXPECT_THAT(command.line, HasSubstr(server.flag));
      const LaunchLine line = read_launch_line(command.line, "line");
      expect_same(pool, line.fields, command.line);
      EXPECT_TRUE(line.remarks.not_simulated.empty()) << command.line;
    }
  }
}

std::vector<std::string> lines_of(const ServingQuestion& question, const ServingLayout& layout) {
  std::vector<std::string> lines;
  for (const LaunchCommand& command : launch_commands(question, layout, 4096)) lines.push_back(command.line);
  return lines;
}

// The same question about another device of the library.
ServingQuestion question_on(const char* device) {
  ServingQuestion question = small_question();
  question.hardware[0].device = HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device(device);
  question.hardware[0].node_devices = 8;
  return question;
}

TEST(LaunchCommand, servers_of_pools_on_hosts_of_their_own_can_be_reached) {
  const ServingQuestion question = question_on("h200_sxm");
  for (const char* name : {"vllm", "sglang"}) {
    const EngineChoice engine{.device = "h200_sxm", .engine = name, .tensor = 8};
    const auto lines = lines_of(question, {.pool = {.engine = engine}, .decode = EnginePool{.engine = engine}});
    ASSERT_EQ(lines.size(), 3U);
    if (name == std::string("vllm")) {
      EXPECT_THAT(lines[0], StartsWith("VLLM_NIXL_SIDE_CHANNEL_HOST=PREFILL-HOST vllm serve"));
      EXPECT_THAT(lines[1], StartsWith("VLLM_NIXL_SIDE_CHANNEL_HOST=DECODE-HOST vllm serve"));
    } else {
      EXPECT_THAT(lines[0], EndsWith("--disaggregation-mode prefill --host 0.0.0.0 --port 8000"));
      EXPECT_THAT(lines[1], EndsWith("--disaggregation-mode decode --host 0.0.0.0 --port 8000"));
    }
    EXPECT_THAT(lines[2], HasSubstr("--prefill http://PREFILL-HOST:8000 --decode http://DECODE-HOST:8000"));
  }
}

TEST(LaunchCommand, each_engine_starts_a_server_on_several_nodes_in_its_own_way) {
  const ServingQuestion question = question_on("h200_sxm");
  const auto commands = [&](const char* name) {
    const EngineChoice engine{.device = "h200_sxm", .engine = name, .tensor = 16};
    return launch_commands(question, {.pool = {.engine = engine}, .decode = {}}, 4096);
  };
  EXPECT_THAT(commands("vllm")[0].line, EndsWith("--nnodes 2 --node-rank 0 --master-addr FIRST-HOST"));
  EXPECT_THAT(commands("vllm")[1].line, EndsWith("--nnodes 2 --node-rank 1 --master-addr FIRST-HOST --headless"));
  EXPECT_THAT(commands("vllm")[0].note,
              HasSubstr("on the server's first host, and replace FIRST-HOST with that host's address"));
  EXPECT_THAT(commands("vllm")[1].note, HasSubstr("on host 2 of 2"));
  ASSERT_EQ(commands("trtllm").size(), 1U);
  EXPECT_THAT(commands("trtllm")[0].line,
              StartsWith("srun --nodes 2 --ntasks 16 --ntasks-per-node 8 --gres=gpu:8 --mpi=pmix "
                         "trtllm-llmapi-launch trtllm-serve "));
  EXPECT_THAT(commands("trtllm")[0].note, HasSubstr("`mpirun -n 16 --map-by ppr:8:node --hostfile HOSTS`"));
}

TEST(LaunchCommand, every_node_of_a_pool_has_an_address_for_its_cache) {
  const ServingQuestion question = question_on("h200_sxm");
  const EnginePool pool{.engine = {.device = "h200_sxm", .tensor = 16}};
  const auto commands = launch_commands(question, {.pool = pool, .decode = pool}, 4096);
  ASSERT_EQ(commands.size(), 5U);
  EXPECT_THAT(commands[1].line, StartsWith("VLLM_NIXL_SIDE_CHANNEL_HOST=PREFILL-HOST-2 vllm serve "));
  EXPECT_EQ(commands[1].note, "run this line on host 2 of 2; replace PREFILL-HOST-2 with the address of this node");
  EXPECT_FALSE(commands[0].is_of_further_host);
  EXPECT_TRUE(commands[1].is_of_further_host) << "it starts no other servers than the line before";
  EXPECT_THAT(commands[2].line, StartsWith("VLLM_NIXL_SIDE_CHANNEL_HOST=DECODE-HOST vllm serve "));
}

TEST(LaunchCommand, notes_name_only_what_the_router_is_told) {
  const ServingQuestion question = question_on("h200_sxm");
  const auto router_of = [&](const char* name, bool pools) {
    const EngineChoice engine{.device = "h200_sxm", .engine = name, .tensor = 8};
    const EnginePool pool{.engine = engine, .replicas = pools ? 1 : 2};
    return launch_commands(question, {.pool = pool, .decode = pools ? std::optional(pool) : std::nullopt}, 4096).back();
  };
  EXPECT_EQ(router_of("trtllm", false).note, "put any HTTP load balancer in front of these servers");
  EXPECT_EQ(router_of("vllm", false).note, "replace HOST:8000 with the addresses of all 2 servers");
  EXPECT_EQ(
      router_of("vllm", true).note,
      "replace PREFILL-HOST with the address of that server; replace DECODE-HOST with the address of that server");
  EXPECT_THAT(router_of("trtllm", true).note, HasSubstr("PREFILL-HOST:8000"));
}

// All lines together start one server.
TEST(LaunchCommand, the_router_keeps_the_requests_of_a_conversation_on_one_server) {
  ServingQuestion question = small_question();
  const auto router_of = [&](const char* name, bool pools) {
    const EnginePool pool{.engine = {.device = "l4", .engine = name}, .replicas = pools ? 1 : 2};
    return launch_commands(question, {.pool = pool, .decode = pools ? std::optional(pool) : std::nullopt}, 4096).back();
  };
  for (const bool pools : {false, true}) {
    question.has_conversations = false;
    EXPECT_EQ(router_of("vllm", pools).line.find("--policy"), std::string::npos);
    question.has_conversations = true;
    EXPECT_THAT(router_of("vllm", pools).line, HasSubstr("--policy consistent_hash"));
    EXPECT_THAT(router_of("vllm", pools).note, HasSubstr("X-Session-ID"));
    EXPECT_THAT(router_of("sglang", pools).line, HasSubstr("--policy cache_aware"));
    EXPECT_THAT(router_of("trtllm", pools).note, HasSubstr("requests of a conversation"));
  }
}

TEST(LaunchCommand, lines_of_several_nodes_are_one_server) {
  const ServingQuestion question = question_on("h200_sxm");
  for (const char* name : {"vllm", "sglang", "trtllm"}) {
    const EngineChoice engine{.device = "h200_sxm", .engine = name, .tensor = 16};
    std::string script;
    for (const auto& command : launch_commands(question, {.pool = {.engine = engine}, .decode = {}}, 4096)) {
      script += command.line + "\n# " + command.note + "\n";
    }
    const Json fields = read_launch_line(script, "script").fields;
    EXPECT_EQ(whole(fields, "tensor_parallel_size", 1), 16) << script;
    EXPECT_EQ(fields.find("replicas"), nullptr) << script;
  }
}

TEST(LaunchCommand, small_servers_on_several_hosts_have_the_lines_of_one_host) {
  const ServingQuestion question = question_on("h100_sxm");
  const auto commands = launch_commands(
      question, {.pool = {.engine = {.device = "h100_sxm", .engine = "sglang"}, .replicas = 12}, .decode = {}}, 4096);
  ASSERT_EQ(commands.size(), 9U);
  int64_t servers = 0;
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_THAT(commands[i].line, StartsWith(fmt::format("CUDA_VISIBLE_DEVICES={} ", i)));
    EXPECT_THAT(commands[i].line, EndsWith(fmt::format(" --host 0.0.0.0 --port {}", 8001 + i)));
    servers += commands[i].count;
  }
  EXPECT_EQ(servers, 12);
  EXPECT_EQ(commands[7].note, "these 8 servers run on HOST-1; start only the first 4 on HOST-2");
  EXPECT_THAT(commands[8].line, HasSubstr("http://HOST-1:8008 http://HOST-2:8001"));
  EXPECT_THAT(commands[8].line, EndsWith("http://HOST-2:8004 --port 8000"));
  EXPECT_EQ(commands[8].note, "replace HOST with each host's address");
}

// A rack of GB200 is one NVLink domain of 72 GPUs, but 18 hosts.
ServingQuestion question_on_a_rack() {
  ServingQuestion question = question_on("gb200");
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  question.hardware[0].node = hardware.node("gb200_nvl72");
  question.hardware[0].node_devices = 72;
  return question;
}

TEST(LaunchCommand, servers_of_a_rack_are_placed_on_its_hosts) {
  const ServingQuestion question = question_on_a_rack();
  const auto small = launch_commands(
      question, {.pool = {.engine = {.device = "gb200", .tensor = 2}, .replicas = 4}, .decode = {}}, 4096);
  ASSERT_EQ(small.size(), 3U);  // two lines that both hosts repeat, and the router
  EXPECT_THAT(small[1].line, StartsWith("CUDA_VISIBLE_DEVICES=2,3 "));
  EXPECT_EQ(small[1].hosts, 2);
  const auto filling = launch_commands(
      question, {.pool = {.engine = {.device = "gb200", .tensor = 4}, .replicas = 9}, .decode = {}}, 4096);
  ASSERT_EQ(filling.size(), 2U);
  EXPECT_THAT(filling[0].line, StartsWith("vllm serve "));
  EXPECT_EQ(filling[0].count, 9);
  const ServingLayout wide{.pool = {.engine = {.device = "gb200", .engine = "sglang", .tensor = 8}}, .decode = {}};
  const auto lines = lines_of(question, wide);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[1], HasSubstr("--nnodes 2 --node-rank 1 "));
  EXPECT_EQ(pool_launches(question, wide, 4096).front().devices, 4);
}

TEST(LaunchCommand, models_that_share_a_rack_are_placed_on_its_hosts) {
  const ServingQuestion question = question_on_a_rack();
  const ServingLayout layout{.pool = {.engine = {.device = "gb200", .tensor = 2}}, .decode = {}};
  const auto behind = [&](int64_t devices) {
    return launch_commands(question, layout, 4096, HostPlace{.first_device = devices, .router_port = 8100}).front();
  };
  EXPECT_THAT(behind(2).line, StartsWith("CUDA_VISIBLE_DEVICES=2,3 "));
  EXPECT_EQ(behind(2).note, "");
  EXPECT_THAT(behind(6).line, StartsWith("CUDA_VISIBLE_DEVICES=2,3 "));
  EXPECT_EQ(behind(6).note, "run these lines on host 2");
}

TEST(LaunchCommand, hosts_of_a_server_have_equally_many_devices) {
  const ServingQuestion question = question_on_a_rack();
  const auto nodes = [&](int64_t tensor, int64_t pipeline, int64_t ranks) {
    EngineChoice engine{.device = "gb200", .tensor = tensor, .pipeline = pipeline};
    engine.attention_ranks = ranks;
    engine.expert_parallel = ranks > 1;
    return pool_launches(question, {.pool = {.engine = engine}, .decode = {}}, 4096).front().nodes;
  };
  EXPECT_EQ(nodes(4, 1, 1), 1);
  EXPECT_EQ(nodes(6, 1, 1), 2);
  EXPECT_EQ(nodes(2, 5, 1), 5);
  EXPECT_EQ(nodes(8, 1, 2), 4);
  EXPECT_EQ(nodes(3, 1, 4), 4);  // three hosts would have a rank in two parts
}

TEST(LaunchCommand, each_platform_has_its_own_variable_and_words_for_fp8) {
  for (const auto& [device, variable] :
       {std::pair("mi300x", "HIP_VISIBLE_DEVICES=0 "), std::pair("b60", "ZE_AFFINITY_MASK=0 "),
        std::pair("gaudi3", "HABANA_VISIBLE_MODULES=0 "), std::pair("h100_sxm", "CUDA_VISIBLE_DEVICES=0 "),
        std::pair("trainium2", "vllm serve ")}) {
    const ServingQuestion question = question_on(device);
    EngineChoice engine{.device = device};
    EXPECT_THAT(lines_of(question, {.pool = {.engine = engine, .replicas = 2}, .decode = {}})[0], StartsWith(variable));
  }
  const auto fp8_on = [](const char* device) {
    EngineChoice engine{.device = device};
    engine.scheme = Scheme::fp8;
    engine.kv_dtype = DType::fp8;
    return launch_commands(question_on(device), {.pool = {.engine = engine}, .decode = {}}, 4096).front();
  };
  EXPECT_THAT(fp8_on("h100_sxm").line, HasSubstr("--quantization fp8 --kv-cache-dtype fp8 "));
  EXPECT_THAT(fp8_on("gaudi3").line, HasSubstr("--quantization inc --kv-cache-dtype fp8_inc "));
  EXPECT_THAT(fp8_on("gaudi3").note, HasSubstr("QUANT_CONFIG"));
  EXPECT_THAT(fp8_on("trainium2").line, Not(HasSubstr("fp8")));
  EXPECT_THAT(fp8_on("trainium2").note, HasSubstr("replace MODEL with an fp8 checkpoint of"));
}

TEST(LaunchCommand, vllm_is_told_the_cache_of_compressed_attention) {
  ServingQuestion question = question_on("h100_sxm");
  const auto line = [&](const char* name) {
    EngineChoice engine{.device = "h100_sxm", .engine = name};
    engine.kv_dtype = DType::fp8;
    return launch_commands(question, {.pool = {.engine = engine}, .decode = {}}, 4096).front().line;
  };
  question.model.cache_dtype = DType::fp8;
  EXPECT_THAT(line("vllm"), Not(HasSubstr("--kv-cache-dtype")));
  question.model.layers.back().mixer = CompressedAttention{.heads = 16, .head_dim = 64, .rope_dim = 32};
  EXPECT_THAT(line("vllm"), HasSubstr("--kv-cache-dtype fp8 "));
  EXPECT_THAT(line("sglang"), Not(HasSubstr("--kv-cache-dtype")));
}

TEST(LaunchCommand, formats_of_the_cache_are_named_as_the_engine_does) {
  ServingQuestion question = question_on("b200_sxm");
  const auto command = [&](const char* name, DType type) {
    EngineChoice engine{.device = "b200_sxm", .engine = name};
    engine.kv_dtype = type;
    return launch_commands(question, {.pool = {.engine = engine}, .decode = {}}, 4096).front();
  };
  EXPECT_THAT(command("vllm", DType::fp4).line, HasSubstr("--kv-cache-dtype nvfp4 "));
  EXPECT_THAT(command("sglang", DType::fp4).line, HasSubstr("--kv-cache-dtype fp4_e2m1 "));
  EXPECT_THAT(command("trtllm", DType::fp4).options, HasSubstr("kv_cache_config: {dtype: nvfp4}"));
  EXPECT_THAT(command("trtllm", DType::fp8).options, HasSubstr("kv_cache_config: {dtype: fp8}"));
  EXPECT_THAT(command("vllm", DType::int8).line, Not(HasSubstr("--kv-cache-dtype")));
  EXPECT_THAT(command("vllm", DType::int8).note,
              HasSubstr("vllm has no flag for an int8 KV cache, which was simulated"));
  question.model.cache_dtype = DType::fp8;
  EXPECT_THAT(command("vllm", DType::bf16).line, HasSubstr("--kv-cache-dtype bfloat16 "));
  EXPECT_THAT(command("sglang", DType::bf16).line, HasSubstr("--kv-cache-dtype bf16 "));
  for (const auto& [type, cache] :
       {std::pair(DType::bf16, "a bf16 KV cache"), std::pair(DType::fp16, "an fp16 KV cache")}) {
    const LaunchCommand without_flag = command("trtllm", type);
    EXPECT_THAT(without_flag.options, Not(HasSubstr("kv_cache_config")));
    EXPECT_THAT(without_flag.note, HasSubstr(std::string("trtllm has no flag for ") + cache));
  }
}

TEST(LaunchCommand, drafts_by_a_network_of_their_own_name_a_model) {
  ServingQuestion question = question_on("h100_sxm");
  EngineChoice engine{.device = "h100_sxm"};
  engine.speculates = true;
  const auto drafting_by = [&](const char* method) {
    SpeculativeConfig config{.method = &draft_method(method), .num_speculative_tokens = 3};
    question.drafts = DraftChoice{.config = std::move(config), .model = {}, .text = method};
    return launch_commands(question, {.pool = {.engine = engine}, .decode = {}}, 4096).front();
  };
  EXPECT_THAT(drafting_by("eagle3").line, HasSubstr(R"("method":"eagle3","model":"DRAFT-MODEL",)"));
  EXPECT_THAT(drafting_by("eagle3").note,
              HasSubstr("replace DRAFT-MODEL with eagle3 draft weights trained for this model"));
  EXPECT_THAT(drafting_by("mtp").line, Not(HasSubstr("DRAFT-MODEL")));
  EXPECT_THAT(drafting_by("ngram").line, Not(HasSubstr("DRAFT-MODEL")));
}

TEST(LaunchCommand, drafts_are_read_back_as_they_were_planned) {
  ServingQuestion question = question_on("h100_sxm");
  const auto read_back = [&](const char* engine, const char* method) {
    SpeculativeConfig config{.method = &draft_method(method), .num_speculative_tokens = 3};
    question.drafts = DraftChoice{.config = std::move(config), .model = {}, .text = method};
    EngineChoice choice{.device = "h100_sxm", .engine = engine};
    choice.speculates = true;
    const LaunchCommand command = launch_commands(question, {.pool = {.engine = choice}, .decode = {}}, 4096).front();
    const auto file = [&](const std::string&) { return std::optional(command.options); };
    const Json fields = read_launch_line(command.line, "line", file).fields;
    const Json* const drafts = fields.find("speculative_config");
    return drafts == nullptr ? command.note : drafts->dump(0);
  };
  for (const char* engine : {"vllm", "sglang", "trtllm"}) {
    EXPECT_EQ(read_back(engine, "mtp"), R"({"method":"mtp","num_speculative_tokens":3})") << engine;
    EXPECT_EQ(read_back(engine, "ngram"), R"({"method":"ngram","num_speculative_tokens":3})") << engine;
    EXPECT_EQ(read_back(engine, "eagle3"), R"({"method":"eagle3","num_speculative_tokens":3})") << engine;
  }
  EXPECT_EQ(read_back("sglang", "dflash"), R"({"method":"dflash","num_speculative_tokens":3})");
  EXPECT_THAT(read_back("trtllm", "medusa"), HasSubstr("this engine cannot draft by medusa"));
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
