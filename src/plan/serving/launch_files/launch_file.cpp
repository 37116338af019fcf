#include "plan/serving/launch_files/launch_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/replace.h"
#include "base/text.h"
#include "compose/engine_release.h"

namespace foretoken::launch_file {

const EnginePool& Question::pool(const PoolLaunch& launch) const {
  return launch.role == "decode" ? *layout.decode : layout.pool;
}

const HardwareChoice& Question::hardware(const PoolLaunch& launch) const {
  return question.hardware_of(pool(launch).engine.device);
}

const LaunchPlatform& Question::platform(const PoolLaunch& launch) const {
  return launch_platform(hardware(launch).device);
}

std::string Question::image(const PoolLaunch& launch) const {
  return platform(launch).image(style, pool(launch).engine.engine);
}

bool Question::has_several_nodes() const {
  return std::any_of(pools.begin(), pools.end(), [](const PoolLaunch& one) { return one.nodes > 1; });
}

void refuse(const std::string& why, const std::string& instead) {
  throw InputError({.field = "launch", .value = why, .expected = instead});
}

void refuse_pools_of_tensorrt(const Question& asked, std::string_view file) {
  if (asked.style != LaunchStyle::trtllm || !asked.layout.decode) return;
  refuse(fmt::format("{} cannot describe separate prefill and decode pools of TensorRT-LLM.", file),
         "Add {no_disaggregate} to plan without separate pools, or start the lines above.");
}

void refuse_other_than_nvidia(const Question& asked, std::string_view file) {
  for (const PoolLaunch& pool : asked.pools) {
    const LaunchPlatform& platform = asked.platform(pool);
    if (platform.takes_nvidia_files) continue;
    const bool in_kubernetes = !platform.kubernetes_resource.empty();
    refuse(fmt::format("{} is written for NVIDIA GPUs only, not for {}.", file, platform.title),
           in_kubernetes ? "Use {launch} kubernetes." : "Run the command lines above instead.");
  }
}

void refuse_unknown_images(const Question& asked, std::string_view file) {
  for (const PoolLaunch& pool : asked.pools) {
    const LaunchPlatform& platform = asked.platform(pool);
    if (!platform.kubernetes_resource.empty() && !asked.image(pool).empty()) continue;
    refuse(fmt::format("{} needs an image, and no public image of {} for {} is known.", file,
                       asked.pool(pool).engine.engine, platform.title),
           "Run the command lines above instead.");
  }
}

std::string yaml_text(std::string_view text) {
  return Json(std::string(text)).dump(0);
}

std::string yaml_list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + yaml_text(word);
  return "[" + text + "]";
}

std::string indented(std::string_view text, size_t spaces) {
  std::string result;
  for (const std::string_view line : split(text, "\n")) {
    if (!line.empty()) result.append(spaces, ' ').append(line).append("\n");
  }
  return result;
}

std::string header(const Question& asked, std::string_view use) {
  std::string text = fmt::format("# {} on {}; {}\n", layout_text(asked.layout), devices_text(asked.layout), use);
  text += "# Set the tags of images to the versions that you tested.\n";
  // Dynamo's, llm-d's and AMD's images have tags that do not name it.
  const std::optional<EngineRelease> release = engine_release(asked.layout.pool.engine.engine);
  if (release) text += fmt::format("# This plan was simulated for {}.\n", release_title(*release));
  if (asked.question.has_conversations && (asked.pools.size() > 1 || asked.pools.front().servers > 1)) {
    text +=
        "# All requests of a conversation must reach the same server, which has its KV cache: use session affinity.\n";
  }
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

bool spans_hosts_of_a_rack(const Question& asked, const PoolLaunch& pool) {
  const HardwareChoice& hardware = asked.hardware(pool);
  return pool.nodes > 1 && hardware.host_devices() < hardware.node_devices;
}

std::string rack_comment(const Question& asked) {
  const bool spans_hosts = std::any_of(asked.pools.begin(), asked.pools.end(),
                                       [&](const PoolLaunch& pool) { return spans_hosts_of_a_rack(asked, pool); });
  if (!spans_hosts) return "";
  return "# GPUs of several hosts of a rack need a ComputeDomain of NVIDIA's DRA driver: add its resource claim to the "
         "pods.\n";
}

std::string secret_comment() {
  return "# For gated models: kubectl create secret generic hf-token --from-literal=HF_TOKEN=YOUR_TOKEN\n";
}

std::string token_variable() {
  return "- {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf-token, key: HF_TOKEN, optional: true}}}\n";
}

std::string side_channel_variable(const Question& asked, const PoolLaunch& pool) {
  if (asked.style != LaunchStyle::vllm || pool.role.empty()) return "";
  return "- {name: VLLM_NIXL_SIDE_CHANNEL_HOST, valueFrom: {fieldRef: {fieldPath: status.podIP}}}\n";
}

std::string pool_name(const PoolLaunch& pool) {
  return pool.role.empty() ? "llm" : "llm-" + pool.role;
}

std::vector<std::string> container_words(const LaunchCommand& command, LaunchStyle style) {
  std::string line = command.line;
  replace_all(line, "options.yaml", std::string(options_folder) + "options.yaml");
  std::vector<std::string> words = shell_words(line).value();
  if (style != LaunchStyle::vllm) words.insert(words.end(), {"--host", "0.0.0.0"});
  words.insert(words.end(), {"--port", served_port});
  return words;
}

std::vector<std::string> without_flags(std::vector<std::string> words, const std::vector<std::string_view>& flags) {
  for (const std::string_view flag : flags) {
    const auto found = std::find(words.begin(), words.end(), flag);
    if (found != words.end()) words.erase(found, found + 2);
  }
  return words;
}

std::string node_line(const std::vector<std::string>& words, bool is_first) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  replace_all(line, first_launch_host, "$LWS_LEADER_ADDRESS");
  if (is_first) return line;
  replace_all(line, "--node-rank 1", "--node-rank $LWS_WORKER_INDEX");
  const std::string_view flag = "--data-parallel-start-rank ";
  if (const size_t place = line.find(flag); place != std::string::npos) {
    const size_t begin = place + flag.size(), end = line.find(' ', begin);
    line.replace(begin, end - begin, fmt::format("$(($LWS_WORKER_INDEX * {}))", line.substr(begin, end - begin)));
  }
  return line;
}

std::string router_image(const Question& asked) {
  return asked.style == LaunchStyle::vllm ? "python:3.12-slim" : asked.image(asked.pools.front());
}

std::vector<std::string> router_words(LaunchStyle style, const std::string& line) {
  if (style == LaunchStyle::vllm) return {"sh", "-c", "pip install vllm-router && exec " + line + " --host 0.0.0.0"};
  std::vector<std::string> words = shell_words(line).value();
  words.insert(words.end(), {"--host", "0.0.0.0"});
  return words;
}

}  // namespace foretoken::launch_file
