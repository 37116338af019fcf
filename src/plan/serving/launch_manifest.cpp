#include "plan/serving/launch_manifest.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/replace.h"
#include "base/text.h"
#include "plan/serving/launch_command.h"
#include "plan/serving/launch_platform.h"
#include "serving/engine/engine_setup.h"

namespace foretoken {
namespace {

constexpr const char* served_port = "8000";
constexpr const char* options_folder = "/etc/foretoken/";

struct ManifestQuestion {
  const ServingQuestion& question;
  const ServingLayout& layout;
  std::vector<PoolLaunch> pools;
  LaunchStyle style;

  const EnginePool& pool(const PoolLaunch& launch) const {
    return launch.role == "decode" ? *layout.decode : layout.pool;
  }
  const LaunchPlatform& platform(const PoolLaunch& launch) const {
    return launch_platform(question.hardware_of(pool(launch).engine.device).device);
  }
};

[[noreturn]] void cannot_say(const std::string& why, const std::string& instead) {
  throw InputError({.field = "launch", .value = why, .expected = instead});
}

std::string yaml_text(std::string_view text) {
  return Json(std::string(text)).dump(0);
}

std::string yaml_list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + yaml_text(word);
  return "[" + text + "]";
}

// Each line behind so many spaces.
std::string indented(std::string_view text, size_t spaces) {
  std::string result;
  for (const std::string_view line : split(text, "\n")) {
    if (!line.empty()) result.append(spaces, ' ').append(line).append("\n");
  }
  return result;
}

// As a server in a container is started: reachable from outside, its options in a mounted file.
std::vector<std::string> container_words(const LaunchCommand& command, LaunchStyle style) {
  std::string line = command.line;
  replace_all(line, "options.yaml", std::string(options_folder) + "options.yaml");
  std::vector<std::string> words = shell_words(line).value();
  if (style != LaunchStyle::vllm) words.insert(words.end(), {"--host", "0.0.0.0"});
  words.insert(words.end(), {"--port", served_port});
  return words;
}

// vLLM's router is not part of vLLM's image.
std::string_view router_image(const LaunchPlatform& platform, LaunchStyle style) {
  return style == LaunchStyle::vllm ? "python:3.12-slim" : platform.image(style);
}

std::vector<std::string> router_words(LaunchStyle style, const std::string& line) {
  if (style == LaunchStyle::vllm) return {"sh", "-c", "pip install vllm-router && exec " + line + " --host 0.0.0.0"};
  std::vector<std::string> words = shell_words(line).value();
  words.insert(words.end(), {"--host", "0.0.0.0"});
  return words;
}

// What is said of every file: what to look at before it is used.
std::string header(const ManifestQuestion& asked, std::string_view use) {
  std::string text = fmt::format("# {} on {}; {}\n", layout_text(asked.layout), devices_text(asked.layout), use);
  text +=
      "# Replace `latest` or VERSION with the engine version that you tested. Gated models read the token from "
      "HF_TOKEN.\n";
  for (const PoolLaunch& pool : asked.pools) {
    for (const LaunchCommand& line : pool.lines) {
      if (line.has_placeholder) {
        text += "# " + line.note + "\n";
        break;
      }
    }
  }
  return text;
}

std::string pool_name(const PoolLaunch& pool) {
  return pool.role.empty() ? "llm" : "llm-" + pool.role;
}

void refuse_pools_of_tensorrt(const ManifestQuestion& asked, const std::string& of) {
  if (asked.style == LaunchStyle::trtllm && asked.layout.decode) {
    cannot_say("separate prefill and decode pools of TensorRT-LLM in " + of,
               "a layout without them: {disaggregate} off");
  }
}

void refuse_other_than_nvidia(const ManifestQuestion& asked, const std::string& of) {
  for (const PoolLaunch& pool : asked.pools) {
    const LaunchPlatform& platform = asked.platform(pool);
    if (platform.takes_nvidia_files) continue;
    const bool in_kubernetes = !platform.kubernetes_resource.empty();
    cannot_say(fmt::format("{} in {}", platform.title, of),
               in_kubernetes ? "kubernetes" : "the lines of the answer without {launch}");
  }
}

// Kubernetes.

void refuse_unknown_images(const ManifestQuestion& asked) {
  for (const PoolLaunch& pool : asked.pools) {
    const LaunchPlatform& platform = asked.platform(pool);
    if (!platform.kubernetes_resource.empty() && !platform.image(asked.style).empty()) continue;
    cannot_say(fmt::format("{} on {} in Kubernetes, for which no public image is known", asked.pool(pool).engine.engine,
                           platform.title),
               "the lines of the answer without {launch}");
  }
}

std::string server_container(const ManifestQuestion& asked, const PoolLaunch& pool,
                             const std::vector<std::string>& words, bool answers) {
  std::string text = fmt::format("- name: server\n  image: {}\n  command: {}\n",
                                 asked.platform(pool).image(asked.style), yaml_list(words));
  text += fmt::format("  resources: {{limits: {{{}: {}}}}}\n", asked.platform(pool).kubernetes_resource, pool.devices);
  if (answers) {
    text += fmt::format(
        "  ports: [{{containerPort: {0}}}]\n  readinessProbe: {{httpGet: {{path: /health, port: {0}}}, "
        "failureThreshold: 360}}\n",
        served_port);
  }
  std::string mounts = "{name: memory, mountPath: /dev/shm}";
  if (!pool.lines.front().options.empty()) mounts += fmt::format(", {{name: options, mountPath: {}}}", options_folder);
  text += "  volumeMounts: [" + mounts + "]\n";
  text += "  env:\n  - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf-token, key: token, optional: true}}}\n";
  if (asked.style == LaunchStyle::vllm && !pool.role.empty()) {
    text += "  - {name: VLLM_NIXL_SIDE_CHANNEL_HOST, valueFrom: {fieldRef: {fieldPath: status.podIP}}}\n";
  }
  return text;
}

std::string pod_spec(const ManifestQuestion& asked, const PoolLaunch& pool, const std::vector<std::string>& words,
                     bool answers) {
  std::string text = "containers:\n" + server_container(asked, pool, words, answers);
  text += "volumes:\n- {name: memory, emptyDir: {medium: Memory}}\n";
  if (!pool.lines.front().options.empty()) {
    text += fmt::format("- {{name: options, configMap: {{name: {}-options}}}}\n", pool_name(pool));
  }
  return text;
}

std::string pod_template(const ManifestQuestion& asked, const PoolLaunch& pool, const std::vector<std::string>& words,
                         bool answers) {
  return fmt::format("metadata: {{labels: {{app: {}, foretoken-device: {}}}}}\nspec:\n{}", pool_name(pool),
                     yaml_text(asked.pool(pool).engine.device), indented(pod_spec(asked, pool, words, answers), 2));
}

std::string config_map(const PoolLaunch& pool) {
  if (pool.lines.front().options.empty()) return "";
  return fmt::format(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}-options}}\ndata:\n  options.yaml: |\n{}---\n",
      pool_name(pool), indented(pool.lines.front().options, 4));
}

