#include "network/replay/chakra_workload.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/range.h"
#include "base/text.h"
#include "network/calibration/stack_collectives.h"
#include "network/chakra/collectives.h"
#include "network/chakra/groups.h"
#include "network/replay/group_table.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

// One more than the highest rank that has a file.
int64_t count_ranks(const std::string& prefix) {
  const fs::path whole(prefix);
  const fs::path folder = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
  const std::string start = whole.filename().string() + ".";
  std::error_code error;
  int64_t ranks = 0;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(start) || !name.ends_with(".et") || name.size() <= start.size() + 3) continue;
    const std::string number = name.substr(start.size(), name.size() - start.size() - 3);
    if (number.find_first_not_of("0123456789") != std::string::npos || number.size() > 9) continue;
    ranks = std::max(ranks, parse_integer(number).value_or(-1) + 1);
  }
  if (ranks == 0) {
    throw InputError(
        {.source = prefix,
         .value = "no traces",
         .expected = fmt::format("the start of names of Chakra files: {} and so on", chakra_path(prefix, 0).string())});
  }
  return ranks;
}

// The attributes that a replay asks for, found in one pass over a node's.
struct Attributes {
  const ChakraAttribute *is_cpu_op = nullptr, *num_ops = nullptr, *tensor_size = nullptr, *comm_type = nullptr,
                        *comm_size = nullptr, *comm_src = nullptr, *comm_dst = nullptr, *comm_tag = nullptr,
                        *pg_name = nullptr, *involved_dim = nullptr, *root = nullptr, *stream = nullptr, *tid = nullptr,
                        *kernel = nullptr, *fine_duration = nullptr;

  explicit Attributes(const ChakraNode& node) {
    const std::pair<std::string_view, const ChakraAttribute**> wanted[] = {{"is_cpu_op", &is_cpu_op},
                                                                           {"num_ops", &num_ops},
                                                                           {"tensor_size", &tensor_size},
                                                                           {"comm_type", &comm_type},
                                                                           {"comm_size", &comm_size},
                                                                           {"comm_src", &comm_src},
                                                                           {"comm_dst", &comm_dst},
                                                                           {"comm_tag", &comm_tag},
                                                                           {"pg_name", &pg_name},
                                                                           {"involved_dim", &involved_dim},
                                                                           {"root", &root},
                                                                           {"stream", &stream},
                                                                           {"tid", &tid},
                                                                           {kernel_attribute, &kernel},
                                                                           {fine_duration_attribute, &fine_duration}};
    for (const ChakraAttribute& attribute : node.attributes) {
      for (const auto& [name, target] : wanted) {
        if (attribute.name == name) *target = &attribute;
      }
    }
  }
};

class WorkloadReader {
 public:
  WorkloadReader(const std::function<ChakraReader(int64_t rank)>& open, const ChakraReplayOptions& options)
      : open_(open), options_(options), groups_(options.ranks) {
    double product = 1;
    for (const int64_t size : options.dimensions) product *= static_cast<double>(size);
    if (!options.dimensions.empty() && product != static_cast<double>(groups_.rank_count())) {
      throw InputError({.field = "dims",
                        .value = fmt::format("{} ranks in all", number_text(product)),
                        .expected = fmt::format("{}, as many as there are traces", groups_.rank_count())});
    }
    if (options.group_file) file_groups_ = read_group_file(*options.group_file, groups_.rank_count());
  }

  ReplayWorkload read() {
    for (rank_ = 0; rank_ < groups_.rank_count(); ++rank_) read_rank();
    workload_.groups = groups_.take();
    return std::move(workload_);
  }

 private:
  void read_rank() {
    ChakraReader reader = open_(rank_);
    source_ = &reader.source();
    trace_groups_.clear();
    seats_.clear();
    RankGraph graph(reader.source());
    ChakraNode node;
    while (reader.next(node)) {
      graph.add(convert(node, graph));
      graph.wait_for(node.control_dependencies);
      graph.wait_for(node.data_dependencies);
    }
    workload_.ranks.push_back(std::move(graph).program());
  }

