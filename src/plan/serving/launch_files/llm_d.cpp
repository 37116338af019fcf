// llm-d: values of the Helm chart llm-d-modelservice 0.4.
#include <fmt/format.h>

#include "base/text.h"
#include "plan/serving/launch_files/launch_file.h"

namespace foretoken::launch_file {
namespace {

constexpr const char* decode_port_of_pools = "8200";  // the chart's proxy has 8000 and asks vLLM here

std::vector<std::string> words_with_port(const Question& asked, const PoolLaunch& pool, const LaunchCommand& line) {
  std::vector<std::string> words = container_words(line, asked.style);
  if (pool.role == "decode") words.back() = decode_port_of_pools;
  return words;
}

// The chart starts vLLM on one node by itself, with model, port and sizes. For several nodes it has one template, which
// cannot tell the first node from the others.
std::string chart_command(const Question& asked, const PoolLaunch& pool) {
  if (pool.nodes > 1) {
    const std::string first = node_line(words_with_port(asked, pool, pool.lines[0]), true);
    const std::string other = node_line(words_with_port(asked, pool, pool.lines[1]), false);
    const std::string script =
        fmt::format("if [ \"$LWS_WORKER_INDEX\" = 0 ]; then exec {}; else exec {}; fi", first, other);
    return fmt::format("modelCommand: custom\ncommand: [sh, -c]\nargs: {}\n", yaml_list({script}));
  }
  std::vector<std::string> words = shell_words(pool.lines.front().line).value();
  words.erase(words.begin(), words.begin() + 3);  // vllm serve MODEL
  return fmt::format("modelCommand: vllmServe\nargs: {}\n",
                     yaml_list(without_flags(std::move(words), {"--tensor-parallel-size", "--data-parallel-size"})));
}

std::string chart_pool(const Question& asked, const PoolLaunch& pool) {
  const EngineChoice& engine = asked.pool(pool).engine;
  const int64_t ranks_each = std::max<int64_t>(1, engine.attention_ranks / pool.nodes);
  const std::string gpus = fmt::format("{}: \"{}\"", asked.platform(pool).kubernetes_resource, pool.devices);
  std::string text = fmt::format(
      "{}:\n  create: true\n  replicas: {}\n  labels: {{foretoken-device: {}}}\n"
      "  parallelism: {{tensor: {}, data: {}, dataLocal: {}, workers: {}}}\n"
      "  containers:\n  - name: vllm\n    image: ghcr.io/llm-d/llm-d-cuda:v0.9.0\n",
      pool.role == "prefill" ? "prefill" : "decode", pool.servers, yaml_text(engine.device), engine.tensor,
      engine.attention_ranks, ranks_each, pool.nodes);
  text += indented(chart_command(asked, pool), 4);
  text += fmt::format("    resources: {{limits: {{{0}}}, requests: {{{0}}}}}\n    mountModelVolume: true\n    env:\n",
                      gpus);
  return text + indented(token_variable() + side_channel_variable(asked, pool), 4);
}

}  // namespace

std::string llm_d(const Question& asked) {
  if (asked.style != LaunchStyle::vllm) {
    refuse("An llm-d file is written for vLLM only.", "Add {engines} vllm, or use {launch} kubernetes.");
  }
  refuse_other_than_nvidia(asked, "An llm-d file");
  std::string text = header(asked, "helm install llm llm-d-modelservice/llm-d-modelservice -f FILE") +
                     secret_comment() + rack_comment(asked);
  if (asked.has_several_nodes()) text += "# Servers on several nodes need LeaderWorkerSet in the cluster.\n";
  const std::string model = yaml_text(shell_words(asked.pools.front().lines.front().line).value().at(2));
  text += fmt::format("modelArtifacts: {{name: {}, uri: {}, size: 1Ti}}\n", model, "\"hf://" + model.substr(1));
  text += fmt::format("routing: {{servicePort: {}, proxy: {{enabled: {}}}}}\n", served_port,
                      asked.layout.decode.has_value());
  if (asked.has_several_nodes()) text += "multinode: true\n";
  for (const PoolLaunch& pool : asked.pools) text += chart_pool(asked, pool);
  if (!asked.layout.decode) text += "prefill: {create: false}\n";
  return text;
}

}  // namespace foretoken::launch_file