std::string service(const std::string& name, const std::string& app, bool headless) {
  return fmt::format(
      "apiVersion: v1\nkind: Service\nmetadata: {{name: {}}}\nspec:\n  selector: {{app: {}}}\n{}"
      "  ports: [{{port: {}}}]\n",
      name, app, headless ? "  clusterIP: None\n" : "", served_port);
}

// On one node each. Servers of pools have names of their own, which the router needs.
std::string servers_on_single_nodes(const ManifestQuestion& asked, const PoolLaunch& pool) {
  const bool named = !pool.role.empty();
  const std::string name = pool_name(pool);
  return fmt::format(
      "apiVersion: apps/v1\nkind: {}\nmetadata: {{name: {}}}\nspec:\n  replicas: {}\n{}"
      "  selector: {{matchLabels: {{app: {}}}}}\n  template:\n{}",
      named ? "StatefulSet" : "Deployment", name, pool.servers,
      named ? fmt::format("  serviceName: {}\n  podManagementPolicy: Parallel\n", name) : "", name,
      indented(pod_template(asked, pool, container_words(pool.lines.front(), asked.style), true), 4));
}

// A command for a shell, in which the leader's address and the node's number are known.
std::vector<std::string> node_script(const LaunchCommand& command, LaunchStyle style, bool is_first) {
  std::string line;
  for (const std::string& word : container_words(command, style)) line += (line.empty() ? "" : " ") + shell_word(word);
  replace_all(line, first_launch_host, "$LWS_LEADER_ADDRESS");
  if (!is_first) {
    replace_all(line, "--node-rank 1", "--node-rank $LWS_WORKER_INDEX");
    const std::string_view flag = "--data-parallel-start-rank ";
    if (const size_t place = line.find(flag); place != std::string::npos) {
      const size_t begin = place + flag.size(), end = line.find(' ', begin);
      line.replace(begin, end - begin, fmt::format("$(($LWS_WORKER_INDEX * {}))", line.substr(begin, end - begin)));
    }
  }
  return {"sh", "-c", "exec " + line};
}

