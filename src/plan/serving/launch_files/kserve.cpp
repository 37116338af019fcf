// KServe: an LLMInferenceService for vLLM, whose preset starts the server, or an InferenceService with the container of
// another engine.
#include <fmt/format.h>

#include "base/text.h"
#include "plan/serving/launch_files/launch_file.h"

namespace foretoken::launch_file {
namespace {

// The preset starts `vllm serve` and adds the words of this variable, which a shell reads.
std::string preset_container(const Question& asked, const PoolLaunch& pool, const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return fmt::format(
             "containers:\n- name: main\n  resources: {{limits: {{{0}: \"{1}\"}}, requests: {{{0}: \"{1}\"}}}}\n"
             "  env:\n  - {{name: VLLM_ADDITIONAL_ARGS, value: {2}}}\n",
             asked.platform(pool).kubernetes_resource, pool.devices, yaml_text(line)) +
         indented(token_variable() + side_channel_variable(asked, pool), 2);
}

// Ranks of data-parallel attention on several nodes are the preset's.
std::string preset_pool(const Question& asked, const PoolLaunch& pool) {
  const EngineChoice& engine = asked.pool(pool).engine;
  std::vector<std::string> words = shell_words(pool.lines.front().line).value();
  words.erase(words.begin(), words.begin() + 3);  // vllm serve MODEL
  std::string text =
      fmt::format("replicas: {}\nlabels: {{foretoken-device: {}}}\n", pool.servers, yaml_text(engine.device));
  if (pool.nodes == 1) return text + "template:\n" + indented(preset_container(asked, pool, words), 2);
  if (engine.attention_ranks < 2 || engine.attention_ranks % pool.nodes != 0) {
    refuse("A KServe file cannot describe a vLLM server on several nodes without data-parallel ranks on each.",
           "Use {launch} kubernetes.");
  }
  words =
      without_flags(std::move(words), {"--tensor-parallel-size", "--data-parallel-size", "--data-parallel-size-local",
                                       "--data-parallel-address", "--data-parallel-rpc-port"});
  std::erase(words, "--enable-expert-parallel");
  text += fmt::format("parallelism: {{tensor: {}, data: {}, dataLocal: {}, expert: true}}\n", engine.tensor,
                      engine.attention_ranks, engine.attention_ranks / pool.nodes);
  const std::string container = indented(preset_container(asked, pool, words), 2);
  return text + "template:\n" + container + "worker:\n" + container;
}

std::string llm_inference_service(const Question& asked) {
  refuse_other_than_nvidia(asked, "A KServe file for vLLM");
  std::string text = header(asked, "kubectl apply -f FILE; needs KServe 0.18 or later with LLMInferenceService") +
                     secret_comment() + rack_comment(asked);
  if (asked.has_several_nodes()) text += "# Servers on several nodes need LeaderWorkerSet in the cluster.\n";
  const std::string model = yaml_text(shell_words(asked.pools.front().lines.front().line).value().at(2));
  text += fmt::format(
      "apiVersion: serving.kserve.io/v1alpha2\nkind: LLMInferenceService\nmetadata: {{name: llm}}\nspec:\n"
      "  model: {{uri: \"hf://{}, name: {}}}\n  router: {{route: {{}}, gateway: {{}}, scheduler: {{}}}}\n",
      model.substr(1), model);
  for (const PoolLaunch& pool : asked.pools) {
    const bool is_prefill = pool.role == "prefill";
    if (is_prefill) text += "  prefill:\n";
    text += indented(preset_pool(asked, pool), is_prefill ? 4 : 2);
  }
  return text;
}

std::string inference_service(const Question& asked) {
  const std::string file = fmt::format("A KServe file for {}", asked.layout.pool.engine.engine);
  refuse_unknown_images(asked, file);
  if (asked.layout.decode) {
    refuse(file + " cannot describe separate prefill and decode pools.",
           asked.style == LaunchStyle::trtllm ? "Add {no_disaggregate} to plan without separate pools."
                                              : "Use {launch} kubernetes, or add {no_disaggregate}.");
  }
  const PoolLaunch& pool = asked.pools.front();
  if (pool.nodes > 1) {
    refuse(file + " cannot describe servers on several nodes.", asked.style == LaunchStyle::trtllm
                                                                    ? "Start the line above with Slurm or mpirun."
                                                                    : "Use {launch} kubernetes.");
  }
  std::string text = header(asked, "kubectl apply -f FILE; needs KServe") + secret_comment() + config_map(pool);
  text += fmt::format(
      "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata:\n  name: llm\n"
      "  labels: {{foretoken-device: {}}}\n  annotations: {{serving.kserve.io/deploymentMode: Standard}}\nspec:\n"
      "  predictor:\n    minReplicas: {}\n    maxReplicas: {}\n",
      yaml_text(asked.pool(pool).engine.device), pool.servers, pool.servers);
  return text +
         indented(pod_spec(asked, pool, "kserve-container", container_words(pool.lines.front(), asked.style), true), 4);
}

}  // namespace

std::string kserve(const Question& asked) {
  return asked.style == LaunchStyle::vllm ? llm_inference_service(asked) : inference_service(asked);
}

}  // namespace foretoken::launch_file
