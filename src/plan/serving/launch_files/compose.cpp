// Docker Compose: one service for each server, on one host.
#include <fmt/format.h>

#include "plan/serving/launch_files/launch_file.h"

namespace foretoken::launch_file {
namespace {

std::string compose_server(const Question& asked, const PoolLaunch& pool, const std::string& name,
                           const std::vector<std::string>& device_ids) {
  std::string text = fmt::format("{}:\n  image: {}\n  entrypoint: {}\n  ipc: host\n", name, asked.image(pool),
                                 yaml_list(container_words(pool.lines.front(), asked.style)));
  text += "  environment:\n    HF_TOKEN: ${HF_TOKEN-}\n";
  if (asked.style == LaunchStyle::vllm && !pool.role.empty()) {
    text += fmt::format("    VLLM_NIXL_SIDE_CHANNEL_HOST: {}\n", name);
  }
  text += fmt::format("  labels: {{foretoken-device: {}}}\n", yaml_text(asked.pool(pool).engine.device));
  if (!pool.lines.front().options.empty()) {
    text += fmt::format("  configs: [{{source: options.yaml, target: {}options.yaml}}]\n", options_folder);
  }
  return text + fmt::format(
                    "  deploy: {{resources: {{reservations: {{devices: [{{driver: nvidia, device_ids: {}, "
                    "capabilities: [gpu]}}]}}}}}}\n",
                    yaml_list(device_ids));
}

std::string compose_router(const Question& asked, const std::vector<std::string>& prefill,
                           const std::vector<std::string>& decode) {
  if (asked.style == LaunchStyle::trtllm) {
    return "# This file has no load balancer: put one in front of port 8000 of each server.\n";
  }
  std::vector<std::string> all = prefill;
  all.insert(all.end(), decode.begin(), decode.end());
  std::string line;
  if (asked.layout.decode) {
    line = pool_router_line(asked.layout.pool.engine.engine, prefill, decode, asked.question.has_conversations);
  } else {
    line = asked.style == LaunchStyle::sglang ? "python -m sglang_router.launch_router --worker-urls"
                                              : "vllm-router --worker-urls";
    for (const std::string& name : all) line += fmt::format(" http://{}:{}", name, served_port);
    line += fmt::format(" --port {}", served_port);
    if (asked.question.has_conversations) line += policy_of_conversations(asked.style);
  }
  return fmt::format("router:\n  image: {0}\n  entrypoint: {1}\n  ports: [\"{2}:{2}\"]\n  depends_on: {3}\n",
                     router_image(asked), yaml_list(router_words(asked.style, line)), served_port, yaml_list(all));
}

}  // namespace

std::string compose(const Question& asked) {
  refuse_pools_of_tensorrt(asked, "A Docker Compose file");
  const int64_t host_devices = asked.hardware(asked.pools.front()).host_devices();
  if (asked.layout.is_mixed() || asked.layout.devices() > host_devices) {
    refuse(fmt::format("A Docker Compose file starts servers on one host of {} GPUs, not on {} GPUs.", host_devices,
                       asked.layout.devices()),
           "Use {launch} kubernetes, or offer fewer devices in {hardware}.");
  }
  refuse_other_than_nvidia(asked, "A Docker Compose file");
  std::string services, options;
  int64_t device = 0;
  std::vector<std::string> prefill, decode;
  const bool alone = asked.pools.size() == 1 && asked.pools.front().servers == 1;
  for (const PoolLaunch& pool : asked.pools) {
    if (!pool.lines.front().options.empty()) options = pool.lines.front().options;
    for (int64_t i = 0; i < pool.servers; ++i) {
      const std::string name = alone ? pool_name(pool) : fmt::format("{}-{}", pool_name(pool), i);
      (pool.role == "decode" ? decode : prefill).push_back(name);
      std::vector<std::string> ids;
      for (int64_t j = 0; j < pool.devices; ++j) ids.push_back(std::to_string(device++));
      services += compose_server(asked, pool, name, ids);
    }
  }
  services += alone ? fmt::format("  ports: [\"{0}:{0}\"]\n", served_port) : compose_router(asked, prefill, decode);
  std::string text = header(asked, "docker compose up; requests go to port 8000") +
                     "# Gated models read the token from the variable HF_TOKEN.\nservices:\n" + indented(services, 2);
  if (!options.empty()) text += "configs:\n  options.yaml:\n    content: |\n" + indented(options, 6);
  return text;
}

}  // namespace foretoken::launch_file