  [[noreturn]] void refuse(const ChakraNode& node, std::string_view attribute, std::string value, std::string expected,
                           std::string suggestion = "") const {
    throw InputError({.source = *source_,
                      .path = fmt::format("node {} ({}){}{}", node.id, printable(node.name),
                                          attribute.empty() ? "" : ", attribute ", attribute),
                      .value = std::move(value),
                      .expected = std::move(expected),
                      .suggestion = std::move(suggestion)});
  }

  int64_t integer(const ChakraNode& node, const ChakraAttribute* attribute, std::string_view name,
                  Range<int64_t> allowed, std::optional<int64_t> otherwise = std::nullopt) const {
    if (attribute == nullptr) {
      if (otherwise) return *otherwise;
      refuse(node, name, "missing", range_text(allowed));
    }
    const std::optional<int64_t> value = integer_value(*attribute);
    if (!value || !allowed.holds(*value)) {
      refuse(node, name, value ? fmt::format("{}", *value) : "no whole number", range_text(allowed));
    }
    return *value;
  }

  double amount(const ChakraNode& node, const ChakraAttribute* attribute, std::string_view name) const {
    if (attribute == nullptr) return 0;
    const std::optional<double> value = number_value(*attribute);
    if (!value || *value < 0) refuse(node, name, value ? number_text(*value) : "no number", "a number of at least 0");
    return *value;
  }

  ReplayNode convert(const ChakraNode& node, RankGraph& graph) {
    const Attributes attributes(node);
    ReplayNode result{.id = node.id, .name = name_index(node.name)};
    switch (node.type) {
      case ChakraNodeType::compute: {
        const bool on_host = attributes.is_cpu_op != nullptr && integer_value(*attributes.is_cpu_op).value_or(0) != 0;
        result.kind = on_host ? ReplayKind::host : ReplayKind::compute;
        result.lane = graph.lane(result.kind, on_host ? lane_number(node, attributes.tid, "tid")
                                                      : lane_number(node, attributes.stream, "stream"));
        result.duration = on_host ? recorded(node, attributes) : kernel_time(node, attributes);
        break;
      }
      case ChakraNodeType::memory_load:
      case ChakraNodeType::memory_store:
        result.kind = ReplayKind::memory;
        result.lane = graph.lane(result.kind, 0);
        result.duration = memory_time(node, attributes);
        break;
      case ChakraNodeType::collective:
        convert_collective(node, attributes, result);
        break;
      case ChakraNodeType::send:
      case ChakraNodeType::receive:
        convert_message(node, attributes, result);
        break;
      case ChakraNodeType::metadata:
        if (node.inputs) remember_groups(node);
        break;
      default:
        break;
    }
    return result;
  }

  int64_t lane_number(const ChakraNode& node, const ChakraAttribute* attribute, std::string_view name) const {
    return integer(node, attribute, name, {}, 0);
  }

  Picoseconds recorded(const ChakraNode& node, const Attributes& attributes) const {
    const double us = attributes.fine_duration != nullptr
                          ? amount(node, attributes.fine_duration, fine_duration_attribute)
                          : static_cast<double>(node.duration_micros);
    return duration(node, microseconds(us));
  }

  // Also ten times as long, beside communication, must fit the clock.
  Picoseconds duration(const ChakraNode& node, Seconds time) const {
    constexpr Seconds longest(7.0 * 86400);
    if (time > longest)
      refuse(node, "", fmt::format("a duration of {} s", number_text(time.value())), "at most 7 days");
    return to_picoseconds(time);
  }

  Picoseconds kernel_time(const ChakraNode& node, const Attributes& attributes) const {
    const Flops work(amount(node, attributes.num_ops, "num_ops"));
    const Bytes moved(amount(node, attributes.tensor_size, "tensor_size"));
    const bool has_work = work.value() > 0 || moved.value() > 0;
    if (options_.roofline && has_work) {
      return duration(node, std::max(work / options_.roofline->peak, moved / options_.roofline->memory_bandwidth));
    }
    const Picoseconds time = recorded(node, attributes);
    if (time == 0 && has_work) {
      refuse(node, "", "work (num_ops, tensor_size) but no duration_micros",
             "a recorded duration, or {compute} predicted with {device}");
    }
    return time;
  }

