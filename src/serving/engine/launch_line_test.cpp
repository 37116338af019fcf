#include "serving/engine/launch_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "serving/engine/launch_flags.h"

namespace foretoken::launch_line_test {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string fields(std::string_view text) {
  return read_launch_line(text, "line").fields.dump(0);
}

std::string wrong(std::string_view text) {
  try {
    read_launch_line(text, "line");
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing is wrong";
}

TEST(LaunchLine, flags_of_vllm_become_fields) {
  const LaunchLine line = read_launch_line(
      "CUDA_VISIBLE_DEVICES=0,1,2,3 vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 4 --max_model_len=32k \\\n"
      "  --no-enable-prefix-caching --trust-remote-code --kv-cache-dtype fp8_e4m3 --port 8000 --frobnicate 7 \\\n"
      "  --cpu-offload-gb 4 2>&1 | tee log.txt",
      "line");
  EXPECT_EQ(line.fields.dump(0),
            R"({"tensor_parallel_size":"4","enable_prefix_caching":false,"engine":"vllm",)"
            R"("model":"meta-llama/Llama-3.1-70B-Instruct","kv_cache_dtype":"fp8","max_model_len":"32k"})");
  EXPECT_THAT(line.remarks.without_effect, ElementsAre("--trust-remote-code", "--port"));
  EXPECT_THAT(line.remarks.not_simulated, ElementsAre("--cpu-offload-gb 4"));
  EXPECT_THAT(line.remarks.unknown, ElementsAre("--frobnicate"));
}

TEST(LaunchLine, the_stream_interval_of_each_engine_is_read) {
  for (const char* line :
       {"vllm serve M --stream-interval 20", "python -m sglang.launch_server --model-path M --stream-interval 20",
        "trtllm-serve M --stream-interval 20"}) {
    EXPECT_THAT(fields(line), HasSubstr(R"("stream_interval":"20")"));
  }
}

TEST(LaunchLine, a_switch_before_the_model_does_not_swallow_it) {
  EXPECT_THAT(fields("vllm serve --enforce-eager some/model --served-model-name a b --max-num-seqs 8"),
              testing::AllOf(HasSubstr(R"("model":"some/model")"), HasSubstr(R"("max_num_seqs":"8")")));
}

TEST(LaunchLine, data_parallel_attention_divides_the_tensor_size_of_sglang) {
  const std::string read = fields(
      "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 16 --dp 8 --enable-dp-attention "
      "--moe-a2a-backend deepep --deepep-mode low_latency --disable-radix-cache --mem-fraction-static 0.85");
  EXPECT_EQ(read, R"({"enable_prefix_caching":false,"gpu_memory_utilization":"0.85","engine":"sglang",)"
                  R"("model":"deepseek-ai/DeepSeek-V3","tensor_parallel_size":2,"data_parallel_size":8,)"
                  R"("expert_parallel_size":16,"all2all_backend":"deepep_low_latency"})");
  EXPECT_THAT(wrong("sglang serve --model-path m --tp 6 --dp 4 --enable-dp-attention"), HasSubstr("multiple of the 4"));
}

TEST(LaunchLine, megamoe_exchanges_tokens_inside_the_kernel_of_the_experts) {
  EXPECT_EQ(fields("sglang serve --model-path m --tp 4 --dp 4 --enable-dp-attention --moe-a2a-backend megamoe"),
            R"({"engine":"sglang","model":"m","tensor_parallel_size":1,"data_parallel_size":4,)"
            R"("stack":"sglang-megamoe","expert_parallel_size":4,"all2all_backend":"deepep"})");
}

TEST(LaunchLine, drafts_of_sglang_have_its_own_number_where_the_line_has_none) {
  EXPECT_THAT(fields("sglang serve --model-path m --speculative-algorithm NEXTN"),
              HasSubstr(R"("speculative_config":{"method":"mtp","num_speculative_tokens":3})"));
  EXPECT_THAT(fields("sglang serve --model-path m --speculative-algorithm EAGLE"),
              HasSubstr(R"("speculative_config":{"method":"eagle","num_speculative_tokens":3})"));
  EXPECT_THAT(fields("sglang serve --model-path m --speculative-algorithm EAGLE3 --speculative-draft-model-path d"),
              HasSubstr(R"("speculative_config":{"method":"eagle3","num_speculative_tokens":5,"tree_tokens":8})"));
}

TEST(LaunchLine, experts_are_divided_over_all_ranks_where_attention_is_data_parallel) {
  const auto with_experts = [](std::optional<int64_t> experts) {
    return read_launch_line(
        "python3 -m sglang.launch_server --model-path some/model --tp 8 --dp 8 --enable-dp-attention", "a", {},
        [=](const std::string& model) {
          EXPECT_EQ(model, "some/model");
          return experts;
        });
  };
  const std::string attention =
      R"({"engine":"sglang","model":"some/model","tensor_parallel_size":1,"data_parallel_size":8)";
  const LaunchLine divided = with_experts(256), dense = with_experts(0), undivided = with_experts(60),
                   unknown = with_experts(std::nullopt);
  EXPECT_EQ(divided.fields.dump(0), attention + R"(,"expert_parallel_size":8})");
  EXPECT_THAT(divided.remarks.not_simulated, ElementsAre(HasSubstr("as with --ep-size 8")));
  EXPECT_EQ(dense.fields.dump(0), attention + "}");
  EXPECT_THAT(dense.remarks.not_simulated, IsEmpty());
  EXPECT_EQ(undivided.fields.dump(0), attention + "}");
  EXPECT_THAT(undivided.remarks.not_simulated, ElementsAre(HasSubstr("8 ranks do not divide them")));
  EXPECT_EQ(unknown.fields.dump(0), attention + "}");
  EXPECT_THAT(unknown.remarks.not_simulated, ElementsAre(HasSubstr("the model is not known")));
}

TEST(LaunchLine, data_parallel_ranks_of_vllm_share_experts) {
  const auto with_experts = [](const std::string& flags, int64_t experts) {
    return read_launch_line("vllm serve some/model -tp 2 -dp 4" + flags, "a", {},
                            [=](const std::string&) { return std::optional(experts); });
  };
  const LaunchLine cut = with_experts("", 64), undivided = with_experts("", 60);
  EXPECT_EQ(cut.fields.dump(0),
            R"({"tensor_parallel_size":"2","data_parallel_size":"4","engine":"vllm","model":"some/model",)"
            R"("expert_parallel_size":8})");
  EXPECT_THAT(cut.remarks.not_simulated, ElementsAre(HasSubstr("as with --enable-expert-parallel")));
  EXPECT_EQ(undivided.fields.find("expert_parallel_size"), nullptr);
  EXPECT_THAT(undivided.remarks.not_simulated, ElementsAre(HasSubstr("8 ranks do not divide them")));
  for (const LaunchLine& line : {with_experts("", 0), with_experts(" --enable-expert-parallel", 64)}) {
    EXPECT_EQ(line.fields.find("expert_parallel_size"), nullptr);
    EXPECT_THAT(line.remarks.not_simulated, IsEmpty());
  }
}

TEST(LaunchLine, data_parallel_ranks_of_vllm_with_adapters_stay_apart) {
  const LaunchLine line = read_launch_line("vllm serve some/model -dp 2 --enable-lora", "a", {},
                                           [](const std::string&) { return std::optional<int64_t>(64); });
  EXPECT_THAT(line.fields.dump(0), HasSubstr(R"("enable_lora":true)"));
  EXPECT_EQ(line.fields.find("expert_parallel_size"), nullptr);
  EXPECT_THAT(line.remarks.not_simulated, IsEmpty());
}

TEST(LaunchLine, pooling_models_are_asked_for_embeddings_or_scores) {
  for (const char* flags : {"--task embed", "--task embedding", "--runner pooling", "--convert embed",
                            "--runner=pooling --convert=embed"}) {
    EXPECT_THAT(fields(std::string("vllm serve m ") + flags), HasSubstr(R"("task":"embed")")) << flags;
  }
  for (const char* flags :
       {"--task score", "--task classify", "--task reward", "--runner pooling --convert classify"}) {
    EXPECT_THAT(fields(std::string("vllm serve m ") + flags), HasSubstr(R"("task":"score")")) << flags;
  }
  EXPECT_THAT(fields("sglang serve --model-path m --is-embedding"), HasSubstr(R"("task":"embed")"));
  const LaunchLine generates = read_launch_line("vllm serve m --task generate --runner auto", "line");
  EXPECT_EQ(generates.fields.find("task"), nullptr);
  EXPECT_THAT(generates.remarks.without_effect, ElementsAre("--runner", "--task"));
}

TEST(LaunchLine, windows_that_are_kept_like_full_layers_are_not_simulated) {
  EXPECT_THAT(read_launch_line("vllm serve m --disable-hybrid-kv-cache-manager", "line").remarks.not_simulated,
              ElementsAre(HasSubstr("--disable-hybrid-kv-cache-manager (layers with windows")));
  const LaunchLine on = read_launch_line("vllm serve m --no-disable-hybrid-kv-cache-manager", "line");
  EXPECT_THAT(on.remarks.not_simulated, IsEmpty());
  EXPECT_THAT(on.remarks.unknown, IsEmpty());
}

TEST(LaunchLine, a_cache_in_four_bits_has_another_name_in_each_engine) {
  EXPECT_THAT(fields("sglang serve --model-path m --kv-cache-dtype fp4_e2m1"), HasSubstr(R"("kv_cache_dtype":"fp4")"));
  const auto file = [](const std::string&) { return std::optional<std::string>("kv_cache_config: {dtype: nvfp4}\n"); };
  EXPECT_THAT(read_launch_line("trtllm-serve m --config o.yaml", "line", file).fields.dump(0),
              HasSubstr(R"("kv_cache_dtype":"fp4")"));
}

TEST(LaunchLine, a_placeholder_names_no_model) {
  EXPECT_THAT(fields("trtllm-serve MODEL --tp_size 4"), testing::Not(HasSubstr("MODEL")));
}

TEST(LaunchLine, drafts_of_each_engine_become_one_config) {
  EXPECT_THAT(fields("vllm serve m --speculative-config '{\"method\":\"eagle3\",\"model\":\"org/head\","
                     "\"num_speculative_tokens\":3}'"),
              HasSubstr(R"("speculative_config":{"method":"eagle3","num_speculative_tokens":3})"));
  EXPECT_THAT(fields("vllm serve m --speculative-config.method ngram --speculative-config.num_speculative_tokens=2"),
              HasSubstr(R"("speculative_config":{"method":"ngram","num_speculative_tokens":2})"));
  EXPECT_THAT(fields("python -m sglang.launch_server --model m --speculative-algorithm NEXTN --speculative-num-steps 1 "
                     "--speculative-eagle-topk 1 --speculative-num-draft-tokens 2"),
              HasSubstr(R"("speculative_config":{"method":"mtp","num_speculative_tokens":1})"));
}

TEST(LaunchLine, host_memory_below_the_cache_is_read_in_the_unit_of_each_engine) {
  EXPECT_THAT(fields("vllm serve m -tp 2 --kv-offloading-size 160 "
                     "--kv-offloading-backend native"),
              HasSubstr(R"("kv_offloading_size":"160")"));
  EXPECT_THAT(fields("vllm serve m --kv-transfer-config "
                     "'{\"kv_connector\":\"OffloadingConnector\",\"kv_role\":\"kv_both\","
                     "\"kv_connector_extra_config\":{\"cpu_bytes_to_use\":1073741824}}'"),
              HasSubstr(R"("kv_offloading_size":1})"));
  // GB of every rank: 2 x 4 x 1e9 bytes.
  EXPECT_THAT(fields("sglang serve --model-path m --tp 2 --pp 4 "
                     "--enable-hierarchical-cache --hicache-size 137438953 "
                     "--hicache-write-policy write_back"),
              testing::AllOf(HasSubstr(R"("kv_offloading_size":1023999996.48)"),
                             HasSubstr(R"("kv_write_policy":"write_back")")));
  const LaunchLine by_ratio = read_launch_line("sglang serve --model-path m --enable-hierarchical-cache", "line");
  EXPECT_EQ(by_ratio.fields.find("kv_offloading_size"), nullptr);
  EXPECT_THAT(by_ratio.remarks.not_simulated, ElementsAre(HasSubstr("--enable-hierarchical-cache")));
  EXPECT_THAT(read_launch_line("vllm serve m --kv-offloading-size 8 --kv-offloading-backend lmcache", "line")
                  .remarks.not_simulated,
              ElementsAre("--kv-offloading-backend lmcache"));
}

TEST(LaunchLine, options_of_tensorrt_llm_may_lie_in_a_file) {
  const auto file = [](const std::string& path) -> std::optional<std::string> {
    if (path != "options.yaml") return std::nullopt;
    return "enable_attention_dp: true\nkv_cache_config:\n  dtype: fp8\n  enable_block_reuse: false\n"
           "cuda_graph_config:\n  batch_sizes: [1, 2, 64]\nnew_option: 3\n";
  };
  const std::string text =
      "trtllm-serve org/model --tp_size 8 --ep_size 8 --max_batch_size 256 --extra_llm_api_options ";
  const LaunchLine line = read_launch_line(text + "options.yaml", "line", file);
  EXPECT_EQ(line.fields.dump(0),
            R"({"max_num_seqs":"256","enable_prefix_caching":false,"engine":"trtllm","model":"org/model",)"
            R"("kv_cache_dtype":"fp8","tensor_parallel_size":1,"data_parallel_size":8,"expert_parallel_size":8,)"
            R"("max_cudagraph_capture_size":64})");
  EXPECT_THAT(line.remarks.unknown, ElementsAre("new_option"));
  EXPECT_THAT(read_launch_line(text + "other.yaml", "line", file).remarks.not_simulated,
              ElementsAre(HasSubstr("other.yaml (the file was not found)")));
}

LaunchLine with_options(const std::string& options) {
  return read_launch_line("trtllm-serve m --config options.yaml", "line",
                          [=](const std::string&) { return std::optional(options); });
}

TEST(LaunchLine, graphs_of_tensorrt_llm_can_be_turned_off_or_left_without_padding) {
  const LaunchLine eager = with_options("cuda_graph_config: null\n");
  EXPECT_THAT(eager.fields.dump(0), HasSubstr(R"("enforce_eager":true)"));
  EXPECT_THAT(with_options("kv_cache_config: null\n").fields.dump(0), testing::Not(HasSubstr("enforce_eager")));
  const LaunchLine padded = with_options("cuda_graph_config: {enable_padding: true, max_batch_size: 64}\n");
  EXPECT_THAT(padded.fields.dump(0), HasSubstr(R"("max_cudagraph_capture_size":"64")"));
  EXPECT_THAT(padded.remarks.not_simulated, IsEmpty());
  EXPECT_THAT(with_options("cuda_graph_config: {enable_padding: false}\n").remarks.not_simulated,
              ElementsAre(HasSubstr("enable_padding false (batches between")));
}

TEST(LaunchLine, eagle_of_tensorrt_llm_is_eagle3) {
  for (const std::string word : {"Eagle", "Eagle3", "EAGLE3"}) {
    const LaunchLine line = with_options("speculative_config: {decoding_type: " + word +
                                         ", max_draft_len: 3, speculative_model_dir: org/head}\n");
    EXPECT_THAT(line.fields.dump(0), HasSubstr(R"({"method":"eagle3","num_speculative_tokens":3})")) << word;
  }
  EXPECT_THAT(fields("sglang serve --model-path m --speculative-algorithm EAGLE"), HasSubstr(R"("method":"eagle",)"));
}

TEST(LaunchLine, the_name_of_a_drafter_says_how_it_drafts_and_keys_that_nothing_follows_are_named) {
  const auto read = [](const std::string& config) {
    return read_launch_line("vllm serve m --speculative-config '" + config + "'", "line");
  };
  const LaunchLine line =
      read(R"({"model":"AngelSlim/Qwen3-8B_eagle3","num_speculative_tokens":3,"max_model_len":4096,"revision":null})");
  EXPECT_THAT(line.fields.dump(0), HasSubstr(R"("speculative_config":{"num_speculative_tokens":3,"method":"eagle3"})"));
  EXPECT_THAT(line.remarks.not_simulated, ElementsAre("--speculative-config with max_model_len 4096",
                                                      HasSubstr("the draft AngelSlim/Qwen3-8B_eagle3")));
  const auto method = [&](const std::string& model) {
    return read(R"({"num_speculative_tokens":3,"model":")" + model + R"("})").fields.dump(0);
  };
  EXPECT_THAT(method("yuhuili/EAGLE-LLaMA3-Instruct-8B"), HasSubstr(R"("method":"eagle")"));
  EXPECT_THAT(method("deepseek-ai/dspark_qwen3_8b_block7"), HasSubstr(R"("method":"dspark")"));
  EXPECT_THAT(method("Qwen/Qwen3-0.6B"), HasSubstr(R"("model":"Qwen/Qwen3-0.6B","method":"draft_model")"));
}

TEST(LaunchLine, containers_are_looked_through) {
  EXPECT_EQ(fields("docker run --gpus all -v ~/models:/models -p 8000:8000 --ipc=host "
                   "vllm/vllm-openai:v0.10.2 --model org/model --tensor-parallel-size 2"),
            R"({"tensor_parallel_size":"2","engine":"vllm-0.10.2","model":"org/model"})");
  EXPECT_THAT(fields("docker run lmsysorg/sglang:latest python3 -m sglang.launch_server --model-path org/model --tp 2"),
              HasSubstr(R"("engine":"sglang")"));
  EXPECT_THAT(fields("docker run --rm image bash -c 'export A=1 && vllm serve org/model -tp 2'"),
              HasSubstr(R"("tensor_parallel_size":"2")"));
}

TEST(LaunchLine, the_tag_of_an_image_is_the_release_of_its_engine) {
  const auto engine = [](const std::string& image, const std::string& program) {
    return read_launch_line("docker run --gpus all " + image + " " + program, "line").fields.find("engine")->string();
  };
  const std::string vllm = "--model org/model", sglang = "python3 -m sglang.launch_server --model-path org/model",
                    trtllm = "trtllm-serve org/model";
  EXPECT_EQ(engine("vllm/vllm-openai:v0.30.0", vllm), "vllm-0.30.0");
  EXPECT_EQ(engine("vllm/vllm-openai:v0.12.0-cu130", vllm), "vllm-0.12.0");
  EXPECT_EQ(engine("vllm/vllm-openai:v0.13.0rc1", vllm), "vllm-0.13.0rc1");
  EXPECT_EQ(engine("registry:5000/vllm/vllm-openai:v0.12.0@sha256:0.1", "vllm serve org/model"), "vllm-0.12.0");
  EXPECT_EQ(engine("vllm/vllm-openai:v0.12.0", "bash -c 'vllm serve org/model'"), "vllm-0.12.0");
  EXPECT_EQ(engine("rocm/vllm:rocm7.0.0_vllm_0.11.1_20251024", "vllm serve org/model"), "vllm-0.11.1");
  EXPECT_EQ(engine("lmsysorg/sglang:v0.5.9-cu129-amd64", sglang), "sglang-0.5.9");
  EXPECT_EQ(engine("lmsysorg/sglang:v0.5.10.post1", "bash -c '" + sglang + "'"), "sglang-0.5.10.post1");
  EXPECT_EQ(engine("docker.io/lmsysorg/sglang:v0.7.0", "sglang serve --model-path org/model"), "sglang-0.7.0");
  EXPECT_EQ(engine("nvcr.io/nvidia/tensorrt-llm/release:1.2.0", trtllm), "trtllm-1.2.0");
  EXPECT_EQ(engine("nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc5", trtllm), "trtllm-1.3.0rc5");
  // No release of the engine.
  for (const char* image :
       {"vllm/vllm-openai", "vllm/vllm-openai:latest", "vllm/vllm-openai:nightly-0.1", "vllm/vllm-openai@sha256:12.3",
        "registry:5000/vllm/vllm-openai", "vllm/vllm-openai:2026.11.17", "nvcr.io/nvidia/vllm:25.11-py3",
        "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.1", "rocm/vllm:latest", "me/own:0.3.1", "lmsysorg/sglang:v0.5.9"}) {
    EXPECT_EQ(engine(image, "vllm serve org/model"), "vllm") << image;
  }
  for (const char* image : {"lmsysorg/sglang:latest", "lmsysorg/sglang:dev", "nvcr.io/nvidia/sglang:25.11-py3",
                            "nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.4.1"}) {
    EXPECT_EQ(engine(image, sglang), "sglang") << image;
  }
  EXPECT_EQ(engine("nvcr.io/nvidia/tritonserver:25.10-trtllm-python-py3", trtllm), "trtllm");
}

TEST(LaunchLine, images_of_files_have_releases_too) {
  const auto engine = [](const std::string& text) {
    return read_launch_line(text, "file").fields.find("engine")->string();
  };
  const std::string sglang = "command: [python3, -m, sglang.launch_server, --model-path, org/model]\n";
  EXPECT_EQ(engine("services:\n  llm:\n    image: lmsysorg/sglang:v0.5.9\n    " + sglang), "sglang-0.5.9");
  EXPECT_EQ(engine("services:\n  llm:\n    image: vllm/vllm-openai:v0.31.0\n    command: --model org/model\n"),
            "vllm-0.31.0");
  const std::string deployment =
      "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec:\n"
      "      containers:\n      - name: main\n        ";
  EXPECT_EQ(engine(deployment + "image: nvcr.io/nvidia/tensorrt-llm/release:1.1.0\n"
                                "        command: [trtllm-serve, org/model]\n"),
            "trtllm-1.1.0");
  EXPECT_EQ(engine(deployment + "image: {repository: vllm/vllm-openai, tag: v0.12.0}\n"
                                "        args: [--model, org/model]\n"),
            "vllm-0.12.0");
  // Dynamo and llm-d count releases of their own; a container of the engine inside has the engine's.
  const auto dynamo = [](const std::string& image) {
    return "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nspec:\n  services:\n    Worker:\n"
           "      extraPodSpec:\n        mainContainer:\n          image: " +
           image + "\n          command: [python3, -m, dynamo.vllm]\n          args: [--model, org/model]\n";
  };
  EXPECT_EQ(engine(dynamo("nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.1")), "vllm");
  EXPECT_EQ(engine(dynamo("vllm/vllm-openai:v0.25.0")), "vllm-0.25.0");
  const auto llm_d = [](const std::string& image) {
    return "modelArtifacts:\n  uri: hf://org/model\ndecode:\n  containers:\n  - name: vllm\n    image: " + image +
           "\n    modelCommand: vllmServe\n";
  };
  EXPECT_EQ(engine(llm_d("ghcr.io/llm-d/llm-d:v0.3.0")), "vllm");
  EXPECT_EQ(engine(llm_d("vllm/vllm-openai:v0.25.0")), "vllm-0.25.0");
}

constexpr std::string_view kubernetes = R"(# a deployment
apiVersion: v1
kind: Service
metadata: {name: front}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: llama
spec:
  replicas: 3
  template:
    spec:
      nodeSelector:
        nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3
      containers:
      - name: vllm
        image: vllm/vllm-openai:latest
        command: ["/bin/sh", "-c"]
        args:
        - |
          set -e
          vllm serve org/model \
            --tensor-parallel-size 2 --max-num-seqs 64
        readinessProbe:
          exec:
            command: [curl, localhost]
)";

TEST(LaunchLine, a_file_of_kubernetes_gives_replicas_and_the_gpu) {
  EXPECT_EQ(fields(kubernetes),
            R"({"tensor_parallel_size":"2","max_num_seqs":"64","engine":"vllm","model":"org/model","replicas":3,)"
            R"("device":"NVIDIA-H100-80GB-HBM3"})");
  EXPECT_THAT(wrong("apiVersion: v1\nkind: Service\n"), HasSubstr("starts vLLM"));
  EXPECT_THAT(wrong("a: b\n  c: [\n"), HasSubstr("line"));
}

TEST(LaunchLine, dynamo_and_llm_d_separate_pools) {
  EXPECT_EQ(fields(R"(apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
spec:
  services:
    Frontend: {componentType: frontend, replicas: 1}
    VllmDecodeWorker:
      replicas: 2
      extraPodSpec:
        mainContainer:
          command: [python3, -m, dynamo.vllm]
          args: [--model, org/model, --tensor-parallel-size, 4]
    VllmPrefillWorker:
      replicas: 1
      extraPodSpec:
        mainContainer:
          command: [python3, -m, dynamo.vllm]
          args: [--model, org/model, --tensor-parallel-size, 2, --is-prefill-worker]
)"),
            R"({"engine":"vllm","model":"org/model","decode_pool":{"count":2,"tensor_parallel_size":"4"},)"
            R"("prefill_pool":{"count":1,"tensor_parallel_size":"2"}})");
  EXPECT_EQ(fields(R"(modelArtifacts:
  uri: "hf://org/model"
decode:
  replicas: 2
  parallelism: {tensor: 4, data: 1}
  containers:
  - name: vllm
    image: ghcr.io/llm-d/llm-d:v0.3.0
    modelCommand: vllmServe
    args: [--max-model-len, "8192"]
prefill:
  create: false
  replicas: 1
  containers:
  - {name: vllm, modelCommand: vllmServe}
)"),
            R"({"tensor_parallel_size":"4","data_parallel_size":"1","engine":"vllm","max_model_len":"8192",)"
            R"("model":"org/model","replicas":2})");
}

TEST(LaunchLine, dynamo_names_roles_in_components) {
  EXPECT_EQ(fields(R"(apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
spec:
  components:
  - name: Frontend
    type: frontend
    podTemplate: {spec: {containers: [{name: main, image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.1}]}}
  - name: one
    type: decode
    replicas: 2
    podTemplate:
      spec:
        containers:
        - {name: main, command: [python3, -m, dynamo.vllm], args: [--model, org/model, --tensor-parallel-size, 4]}
  - name: other
    type: prefill
    podTemplate:
      spec:
        containers:
        - {name: main, command: [python3, -m, dynamo.vllm], args: [--model, org/model, --tensor-parallel-size, 2]}
)"),
            R"({"engine":"vllm","model":"org/model","decode_pool":{"count":2,"tensor_parallel_size":"4"},)"
            R"("prefill_pool":{"count":1,"tensor_parallel_size":"2"}})");
}

TEST(LaunchLine, kserve_services_are_read) {
  EXPECT_EQ(fields(R"(apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceService
metadata: {name: llm}
spec:
  model: {uri: "hf://org/model", name: served}
  replicas: 2
  parallelism: {tensor: 1, data: 16, dataLocal: 8, expert: true}
  router: {scheduler: {template: {containers: [{name: main, args: [--pool-name, x]}]}}}
  template:
    containers:
    - name: main
      env:
      - {name: VLLM_ADDITIONAL_ARGS, value: "--max-num-seqs 64 --kv-transfer-config '{\"kv_connector\":\"NixlConnector\"}'"}
  worker:
    containers:
    - {name: main}
  prefill:
    template:
      containers:
      - {name: main, args: [--tensor-parallel-size, "8"]}
)"),
            R"({"engine":"vllm","model":"org/model","decode_pool":{"count":2,"tensor_parallel_size":"1",)"
            R"("data_parallel_size":"16","enable_expert_parallel":true,"max_num_seqs":"64"},)"
            R"("prefill_pool":{"count":1,"tensor_parallel_size":"8"}})");
  EXPECT_EQ(fields(R"(apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
spec:
  predictor:
    minReplicas: 3
    maxReplicas: 5
    containers:
    - name: kserve-container
      command: [python, -m, sglang.launch_server, --model-path, org/model, --tp-size, "2"]
)"),
            R"({"engine":"sglang","model":"org/model","tensor_parallel_size":2,"replicas":3})");
}

TEST(LaunchLine, lines_of_the_other_nodes_are_the_same_server) {
  const std::string vllm = "vllm serve org/model -tp 16 --nnodes 2 --master-addr A --node-rank ";
  const std::string one = fields(vllm + "0");
  EXPECT_EQ(fields(vllm + "0\n" + vllm + "1 --headless\n"), one);
  EXPECT_EQ(fields(vllm + "1 --headless"), one);
  const std::string sglang = "python -m sglang.launch_server --model-path org/model --tp-size 16 --nnodes 2 ";
  EXPECT_EQ(fields(sglang + "--node-rank 0\n" + sglang + "--node-rank=1"), fields(sglang + "--node-rank 0"));
}

TEST(LaunchLine, a_file_of_flags_alone_is_read) {
  EXPECT_EQ(fields("model: org/model\ntensor-parallel-size: 4\nenforce-eager: true\n"),
            R"({"tensor_parallel_size":"4","enforce_eager":true,"engine":"vllm","model":"org/model"})");
}

TEST(LaunchLine, what_starts_no_engine_is_refused) {
  EXPECT_THAT(wrong("python train.py --epochs 3"), HasSubstr("vllm serve MODEL"));
  EXPECT_THAT(wrong("vllm serve 'open"), HasSubstr("closing quote"));
  EXPECT_THAT(wrong("vllm serve m --tensor-parallel-size"), HasSubstr("a value"));
  EXPECT_THAT(wrong("vllm serve m --compilation-config '{'"), HasSubstr("--compilation-config"));
}

TEST(LaunchFlags, no_engine_has_a_name_twice) {
  for (const LaunchFlag& flag : launch_flags()) {
    for (const std::string_view name : split_words(flag.names, " ")) {
      EXPECT_EQ(find_launch_flag(flag.style, name), &flag) << name;
    }
  }
}

}  // namespace foretoken::launch_line_test
