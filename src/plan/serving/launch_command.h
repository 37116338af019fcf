// A layout as the lines that start it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/serving/serving_question.h"

namespace foretoken {

struct LaunchCommand {
  int64_t count = 1;    // servers that are started so, each on devices and, on one host, a port of its own
  int64_t hosts = 1;    // that repeat the line, one server each; 1 = the line does not name devices and ports of a host
  std::string role;     // "prefill", "decode", "router"; empty where one pool does all
  std::string line;     // flags as of vLLM 0.19, SGLang 0.5, TensorRT-LLM 1.2
  std::string note;     // what the line cannot say; empty = nothing
  std::string options;  // lines of the file options.yaml that the line names; empty = it names none
  bool is_of_further_host = false;  // of the servers of the line before, which it starts no more of
  bool has_placeholder = false;     // for a checkpoint that the user has to find, as the note says
};

// Where on hosts that others use too the first server goes.
struct HostPlace {
  int64_t first_device = 0;    // counted over all hosts
  int64_t router_port = 8000;  // servers have those behind it
};

// Servers that share one node, and are few, have a line each with their devices and port; then comes the router in
// front of them. `max_model_len` as planned_model_len() gives it. `shared`: nothing = they have the host for
// themselves.
std::vector<LaunchCommand> launch_commands(const ServingQuestion& question, const ServingLayout& layout,
                                           int64_t max_model_len, const std::optional<HostPlace>& shared = {});

// One pool as it is started on hosts of its own.
struct PoolLaunch {
  std::string role;                  // "prefill", "decode"; empty where one pool does all
  int64_t servers = 1;               // all alike
  int64_t nodes = 1;                 // of each server
  int64_t devices = 1;               // of each server on each of its nodes
  std::vector<LaunchCommand> lines;  // of one server: one for each node, or one that is for the first node
};
std::vector<PoolLaunch> pool_launches(const ServingQuestion& question, const ServingLayout& layout,
                                      int64_t max_model_len);

inline constexpr const char* first_launch_host = "FIRST-HOST";  // in lines of servers on several nodes

// The line of the router in front of pools, in the words of their engine. TensorRT-LLM's reads a file.
std::string pool_router_line(const std::string& engine, const std::vector<std::string>& prefill_hosts,
                             const std::vector<std::string>& decode_hosts, bool has_conversations);
// Flags of the router by which all requests of a conversation reach the same server; empty where its users see to it.
std::string_view policy_of_conversations(LaunchStyle style);

}  // namespace foretoken