  Picoseconds memory_time(const ChakraNode& node, const Attributes& attributes) const {
    const Bytes moved(amount(node, attributes.tensor_size, "tensor_size"));
    if (options_.roofline && moved.value() > 0 && options_.roofline->remote_bandwidth.value() > 0) {
      return duration(node, moved / options_.roofline->remote_bandwidth);
    }
    const Picoseconds time = recorded(node, attributes);
    if (time == 0 && moved.value() > 0) {
      refuse(node, "", "bytes (tensor_size) but no duration_micros",
             "a recorded duration, or {compute} predicted with a {device} whose host link is known");
    }
    return time;
  }

  void convert_collective(const ChakraNode& node, const Attributes& attributes, ReplayNode& result) {
    result.kind = ReplayKind::collective;
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    const int64_t type = integer(node, attributes.comm_type, "comm_type", {.least = 0, .most = most});
    const std::optional<CollectiveKind> kind = collective_kind(static_cast<ChakraCollective>(type));
    if (!kind) refuse(node, "comm_type", fmt::format("{}", type), "a CollectiveCommType from 0 to 9");
    result.collective = *kind;
    result.group = group_of(node, attributes);
    const std::optional<int64_t> none = *kind == CollectiveKind::barrier ? std::optional<int64_t>(0) : std::nullopt;
    const auto bytes = static_cast<double>(integer(node, attributes.comm_size, "comm_size", {.least = 0}, none));
    result.bytes = collective_bytes(*kind, bytes, static_cast<int64_t>(groups_.size_of(result.group)));
    result.root = root_of(node, attributes, *kind);
    if (attributes.kernel != nullptr) {
      const std::string name = text_value(*attributes.kernel).value_or("");
      const auto found = std::find(std::begin(engine_kernels), std::end(engine_kernels), name);
      // Of another program: its collective is the library's.
      if (found != std::end(engine_kernels)) result.kernel = static_cast<int8_t>(found - std::begin(engine_kernels));
    }
  }

  // Chakra's schema has no name of its own for it: `root`, or the end of the messages that all share, as in sends.
  int32_t root_of(const ChakraNode& node, const Attributes& attributes, CollectiveKind kind) const {
    const bool gives = kind == CollectiveKind::broadcast || kind == CollectiveKind::scatter;
    const bool takes = kind == CollectiveKind::reduce || kind == CollectiveKind::gather;
    if (!gives && !takes) return -1;
    const Range<int64_t> ranks{.least = 0, .most = groups_.rank_count() - 1};
    const bool named = attributes.root != nullptr;
    const ChakraAttribute* attribute = named ? attributes.root : gives ? attributes.comm_src : attributes.comm_dst;
    const std::string_view name = named ? "root" : gives ? "comm_src" : "comm_dst";
    if (attribute == nullptr) return -1;
    return static_cast<int32_t>(integer(node, attribute, name, ranks));
  }

  void convert_message(const ChakraNode& node, const Attributes& attributes, ReplayNode& result) const {
    const bool sends = node.type == ChakraNodeType::send;
    result.kind = sends ? ReplayKind::send : ReplayKind::receive;
    const Range<int64_t> ranks{.least = 0, .most = groups_.rank_count() - 1};
    const int64_t from =
        integer(node, attributes.comm_src, "comm_src", ranks, sends ? std::optional(rank_) : std::nullopt);
    const int64_t to =
        integer(node, attributes.comm_dst, "comm_dst", ranks, sends ? std::nullopt : std::optional(rank_));
    if ((sends ? from : to) != rank_) {
      refuse(node, sends ? "comm_src" : "comm_dst", fmt::format("{}", sends ? from : to),
             fmt::format("{}, the rank of this trace", rank_));
    }
    result.peer = static_cast<int32_t>(sends ? to : from);
    result.tag = integer(node, attributes.comm_tag, "comm_tag", {}, 0);
    result.bytes = static_cast<double>(integer(node, attributes.comm_size, "comm_size", {.least = 0}));
  }

  void remember_groups(const ChakraNode& node) {
    NamedGroups found;
    try {
      found = groups_in_metadata(node.inputs->values, groups_.rank_count());
    } catch (const InputError& error) {
      refuse(node, "", fmt::format("{} {}", error.problem().path, error.problem().value),
             fmt::format("process groups of ranks 0 to {}", groups_.rank_count() - 1));
    }
    for (auto& [name, ranks] : found) trace_groups_[name] = std::move(ranks);
  }

