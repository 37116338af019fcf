#include "plan/serving/launch_command.h"

#include <fmt/format.h>

#include "base/text.h"
#include "serving/engine_setup.h"

namespace foretoken {
namespace {

// Flag names of an engine; empty = it has none.
struct LaunchFlags {
  std::string_view family, program, tensor, pipeline, model_len, seqs, tokens, memory, kv_dtype;
  bool tensor_counts_attention_ranks;  // its tensor size is that of all ranks
};
constexpr LaunchFlags launch_flags[] = {
    {"vllm", "vllm serve {}", "--tensor-parallel-size", "--pipeline-parallel-size", "--max-model-len", "--max-num-seqs",
     "--max-num-batched-tokens", "--gpu-memory-utilization", "--kv-cache-dtype", false},
    {"sglang", "python -m sglang.launch_server --model-path {}", "--tp-size", "--pp-size", "--context-length",
     "--max-running-requests", "--chunked-prefill-size", "--mem-fraction-static", "--kv-cache-dtype", true},
    {"trtllm", "trtllm-serve {}", "--tp_size", "--pp_size", "--max_seq_len", "--max_batch_size", "--max_num_tokens",
     "--kv_cache_free_gpu_memory_fraction", "", true}};

const LaunchFlags& flags_of(std::string_view family) {
  for (const LaunchFlags& flags : launch_flags) {
    if (flags.family == family) return flags;
  }
  return launch_flags[0];
}

void add_expert_flags(const EngineChoice& engine, std::string_view family, std::string& line, std::string& note) {
  if (!engine.expert_parallel) return;
  if (family == "vllm") {
    if (engine.attention_ranks > 1) line += fmt::format(" --data-parallel-size {}", engine.attention_ranks);
    line += " --enable-expert-parallel";
    return;
  }
  const int64_t experts = engine.plan().expert;
  if (family == "sglang") {
    if (engine.attention_ranks > 1) {
      line += fmt::format(" --dp-size {} --enable-dp-attention", engine.attention_ranks);
    }
    line += fmt::format(" --ep-size {}", experts);
    return;
  }
  line += fmt::format(" --ep_size {}", experts);
  if (engine.attention_ranks > 1) note += "with enable_attention_dp: true in its options file; ";
}

void add_format_flags(const EngineChoice& engine, const Model& model, const LaunchFlags& flags, std::string& line,
                      std::string& note) {
  if (engine.scheme && *engine.scheme != model.scheme) {
    const std::string_view scheme = facts(*engine.scheme).name;
    // The other schemes need weights that were quantized before, and TensorRT-LLM always does.
    if (*engine.scheme == Scheme::fp8 && flags.family != "trtllm") {
      line += " --quantization fp8";
    } else {
      note += fmt::format("MODEL is a checkpoint in {}; ", scheme);
    }
  }
  if (engine.kv_dtype == model.dtype) return;
  const std::string_view type =
      engine.kv_dtype == DType::fp8 && flags.family == "sglang" ? "fp8_e4m3" : dtype_name(engine.kv_dtype);
  if (flags.kv_dtype.empty()) {
    note += fmt::format("with kv_cache_config.dtype: {} in its options file; ", type);
  } else {
    line += fmt::format(" {} {}", flags.kv_dtype, type);
  }
}

void add_role_flags(std::string_view role, std::string_view family, std::string& line, std::string& note) {
  if (role.empty()) return;
  if (family == "vllm") {
    line += R"( --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}')";
  } else if (family == "sglang") {
    line += fmt::format(" --disaggregation-mode {}", role);
  } else {
    note += "behind `trtllm-serve disaggregated`; ";
  }
}

void add_draft_flags(const DraftChoice& drafts, std::string_view family, std::string& line, std::string& note) {
  const SpeculativeConfig& config = drafts.config;
  if (family != "vllm") {
    note += fmt::format("drafting {} tokens by {}; ", config.num_speculative_tokens, config.method->name);
    return;
  }
  const std::string model = config.model.empty() ? "" : fmt::format(R"("model":"{}",)", config.model);
  line += fmt::format(R"( --speculative-config '{{"method":"{}",{}"num_speculative_tokens":{}}}')", config.method->name,
                      model, config.num_speculative_tokens);
}

LaunchCommand launch(const ServingQuestion& question, const EnginePool& pool, std::string_view role,
                     int64_t max_model_len) {
  const EngineChoice& engine = pool.engine;
  const LaunchFlags& flags = flags_of(engine_family(engine.engine));
  LaunchCommand command{.count = pool.replicas, .role = std::string(role), .line = {}, .note = {}};
  std::string& line = command.line;
  line = fmt::format(fmt::runtime(flags.program), question.model.name);
  const int64_t tensor = engine.tensor * (flags.tensor_counts_attention_ranks ? engine.attention_ranks : 1);
  line += fmt::format(" {} {}", flags.tensor, tensor);
  if (engine.pipeline > 1) line += fmt::format(" {} {}", flags.pipeline, engine.pipeline);
  add_expert_flags(engine, flags.family, line, command.note);
  add_format_flags(engine, question.model, flags, line, command.note);
  line += fmt::format(" {} {}", flags.model_len, max_model_len);
  if (pool.max_num_seqs > 0) line += fmt::format(" {} {}", flags.seqs, pool.max_num_seqs);
  if (pool.max_num_batched_tokens > 0) line += fmt::format(" {} {}", flags.tokens, pool.max_num_batched_tokens);
  if (question.memory_fraction > 0) {
    line += fmt::format(" {} {}", flags.memory, number_text(question.memory_fraction));
  }
  add_role_flags(role, flags.family, line, command.note);
  if (engine.speculates && question.drafts) add_draft_flags(*question.drafts, flags.family, line, command.note);
  if (command.note.ends_with("; ")) command.note.resize(command.note.size() - 2);
  return command;
}

}  // namespace

std::vector<LaunchCommand> launch_commands(const ServingQuestion& question, const ServingLayout& layout,
                                           int64_t max_model_len) {
  if (!layout.decode) return {launch(question, layout.pool, "", max_model_len)};
  return {launch(question, layout.pool, "prefill", max_model_len),
          launch(question, *layout.decode, "decode", max_model_len)};
}

}  // namespace foretoken
