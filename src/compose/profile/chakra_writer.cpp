#include "compose/profile/chakra_writer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "network/chakra/collectives.h"
#include "network/chakra/groups.h"

namespace foretoken {
namespace {

class ProfileTracer {
 public:
  explicit ProfileTracer(const ProfiledStep& step) : step_(step) {
    for (const ProfiledKernel& kernel : step.kernels) begin_ = std::min(begin_, moment(kernel));
  }

  ImportedChakra trace() {
    find_waits();
    nodes_.emplace_back();  // node 0 lists the groups, which are known at the end
    std::vector<size_t> order(step_.kernels.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return moment(step_.kernels[a]) < moment(step_.kernels[b]); });
    node_of_.assign(step_.kernels.size(), 0);
    for (const size_t kernel : order) {
      add_launch(step_.kernels[kernel]);
      add_kernel(kernel);
    }
    nodes_[0] = chakra_group_node(0, groups_);
    return {.trace = {.nodes = std::move(nodes_)}, .notes = notes()};
  }

 private:
  static double moment(const ProfiledKernel& kernel) { return kernel.launched_us.value_or(kernel.start_us); }
  static double end_of(const ProfiledKernel& kernel) { return kernel.start_us + kernel.us; }

  // For each kernel the kernels it waits for: all of them start before it.
  void find_waits() {
    waits_.resize(step_.kernels.size());
    std::map<int64_t, size_t> last_of_stream;
    for (size_t i = 0; i < step_.kernels.size(); ++i) {
      const ProfiledKernel& kernel = step_.kernels[i];
      const auto before = last_of_stream.find(kernel.stream);
      double could_start = kernel.launched_us.value_or(begin_);
      if (before != last_of_stream.end()) {
        waits_[i].push_back(before->second);
        could_start = std::max(could_start, end_of(step_.kernels[before->second]));
      }
      const std::optional<size_t> other = kernel.message ? caller_of(i) : message_before(i, could_start);
      if (other) waits_[i].push_back(*other);
      last_of_stream[kernel.stream] = i;
    }
  }

  // The last kernel without a message that was launched before kernel `i` and had ended when it started.
  std::optional<size_t> caller_of(size_t i) const {
    std::optional<size_t> latest;
    for (size_t k = i; k-- > 0 && i - k < looks_back;) {
      const ProfiledKernel& other = step_.kernels[k];
      const bool fits =
          !other.message && moment(other) <= moment(step_.kernels[i]) && end_of(other) <= step_.kernels[i].start_us;
      if (fits && (!latest || moment(other) > moment(step_.kernels[*latest]))) latest = k;
    }
    return latest;
  }

  // The last communication kernel that ended after `could_start` and not after kernel `i` started.
  std::optional<size_t> message_before(size_t i, double could_start) const {
    std::optional<size_t> latest;
    for (size_t k = i; k-- > 0 && i - k < looks_back;) {
      const ProfiledKernel& other = step_.kernels[k];
      const bool fits = other.message && other.stream != step_.kernels[i].stream && end_of(other) > could_start &&
                        end_of(other) <= step_.kernels[i].start_us;
      if (fits && (!latest || end_of(other) > end_of(step_.kernels[*latest]))) latest = k;
    }
    return latest;
  }

  ChakraNode& add(std::string name, ChakraNodeType type, double start_us, double us) {
    ChakraNode& node = nodes_.emplace_back();
    node.id = nodes_.size() - 1;
    node.name = std::move(name);
    node.type = type;
    node.start_time_micros = static_cast<uint64_t>(std::llround(start_us - begin_));
    node.duration_micros = static_cast<uint64_t>(std::llround(us));
    node.attributes.push_back(chakra_number(std::string(fine_duration_attribute), us));
    return node;
  }

