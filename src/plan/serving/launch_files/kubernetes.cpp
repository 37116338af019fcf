// A Deployment, a StatefulSet for each pool, or a LeaderWorkerSet for servers on several nodes.
#include <fmt/format.h>

#include "plan/serving/launch_files/launch_file.h"

namespace foretoken::launch_file {
namespace {

std::string server_container(const Question& asked, const PoolLaunch& pool, std::string_view name,
                             const std::vector<std::string>& words, bool answers) {
  std::string text = fmt::format("- name: {}\n  image: {}\n  command: {}\n", name, asked.image(pool), yaml_list(words));
  const std::string claims = spans_hosts_of_a_rack(asked, pool) ? ", claims: [{name: nvlink}]" : "";
  text += fmt::format("  resources: {{limits: {{{}: {}}}{}}}\n", asked.platform(pool).kubernetes_resource, pool.devices,
                      claims);
  if (answers) {
    text += fmt::format(
        "  ports: [{{containerPort: {0}}}]\n  readinessProbe: {{httpGet: {{path: /health, port: {0}}}, "
        "failureThreshold: 360}}\n",
        served_port);
  }
  std::string mounts = "{name: memory, mountPath: /dev/shm}";
  if (!pool.lines.front().options.empty()) mounts += fmt::format(", {{name: options, mountPath: {}}}", options_folder);
  text += "  volumeMounts: [" + mounts + "]\n";
  return text + "  env:\n" + indented(token_variable() + side_channel_variable(asked, pool), 2);
}

std::string pod_template(const Question& asked, const PoolLaunch& pool, const std::vector<std::string>& words,
                         bool answers) {
  return fmt::format("metadata: {{labels: {{app: {}, foretoken-device: {}}}}}\nspec:\n{}", pool_name(pool),
                     yaml_text(asked.pool(pool).engine.device),
                     indented(pod_spec(asked, pool, "server", words, answers), 2));
}

std::string compute_domain(const Question& asked) {
  int64_t hosts = 0;
  for (const PoolLaunch& pool : asked.pools) {
    if (spans_hosts_of_a_rack(asked, pool)) hosts += pool.servers * pool.nodes;
  }
  if (hosts == 0) return "";
  return fmt::format(
      "apiVersion: resource.nvidia.com/v1beta1\nkind: ComputeDomain\nmetadata: {{name: llm}}\n"
      "spec: {{numNodes: {}, channel: {{resourceClaimTemplate: {{name: llm-nvlink}}}}}}\n---\n",
      hosts);
}

// LeaderWorkerSet makes a headless service of its own name, by which the nodes of a server find each other: that name
// must be free.
std::string workload_name(const PoolLaunch& pool) {
  return pool_name(pool) + (pool.nodes > 1 ? "-nodes" : "");
}

std::string service(const std::string& name, const std::string& app, bool headless) {
  return fmt::format(
      "apiVersion: v1\nkind: Service\nmetadata: {{name: {}}}\nspec:\n  selector: {{app: {}}}\n{}"
      "  ports: [{{port: {}}}]\n",
      name, app, headless ? "  clusterIP: None\n" : "", served_port);
}

// On one node each. Servers of pools have names of their own, which the router needs.
std::string servers_on_single_nodes(const Question& asked, const PoolLaunch& pool) {
  const bool named = !pool.role.empty();
  const std::string name = pool_name(pool);
  return fmt::format(
      "apiVersion: apps/v1\nkind: {}\nmetadata: {{name: {}}}\nspec:\n  replicas: {}\n{}"
      "  selector: {{matchLabels: {{app: {}}}}}\n  template:\n{}",
      named ? "StatefulSet" : "Deployment", name, pool.servers,
      named ? fmt::format("  serviceName: {}\n  podManagementPolicy: Parallel\n", name) : "", name,
      indented(pod_template(asked, pool, container_words(pool.lines.front(), asked.style), true), 4));
}

std::vector<std::string> node_script(const LaunchCommand& command, LaunchStyle style, bool is_first) {
  return {"sh", "-c", "exec " + node_line(container_words(command, style), is_first)};
}

std::string servers_on_several_nodes(const Question& asked, const PoolLaunch& pool) {
  if (asked.style == LaunchStyle::trtllm) {
    refuse("A Kubernetes file cannot describe TensorRT-LLM on several nodes, which MPI starts.",
           "Start the line above with Slurm or mpirun, or add {engines} vllm,sglang.");
  }
  const std::vector<std::string> first = node_script(pool.lines[0], asked.style, true);
  const std::vector<std::string> other = node_script(pool.lines[1], asked.style, false);
  return fmt::format(
      "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {{name: {}}}\nspec:\n"
      "  replicas: {}\n  leaderWorkerTemplate:\n    size: {}\n    leaderTemplate:\n{}    workerTemplate:\n{}",
      workload_name(pool), pool.servers, pool.nodes, indented(pod_template(asked, pool, first, true), 6),
      indented(fmt::format("spec:\n{}", indented(pod_spec(asked, pool, "server", other, false), 2)), 6));
}

std::vector<std::string> pod_hosts(const PoolLaunch& pool) {
  std::vector<std::string> hosts;
  for (int64_t i = 0; i < pool.servers; ++i) hosts.push_back(fmt::format("{0}-{1}.{0}", workload_name(pool), i));
  return hosts;
}

std::string router_of_pools(const Question& asked) {
  const std::string line = pool_router_line(asked.layout.pool.engine.engine, pod_hosts(asked.pools[0]),
                                            pod_hosts(asked.pools[1]), asked.question.has_conversations);
  return fmt::format(
      "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: llm}}\nspec:\n  replicas: 1\n"
      "  selector: {{matchLabels: {{app: llm}}}}\n  template:\n    metadata: {{labels: {{app: llm}}}}\n    spec:\n"
      "      containers:\n      - name: router\n        image: {}\n        command: {}\n",
      router_image(asked), yaml_list(router_words(asked.style, line)));
}

}  // namespace

std::string config_map(const PoolLaunch& pool) {
  if (pool.lines.front().options.empty()) return "";
  return fmt::format(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}-options}}\ndata:\n  options.yaml: |\n{}---\n",
      pool_name(pool), indented(pool.lines.front().options, 4));
}

