#include "compose/profile/chakra_writer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "compose/profile/kernel_class.h"
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
      add_launch(kernel);
      add_kernel(kernel);
    }
    nodes_[0] = chakra_group_node(0, groups_);
    return {.trace = {.nodes = std::move(nodes_)}, .kernel_nodes = std::move(node_of_), .notes = notes()};
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
      std::optional<size_t> other = kernel.message ? caller_of(i) : message_before(i, could_start);
      if (!other && !kernel.message) other = kernel_before(i, could_start);
      if (other) waits_[i].push_back(*other);
      if (other) waits_for_streams_ += step_.kernels[*other].stream == kernel.stream ? 0 : 1;
      last_of_stream[kernel.stream] = i;
      of_stream_[kernel.stream].push_back(i);
    }
  }

  // The kernel of another stream, launched before kernel `i`, that ended last after `could_start` and not after kernel
  // `i` started. Times as short as those of a launch show nothing.
  std::optional<size_t> kernel_before(size_t i, double could_start) const {
    const ProfiledKernel& kernel = step_.kernels[i];
    if (kernel.start_us - could_start < least_wait_us) return std::nullopt;
    std::optional<size_t> latest;
    for (const auto& [stream, kernels] : of_stream_) {
      if (stream == kernel.stream) continue;
      // Those of a stream end in their order.
      auto one = kernels.rbegin();
      while (one != kernels.rend() && end_of(step_.kernels[*one]) > kernel.start_us) ++one;
      if (one == kernels.rend()) continue;
      const ProfiledKernel& other = step_.kernels[*one];
      const bool fits = end_of(other) > could_start && moment(other) <= moment(kernel);
      if (fits && (!latest || end_of(other) > end_of(step_.kernels[*latest]))) latest = *one;
    }
    return latest;
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
  void add_launch(size_t index) {
    const ProfiledKernel& kernel = step_.kernels[index];
    if (!kernel.launched_us || (launch_ != 0 && *kernel.launched_us == launched_us_)) return;
    double before = launch_ == 0 ? begin_ : launched_us_;
    const std::optional<size_t> waited = kernel_waited_for(*kernel.launched_us);
    if (waited) before = end_of(step_.kernels[*waited]);
    const std::string name = kernel.call ? step_.operators[*kernel.call].name : "launch";
    ChakraNode& node = add(name, ChakraNodeType::compute, before, *kernel.launched_us - before);
    node.attributes.push_back(chakra_boolean("is_cpu_op", true));
    if (launch_ != 0) node.control_dependencies.push_back(launch_);
    if (waited) node.data_dependencies.push_back(node_of_[*waited]);
    launch_ = node.id;
    launched_us_ = *kernel.launched_us;
    launched_.clear();
  }

  // Of the last launch, where the host did nothing else until just before `now`.
  std::optional<size_t> kernel_waited_for(double now) {
    const double idle = now - launched_us_;
    if (launched_.empty() || idle < least_host_wait_us) return std::nullopt;
    const auto last = *std::max_element(launched_.begin(), launched_.end(), [&](size_t a, size_t b) {
      return end_of(step_.kernels[a]) < end_of(step_.kernels[b]);
    });
    const double end = end_of(step_.kernels[last]);
    if (end > now || end <= launched_us_ || now - end > idle * most_of_host_wait) return std::nullopt;
    ++host_waits_;
    return last;
  }

  void add_kernel(size_t index) {
    const ProfiledKernel& kernel = step_.kernels[index];
    if (kernel.name.find("nccl") != std::string::npos && !kernel.message && !kernel.copies) {
      throw InputError({.source = step_.source,
                        .path = fmt::format("kernel {} at {} us", printable(kernel.name), kernel.start_us),
                        .value = R"(no "Collective name")",
                        .expected = "a trace of PyTorch 2.2 or later, which records the sizes of collectives"});
    }
    std::vector<uint64_t> waited_nodes;
    double could_start = kernel.launched_us.value_or(begin_);
    bool waits_for_launch = kernel.launched_us.has_value();
    for (const size_t waited : waits_[index]) {
      if (node_of_[waited] == 0) continue;
      waited_nodes.push_back(node_of_[waited]);
      if (const double end = end_of(step_.kernels[waited]); end > could_start) {
        could_start = end;
        waits_for_launch = false;
      }
    }
    const uint64_t delay = add_delay(kernel, could_start, waits_for_launch, waited_nodes);
    ChakraNode& node = add(kernel.name, type_of(kernel), kernel.start_us, kernel.us);
    node_of_[index] = node.id;
    if (kernel.launched_us) {
      node.control_dependencies.push_back(launch_);
      launched_.push_back(index);
    }
    node.data_dependencies = std::move(waited_nodes);
    if (delay != 0) node.data_dependencies.push_back(delay);
    node.attributes.push_back(chakra_boolean("is_cpu_op", false));
    node.attributes.push_back(chakra_integer("stream", kernel.stream));
    if (kernel.message) describe(*kernel.message, node);
  }

  // From the moment the kernel could have started to the one it did; 0 = it started at once. Kernels of one stream have
  // a lane for these of their own.
  uint64_t add_delay(const ProfiledKernel& kernel, double could_start, bool waits_for_launch,
                     const std::vector<uint64_t>& waited_nodes) {
    const double delay = kernel.start_us - could_start;
    if (delay <= 0) return 0;
    delays_us_ += delay;
    ChakraNode& node = add(waits_for_launch ? "launch latency" : "gap", ChakraNodeType::compute, could_start, delay);
    node.attributes.push_back(chakra_boolean("is_cpu_op", true));
    const auto lane = delay_lanes_.try_emplace(kernel.stream, static_cast<int64_t>(delay_lanes_.size()) + 1).first;
    node.attributes.push_back(chakra_integer("tid", lane->second));
    if (kernel.launched_us) node.control_dependencies.push_back(launch_);
    node.data_dependencies = waited_nodes;
    return node.id;
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
                          .expected = "a trace that records the ranks that each rank sends to and receives from"});
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
    const auto communicates = [&](const ProfiledKernel& kernel) {
      const ProfiledOperator* call = kernel.call ? &step_.operators[*kernel.call] : nullptr;
      return kernel.message || classify_kernel(kernel, call).role == KernelRole::communicate;
    };
    const auto communicating =
        static_cast<size_t>(std::count_if(step_.kernels.begin(), step_.kernels.end(), communicates));
    std::vector<std::string> notes = {
        fmt::format("{}: {} kernels, {} of them for communication", step_.source, step_.kernels.size(), communicating)};
    if (communicating == 0) notes.emplace_back("no communication found: this rank is replayed on its own");
    if (communicating > messages_) {
      notes.push_back(
          fmt::format("the trace does not say how much {} of the {} communication kernels send: they are "
                      "replayed with the recorded time",
                      communicating - messages_, communicating));
    }
    if (of_stream_.size() > 1) {
      notes.push_back(fmt::format("{} streams; {} kernels waited for a kernel on another stream", of_stream_.size(),
                                  waits_for_streams_));
    }
    if (host_waits_ > 0) notes.push_back(fmt::format("the host waited {} times for a kernel", host_waits_));
    notes.push_back(
        fmt::format("launch latencies and gaps before kernels add up to {}", duration_text(delays_us_ * 1e-6)));
    return notes;
  }

  static constexpr size_t looks_back = 256;           // kernels
  static constexpr double least_wait_us = 5;          // of a kernel for another stream: longer than a launch
  static constexpr double least_host_wait_us = 1000;  // of a host: longer than its work between two launches
  static constexpr double most_of_host_wait = 0.1;    // of such a time the host needs to go on

  const ProfiledStep& step_;
  double begin_ = std::numeric_limits<double>::infinity();
  std::vector<std::vector<size_t>> waits_;
  std::map<int64_t, std::vector<size_t>> of_stream_;  // kernels by start
  std::map<int64_t, int64_t> delay_lanes_;            // by stream
  std::vector<size_t> launched_;                      // kernels of the last launch
  size_t waits_for_streams_ = 0, host_waits_ = 0;
  double delays_us_ = 0;
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
