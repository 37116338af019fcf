#include "serving/engine/launch_flags.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

// As of vLLM 0.21 (vllm/engine/arg_utils.py, entrypoints/openai/cli_args.py), SGLang 0.5 (srt/server_args.py) and
// TensorRT-LLM 1.2 (commands/serve.py). Names with a dot are keys of TensorRT-LLM's options file.
constexpr LaunchFlag listed_flags[] = {
    {LaunchStyle::vllm, "--tensor-parallel-size -tp", "tensor_parallel_size", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--pipeline-parallel-size -pp", "pipeline_parallel_size", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--data-parallel-size -dp", "data_parallel_size", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--max-num-seqs", "max_num_seqs", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--max-num-batched-tokens", "max_num_batched_tokens", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--gpu-memory-utilization", "gpu_memory_utilization", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--block-size", "block_size", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--num-gpu-blocks-override", "num_gpu_blocks_override", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--kv-cache-memory-bytes", "kv_cache_memory_bytes", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--max-cudagraph-capture-size", "max_cudagraph_capture_size", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--long-prefill-token-threshold", "long_prefill_token_threshold", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--scheduling-policy", "scheduling_policy", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--watermark", "watermark", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--max-loras", "max_loras", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--max-cpu-loras", "max_cpu_loras", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--max-lora-rank", "max_lora_rank", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--stream-interval", "stream_interval", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--kv-offloading-size", "kv_offloading_size", LaunchFlagUse::value},
    {LaunchStyle::vllm, "--enable-expert-parallel -ep", "enable_expert_parallel", LaunchFlagUse::on},
    {LaunchStyle::vllm, "--enforce-eager", "enforce_eager", LaunchFlagUse::on},
    {LaunchStyle::vllm, "--enable-chunked-prefill", "enable_chunked_prefill", LaunchFlagUse::on},
    {LaunchStyle::vllm, "--enable-prefix-caching", "enable_prefix_caching", LaunchFlagUse::on},
    {LaunchStyle::vllm, "--async-scheduling", "async_scheduling", LaunchFlagUse::on},
    {LaunchStyle::vllm, "--scheduler-reserve-full-isl", "scheduler_reserve_full_isl", LaunchFlagUse::on},
    {LaunchStyle::vllm, "--enable-lora", "enable_lora", LaunchFlagUse::on},
    {LaunchStyle::vllm, "--model", "model", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--max-model-len", "max_model_len", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--quantization -q", "quantization", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--kv-cache-dtype", "kv_cache_dtype", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--dtype", "dtype", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--speculative-config -sc", "speculative_config", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--compilation-config -cc", "compilation_config", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--kv-transfer-config", "kv_transfer_config", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--eplb-config", "eplb_config", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--kv-offloading-backend", "kv_offloading_backend", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--all2all-backend", "all2all_backend", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--optimization-level -O", "optimization_level", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--num-redundant-experts", "num_redundant_experts", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--disaggregation-mode", "role", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--config", "config_file", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--task", "task", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--runner", "runner", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--convert", "convert", LaunchFlagUse::derived},
    {LaunchStyle::vllm, "--disable-hybrid-kv-cache-manager", "equal_cache_groups", LaunchFlagUse::derived_on},
    {LaunchStyle::vllm, "--is-prefill-worker", "is_prefill", LaunchFlagUse::derived_on},
    {LaunchStyle::vllm, "--is-decode-worker", "is_decode", LaunchFlagUse::derived_on},
    {LaunchStyle::vllm, "--cudagraph-capture-sizes --cuda-graph-sizes", "graph_sizes", LaunchFlagUse::derived_list},
    {LaunchStyle::sglang, "--max-running-requests", "max_num_seqs", LaunchFlagUse::value},
    {LaunchStyle::sglang, "--mem-fraction-static", "gpu_memory_utilization", LaunchFlagUse::value},
    {LaunchStyle::sglang, "--page-size", "block_size", LaunchFlagUse::value},
    {LaunchStyle::sglang, "--cuda-graph-max-bs --cuda-graph-max-bs-decode", "max_cudagraph_capture_size",
     LaunchFlagUse::value},
    {LaunchStyle::sglang, "--scheduler-recv-interval", "scheduler_recv_interval", LaunchFlagUse::value},
    {LaunchStyle::sglang, "--stream-interval", "stream_interval", LaunchFlagUse::value},
    {LaunchStyle::sglang, "--ep-num-redundant-experts", "num_redundant_experts", LaunchFlagUse::value},
    {LaunchStyle::sglang, "--disable-cuda-graph", "enforce_eager", LaunchFlagUse::on},
    {LaunchStyle::sglang, "--enable-two-batch-overlap", "enable_two_batch_overlap", LaunchFlagUse::on},
    {LaunchStyle::sglang, "--disable-radix-cache", "enable_prefix_caching", LaunchFlagUse::off},
    {LaunchStyle::sglang, "--disable-overlap-schedule", "async_scheduling", LaunchFlagUse::off},
    {LaunchStyle::sglang, "--model-path --model", "model", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--tp-size --tp --tensor-parallel-size", "tensor_parallel_size", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--pp-size --pp --pipeline-parallel-size", "pipeline_parallel_size", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--dp-size --dp --data-parallel-size", "data_parallel_size", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--ep-size --ep --expert-parallel-size", "expert_parallel_size", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--context-length", "max_model_len", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--chunked-prefill-size", "max_num_batched_tokens", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--quantization", "quantization", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--torchao-config", "torchao_config", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--kv-cache-dtype", "kv_cache_dtype", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--dtype", "dtype", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--moe-a2a-backend", "all2all_backend", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--deepep-mode", "deepep_mode", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--max-total-tokens", "max_total_tokens", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--disaggregation-mode", "role", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--speculative-algorithm --speculative-algo", "speculative_algorithm",
     LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--speculative-num-steps", "speculative_num_steps", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--speculative-eagle-topk", "speculative_eagle_topk", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--speculative-num-draft-tokens", "speculative_num_draft_tokens", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--speculative-draft-model-path --speculative-draft-model", "speculative_draft_model_path",
     LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--hicache-size", "host_cache_size", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--hicache-write-policy", "host_cache_policy", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--config", "config_file", LaunchFlagUse::derived},
    {LaunchStyle::sglang, "--enable-dp-attention", "enable_dp_attention", LaunchFlagUse::derived_on},
    {LaunchStyle::sglang, "--enable-hierarchical-cache", "enable_host_cache", LaunchFlagUse::derived_on},
    {LaunchStyle::sglang, "--enable-deepep-moe", "enable_deepep_moe", LaunchFlagUse::derived_on},
    {LaunchStyle::sglang, "--enable-ep-moe", "enable_ep_moe", LaunchFlagUse::derived_on},
    {LaunchStyle::sglang, "--is-embedding", "is_embedding", LaunchFlagUse::derived_on},
    {LaunchStyle::sglang, "--cuda-graph-bs --cuda-graph-bs-decode", "graph_sizes", LaunchFlagUse::derived_list},
    {LaunchStyle::trtllm, "--max-batch-size", "max_num_seqs", LaunchFlagUse::value},
    {LaunchStyle::trtllm, "--max-num-tokens", "max_num_batched_tokens", LaunchFlagUse::value},
    {LaunchStyle::trtllm, "--max-seq-len", "max_model_len", LaunchFlagUse::value},
    {LaunchStyle::trtllm,
     "--kv-cache-free-gpu-memory-fraction --free-gpu-memory-fraction --kv-cache-config.free-gpu-memory-fraction",
     "gpu_memory_utilization", LaunchFlagUse::value},
    {LaunchStyle::trtllm, "--cp-size --context-parallel-size", "context_parallel_size", LaunchFlagUse::value},
    {LaunchStyle::trtllm, "--kv-cache-config.tokens-per-block", "block_size", LaunchFlagUse::value},
    {LaunchStyle::trtllm, "--cuda-graph-config.max-batch-size", "max_cudagraph_capture_size", LaunchFlagUse::value},
    {LaunchStyle::trtllm, "--batch-wait-timeout-iters", "batch_wait_timeout_iters", LaunchFlagUse::value},
    {LaunchStyle::trtllm, "--batch-wait-max-tokens-ratio", "batch_wait_max_tokens_ratio", LaunchFlagUse::value},
    {LaunchStyle::trtllm, "--stream-interval", "stream_interval", LaunchFlagUse::value},
    {LaunchStyle::trtllm, "--enable-chunked-prefill", "enable_chunked_prefill", LaunchFlagUse::on},
    {LaunchStyle::trtllm, "--kv-cache-config.enable-block-reuse", "enable_prefix_caching", LaunchFlagUse::on},
    {LaunchStyle::trtllm, "--disable-overlap-scheduler", "async_scheduling", LaunchFlagUse::off},
    {LaunchStyle::trtllm, "--model --model-path", "model", LaunchFlagUse::derived},
    {LaunchStyle::trtllm, "--tp-size --tensor-parallel-size", "tensor_parallel_size", LaunchFlagUse::derived},
    {LaunchStyle::trtllm, "--pp-size --pipeline-parallel-size", "pipeline_parallel_size", LaunchFlagUse::derived},
    {LaunchStyle::trtllm, "--ep-size --moe-expert-parallel-size", "expert_parallel_size", LaunchFlagUse::derived},
    {LaunchStyle::trtllm, "--kv-cache-config.dtype", "kv_cache_dtype", LaunchFlagUse::derived},
    {LaunchStyle::trtllm, "--kv-cache-config.host-cache-size", "host_cache_size", LaunchFlagUse::derived},
    {LaunchStyle::trtllm, "--dtype", "dtype", LaunchFlagUse::derived},
    {LaunchStyle::trtllm, "--scheduler-config.capacity-scheduler-policy", "capacity_policy", LaunchFlagUse::derived},
    {LaunchStyle::trtllm, "--speculative-config.decoding-type", "speculative_algorithm", LaunchFlagUse::derived},
    {LaunchStyle::trtllm, "--speculative-config.max-draft-len --speculative-config.num-nextn-predict-layers",
     "speculative_num_steps", LaunchFlagUse::derived},
    {LaunchStyle::trtllm, "--speculative-config.speculative-model-dir --speculative-config.speculative-model",
     "speculative_draft_model_path", LaunchFlagUse::derived},
    {LaunchStyle::trtllm, "--extra-llm-api-options --config --extra-engine-args", "config_file",
     LaunchFlagUse::derived},
    {LaunchStyle::trtllm, "--server-role --disaggregation-mode", "role", LaunchFlagUse::derived},
    {LaunchStyle::trtllm, "--enable-attention-dp", "enable_dp_attention", LaunchFlagUse::derived_on},
    {LaunchStyle::trtllm, "--cuda-graph-config.enable-padding", "graph_padding", LaunchFlagUse::derived},
    {LaunchStyle::trtllm, "--cuda-graph-config.batch-sizes", "graph_sizes", LaunchFlagUse::derived_list},
    {LaunchStyle::vllm,
     "--allowed-headers --allowed-local-media-path --allowed-methods --allowed-origins --api-key "
     "--api-server-count --chat-template --chat-template-content-format --code-revision "
     "--collect-detailed-traces --config-format --connector --custom-jinja-template "
     "--data-parallel-address --data-parallel-backend --data-parallel-rank --data-parallel-rpc-port "
     "--data-parallel-size-local --data-parallel-start-rank --default-chat-template-kwargs --device "
     "--discovery-backend --distributed-executor-backend --distributed-timeout-seconds --download-dir "
     "--dyn-reasoning-parser --dyn-tool-call-parser --endpoint --event-plane --generation-config "
     "--guided-decoding-backend --hf-config-path --hf-token --host --ignore-patterns --kv-events-config "
     "--limit-mm-per-prompt --load-format --log-config-file --logprobs-mode --lora-dtype --master-addr "
     "--master-port --max-log-len --max-logprobs --max-parallel-loading-workers --media-io-kwargs "
     "--mm-processor-cache-gb --mm-processor-kwargs --model-impl --model-loader-extra-config --namespace "
     "--nnodes --node-rank --num-scheduler-steps --otlp-traces-endpoint --override-generation-config --port "
     "--preemption-mode --prefix-caching-hash-algo --profiler-config --pt-load-map-location --reasoning-config "
     "--reasoning-parser --reasoning-parser-plugin --request-plane --response-role --revision --root-path "
     "--safetensors-load-strategy --scheduler-cls --seed --served-model-name-prefix "
     "--show-hidden-metrics-for-version --shutdown-timeout --ssl-ca-certs --ssl-cert-reqs --ssl-certfile "
     "--ssl-ciphers --ssl-keyfile --store-kv --structured-outputs-config --swap-space "
     "--tokenizer --tokenizer-mode --tokenizer-revision --tool-call-parser --tool-parser-plugin --tool-server "
     "--uds --uvicorn-log-level --worker-cls --worker-extension-cls -asc -dpa -dpb -dpl -dpn -dpp -dpr -n -r",
     "", LaunchFlagUse::harmless},
    {LaunchStyle::vllm,
     "--aggregate-engine-logging --allow-credentials --cudagraph-metrics --data-parallel-external-lb "
     "--data-parallel-hybrid-lb --disable-fastapi-docs --disable-frontend-multiprocessing "
     "--disable-log-requests --disable-log-stats "
     "--disable-uvicorn-access-log --enable-auto-tool-choice --enable-eplb --enable-force-include-usage "
     "--enable-local-indexer --enable-log-deltas --enable-log-outputs --enable-log-requests "
     "--enable-mfu-metrics --enable-mm-embeds --enable-prompt-tokens-details --enable-reasoning "
     "--enable-request-id-headers --enable-rl --enable-server-load-tracking --enable-sleep-mode "
     "--enable-ssl-refresh --enable-tokenizer-info-endpoint --headless --kv-cache-metrics "
     "--language-model-only --log-error-stack --return-tokens-as-token-ids --skip-mm-profiling "
     "--skip-tokenizer-init --trust-remote-code --use-tqdm-on-load --use-v2-block-manager",
     "", LaunchFlagUse::harmless_on},
    {LaunchStyle::vllm, "--additional-config --lora-modules --middleware --prompt-adapters --served-model-name", "",
     LaunchFlagUse::harmless_list},
    {LaunchStyle::vllm,
     "--attention-backend --attention-config --calculate-kv-scales --cpu-offload-gb "
     "--dbo-decode-token-threshold --dbo-prefill-token-threshold --decode-context-parallel-size "
     "--diffusion-config --ec-transfer-config --expert-placement-strategy --hf-overrides --kernel-config "
     "--kv-cache-dtype-skip-layers --linear-backend --mamba-block-size --mamba-cache-dtype --mamba-ssm-cache-dtype "
     "--max-long-partial-prefills --max-num-partial-prefills "
     "--max-num-scheduled-tokens --max-seq-len-to-capture --mm-encoder-tp-mode --moe-backend "
     "--performance-mode --prefill-context-parallel-size --prefill-schedule-interval --ubatch-size -dcp -pcp",
     "", LaunchFlagUse::other},
    {LaunchStyle::vllm,
     "--disable-cascade-attn --disable-custom-all-reduce --disable-nccl-for-dp-synchronization "
     "--disable-sliding-window --enable-dbo --enable-elastic-ep --enable-flashinfer-autotune "
     "--fully-sharded-loras --kv-sharing-fast-prefill",
     "", LaunchFlagUse::other_on},
    {LaunchStyle::sglang,
     "--admin-api-key --api-key --base-gpu-id --bucket-time-to-first-token --chat-template "
     "--completion-template --crash-dump-folder --decode-log-interval --device --disaggregation-bootstrap-port "
     "--disaggregation-ib-device --disaggregation-transfer-backend --dist-init-addr --dist-timeout "
     "--download-dir --dyn-reasoning-parser --dyn-tool-call-parser --endpoint --ep-dispatch-algorithm "
     "--eplb-algorithm --eplb-rebalance-num-iterations --expert-distribution-recorder-mode --fastapi-root-path "
     "--file-storage-path --gpu-id-step --grammar-backend --host --init-expert-location "
     "--json-model-override-args --kv-events-config --load-balance-method --load-format --log-level "
     "--log-level-http --log-requests-level --max-queued-requests --model-impl --model-loader-extra-config "
     "--mooncake-ib-device --nccl-init-addr --nccl-port --nnodes --node-rank --num-reserved-decode-tokens "
     "--otlp-traces-endpoint --port --preferred-sampling-params --random-seed --reasoning-parser --revision "
     "--sampling-backend --sampling-defaults --served-model-name --ssl-certfile --ssl-keyfile "
     "--tokenizer-mode --tokenizer-path --tokenizer-worker-num --tool-call-parser --warmups "
     "--watchdog-timeout --weight-version",
     "", LaunchFlagUse::harmless},
    {LaunchStyle::sglang,
     "--delete-ckpt-after-loading --disable-fast-image-processor --disable-outlines-disk-cache "
     "--enable-cache-report --enable-custom-logit-processor --enable-eplb --enable-expert-distribution-metrics "
     "--enable-memory-saver --enable-metrics --enable-metrics-for-all-schedulers --enable-mfu-metrics "
     "--enable-multimodal --enable-p2p-check --enable-request-time-stats-logging --enable-return-hidden-states "
     "--enable-trace --log-requests --show-time-cost --skip-server-warmup --skip-tokenizer-init "
     "--sleep-on-idle --trust-remote-code --use-sglang-tokenizer",
     "", LaunchFlagUse::harmless_on},
    {LaunchStyle::sglang,
     "--attention-backend --attention-context-parallel-size --attn-cp-size --cpu-offload-gb "
     "--cuda-graph-max-bs-prefill --dcp-size --decode-attention-backend --decode-context-parallel-size "
     "--deepep-config --flashinfer-mxfp4-moe-precision --fp4-gemm-backend --fp4-gemm-runner-backend "
     "--fp8-gemm-backend --fp8-gemm-runner-backend --hicache-io-backend --hicache-mem-layout --hicache-ratio "
     "--hicache-storage-backend --hicache-storage-prefetch-policy --lora-backend --lora-paths --lora-target-modules "
     "--mamba-ssm-dtype --max-loaded-loras --max-lora-rank "
     "--max-loras-per-batch --max-mamba-cache-size --max-prefill-tokens --moe-data-parallel-size "
     "--moe-dense-tp-size --moe-dp-size --moe-runner-backend --num-continuous-decode-steps "
     "--piecewise-cuda-graph-max-tokens --pp-max-micro-batch-size --prefill-attention-backend "
     "--prefill-max-requests --radix-eviction-policy --retraction-policy --schedule-conservativeness "
     "--schedule-policy --speculative-attention-mode --speculative-token-map --swa-full-tokens-ratio "
     "--tbo-token-distribution-threshold --torch-compile-max-bs",
     "", LaunchFlagUse::other},
    {LaunchStyle::sglang,
     "--disable-chunked-prefix-cache --disable-cuda-graph-padding --disable-custom-all-reduce "
     "--disable-flashinfer-autotune --disable-piecewise-cuda-graph --disable-prefill-cuda-graph "
     "--disable-shared-experts-fusion --enable-deterministic-inference --enable-dp-lm-head "
     "--enable-dynamic-chunking --enable-flashinfer-allreduce-fusion --enable-lmcache --enable-lora "
     "--enable-mixed-chunk --enable-mscclpp --enable-nccl-nvls --enable-pdmux "
     "--enable-priority-scheduling --enable-single-batch-overlap --enable-symm-mem --enable-torch-compile",
     "", LaunchFlagUse::other_on},
    {LaunchStyle::trtllm,
     "--backend --cache-transceiver-config.backend --cache-transceiver-config.max-tokens-in-buffer "
     "--chat-template --custom-module-dirs --custom-tokenizer --disagg-cluster-uri --dyn-reasoning-parser "
     "--dyn-tool-call-parser --endpoint --gpus-per-node --host --iter-stats-max-iterations --log-level "
     "--max-beam-width --media-io-kwargs --metadata-server-config-file --num-postprocess-workers "
     "--otlp-traces-endpoint --port --publish-events-and-metrics --reasoning-parser --revision "
     "--served-model-name --tokenizer --tool-parser",
     "", LaunchFlagUse::harmless},
    {LaunchStyle::trtllm,
     "--enable-iter-perf-stats --enable-iter-req-stats "
     "--fail-fast-on-attention-window-too-large --print-iter-log --return-perf-metrics --trust-remote-code",
     "", LaunchFlagUse::harmless_on},
    {LaunchStyle::trtllm,
     "--allreduce-strategy --attention-dp-config.batching-wait-iters --attention-dp-config.enable-balance "
     "--attention-dp-config.timeout-iters --attn-backend --cluster-size --kv-cache-config.max-attention-window "
     "--kv-cache-config.max-tokens --moe-cluster-parallel-size "
     "--moe-config.backend --moe-config.max-num-tokens",
     "", LaunchFlagUse::other},
    {LaunchStyle::trtllm,
     "--enable-autotuner --enable-layerwise-nvtx-marker --torch-compile-config.enable-fullgraph "
     "--use-torch-sampler",
     "", LaunchFlagUse::other_on},
};

// Bytes of what the flag of an engine's host memory counts.
double host_cache_unit(LaunchStyle style) {
  switch (style) {
    case LaunchStyle::sglang:
      return 1e9;
    case LaunchStyle::trtllm:
      return 1;
    case LaunchStyle::vllm:
      break;
  }
  return static_cast<double>(1 << 30);
}

// vLLM takes the sum of all of them.
bool host_cache_is_of_each_device(LaunchStyle style) {
  return style != LaunchStyle::vllm;
}

}  // namespace

bool LaunchFlag::takes_value() const {
  return use == LaunchFlagUse::value || use == LaunchFlagUse::derived || use == LaunchFlagUse::harmless ||
         use == LaunchFlagUse::other;
}

std::span<const LaunchFlag> launch_flags() {
  return listed_flags;
}

const LaunchFlag* find_launch_flag(LaunchStyle style, std::string_view name) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  for (const LaunchFlag& flag : listed_flags) {
    if (flag.style != style) continue;
    const std::vector<std::string_view> names = split_words(flag.names, " ");
    if (std::find(names.begin(), names.end(), dashed) != names.end()) return &flag;
  }
  return nullptr;
}

std::string launch_flag_name(LaunchStyle style, std::string_view field) {
  for (const LaunchFlag& flag : listed_flags) {
    if (flag.style != style || flag.field != field) continue;
    std::string name(split_words(flag.names, " ").front());
    if (name.find('.') != std::string::npos) return "";
    if (style == LaunchStyle::trtllm) std::replace(name.begin() + 2, name.end(), '-', '_');
    return name;
  }
  return "";
}

std::string_view launch_program(LaunchStyle style) {
  switch (style) {
    case LaunchStyle::sglang:
      return "python -m sglang.launch_server --model-path {}";
    case LaunchStyle::trtllm:
      return "trtllm-serve {}";
    case LaunchStyle::vllm:
      break;
  }
  return "vllm serve {}";
}

double host_cache_value(LaunchStyle style, int64_t devices, double bytes_each) {
  const double units = std::floor(bytes_each / host_cache_unit(style));
  return host_cache_is_of_each_device(style) ? units : units * static_cast<double>(devices);
}

double host_cache_bytes(LaunchStyle style, int64_t devices, double value) {
  const double units = host_cache_is_of_each_device(style) ? value * static_cast<double>(devices) : value;
  return units * host_cache_unit(style);
}

bool tensor_size_counts_attention_ranks(LaunchStyle style) {
  return style != LaunchStyle::vllm;
}

bool attention_ranks_are_whole(LaunchStyle style) {
  return style == LaunchStyle::trtllm;  // enable_attention_dp
}

}  // namespace foretoken