  // The host's time from the launch before to this one; kernels of a graph share one launch.
  void add_launch(const ProfiledKernel& kernel) {
    if (!kernel.launched_us || (launch_ != 0 && *kernel.launched_us == launched_us_)) return;
    const double before = launch_ == 0 ? begin_ : launched_us_;
    const std::string name = kernel.call ? step_.operators[*kernel.call].name : "launch";
    ChakraNode& node = add(name, ChakraNodeType::compute, before, *kernel.launched_us - before);
    node.attributes.push_back(chakra_boolean("is_cpu_op", true));
    if (launch_ != 0) node.control_dependencies.push_back(launch_);
    launch_ = node.id;
    launched_us_ = *kernel.launched_us;
  }

  void add_kernel(size_t index) {
    const ProfiledKernel& kernel = step_.kernels[index];
    if (kernel.name.find("nccl") != std::string::npos && !kernel.message && !kernel.copies) {
      throw InputError({.source = step_.source,
                        .path = fmt::format("kernel {} at {} us", printable(kernel.name), kernel.start_us),
                        .value = R"(no "Collective name")",
                        .expected = "a trace of PyTorch 2.2 or later, which notes what collectives move"});
    }
    ChakraNode& node = add(kernel.name, type_of(kernel), kernel.start_us, kernel.us);
    node_of_[index] = node.id;
    if (kernel.launched_us) node.control_dependencies.push_back(launch_);
    for (const size_t waited : waits_[index]) {
      if (node_of_[waited] != 0) node.data_dependencies.push_back(node_of_[waited]);
    }
    node.attributes.push_back(chakra_boolean("is_cpu_op", false));
    node.attributes.push_back(chakra_integer("stream", kernel.stream));
    if (kernel.message) describe(*kernel.message, node);
  }

  static ChakraNodeType type_of(const ProfiledKernel& kernel) {
    if (!kernel.message) return ChakraNodeType::compute;
    if (kernel.message->kind != CollectiveKind::send_recv) return ChakraNodeType::collective;
    return kernel.message->sends ? ChakraNodeType::send : ChakraNodeType::receive;
  }

  void describe(const ProfiledMessage& message, ChakraNode& node) {
    ++messages_;
    node.attributes.push_back(chakra_unsigned("comm_size", static_cast<uint64_t>(message.bytes)));
    if (message.kind == CollectiveKind::send_recv) {
      if (!message.peer) {
        throw InputError({.source = step_.source,
                          .path = fmt::format("kernel {}", printable(node.name)),
                          .value = R"(no "Dst Rank" or "Src Rank")",
                          .expected = "a trace that says whom a rank sends to or receives from"});
      }
      node.attributes.push_back(
          chakra_unsigned(message.sends ? "comm_dst" : "comm_src", static_cast<uint64_t>(*message.peer)));
      return;
    }
    node.attributes.push_back(chakra_integer("comm_type", static_cast<int64_t>(chakra_collective(message.kind))));
    const bool is_everyone = message.group_size > 0 && message.group_size == step_.ranks;
    if (message.group.empty() || is_everyone) return;  // all ranks
    node.attributes.push_back(chakra_text("pg_name", message.group));
    if (!message.ranks.empty()) groups_[message.group] = message.ranks;
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes = {
        fmt::format("{}: {} kernels, {} of them communicate", step_.source, step_.kernels.size(), messages_)};
    if (messages_ == 0) notes.emplace_back("no communication found: replays as a rank of its own");
    return notes;
  }

  static constexpr size_t looks_back = 256;  // kernels

  const ProfiledStep& step_;
  double begin_ = std::numeric_limits<double>::infinity();
  std::vector<std::vector<size_t>> waits_;
  std::vector<uint64_t> node_of_;  // by kernel; 0 = none yet
  std::vector<ChakraNode> nodes_;
  NamedGroups groups_;
  uint64_t launch_ = 0;  // the last launch's node
  double launched_us_ = 0;
  size_t messages_ = 0;
};

}  // namespace

ImportedChakra chakra_from_profile(const ProfiledStep& step) {
  return ProfileTracer(step).trace();
}

}  // namespace foretoken
