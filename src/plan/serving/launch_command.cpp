#include "plan/serving/launch_command.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "model/exchange_name.h"
#include "plan/serving/launch_platform.h"
#include "serving/engine/engine_setup.h"
#include "serving/engine/launch_drafts.h"
#include "serving/engine/launch_flags.h"

namespace foretoken {
namespace {

template <class Value>
void add_flag(LaunchStyle style, std::string_view field, const Value& value, std::string& line) {
  const std::string flag = launch_flag_name(style, field);
  ensure(!flag.empty(), "the engine has this flag");
  line += fmt::format(" {} {}", flag, value);
}

// A placeholder in the line, and what to write there.
void note_placeholder(LaunchCommand& command, std::string_view placeholder, const std::string& by) {
  command.note += fmt::format("replace {} with {}; ", placeholder, by);
  command.has_placeholder = true;
}

// What TensorRT-LLM reads from a YAML file only.
void add_option_of_file(const std::string& option, LaunchCommand& command) {
  if (command.options.empty()) command.line += " --extra_llm_api_options options.yaml";
  command.options += option + "\n";
  command.note += fmt::format("options.yaml holds `{}`; ", option);
}

constexpr std::string_view first_host = first_launch_host;

// How a server that spans nodes is started on one of them.
struct NodePlace {
  int64_t nodes = 1;
  int64_t number = 0;
};

// Lines that a server on several nodes needs: one for each node, or one for all where a launcher starts the others.
int64_t lines_of_server(LaunchStyle style, int64_t nodes) {
  return style == LaunchStyle::trtllm ? 1 : nodes;
}

// vLLM without Ray, which its image does not contain: docs/serving/parallelism_scaling.md and
// data_parallel_deployment.md of vLLM.
void add_vllm_node_flags(const EngineChoice& engine, const NodePlace& node, std::string& line) {
  const bool holds_whole_ranks = engine.attention_ranks > 1 && engine.attention_ranks % node.nodes == 0;
  if (holds_whole_ranks) {
    const int64_t local = engine.attention_ranks / node.nodes;
    line += fmt::format(" --data-parallel-size-local {} --data-parallel-address {} --data-parallel-rpc-port 13345",
                        local, first_host);
    if (node.number > 0) line += fmt::format(" --data-parallel-start-rank {}", node.number * local);
  } else {
    line += fmt::format(" --nnodes {} --node-rank {} --master-addr {}", node.nodes, node.number, first_host);
  }
  if (node.number > 0) line += " --headless";
}

// TensorRT-LLM has one MPI process for each device, of which the first one serves: its documentation of trtllm-serve,
// multi-node serving with Slurm.
void add_mpi_launcher(int64_t devices, const NodePlace& node, LaunchCommand& command) {
  const int64_t each = devices / node.nodes;
  command.line = fmt::format(
      "srun --nodes {0} --ntasks {1} --ntasks-per-node {2} --gres=gpu:{2} --mpi=pmix trtllm-llmapi-launch {3}",
      node.nodes, devices, each, command.line);
  command.note += fmt::format(
      "run it once, where Slurm can start processes in TensorRT-LLM's image on {} nodes (add {} if Slurm starts "
      "containers); without Slurm, write `mpirun -n {} --map-by ppr:{}:node --hostfile HOSTS` instead of srun and its "
      "flags; ",
      node.nodes, "--container-image", devices, each);
}

void add_node_flags(const EngineChoice& engine, LaunchStyle style, const NodePlace& node, LaunchCommand& command) {
  if (node.nodes < 2) return;
  if (style == LaunchStyle::trtllm) return add_mpi_launcher(engine.devices(), node, command);
  if (style == LaunchStyle::vllm) {
    add_vllm_node_flags(engine, node, command.line);
  } else {
    command.line +=
        fmt::format(" --nnodes {} --node-rank {} --dist-init-addr {}:5000", node.nodes, node.number, first_host);
  }
  command.is_of_further_host = node.number > 0;
  command.note +=
      node.number == 0
          ? fmt::format("run this line on the server's first host, and replace {} with that host's address; ",
                        first_host)
          : fmt::format("run this line on host {} of {}; ", node.number + 1, node.nodes);
}

void add_exchange_flags(const EngineChoice& engine, LaunchStyle style, std::string& line) {
  if (engine.deepep) add_flag(style, "all2all_backend", deepep_name(*engine.deepep), line);
  if (engine.expert_copies == 0) return;
  line += " --enable-eplb";
  if (style == LaunchStyle::vllm) {
    add_flag(style, "eplb_config", fmt::format(R"('{{"num_redundant_experts":{}}}')", engine.expert_copies), line);
  } else {
    add_flag(style, "num_redundant_experts", engine.expert_copies, line);
  }
}

void add_expert_flags(const EngineChoice& engine, LaunchStyle style, LaunchCommand& command) {
  if (!engine.expert_parallel) return;
  std::string& line = command.line;
  if (style == LaunchStyle::vllm) {
    if (engine.attention_ranks > 1) add_flag(style, "data_parallel_size", engine.attention_ranks, line);
    line += " " + launch_flag_name(style, "enable_expert_parallel");
    add_exchange_flags(engine, style, line);
    return;
  }
  const int64_t experts = engine.plan().expert;
  if (style == LaunchStyle::sglang && engine.attention_ranks > 1) {
    add_flag(style, "data_parallel_size", engine.attention_ranks, line);
    line += " " + launch_flag_name(style, "enable_dp_attention");
  }
  add_flag(style, "expert_parallel_size", experts, line);
  add_exchange_flags(engine, style, line);
  if (style == LaunchStyle::trtllm && engine.attention_ranks > 1) {
    add_option_of_file("enable_attention_dp: true", command);
  }
}

// "an fp8", "a w4a16_mxfp4": as the name is spoken.
std::string with_article(std::string_view format) {
  constexpr std::string_view spoken_with_vowel = "aefilmnorsx";
  return fmt::format("{} {}", spoken_with_vowel.find(format.front()) == std::string_view::npos ? "a" : "an", format);
}

// What TensorRT-LLM reads from one map of its options file.
using CacheOptions = std::vector<std::string>;

// The engine's own word for a format of its cache; nothing where it has none. An empty word needs no flag.
std::optional<std::string_view> cache_word(DType type, LaunchStyle style, const LaunchPlatform& platform) {
  using Word = std::optional<std::string_view>;
  const bool is_vllm = style == LaunchStyle::vllm, is_sglang = style == LaunchStyle::sglang;
  switch (type) {
    case DType::fp8:
      return is_vllm ? Word(platform.fp8_cache) : is_sglang ? Word("fp8_e4m3") : Word("fp8");
    case DType::fp4:
      return is_sglang ? Word("fp4_e2m1") : Word("nvfp4");
    case DType::bf16:
      return is_vllm ? Word("bfloat16") : is_sglang ? Word("bf16") : Word();
    case DType::fp16:
      return is_vllm ? Word("float16") : Word();
    default:
      return std::nullopt;
  }
}

void add_cache_format(const EngineChoice& engine, LaunchStyle style, const LaunchPlatform& platform,
                      LaunchCommand& command, CacheOptions& cache) {
  const std::optional<std::string_view> word = cache_word(engine.kv_dtype, style, platform);
  if (!word) {
    command.note += fmt::format("{} has no flag for {} KV cache, which was simulated; ", engine.engine,
                                with_article(dtype_name(engine.kv_dtype)));
  } else if (launch_flag_name(style, "kv_cache_dtype").empty()) {
    cache.push_back(fmt::format("dtype: {}", *word));
  } else if (!word->empty()) {
    add_flag(style, "kv_cache_dtype", *word, command.line);
  }
}

void add_format_flags(const EngineChoice& engine, const Model& model, LaunchStyle style, const LaunchPlatform& platform,
                      LaunchCommand& command, CacheOptions& cache) {
  std::string &line = command.line, &note = command.note;
  const bool makes_fp8 = engine.scheme == Scheme::fp8 && *engine.scheme != model.scheme;
  // vLLM refuses to choose the cache of DeepSeek-V4 itself.
  const bool must_say_cache = style == LaunchStyle::vllm && model.has_compressed_attention();
  const bool other_cache = engine.kv_dtype != model.kv_cache_dtype() || must_say_cache;
  if (!platform.fp8_note.empty() && (makes_fp8 || (other_cache && engine.kv_dtype == DType::fp8))) {
    note += fmt::format("{}; ", platform.fp8_note);
  }
  const std::string served = shell_word(model.served_name());
  const bool is_hub_name = model.served_name() != model.name && model.served_name().find('/') == std::string::npos;
  if (is_hub_name && model.named_scheme) note += "write the organization that published it before the model's name; ";
  if (engine.scheme && *engine.scheme != model.scheme) {
    const std::string_view scheme = facts(*engine.scheme).name;
    // The other schemes need weights that were quantized before, and TensorRT-LLM always does.
    if (makes_fp8 && style != LaunchStyle::trtllm && !platform.fp8_weights.empty()) {
      add_flag(style, "quantization", platform.fp8_weights, line);
    } else {
      note_placeholder(command, "MODEL", fmt::format("{} checkpoint of {}", with_article(scheme), model.served_name()));
      const size_t name = line.find(served);
      ensure(name != std::string::npos, "the line names the model");
      line.replace(name, served.size(), "MODEL");
    }
  }
  if (other_cache) add_cache_format(engine, style, platform, command, cache);
}

void add_host_cache(const EnginePool& pool, LaunchStyle style, std::string& line, CacheOptions& cache) {
  if (pool.host_gib == 0) return;
  const std::string size = number_text(host_cache_value(pool));
  switch (style) {
    case LaunchStyle::vllm:
      add_flag(style, "kv_offloading_size", size, line);
      add_flag(style, "kv_offloading_backend", "native", line);
      return;
    case LaunchStyle::sglang:
      line += " " + launch_flag_name(style, "enable_host_cache");
      add_flag(style, "host_cache_size", size, line);
      return;
    case LaunchStyle::trtllm:
      cache.push_back(fmt::format("host_cache_size: {:.0f}", host_cache_value(pool)));
  }
}

void add_adapter_flags(const LoraSettings& lora, int64_t slots, LaunchStyle style, std::string& line,
                       std::string& note) {
  line += " " + launch_flag_name(style, "enable_lora");
  add_flag(style, "max_loras", slots, line);
  add_flag(style, "max_lora_rank", lora.max_lora_rank, line);
  if (lora.max_cpu_loras > slots) add_flag(style, "max_cpu_loras", lora.max_cpu_loras, line);
  note += "add your adapters as NAME=PATH with --lora-modules; ";
}

constexpr int64_t first_bootstrap_port = 8998;     // SGLang's own where there is one server
constexpr int64_t first_side_channel_port = 5600;  // vLLM's NIXL connector; each rank adds its number
constexpr int64_t most_lines = 16;

// One server of several on a host.
struct ServerPlace {
  HostPlace host;            // of the first
  int64_t number = 0;        // of the servers
  int64_t first_device = 0;  // of the host's
  std::string address{};     // of the host, where others must reach it; empty = the router runs on the same host
  int64_t port() const { return host.router_port + 1 + number; }
  int64_t bootstrap_port() const { return first_bootstrap_port + host.first_device + number; }
};

void add_role_flags(std::string_view role, LaunchStyle style, const std::optional<ServerPlace>& place,
                    LaunchCommand& command) {
  if (role.empty()) return;
  std::string& line = command.line;
  if (style == LaunchStyle::vllm) {
    line += R"( --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}')";
  } else if (style == LaunchStyle::sglang) {
    line += fmt::format(" --disaggregation-mode {}", role);
    if (place) line += fmt::format(" --disaggregation-bootstrap-port {}", place->bootstrap_port());
  } else {
    add_option_of_file("cache_transceiver_config: {backend: UCX}", command);
    command.note += "each pool needs its own options.yaml; ";
    if (role == "prefill") {
      command.note += "before release 1.3, prefill servers also need `disable_overlap_scheduler: true` in theirs; ";
    }
  }
}

// vLLM answers on every address by itself, the others only on their own host.
void add_open_address(LaunchStyle style, std::string& line) {
  if (style != LaunchStyle::vllm) line += " --host 0.0.0.0";
}

constexpr std::string_view side_channel_variable = "VLLM_NIXL_SIDE_CHANNEL_HOST";

// Where vLLM's pools find this server's cache.
std::string side_channel(std::string_view role, LaunchStyle style, std::string_view address) {
  if (style != LaunchStyle::vllm || role.empty() || address.empty()) return "";
  return fmt::format("{}={} ", side_channel_variable, address);
}

// The same of a node that is not the server's first, whose address no other line has.
void add_other_side_channel(std::string_view role, LaunchStyle style, const std::string& address,
                            LaunchCommand& command) {
  const std::string variable = side_channel(role, style, address);
  if (variable.empty()) return;
  command.line = variable + command.line;
  command.note += fmt::format("{}replace {} with the address of this node", command.note.empty() ? "" : "; ", address);
}

// Devices and ports of its own, before the line and behind it.
void add_place(const ServerPlace& place, int64_t devices, std::string_view role, LaunchStyle style,
               const LaunchPlatform& platform, LaunchCommand& command) {
  std::string visible;
  for (int64_t i = 0; i < devices; ++i) visible += fmt::format("{}{}", i > 0 ? "," : "", place.first_device + i);
  std::string before;
  if (platform.visible.empty()) {
    command.note += fmt::format("let this server use only device{} {}; ", devices > 1 ? "s" : "", visible);
  } else {
    before = fmt::format("{}={} ", platform.visible, visible);
  }
  before += side_channel(role, style, place.address);
  if (style == LaunchStyle::vllm && !role.empty()) {
    before += fmt::format("VLLM_NIXL_SIDE_CHANNEL_PORT={} ", first_side_channel_port + place.first_device);
  }
  command.line = before + command.line;
  if (!place.address.empty()) add_open_address(style, command.line);
  command.line += fmt::format(" --port {}", place.port());
}

void add_draft_flags(const SpeculativeConfig& drafts, LaunchStyle style, LaunchCommand& command) {
  const std::string_view method = drafts.method->name;
  if (draft_word(style, *drafts.method).empty()) {
    command.note += fmt::format("this engine cannot draft by {}, so the line leaves it out; ", method);
    return;
  }
  if (style == LaunchStyle::trtllm) {
    add_option_of_file(draft_option_line(drafts), command);
  } else {
    for (const auto& [field, value] : draft_flags(style, drafts)) add_flag(style, field, value, command.line);
  }
  if (draft_weights(drafts) == draft_placeholder) {
    note_placeholder(command, draft_placeholder, fmt::format("{} draft weights trained for this model", method));
  }
}

// What TensorRT-LLM does otherwise by itself: it refuses prompts longer than a step, and captures fewer graphs than
// were simulated.
void add_simulated_options(const ServingQuestion& question, const EnginePool& pool, int64_t max_model_len,
                           LaunchCommand& command) {
  const EngineChoice& engine = pool.engine;
  const EngineFlags flags = resolved({.engine = engine.engine,
                                      .max_num_batched_tokens = pool.max_num_batched_tokens,
                                      .max_num_seqs = pool.max_num_seqs,
                                      .max_model_len = max_model_len,
                                      .kv_dtype = engine.kv_dtype},
                                     question.model, question.hardware_of(engine.device).device, engine.plan());
  add_option_of_file("enable_chunked_prefill: true", command);
  add_option_of_file(
      fmt::format("cuda_graph_config: {{enable_padding: true, max_batch_size: {}}}", largest_graph(flags)), command);
}

LaunchCommand launch(const ServingQuestion& question, const EnginePool& pool, std::string_view role,
                     int64_t max_model_len, const std::optional<ServerPlace>& place, const NodePlace& node = {}) {
  const EngineChoice& engine = pool.engine;
  const LaunchStyle style = engine_kind(engine.engine).launch;
  const LaunchPlatform& platform = launch_platform(question.hardware_of(engine.device).device);
  LaunchCommand command{
      .count = place ? 1 : pool.replicas, .role = std::string(role), .line = {}, .note = {}, .options = {}};
  std::string& line = command.line;
  line = fmt::format(fmt::runtime(launch_program(style)), shell_word(question.model.served_name()));
  const int64_t tensor = engine.tensor * (tensor_size_counts_attention_ranks(style) ? engine.attention_ranks : 1);
  add_flag(style, "tensor_parallel_size", tensor, line);
  if (engine.pipeline > 1) add_flag(style, "pipeline_parallel_size", engine.pipeline, line);
  add_expert_flags(engine, style, command);
  CacheOptions cache;
  add_format_flags(engine, question.model, style, platform, command, cache);
  add_host_cache(pool, style, line, cache);
  if (!cache.empty()) add_option_of_file(fmt::format("kv_cache_config: {{{}}}", fmt::join(cache, ", ")), command);
  if (style == LaunchStyle::trtllm) add_simulated_options(question, pool, max_model_len, command);
  add_flag(style, "max_model_len", max_model_len, line);
  if (pool.max_num_seqs > 0) add_flag(style, "max_num_seqs", pool.max_num_seqs, line);
  if (pool.max_num_batched_tokens > 0) add_flag(style, "max_num_batched_tokens", pool.max_num_batched_tokens, line);
  const double memory_fraction = pool.memory_fraction > 0 ? pool.memory_fraction : question.memory_fraction;
  if (memory_fraction > 0) add_flag(style, "gpu_memory_utilization", number_text(memory_fraction), line);
  add_node_flags(engine, style, node, command);
  add_role_flags(role, style, place, command);
  if (question.lora) add_adapter_flags(*question.lora, pool.max_loras, style, line, command.note);
  if (engine.speculates && question.drafts) add_draft_flags(question.drafts->config, style, command);
  if (place) add_place(*place, engine.devices(), role, style, platform, command);
  if (command.note.ends_with("; ")) command.note.resize(command.note.size() - 2);
  return command;
}

// Where servers answer: as the router is told.
struct ServerUrl {
  std::string url, role;
  std::optional<int64_t> bootstrap_port;
};

// Before several servers; nothing in front of one alone.
LaunchCommand router(LaunchStyle style, const std::vector<ServerUrl>& servers, int64_t router_port,
                     bool has_conversations) {
  LaunchCommand command{.role = "router", .line = {}, .note = {}, .options = {}};
  const bool pools = !servers.front().role.empty();
  if (style == LaunchStyle::trtllm) {
    if (pools) {
      const auto urls = [&](std::string_view role) {
        std::string text;
        for (const ServerUrl& server : servers) {
          if (server.role == role) text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", server.url);
        }
        return text;
      };
      command.line = "trtllm-serve disaggregated -c pools.yaml";
      command.note = fmt::format(
          "pools.yaml: {{hostname: localhost, port: {}, context_servers: {{urls: [{}]}}, "
          "generation_servers: {{urls: [{}]}}}}",
          router_port, urls("prefill"), urls("decode"));
      if (has_conversations) {
        command.note += "; add a router to pools.yaml that sends all requests of a conversation to the same server";
      }
    } else if (has_conversations) {
      command.note =
          "put an HTTP load balancer with sticky sessions in front of these servers: all requests of a conversation "
          "must reach the same server";
    } else {
      command.note = "put any HTTP load balancer in front of these servers";
    }
    return command;
  }
  command.line = style == LaunchStyle::sglang ? "python -m sglang_router.launch_router" : "vllm-router";
  if (!pools) {
    command.line += " --worker-urls";
    for (const ServerUrl& server : servers) command.line += " http://" + server.url;
  } else {
    command.line += style == LaunchStyle::sglang ? " --pd-disaggregation" : " --vllm-pd-disaggregation";
    for (const ServerUrl& server : servers) {
      command.line += fmt::format(" --{} http://{}", server.role, server.url);
      if (server.role == "prefill" && server.bootstrap_port) command.line += fmt::format(" {}", *server.bootstrap_port);
    }
  }
  command.line += fmt::format(" --port {}", router_port);
  if (!has_conversations) return command;
  command.line += policy_of_conversations(style);
  if (style == LaunchStyle::vllm) {
    command.note =
        "send the same X-Session-ID header with all requests of a conversation, so that they reach the same server";
  }
  return command;
}

int64_t host_devices(const ServingQuestion& question, const EnginePool& pool) {
  return question.hardware_of(pool.engine.device).host_devices();
}

// The fewest hosts that share its devices evenly, without a group of ranks and a part of another on one host.
int64_t nodes_of(const ServingQuestion& question, const EnginePool& pool) {
  const int64_t devices = pool.engine.devices(), group = pool.engine.tensor * pool.engine.pipeline;
  const int64_t most = host_devices(question, pool);
  const auto shares_evenly = [&](int64_t nodes) {
    const int64_t share = devices / nodes;
    return devices % nodes == 0 && (share % group == 0 || group % share == 0);
  };
  int64_t nodes = (devices + most - 1) / most;
  while (!shares_evenly(nodes)) ++nodes;
  return nodes;
}

// Of one server on hosts of its own.
std::vector<LaunchCommand> lines_on_nodes(const ServingQuestion& question, const EnginePool& pool,
                                          std::string_view role, int64_t max_model_len) {
  const LaunchStyle style = engine_kind(pool.engine.engine).launch;
  const int64_t nodes = nodes_of(question, pool);
  std::vector<LaunchCommand> lines;
  for (int64_t node = 0; node < lines_of_server(style, nodes); ++node) {
    lines.push_back(launch(question, pool, role, max_model_len, std::nullopt, {.nodes = nodes, .number = node}));
  }
  return lines;
}

struct PoolOfRole {
  const EnginePool* pool;
  std::string_view role;
};

std::vector<PoolOfRole> pools_of(const ServingLayout& layout) {
  if (!layout.decode) return {{&layout.pool, ""}};
  return {{&layout.pool, "prefill"}, {&*layout.decode, "decode"}};
}

// Behind the devices that others have of the same host.
bool fits_one_host(const ServingQuestion& question, const ServingLayout& layout, const HostPlace& host) {
  const int64_t devices = host_devices(question, layout.pool);
  return !layout.is_mixed() && host.first_device % devices + layout.devices() <= devices;
}

// The lines of a layout, and what its router is told.
struct LayoutLines {
  std::vector<LaunchCommand> commands;
  std::vector<ServerUrl> urls;
  std::string note;  // of the router
};

// All servers on one host.
void place_on_one_host(const ServingQuestion& question, const PoolOfRole& of, int64_t max_model_len, ServerPlace& place,
                       LayoutLines& lines) {
  for (int64_t i = 0; i < of.pool->replicas; ++i) {
    lines.commands.push_back(launch(question, *of.pool, of.role, max_model_len, place));
    lines.urls.push_back({.url = fmt::format("localhost:{}", place.port()),
                          .role = std::string(of.role),
                          .bootstrap_port = place.bootstrap_port()});
    ++place.number;
    place.first_device += of.pool->engine.devices();
  }
}

std::string host_name(std::string_view role) {
  return role == "prefill" ? "PREFILL-HOST" : role == "decode" ? "DECODE-HOST" : "HOST";
}

// A server that fills its host, or several.
void place_on_hosts_of_their_own(const ServingQuestion& question, const PoolOfRole& of, int64_t max_model_len,
                                 bool has_router, LayoutLines& lines) {
  const LaunchStyle style = engine_kind(of.pool->engine.engine).launch;
  const std::string host = host_name(of.role);
  int64_t node = 0;
  for (LaunchCommand& command : lines_on_nodes(question, *of.pool, of.role, max_model_len)) {
    if (has_router && node == 0) {
      command.line = side_channel(of.role, style, host) + command.line;
      add_open_address(style, command.line);
      if (style == LaunchStyle::sglang) command.line += " --port 8000";  // that of the others by themselves
    } else if (has_router) {
      add_other_side_channel(of.role, style, fmt::format("{}-{}", host, node + 1), command);
    }
    ++node;
    lines.commands.push_back(std::move(command));
  }
  lines.urls.push_back({.url = host + ":8000", .role = std::string(of.role), .bootstrap_port = {}});
  lines.note += of.pool->replicas > 1
                    ? fmt::format("replace {}:8000 with the addresses of all {} servers; ", host, of.pool->replicas)
                    : fmt::format("replace {} with the address of that server; ", host);
}

// Several servers on each of several hosts: the lines of one host, which the others repeat.
void place_on_alike_hosts(const ServingQuestion& question, const PoolOfRole& of, int64_t max_model_len,
                          int64_t each_host, LayoutLines& lines) {
  const int64_t servers = of.pool->replicas, hosts = (servers + each_host - 1) / each_host;
  const std::string host = host_name(of.role);
  ServerPlace place{.host = {}, .address = hosts > 1 ? host + "-1" : host};
  for (int64_t i = 0; i < std::min(each_host, servers); ++i) {
    LaunchCommand command = launch(question, *of.pool, of.role, max_model_len, place);
    command.count = command.hosts = (servers - i + each_host - 1) / each_host;
    lines.commands.push_back(std::move(command));
    ++place.number;
    place.first_device += of.pool->engine.devices();
  }
  if (hosts > 1) {
    std::string& note = lines.commands.back().note;
    const int64_t rest = servers % each_host, full = rest > 0 ? hosts - 1 : hosts;
    note += fmt::format("{}these {} servers run on {}-1", note.empty() ? "" : "; ", each_host, host);
    if (full > 1) {
      note +=
          fmt::format("; start the same on {}", full == 2 ? host + "-2" : fmt::format("{0}-2 to {0}-{1}", host, full));
    }
    if (rest > 0) note += fmt::format("; start only the first {} on {}-{}", rest, host, hosts);
    if (lines.commands.back().line.find(side_channel_variable) != std::string::npos) {
      note += fmt::format("; set {} to the name of the host each server runs on", side_channel_variable);
    }
  }
  const int64_t named = servers <= most_lines ? servers : each_host;
  for (int64_t i = 0; i < named; ++i) {
    const ServerPlace one{.host = {}, .number = i % each_host};
    const std::string at = hosts > 1 ? fmt::format("{}-{}", host, i / each_host + 1) : host;
    lines.urls.push_back({.url = fmt::format("{}:{}", at, one.port()),
                          .role = std::string(of.role),
                          .bootstrap_port = one.bootstrap_port()});
  }
  if (named < servers) lines.note += fmt::format("add the servers of the other {} hosts; ", hosts - 1);
  lines.note += fmt::format("replace {} with each host's address; ", host);
}

int64_t servers_of_host(const ServingQuestion& question, const EnginePool& pool) {
  return host_devices(question, pool) / std::max<int64_t>(1, pool.engine.devices());
}

}  // namespace

// What was simulated: turns reach the server that has the KV cache of their conversation. vLLM's router hashes the
// session that a request names (vllm-project/router, docs/load_balancing); SGLang's knows which server had the longest
// part of a prompt (sglang, docs/advanced_features/sgl_model_gateway.md).
std::string_view policy_of_conversations(LaunchStyle style) {
  switch (style) {
    case LaunchStyle::vllm:
      return " --policy consistent_hash";
    case LaunchStyle::sglang:
      return " --policy cache_aware";
    case LaunchStyle::trtllm:
      break;
  }
  return "";
}

std::vector<LaunchCommand> launch_commands(const ServingQuestion& question, const ServingLayout& layout,
                                           int64_t max_model_len, const std::optional<HostPlace>& shared) {
  const HostPlace host = shared.value_or(HostPlace{});
  const int64_t servers = layout.pool.replicas + (layout.decode ? layout.decode->replicas : 0);
  const LaunchStyle style = engine_kind(layout.pool.engine.engine).launch;
  const bool on_one_host = (servers > 1 || shared) && servers <= most_lines && fits_one_host(question, layout, host);
  LayoutLines lines;
  const int64_t of_host = host_devices(question, layout.pool);
  ServerPlace place{.host = host, .first_device = host.first_device % of_host};
  for (const PoolOfRole& of : pools_of(layout)) {
    const int64_t each_host = servers_of_host(question, *of.pool);
    if (on_one_host) {
      place_on_one_host(question, of, max_model_len, place, lines);
    } else if (of.pool->replicas > 1 && each_host > 1 && each_host <= most_lines) {
      place_on_alike_hosts(question, of, max_model_len, each_host, lines);
    } else {
      place_on_hosts_of_their_own(question, of, max_model_len, servers > 1, lines);
    }
  }
  if (on_one_host && host.first_device >= of_host) {
    std::string& note = lines.commands.front().note;
    note =
        fmt::format("run these lines on host {}{}{}", host.first_device / of_host + 1, note.empty() ? "" : "; ", note);
  }
  if (servers == 1) return lines.commands;
  lines.commands.push_back(router(style, lines.urls, host.router_port, question.has_conversations));
  LaunchCommand& before_servers = lines.commands.back();
  const bool names_servers = !before_servers.line.empty();
  if (names_servers && !lines.note.empty()) {
    if (!before_servers.note.empty()) before_servers.note += "; ";
    before_servers.note += lines.note.substr(0, lines.note.size() - 2);
  }
  return lines.commands;
}

std::vector<PoolLaunch> pool_launches(const ServingQuestion& question, const ServingLayout& layout,
                                      int64_t max_model_len) {
  std::vector<PoolLaunch> launches;
  for (const auto& [pool, role] : pools_of(layout)) {
    const int64_t nodes = nodes_of(question, *pool);
    launches.push_back({.role = std::string(role),
                        .servers = pool->replicas,
                        .nodes = nodes,
                        .devices = pool->engine.devices() / nodes,
                        .lines = lines_on_nodes(question, *pool, role, max_model_len)});
  }
  return launches;
}

std::string pool_router_line(const std::string& engine, const std::vector<std::string>& prefill_hosts,
                             const std::vector<std::string>& decode_hosts, bool has_conversations) {
  std::vector<ServerUrl> urls;
  for (const std::string& host : prefill_hosts) {
    urls.push_back({.url = host + ":8000", .role = "prefill", .bootstrap_port = first_bootstrap_port});
  }
  for (const std::string& host : decode_hosts) {
    urls.push_back({.url = host + ":8000", .role = "decode", .bootstrap_port = {}});
  }
  return router(engine_kind(engine).launch, urls, 8000, has_conversations).line;
}

}  // namespace foretoken