  int32_t group_of(const ChakraNode& node, const Attributes& attributes) {
    if (attributes.pg_name != nullptr) {
      const std::optional<std::string> name = text_value(*attributes.pg_name);
      if (!name) refuse(node, "pg_name", "no text", "the name of a process group");
      if (!name->empty()) return named_group(node, *name);
    }
    if (attributes.involved_dim != nullptr) {
      const auto* chosen = std::get_if<std::vector<bool>>(&attributes.involved_dim->value);
      if (chosen == nullptr) refuse(node, "involved_dim", "no list of booleans", "a bool_list, one for each dimension");
      const bool every = std::find(chosen->begin(), chosen->end(), false) == chosen->end();
      if (every) return groups_.all();
      if (options_.dimensions.empty()) {
        refuse(node, "involved_dim", "some dimensions only", "{dims}, the size of each dimension");
      }
      return groups_.along(options_.dimensions, *chosen, rank_);
    }
    return groups_.all();
  }

  int32_t named_group(const ChakraNode& node, const std::string& name) {
    const auto seat = seats_.find(name);
    if (seat != seats_.end()) return seat->second;
    const NamedGroups& known = file_groups_.contains(name) ? file_groups_ : trace_groups_;
    const auto found = known.find(name);
    if (found == known.end()) {
      std::vector<std::string> names;
      for (const auto& [other, ranks] : file_groups_) names.push_back(other);
      for (const auto& [other, ranks] : trace_groups_) names.push_back(other);
      refuse(node, "pg_name", printable(name), "a process group whose ranks the trace's metadata or {comm_group} lists",
             nearest_name(name, names).value_or(""));
    }
    return seats_[name] = groups_.group(name, found->second);
  }

  uint32_t name_index(const std::string& name) {
    const auto [place, is_new] = name_indices_.try_emplace(name, static_cast<uint32_t>(workload_.names.size()));
    if (is_new) workload_.names.push_back(name);
    return place->second;
  }

  const std::function<ChakraReader(int64_t rank)>& open_;
  const ChakraReplayOptions& options_;
  GroupTable groups_;
  NamedGroups file_groups_;
  NamedGroups trace_groups_;              // of the rank at hand
  std::map<std::string, int32_t> seats_;  // of the rank at hand: groups by name
  std::unordered_map<std::string, uint32_t> name_indices_;
  const std::string* source_ = nullptr;
  int64_t rank_ = 0;
  ReplayWorkload workload_;
};

}  // namespace

ComputeRoofline compute_roofline(const Device& device, DType math) {
  const std::optional<FlopsPerSecond> peak = device.peak_or_fallback(math);
  if (!peak || !device.memory_bandwidth) {
    throw InputError({.source = "device " + device.name,
                      .path = peak ? "memory bandwidth" : fmt::format("{} peak", dtype_name(math)),
                      .value = "unknown",
                      .expected = "a device whose file gives peak and memory bandwidth"});
  }
  return {.peak = *peak,
          .memory_bandwidth = device.memory_bandwidth->value,
          .remote_bandwidth = device.host_bandwidth ? device.host_bandwidth->value : BytesPerSecond(0)};
}

ReplayWorkload chakra_workload(const std::function<ChakraReader(int64_t rank)>& open,
                               const ChakraReplayOptions& options) {
  return WorkloadReader(open, options).read();
}

ReplayWorkload read_chakra_workload(const std::string& prefix, const ChakraReplayOptions& options) {
  ChakraReplayOptions counted = options;
  if (counted.ranks == 0) counted.ranks = count_ranks(prefix);
  const auto open = [&](int64_t rank) {
    const fs::path path = chakra_path(prefix, rank);
    if (!fs::exists(path)) {
      throw InputError({.source = path.string(),
                        .value = "no such file",
                        .expected = fmt::format("a trace for each rank from 0 to {}", counted.ranks - 1)});
    }
    return ChakraReader::open(path);
  };
  return chakra_workload(open, counted);
}

}  // namespace foretoken
