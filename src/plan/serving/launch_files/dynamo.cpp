// NVIDIA Dynamo: a DynamoGraphDeployment as its operator takes it since release 1.2 (deploy/operator/api/v1beta1).
#include <fmt/format.h>

#include "base/text.h"
#include "plan/serving/launch_files/launch_file.h"

namespace foretoken::launch_file {
namespace {

constexpr std::string_view dynamo_release = "1.4.1";

std::string_view dynamo_backend(LaunchStyle style) {
  return style == LaunchStyle::vllm ? "vllm" : "sglang";
}

std::string dynamo_image(LaunchStyle style) {
  return fmt::format("nvcr.io/nvidia/ai-dynamo/{}-runtime:{}", dynamo_backend(style), dynamo_release);
}

// Flags alone, with the model as a flag. The operator says where nodes are.
std::vector<std::string> dynamo_arguments(const PoolLaunch& pool, LaunchStyle style) {
  const std::vector<std::string> words =
      without_flags(shell_words(pool.lines.front().line).value(),
                    {"--nnodes", "--node-rank", "--dist-init-addr", "--master-addr", "--data-parallel-address",
                     "--data-parallel-rpc-port", "--data-parallel-size-local"});
  std::vector<std::string> arguments;
  if (style == LaunchStyle::vllm) arguments = {"--model", words.at(2)};  // vllm serve MODEL
  arguments.insert(arguments.end(), words.begin() + 3, words.end());     // python -m sglang.launch_server
  if (pool.role.empty()) return arguments;
  if (style == LaunchStyle::vllm) {
    arguments.insert(arguments.end(), {"--disaggregation-mode", pool.role});
  } else {
    arguments.insert(arguments.end(), {"--disaggregation-transfer-backend", "nixl", "--host", "0.0.0.0"});
  }
  return arguments;
}

std::string dynamo_worker(const Question& asked, const PoolLaunch& pool) {
  const char* role = pool.role == "prefill" ? "Prefill" : pool.role == "decode" ? "Decode" : "";
  std::string text = fmt::format("- name: {}{}Worker\n  type: {}\n  replicas: {}\n",
                                 asked.style == LaunchStyle::vllm ? "Vllm" : "Sglang", role,
                                 pool.role.empty() ? "worker" : pool.role, pool.servers);
  if (pool.nodes > 1) text += fmt::format("  multinode: {{nodeCount: {}}}\n", pool.nodes);
  text += fmt::format(
      "  podTemplate:\n    metadata: {{labels: {{foretoken-device: {}}}}}\n    spec:\n      containers:\n"
      "      - name: main\n        image: {}\n        command: [python3, -m, dynamo.{}]\n        args: {}\n"
      "        resources: {{limits: {{{}: {}}}}}\n        env:\n",
      yaml_text(asked.pool(pool).engine.device), dynamo_image(asked.style), dynamo_backend(asked.style),
      yaml_list(dynamo_arguments(pool, asked.style)), asked.platform(pool).kubernetes_resource, pool.devices);
  return text + indented(token_variable(), 8);
}

}  // namespace

std::string dynamo(const Question& asked) {
  if (asked.style == LaunchStyle::trtllm) {
    refuse("foretoken does not write Dynamo files for TensorRT-LLM: its Dynamo workers take different flags.",
           "Use {launch} kubernetes, or add {engines} vllm,sglang.");
  }
  refuse_other_than_nvidia(asked, "A Dynamo file");
  std::string text =
      header(asked, fmt::format("kubectl apply -f FILE; needs the operator of NVIDIA Dynamo {}", dynamo_release)) +
      secret_comment() + rack_comment(asked);
  text += fmt::format(
      "apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nmetadata: {{name: llm}}\nspec:\n"
      "  backendFramework: {}\n  components:\n  - name: Frontend\n    type: frontend\n    replicas: 1\n"
      "    podTemplate: {{spec: {{containers: [{{name: main, image: {}}}]}}}}\n",
      dynamo_backend(asked.style), yaml_text(dynamo_image(asked.style)));
  for (const PoolLaunch& pool : asked.pools) text += indented(dynamo_worker(asked, pool), 2);
  return text;
}

}  // namespace foretoken::launch_file
