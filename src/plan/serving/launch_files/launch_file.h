// What the files that start a layout have in common. Each kind of file is one source file beside this one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/serving/launch_command.h"
#include "plan/serving/launch_platform.h"
#include "plan/serving/serving_question.h"

namespace foretoken::launch_file {

inline constexpr const char* served_port = "8000";
inline constexpr const char* options_folder = "/etc/foretoken/";

struct Question {
  const ServingQuestion& question;
  const ServingLayout& layout;
  std::vector<PoolLaunch> pools;
  LaunchStyle style;

  const EnginePool& pool(const PoolLaunch& launch) const;
  const HardwareChoice& hardware(const PoolLaunch& launch) const;
  const LaunchPlatform& platform(const PoolLaunch& launch) const;
  std::string image(const PoolLaunch& launch) const;  // empty = not known
  bool has_several_nodes() const;
};

// One function for each kind of file. InputError, as refuse() throws it, where the file cannot express the layout.
std::string kubernetes(const Question& asked);
std::string compose(const Question& asked);
std::string dynamo(const Question& asked);
std::string llm_d(const Question& asked);
std::string kserve(const Question& asked);

// Two sentences: what the file cannot express, and what to do about it.
[[noreturn]] void refuse(const std::string& why, const std::string& instead);
void refuse_pools_of_tensorrt(const Question& asked, std::string_view file);
void refuse_other_than_nvidia(const Question& asked, std::string_view file);
void refuse_unknown_images(const Question& asked, std::string_view file);

std::string yaml_text(std::string_view text);
std::string yaml_list(const std::vector<std::string>& words);
std::string indented(std::string_view text, size_t spaces);  // each line behind so many spaces

// Comments at the top: what the file starts, how it is used, and what to look at before.
std::string header(const Question& asked, std::string_view use);
// Hosts of a rack use NVLink between them only inside a ComputeDomain (NVIDIA's DRA driver for GPUs), which gives them
// memory that they share.
bool spans_hosts_of_a_rack(const Question& asked, const PoolLaunch& pool);
std::string rack_comment(const Question& asked);  // for files that leave the domain to the user
std::string secret_comment();                     // how the cluster's secret with the token for gated models is made
std::string token_variable();                     // an entry of `env` that reads it
// An entry of `env` by which vLLM's pools find the cache of a pod; empty where there are no pools.
std::string side_channel_variable(const Question& asked, const PoolLaunch& pool);

std::string pool_name(const PoolLaunch& pool);

// As a server in a container is started: reachable from outside, its options in a mounted file.
std::vector<std::string> container_words(const LaunchCommand& command, LaunchStyle style);
// Without the flags named, each of which has a value.
std::vector<std::string> without_flags(std::vector<std::string> words, const std::vector<std::string_view>& flags);
// A shell's line that starts one node of several, with the variables of LeaderWorkerSet: the address of the first node
// and the number of this one.
std::string node_line(const std::vector<std::string>& words, bool is_first);

// vLLM's router is not part of vLLM's image.
std::string router_image(const Question& asked);
std::vector<std::string> router_words(LaunchStyle style, const std::string& line);

// Parts of Kubernetes' files.
std::string config_map(const PoolLaunch& pool);  // a document and its end, or nothing
std::string pod_spec(const Question& asked, const PoolLaunch& pool, std::string_view container,
                     const std::vector<std::string>& words, bool answers);

}  // namespace foretoken::launch_file
