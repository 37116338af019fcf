#include "compose/profile/chakra_step.h"

#include <functional>
#include <map>
#include <queue>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "network/chakra/collectives.h"
#include "network/chakra/groups.h"

namespace foretoken {
namespace {

std::optional<int64_t> integer_of(const ChakraNode& node, std::string_view name) {
  const ChakraAttribute* attribute = node.find(name);
  return attribute == nullptr ? std::nullopt : integer_value(*attribute);
}

double microseconds_of(const ChakraNode& node) {
  const ChakraAttribute* fine = node.find(fine_duration_attribute);
  return fine == nullptr ? static_cast<double>(node.duration_micros)
                         : number_value(*fine).value_or(static_cast<double>(node.duration_micros));
}

bool is_message(const ChakraNode& node) {
  return node.type == ChakraNodeType::collective || node.type == ChakraNodeType::send ||
         node.type == ChakraNodeType::receive;
}

class ChakraStepReader {
 public:
  ChakraStepReader(const ChakraTrace& trace, const std::string& source, int64_t ranks)
      : trace_(trace), source_(source), ranks_(ranks) {}

  ChakraStep read() {
    result_.step.source = source_;
    for (const ChakraNode& node : trace_.nodes) {
      if (node.type != ChakraNodeType::metadata || !node.inputs) continue;
      const int64_t ranks = ranks_ > 0 ? ranks_ : most_job_ranks;
      for (auto& [name, members] : listed_groups_in_metadata(node.inputs->values, ranks)) {
        groups_[name] = std::move(members);
      }
    }
    for (const size_t index : order()) add(trace_.nodes[index]);
    if (result_.step.kernels.empty()) {
      throw InputError({.source = source_, .value = "no kernels", .expected = "a recorded trace of one rank"});
    }
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(const ChakraNode& node, std::string value, std::string expected) const {
    throw InputError({.source = source_,
                      .path = fmt::format("node {} ({})", node.id, printable(node.name)),
                      .value = std::move(value),
                      .expected = std::move(expected)});
  }

  // Every node behind those it waits for, else as they stand.
  std::vector<size_t> order() {
    std::unordered_map<uint64_t, size_t> place;
    for (size_t i = 0; i < trace_.nodes.size(); ++i) place[trace_.nodes[i].id] = i;
    std::vector<size_t> waits(trace_.nodes.size(), 0);
    std::vector<std::vector<size_t>> followers(trace_.nodes.size());
    for (size_t i = 0; i < trace_.nodes.size(); ++i) {
      for (const auto* list : {&trace_.nodes[i].control_dependencies, &trace_.nodes[i].data_dependencies}) {
        for (const uint64_t id : *list) {
          const auto found = place.find(id);
          if (found == place.end())
            refuse(trace_.nodes[i], fmt::format("waits for node {}", id), "a node of the trace");
          followers[found->second].push_back(i);
          ++waits[i];
        }
      }
    }
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t i = 0; i < waits.size(); ++i) {
      if (waits[i] == 0) ready.push(i);
    }
    std::vector<size_t> order;
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (const size_t next : followers[order.back()]) {
        if (--waits[next] == 0) ready.push(next);
      }
    }
    for (size_t i = 0; i < waits.size(); ++i) {
      if (waits[i] > 0) refuse(trace_.nodes[i], "waits for itself", "no cycle of nodes that wait for each other");
    }
    return order;
  }

  void add(const ChakraNode& original) {
    if (microseconds_of(original) < 0) {
      refuse(original, fmt::format("a duration of {} us", number_text(microseconds_of(original))), "0 or more");
    }
    std::vector<ChakraNode>& nodes = result_.graph.trace.nodes;
    ChakraNode& node = nodes.emplace_back(original);
    node.id = nodes.size() - 1;
    numbers_[original.id] = node.id;
    for (auto* list : {&node.control_dependencies, &node.data_dependencies}) {
      for (uint64_t& id : *list) id = numbers_.at(id);
    }
    node.duration_micros = 0;
    std::erase_if(node.attributes, [](const auto& one) { return one.name == fine_duration_attribute; });
    node.attributes.push_back(chakra_number(std::string(fine_duration_attribute), microseconds_of(original)));
    if (node.type == ChakraNodeType::metadata || integer_of(node, "is_cpu_op").value_or(0) != 0) return;
    add_kernel(original, node);
  }

  void add_kernel(const ChakraNode& original, ChakraNode& node) {
    ProfiledKernel kernel{.name = original.name, .us = microseconds_of(original)};
    kernel.stream = integer_of(original, "stream").value_or(0);
    if (is_message(original)) {
      kernel.message = message_of(original);
      if (kernel.us <= 0) {
        refuse(original, "no duration", "a recorded trace, because generated traces have no communication times");
      }
      // Groups run side by side, and beside kernels.
      if (original.find("stream") == nullptr) {
        const auto lane = lanes_.try_emplace(kernel.message->group, -1 - static_cast<int64_t>(lanes_.size())).first;
        kernel.stream = lane->second;
        node.attributes.push_back(chakra_integer("stream", kernel.stream));
      }
    }
    result_.graph.kernel_nodes.push_back(node.id);
    result_.step.kernels.push_back(std::move(kernel));
  }

  ProfiledMessage message_of(const ChakraNode& node) const {
    ProfiledMessage message;
    const ChakraAttribute* bytes = node.find("comm_size");
    message.bytes = bytes == nullptr ? 0 : number_value(*bytes).value_or(0);
    if (message.bytes < 0) refuse(node, fmt::format("comm_size {}", number_text(message.bytes)), "0 bytes or more");
    if (node.type != ChakraNodeType::collective) {
      message.kind = CollectiveKind::send_recv;
      message.sends = node.type == ChakraNodeType::send;
      message.peer = integer_of(node, message.sends ? "comm_dst" : "comm_src");
      return message;
    }
    const std::optional<int64_t> type = integer_of(node, "comm_type");
    const auto kind = type ? collective_kind(static_cast<ChakraCollective>(*type)) : std::optional<CollectiveKind>();
    if (!kind) refuse(node, "no known comm_type", "a collective of Chakra's schema");
    message.kind = *kind;
    message.group_size = ranks_;
    const ChakraAttribute* group = node.find("pg_name");
    if (group == nullptr) return message;
    message.group = text_value(*group).value_or("");
    // A group without a list is all ranks, however many there are.
    if (const auto found = groups_.find(message.group); found != groups_.end() && !found->second.empty()) {
      message.ranks = found->second;
      message.group_size = static_cast<int64_t>(message.ranks.size());
    }
    return message;
  }

  const ChakraTrace& trace_;
  const std::string& source_;
  const int64_t ranks_;
  NamedGroups groups_;
  std::unordered_map<uint64_t, uint64_t> numbers_;  // by id in the file
  std::map<std::string, int64_t> lanes_;            // of groups
  ChakraStep result_;
};

}  // namespace

ChakraStep chakra_step(const ChakraTrace& trace, const std::string& source, int64_t ranks) {
  return ChakraStepReader(trace, source, ranks).read();
}

ChakraStep read_chakra_step(const std::filesystem::path& file, int64_t ranks) {
  ChakraReader reader = ChakraReader::open(file);
  ChakraTrace trace{.metadata = reader.metadata()};
  for (ChakraNode node; reader.next(node);) trace.nodes.push_back(node);
  return chakra_step(trace, file.string(), ranks);
}

}  // namespace foretoken