std::string servers_on_several_nodes(const ManifestQuestion& asked, const PoolLaunch& pool) {
  if (asked.style == LaunchStyle::trtllm) {
    cannot_say("TensorRT-LLM on several nodes, which mpirun or srun starts",
               "the lines of the answer without {launch}, or engines vllm or sglang");
  }
  std::vector<std::string> first = node_script(pool.lines.front(), asked.style, true), other;
  if (pool.lines.size() > 1) {
    other = node_script(pool.lines[1], asked.style, false);
  } else {  // vLLM on Ray
    first.back() = "ray start --head --port 6379 && " + first.back();
    other = {"sh", "-c", "exec ray start --address $LWS_LEADER_ADDRESS:6379 --block"};
  }
  return fmt::format(
      "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {{name: {}}}\nspec:\n"
      "  replicas: {}\n  leaderWorkerTemplate:\n    size: {}\n    leaderTemplate:\n{}    workerTemplate:\n{}",
      pool_name(pool), pool.servers, pool.nodes, indented(pod_template(asked, pool, first, true), 6),
      indented(fmt::format("spec:\n{}", indented(pod_spec(asked, pool, other, false), 2)), 6));
}

std::vector<std::string> pod_hosts(const PoolLaunch& pool) {
  std::vector<std::string> hosts;
  for (int64_t i = 0; i < pool.servers; ++i) hosts.push_back(fmt::format("{0}-{1}.{0}", pool_name(pool), i));
  return hosts;
}

std::string kubernetes_manifest(const ManifestQuestion& asked) {
  refuse_pools_of_tensorrt(asked, "Kubernetes");
  refuse_unknown_images(asked);
  const bool several_nodes =
      std::any_of(asked.pools.begin(), asked.pools.end(), [](const PoolLaunch& pool) { return pool.nodes > 1; });
  std::string text = header(asked, "kubectl apply -f FILE; requests go to service llm, port 8000") +
                     "# kubectl create secret generic hf-token --from-literal=token=YOUR_TOKEN\n";
  if (several_nodes) text += "# Servers on several nodes need LeaderWorkerSet in the cluster (lws.sigs.k8s.io).\n";
  for (const PoolLaunch& pool : asked.pools) {
    text += config_map(pool);
    text += pool.nodes > 1 ? servers_on_several_nodes(asked, pool) : servers_on_single_nodes(asked, pool);
    text += "---\n" + service(pool_name(pool), pool_name(pool), !pool.role.empty());
    if (!pool.role.empty()) text += "---\n";
  }
  if (!asked.layout.decode) return text;
  const std::string line =
      pool_router_line(asked.layout.pool.engine.engine, pod_hosts(asked.pools[0]), pod_hosts(asked.pools[1]));
  text += fmt::format(
      "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: llm}}\nspec:\n  replicas: 1\n"
      "  selector: {{matchLabels: {{app: llm}}}}\n  template:\n    metadata: {{labels: {{app: llm}}}}\n    spec:\n"
      "      containers:\n      - name: router\n        image: {}\n        command: {}\n",
      router_image(asked.platform(asked.pools[0]), asked.style), yaml_list(router_words(asked.style, line)));
  return text + "---\n" + service("llm", "llm", false);
}

// Docker Compose.