std::string pod_spec(const Question& asked, const PoolLaunch& pool, std::string_view container,
                     const std::vector<std::string>& words, bool answers) {
  std::string text = "containers:\n" + server_container(asked, pool, container, words, answers);
  text += "volumes:\n- {name: memory, emptyDir: {medium: Memory}}\n";
  if (!pool.lines.front().options.empty()) {
    text += fmt::format("- {{name: options, configMap: {{name: {}-options}}}}\n", pool_name(pool));
  }
  if (spans_hosts_of_a_rack(asked, pool)) {
    text += "resourceClaims: [{name: nvlink, resourceClaimTemplateName: llm-nvlink}]\n";
  }
  return text;
}

std::string kubernetes(const Question& asked) {
  refuse_pools_of_tensorrt(asked, "A Kubernetes file");
  refuse_unknown_images(asked, "A Kubernetes file");
  std::string text = header(asked, "kubectl apply -f FILE; requests go to service llm, port 8000") + secret_comment();
  if (asked.has_several_nodes()) {
    text +=
        "# Servers on several nodes need LeaderWorkerSet in the cluster (lws.sigs.k8s.io). It sets LWS_LEADER_ADDRESS "
        "to the address of a server's first node.\n";
  }
  const std::string domain = compute_domain(asked);
  if (!domain.empty()) text += "# The ComputeDomain needs NVIDIA's DRA driver for GPUs in the cluster.\n" + domain;
  for (const PoolLaunch& pool : asked.pools) {
    text += config_map(pool);
    text += pool.nodes > 1 ? servers_on_several_nodes(asked, pool) : servers_on_single_nodes(asked, pool);
    text += "---\n";
    if (pool.role.empty()) return text + service("llm", "llm", false);
    if (pool.nodes == 1) text += service(pool_name(pool), pool_name(pool), true) + "---\n";
  }
  return text + router_of_pools(asked) + "---\n" + service("llm", "llm", false);
}

}  // namespace foretoken::launch_file
