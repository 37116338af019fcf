#include "app/cli/flags/engine_flags.h"

#include <string>

namespace foretoken {
namespace {

std::string engine_help() {
  std::string help = "Engine whose memory rules and defaults to use:";
  for (const EngineKind& kind : engine_kinds()) {
    help += help.ends_with(':') ? " " : "; ";
    help.append(kind.name).append(" = ").append(kind.summary);
  }
  help += "; add a release (for example vllm-0.12) to use its stack, scheduler and memory rules";
  return help;
}

constexpr Range<int64_t> tokens_or_blocks{.least = 0, .most = 100'000'000};

}  // namespace

void MemoryFlags::declare(Options& options) {
  options.heading("Memory of the serving engine (0 = the engine's default)");
  options.flag("--memory", wanted, "Also show how the engine divides GPU memory and how much its KV cache holds");
  options.choice("--engine", engine.engine, engine_names(), engine_help());
  options.number("--gpu-memory-utilization,--mem-fraction-static,--free-gpu-memory-fraction", engine.memory_fraction,
                 {.least = 0, .most = 1}, "Share of GPU memory the engine may use, as the chosen engine defines it");
  options.integer("--max-num-batched-tokens,--max-num-tokens,--chunked-prefill-size", engine.max_num_batched_tokens,
                  tokens_or_blocks,
                  "Maximum tokens per step. With sglang and attention data parallelism, the total over all ranks");
  options.integer("--max-num-seqs,--max-batch-size,--max-running-requests", engine.max_num_seqs, tokens_or_blocks,
                  "Maximum sequences per step. With sglang and attention data parallelism, the total over all ranks "
                  "[sglang: 48 with speculative decoding, 256 for DeepSeek-V4]");
  options.integer("--max-model-len", engine.max_model_len, tokens_or_blocks,
                  "Maximum length of a sequence in tokens, prompt and output together");
  options.integer("--block-size", engine.block_size, tokens_or_blocks, "Tokens per KV cache block");
  options.integer("--num-gpu-blocks-override", engine.num_gpu_blocks_override, tokens_or_blocks,
                  "Number of KV cache blocks, instead of as many as fit in memory");
  options.integer("--kv-cache-memory-bytes", engine.kv_cache_memory_bytes, {.least = 0, .most = int64_t{1} << 50},
                  "Size of the KV cache in bytes, instead of a share of memory");
  options.integer("--max-cudagraph-capture-size,--cuda-graph-max-bs", engine.max_cudagraph_capture_size,
                  tokens_or_blocks,
                  "Largest step captured as a CUDA graph: in tokens with vLLM, in sequences with other engines");
  options.flag("--enforce-eager", engine.enforce_eager, "Run without CUDA graphs");
}

EngineFlags MemoryFlags::engine_flags(DType kv_dtype) const {
  EngineFlags flags = engine;
  flags.kv_dtype = kv_dtype;
  return flags;
}

}  // namespace foretoken