std::string compose_manifest(const ManifestQuestion& asked) {
  refuse_pools_of_tensorrt(asked, "Docker Compose");
  const int64_t host_devices = asked.question.hardware_of(asked.layout.pool.engine.device).host_devices();
  if (asked.layout.is_mixed() || asked.layout.devices() > host_devices) {
    cannot_say(
        fmt::format("{} devices in Docker Compose, which is for one host of {}", asked.layout.devices(), host_devices),
        "kubernetes, or fewer devices");
  }
  refuse_other_than_nvidia(asked, "Docker Compose");
  std::string text = header(asked, "docker compose up; requests go to port 8000") + "services:\n", options;
  int64_t device = 0;
  std::vector<std::string> prefill, decode, all;
  const bool alone = asked.pools.size() == 1 && asked.pools.front().servers == 1;
  for (const PoolLaunch& pool : asked.pools) {
    if (!pool.lines.front().options.empty()) options = pool.lines.front().options;
    for (int64_t i = 0; i < pool.servers; ++i) {
      const std::string name = alone ? pool_name(pool) : fmt::format("{}-{}", pool_name(pool), i);
      (pool.role == "decode" ? decode : prefill).push_back(name);
      all.push_back(name);
      std::vector<std::string> ids;
      for (int64_t j = 0; j < pool.devices; ++j) ids.push_back(std::to_string(device++));
      text += fmt::format("  {}:\n    image: {}\n    entrypoint: {}\n    ipc: host\n", name,
                          asked.platform(pool).image(asked.style),
                          yaml_list(container_words(pool.lines.front(), asked.style)));
      text += "    environment:\n      HF_TOKEN: ${HF_TOKEN-}\n";
      if (asked.style == LaunchStyle::vllm && !pool.role.empty()) {
        text += fmt::format("      VLLM_NIXL_SIDE_CHANNEL_HOST: {}\n", name);
      }
      text += fmt::format("    labels: {{foretoken-device: {}}}\n", yaml_text(asked.pool(pool).engine.device));
      if (alone) text += fmt::format("    ports: [\"{0}:{0}\"]\n", served_port);
      if (!options.empty())
        text += fmt::format("    configs: [{{source: options.yaml, target: {}options.yaml}}]\n", options_folder);
      text += fmt::format(
          "    deploy: {{resources: {{reservations: {{devices: [{{driver: nvidia, device_ids: {}, capabilities: "
          "[gpu]}}]}}}}}}\n",
          yaml_list(ids));
    }
  }
  if (!alone && asked.style == LaunchStyle::trtllm) {
    text += "  # This file has no load balancer: put one in front of port 8000 of each server.\n";
  } else if (!alone) {
    std::string line;
    if (asked.layout.decode) {
      line = pool_router_line(asked.layout.pool.engine.engine, prefill, decode);
    } else {
      line = asked.style == LaunchStyle::sglang ? "python -m sglang_router.launch_router --worker-urls"
                                                : "vllm-router --worker-urls";
      for (const std::string& name : all) line += fmt::format(" http://{}:{}", name, served_port);
      line += fmt::format(" --port {}", served_port);
    }
    text +=
        fmt::format("  router:\n    image: {0}\n    entrypoint: {1}\n    ports: [\"{2}:{2}\"]\n    depends_on: {3}\n",
                    router_image(asked.platform(asked.pools.front()), asked.style),
                    yaml_list(router_words(asked.style, line)), served_port, yaml_list(all));
  }
  if (!options.empty()) text += "configs:\n  options.yaml:\n    content: |\n" + indented(options, 6);
  return text;
}

// NVIDIA Dynamo.

// Flags alone, with the model as a flag.
std::vector<std::string> dynamo_arguments(const LaunchCommand& command, LaunchStyle style) {
  std::vector<std::string> words = shell_words(command.line).value();
  if (style == LaunchStyle::sglang) return {words.begin() + 3, words.end()};  // python -m sglang.launch_server
  std::vector<std::string> arguments = {"--model", words.at(2)};              // vllm serve MODEL
  arguments.insert(arguments.end(), words.begin() + 3, words.end());
  return arguments;
}

std::string dynamo_manifest(const ManifestQuestion& asked) {
  if (asked.style == LaunchStyle::trtllm) {
    cannot_say("TensorRT-LLM as a Dynamo graph, whose workers take other flags than trtllm-serve",
               "kubernetes, or engines vllm or sglang");
  }
  refuse_other_than_nvidia(asked, "NVIDIA Dynamo");
  std::string text = header(asked, "kubectl apply -f FILE; needs the operator of NVIDIA Dynamo");
  text +=
      "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: llm}\nspec:\n  services:\n"
      "    Frontend: {componentType: frontend, replicas: 1}\n";
  const bool is_vllm = asked.style == LaunchStyle::vllm;
  for (const PoolLaunch& pool : asked.pools) {
    std::vector<std::string> arguments = dynamo_arguments(pool.lines.front(), asked.style);
    // The operator says where nodes are.
    for (const char* flag :
         {"--nnodes", "--node-rank", "--dist-init-addr", "--data-parallel-address", "--data-parallel-rpc-port",
          "--data-parallel-size-local", "--distributed-executor-backend"}) {
      const auto found = std::find(arguments.begin(), arguments.end(), flag);
      if (found != arguments.end()) arguments.erase(found, found + 2);
    }
    if (is_vllm && pool.role == "prefill") arguments.emplace_back("--is-prefill-worker");
    const char* name = pool.role == "prefill" ? "Prefill" : pool.role == "decode" ? "Decode" : "";
    text += fmt::format("    {}{}Worker:\n      componentType: worker\n", is_vllm ? "Vllm" : "Sglang", name);
    if (!pool.role.empty()) text += fmt::format("      subComponentType: {}\n", pool.role);
    text += fmt::format("      replicas: {}\n", pool.servers);
    if (pool.nodes > 1) text += fmt::format("      multinode: {{nodeCount: {}}}\n", pool.nodes);
    text += fmt::format("      resources: {{limits: {{gpu: \"{}\"}}}}\n", pool.devices);
    text += fmt::format("      labels: {{foretoken-device: {}}}\n", yaml_text(asked.pool(pool).engine.device));
    text += fmt::format(
        "      extraPodSpec:\n        mainContainer:\n          image: nvcr.io/nvidia/ai-dynamo/{}-runtime:latest\n"
        "          command: [python3, -m, dynamo.{}]\n          args: {}\n",
        is_vllm ? "vllm" : "sglang", is_vllm ? "vllm" : "sglang", yaml_list(arguments));
  }
  return text;
}

