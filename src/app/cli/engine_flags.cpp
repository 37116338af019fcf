#include "app/cli/engine_flags.h"

#include <string>

namespace foretoken {
namespace {

std::string engine_help() {
  std::string help = "Whose rules divide the memory:";
  for (const EngineKind& kind : engine_kinds()) {
    help += help.ends_with(':') ? " " : "; ";
    help.append(kind.name).append(" = ").append(kind.summary);
  }
  return help;
}

constexpr Range<int64_t> tokens_or_blocks{.least = 0, .most = 100'000'000};

}  // namespace

void MemoryFlags::declare(Options& options) {
  options.heading("Memory of a serving engine (0 = the engine's choice)");
  options.flag("--memory", wanted, "Also show how an engine divides the GPU's memory, and what its KV cache holds");
  options.choice("--engine", engine.engine, engine_names(), engine_help());
  options.number("--gpu-memory-utilization,--mem-fraction-static,--free-gpu-memory-fraction", engine.memory_fraction,
                 {.least = 0, .most = 1}, "Share of the memory the engine may use, each engine in its own sense");
  options.integer("--max-num-batched-tokens,--max-num-tokens,--chunked-prefill-size", engine.max_num_batched_tokens,
                  tokens_or_blocks,
                  "Maximum tokens per step. With sglang and attention data parallelism, the total over all ranks");
  options.integer("--max-num-seqs,--max-batch-size,--max-running-requests", engine.max_num_seqs, tokens_or_blocks,
                  "Maximum sequences per step. With sglang and attention data parallelism, the total over all ranks "
                  "[sglang: 48 with speculative decoding, 256 for DeepSeek-V4]");
  options.integer("--max-model-len", engine.max_model_len, tokens_or_blocks, "Longest sequence, prompt and output");
  options.integer("--block-size", engine.block_size, tokens_or_blocks, "Tokens in a block of the KV cache");
  options.integer("--num-gpu-blocks-override", engine.num_gpu_blocks_override, tokens_or_blocks,
                  "Blocks of the KV cache, whatever the memory");
  options.integer("--kv-cache-memory-bytes", engine.kv_cache_memory_bytes, {.least = 0, .most = int64_t{1} << 50},
                  "Size of the KV cache, in place of a share");
  options.integer("--max-cudagraph-capture-size,--cuda-graph-max-bs", engine.max_cudagraph_capture_size,
                  tokens_or_blocks,
                  "Largest step captured as a CUDA graph: in tokens with vLLM, in sequences with other engines");
  options.flag("--enforce-eager", engine.enforce_eager, "No CUDA graphs");
}

EngineFlags MemoryFlags::engine_flags(DType kv_dtype) const {
  EngineFlags flags = engine;
  flags.kv_dtype = kv_dtype;
  return flags;
}

}  // namespace foretoken