// llm-d.

std::string llm_d_manifest(const ManifestQuestion& asked) {
  if (asked.style != LaunchStyle::vllm) {
    cannot_say("an engine other than vLLM in llm-d's model service", "{engines} vllm, or kubernetes");
  }
  refuse_other_than_nvidia(asked, "llm-d files");
  std::string text = header(asked, "helm install llm llm-d-modelservice/llm-d-modelservice -f FILE");
  std::string pools;
  for (const PoolLaunch& pool : asked.pools) {
    std::vector<std::string> words = shell_words(pool.lines.front().line).value();
    if (pools.empty()) {
      text += fmt::format("modelArtifacts: {{uri: {}, size: 1Ti, authSecretName: hf-token}}\n",
                          yaml_text("hf://" + words.at(2)));
      text += fmt::format("routing: {{servicePort: {}}}\n", served_port);
    }
    words.erase(words.begin(), words.begin() + 3);
    // The chart gives these by itself, from the sizes below.
    for (const char* flag : {"--tensor-parallel-size", "--data-parallel-size", "--data-parallel-size-local",
                             "--data-parallel-address", "--data-parallel-rpc-port"}) {
      const auto found = std::find(words.begin(), words.end(), flag);
      if (found != words.end()) words.erase(found, found + 2);
    }
    const EngineChoice& engine = asked.pool(pool).engine;
    const int64_t data = engine.attention_ranks;
    if (pool.nodes > 1 && data < 2) {
      cannot_say("a server on several nodes without data-parallel ranks in llm-d", "kubernetes, or dynamo");
    }
    pools += fmt::format(
        "{}:\n  create: true\n  replicas: {}\n  labels: {{foretoken-device: {}}}\n"
        "  parallelism: {{tensor: {}, data: {}, dataLocal: {}}}\n"
        "  containers:\n  - name: vllm\n    image: ghcr.io/llm-d/llm-d-cuda:latest\n    modelCommand: vllmServe\n"
        "    args: {}\n    mountModelVolume: true\n",
        pool.role == "prefill" ? "prefill" : "decode", pool.servers, yaml_text(engine.device), engine.tensor, data,
        data / pool.nodes, yaml_list(words));
    if (pool.nodes > 1 && text.find("multinode") == std::string::npos) text += "multinode: true\n";
  }
  if (!asked.layout.decode) pools += "prefill: {create: false}\n";
  return text + pools;
}

using WriteManifest = std::string (*)(const ManifestQuestion&);
struct ManifestKind {
  std::string_view name;
  WriteManifest write;
};
constexpr ManifestKind manifest_kinds[] = {
    {"kubernetes", kubernetes_manifest},
    {"compose", compose_manifest},
    {"dynamo", dynamo_manifest},
    {"llm-d", llm_d_manifest},
};

}  // namespace

std::vector<std::string> manifest_names() {
  std::vector<std::string> names;
  for (const ManifestKind& kind : manifest_kinds) names.emplace_back(kind.name);
  return names;
}

std::string launch_manifest(std::string_view name, const ServingQuestion& question, const ServingLayout& layout,
                            int64_t max_model_len) {
  const auto* kind = std::find_if(std::begin(manifest_kinds), std::end(manifest_kinds),
                                  [&](const ManifestKind& one) { return one.name == name; });
  ensure(kind != std::end(manifest_kinds), "a name of manifest_names()");
  return kind->write({.question = question,
                      .layout = layout,
                      .pools = pool_launches(question, layout, max_model_len),
                      .style = engine_kind(layout.pool.engine.engine).launch});
}

}  // namespace foretoken
