#include "accelerator/formats/timeloop_architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "accelerator/problem.h"
#include "base/error.h"
#include "base/text.h"
#include "base/yaml_json.h"

namespace foretoken {
namespace {

constexpr int64_t most_instances = int64_t{1} << 31;
constexpr int default_word_bits = 16;  // Timeloop's

// Attributes that this reader uses, or that change nothing here.
constexpr std::array known_attributes = {"technology",
                                         "global_cycle_seconds",
                                         "datawidth",
                                         "word_bits",
                                         "word_width",
                                         "block_size",
                                         "n_words",
                                         "cluster_size",
                                         "width",
                                         "memory_width",
                                         "depth",
                                         "memory_depth",
                                         "entries",
                                         "sizeKB",
                                         "n_banks",
                                         "num_banks",
                                         "read_bandwidth",
                                         "write_bandwidth",
                                         "bandwidth",
                                         "shared_bandwidth",
                                         "meshX",
                                         "meshY",
                                         "instances",
                                         "multiplier_width",
                                         "adder_width",
                                         "multiple_buffering",
                                         "type",
                                         "data_storage_width",
                                         "data_storage_depth"};

// Known to Timeloop or to Accelergy's estimators, without a part in what is evaluated here.
constexpr std::array unused_attributes = {
    "n_ports",           "num_ports",     "n_rdwr_ports",          "n_rd_ports", "n_wr_ports",          "n_rw_ports",
    "update_fifo_depth", "latency",       "action_latency_cycles", "cacti_opt",  "num_pipeline_stages", "network_read",
    "network_fill",      "network_drain", "network_update"};

// Read as well, but not offered for names that are nearly the same: estimators have attributes like
// metadata_counter_width.
constexpr std::array metadata_attributes = {"metadata_datawidth", "metadata_word_bits", "metadata_storage_width",
                                            "metadata_width"};

// `PE[0..15]` is 16 of PE.
struct RangedName {
  std::string name;
  int64_t count = 1;
};

RangedName read_ranged_name(const JsonView& view) {
  const std::string text = view.string();
  const size_t open = text.find('[');
  RangedName ranged{.name = text.substr(0, open)};
  if (ranged.name.empty()) view.fail("a name");
  if (open == std::string::npos) return ranged;
  const size_t dots = text.find("..", open);
  if (dots != std::string::npos && text.back() == ']') {
    const auto first = parse_integer(std::string_view(text).substr(open + 1, dots - open - 1));
    const auto last = parse_integer(std::string_view(text).substr(dots + 2, text.size() - dots - 3));
    if (first && last && *first >= 0 && *last >= *first && *last < most_instances) {
      ranged.count = *last - *first + 1;
      return ranged;
    }
  }
  view.fail("a name with a range such as PE[0..15]");
}

bool class_contains(const std::string& name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return contains_ignoring_case(name, part); });
}

// What decides energies: the subclass where there is one, as the class may say no more than `storage`.
std::string component_class(const JsonView& component) {
  const auto subclass = component.find("subclass");
  return subclass && !subclass->is(Json::Kind::null) ? subclass->string() : component.at("class").string();
}

LevelKind level_kind(const JsonView& view) {
  const std::string name = view.string();
  if (class_contains(name, {"dummy"})) return LevelKind::network;
  if (class_contains(name, {"mac", "compute", "multiplier"})) return LevelKind::compute;
  if (class_contains(name, {"DRAM", "SRAM", "regfile", "buffer", "storage", "reg_file", "register", "memory", "_RF"})) {
    return LevelKind::storage;
  }
  view.fail("a class of storage (DRAM, SRAM, regfile, smartbuffer ...), dummy_storage or of multipliers (intmac ...)");
}

// What Timeloop's templates put where a value is still missing.
bool is_placeholder(const JsonView& view) {
  if (view.is_number()) return view.number() == -1;
  return view.is(Json::Kind::string) && lower_case(view.string()) == "set me";
}

// `32nm` or 32.
int technology_nm(const JsonView& view) {
  if (view.is_number()) return static_cast<int>(view.integer({.least = 1, .most = 1000}));
  const std::string text = lower_case(view.string());
  const auto number = parse_integer(std::string_view(text).substr(0, text.find("nm")));
  if (number && *number >= 1 && *number <= 1000) return static_cast<int>(*number);
  view.fail("a technology such as 32nm");
}

class ArchitectureBuilder {
 public:
  explicit ArchitectureBuilder(const JsonView& view) : view_(view) {}

  TimeloopArchitecture take(const std::string& name) {
    TimeloopArchitecture& own = result_;
    own.architecture.name = name;
    if (!compute_) view_.fail("a component that computes, such as one of class intmac");
    own.architecture.levels.push_back(*compute_);
    const std::string fault = architecture_fault(own.architecture);
    if (!fault.empty()) view_.fail("an architecture that can be evaluated: " + fault);
    return std::move(own);
  }

  // A component as a level; `x` by `y` of it in the chip, or as the attributes say.
  void add_component(const JsonView& component, const std::string& name, const TimeloopAttributes& attributes,
                     int64_t x, int64_t y) {
    const JsonView class_view = component.at("class");
    AcceleratorLevel level{.name = name,
                           .kind = level_kind(class_view),
                           .component = component_class(component),
                           .instances_x = x,
                           .instances_y = y};
    note_unused(attributes, name);
    set_chip_attributes(attributes);
    const auto word_bits = attributes.integer({"word_bits", "word_width", "datawidth"}, {.least = 1, .most = 4096});
    level.word_bits = static_cast<int>(word_bits.value_or(default_word_bits));
    if (level.kind == LevelKind::compute) {
      const auto width =
          attributes.integer({"multiplier_width", "datawidth", "word_bits", "width"}, {.least = 1, .most = 4096});
      level.word_bits = static_cast<int>(width.value_or(default_word_bits));
      if (compute_) component.fail(fmt::format("one component that computes; there is {} already", compute_->name));
      compute_ = level;
      return;
    }
    if (level.kind == LevelKind::storage) set_storage(component, attributes, level);
    add_level(component, std::move(level));
  }

  // A place for spatial loops over the instances below.
  void add_fanout(const JsonView& view, const std::string& name, int64_t x, int64_t y) {
    add_level(view, {.name = name, .kind = LevelKind::network, .instances_x = x, .instances_y = y});
  }

  void add_sparse_optimizations(const JsonView& view, const std::string& target) {
    Json own = Json::object({{"name", target}});
    for (const auto& [key, value] : view.members()) own.set(key, value.value());
    result_.sparse_targets.push(std::move(own));
  }

  void add_constraints(const JsonView& view, const std::string& target) {
    view.allow_only({"temporal", "spatial", "dataspace", "targets"});
    using Kind = TimeloopDirective::Kind;
    const auto add = [&](std::string_view key, Kind kind) {
      if (const auto found = view.find(key)) {
        result_.constraints.push_back(read_timeloop_directive(*found, target, kind));
      }
    };
    add("temporal", Kind::temporal);
    add("spatial", Kind::spatial);
    add("dataspace", Kind::dataspace);
  }

 private:
  void add_level(const JsonView& view, AcceleratorLevel level) {
    if (result_.architecture.levels.size() + 1 >= max_accelerator_levels) {
      view.fail(fmt::format("at most {} levels", max_accelerator_levels));
    }
    result_.architecture.levels.push_back(std::move(level));
  }

  void set_chip_attributes(const TimeloopAttributes& attributes) {
    Architecture& own = result_.architecture;
    if (const JsonView* technology = attributes.find_or_variable("technology");
        technology != nullptr && !is_placeholder(*technology)) {
      own.technology_nm = technology_nm(*technology);
    }
    if (const JsonView* cycle = attributes.find_or_variable("global_cycle_seconds");
        cycle != nullptr && !is_placeholder(*cycle)) {
      const double seconds = attributes.value_of(*cycle);
      if (seconds < 1e-15 || seconds > 1) cycle->fail("seconds of a clock cycle");
      own.clock_hz = 1 / seconds;
    }
  }

  void set_storage(const JsonView& component, const TimeloopAttributes& attributes, AcceleratorLevel& level) {
    constexpr Range<int64_t> count{.least = 1, .most = max_dimension_size};
    if (const auto cluster = attributes.integer({"cluster_size"}, {.least = 1, .most = 1 << 20})) {
      if (level.instances_x * level.instances_y % *cluster != 0) {
        attributes.find("cluster_size")
            ->fail(fmt::format("a divisor of its {} instances", level.instances_x * level.instances_y));
      }
      level.cluster_size = static_cast<int>(*cluster);
    }
    const auto block = attributes.integer({"block_size", "n_words"}, {.least = 1, .most = 1 << 20});
    const auto width =
        attributes.integer({"width", "memory_width", "data_storage_width"}, {.least = 1, .most = 1 << 24});
    const int64_t words_bits = int64_t{level.word_bits} * level.cluster_size;  // a word of each instance that shares it
    if (width && *width % words_bits != 0) {
      component.fail(fmt::format("a width that is a multiple of its words, {} and {} bits", *width, words_bits));
    }
    if (block && width && *block * words_bits != *width) {
      component.fail(fmt::format("block_size {} times {} bits to be the width, {}", *block, words_bits, *width));
    }
    level.words_per_access = static_cast<int>(block ? *block : width ? *width / words_bits : 1);
    if (const auto depth = attributes.integer({"depth", "memory_depth", "data_storage_depth"}, count)) {
      level.depth = *depth;
    } else if (const auto entries = attributes.integer({"entries"}, count)) {
      level.depth = (*entries + level.words_per_access - 1) / level.words_per_access;
    } else if (const auto kilobytes = attributes.number({"sizeKB"}, {.least = 0.001, .most = 1e12})) {
      constexpr double bits_per_kilobyte = 1024 * 8;
      level.depth = static_cast<int64_t>(*kilobytes * bits_per_kilobyte / level.word_bits / level.words_per_access);
    }
    level.banks =
        static_cast<int>(attributes.integer({"n_banks", "num_banks"}, {.least = 1, .most = 1 << 20}).value_or(1));
    level.buffers = static_cast<int>(attributes.integer({"multiple_buffering"}, {.least = 1, .most = 64}).value_or(1));
    constexpr Range<double> rate{.least = 1e-9, .most = 1e12};
    if (const auto both = attributes.number({"bandwidth"}, rate))
      level.bandwidth = {.read = *both / 2, .write = *both / 2};
    if (const auto read = attributes.number({"read_bandwidth"}, rate)) level.bandwidth.read = *read;
    if (const auto write = attributes.number({"write_bandwidth"}, rate)) level.bandwidth.write = *write;
    if (const auto shared = attributes.number({"shared_bandwidth"}, rate)) level.bandwidth.shared = *shared;
    constexpr Range<int64_t> metadata_bits{.least = 0, .most = 4096};
    const TimeloopMetadata metadata{
        .level = level.name,
        .word_bits = static_cast<int>(
            attributes.integer({"metadata_datawidth", "metadata_word_bits"}, metadata_bits).value_or(0)),
        .access_bits = static_cast<int>(
            attributes.integer({"metadata_storage_width", "metadata_width"}, metadata_bits).value_or(0))};
    if (metadata.word_bits > 0 || metadata.access_bits > 0) result_.metadata.push_back(metadata);
    // Which DRAM decides its energy; the class only says that it is one.
    if (class_contains(component.at("class").string(), {"DRAM"})) {
      const JsonView* type = attributes.find("type");
      // Accelergy prices 8 pJ a bit where none is named, as it does LPDDR4.
      level.component = type != nullptr ? type->string() : "LPDDR4";
    }
  }

  void note_unused(const TimeloopAttributes& attributes, const std::string& level) {
    static const std::vector<std::string> candidates(known_attributes.begin(), known_attributes.end());
    for (const std::string& name : attributes.names()) {
      const auto is = [&](const char* other) { return name == other; };
      if (std::any_of(known_attributes.begin(), known_attributes.end(), is)) continue;
      if (std::any_of(metadata_attributes.begin(), metadata_attributes.end(), is)) continue;
      // Estimators take attributes of any name; one that is nearly a name of ours is a slip of the pen.
      const bool unused = std::any_of(unused_attributes.begin(), unused_attributes.end(), is);
      const auto near = nearest_name(name, candidates);
      const JsonView* view = attributes.find(name);
      if (!unused && near && !view->is(Json::Kind::object) && !contains_ignoring_case(name, *near)) {
        view->fail(fmt::format("an attribute that Timeloop has in place of `{}`", name), *near);
      }
      result_.notes.push_back(fmt::format("attribute {} of {} is not used", name, level));
    }
  }

  const JsonView& view_;
  TimeloopArchitecture result_;
  std::optional<AcceleratorLevel> compute_;
};

int64_t multiplied(const JsonView& view, int64_t count, int64_t more) {
  if (count > most_instances / more) view.fail(fmt::format("at most {} instances", most_instances));
  return count * more;
}

// In v0.3 ranges in names say how many there are, and meshX how they lie.
void add_local(const JsonView& component, const TimeloopAttributes& inherited, int64_t outside,
               ArchitectureBuilder& builder) {
  component.allow_only({"name", "class", "subclass", "attributes", "actions", "required_actions", "enabled",
                        "constraints", "sparse_optimizations"});
  TimeloopAttributes attributes = inherited;
  if (const auto own = component.find("attributes")) attributes.add(*own);
  const RangedName ranged = read_ranged_name(component.at("name"));
  int64_t total = multiplied(component, outside, ranged.count);
  if (const auto given = attributes.integer({"instances"}, {.least = 1, .most = most_instances})) total = *given;
  constexpr Range<int64_t> mesh{.least = 1, .most = most_instances};
  const auto across = attributes.integer({"meshX"}, mesh), down = attributes.integer({"meshY"}, mesh);
  const int64_t x = across ? *across : down ? total / *down : total;
  const int64_t y = total / x;
  if (x < 1 || x * y != total || (down && *down != y)) {
    component.fail(fmt::format("meshX and meshY whose product is its {} instances", total));
  }
  builder.add_component(component, ranged.name, attributes, x, y);
  if (const auto sparse = component.find("sparse_optimizations"))
    builder.add_sparse_optimizations(*sparse, ranged.name);
  if (const auto constraints = component.find("constraints")) builder.add_constraints(*constraints, ranged.name);
}

void add_subtree(const JsonView& node, const TimeloopAttributes& inherited, int64_t outside,
                 ArchitectureBuilder& builder) {
  node.allow_only({"name", "attributes", "local", "subtree"});
  TimeloopAttributes attributes = inherited;
  if (const auto own = node.find("attributes")) attributes.add(*own);
  const int64_t count = multiplied(node, outside, read_ranged_name(node.at("name")).count);
  if (const auto local = node.find("local")) {
    for (const JsonView& component : local->items()) add_local(component, attributes, count, builder);
  }
  const auto below = node.find("subtree");
  if (!below) return;
  const auto nodes = below->items();
  if (nodes.size() > 1) below->fail("one node: branches beside each other are not supported");
  for (const JsonView& inner : nodes) add_subtree(inner, attributes, count, builder);
}

// v0.4: each node stands below those before it in its list.
class NodeWalk {
 public:
  NodeWalk(ArchitectureBuilder& builder, TimeloopAttributes attributes)
      : builder_(builder), attributes_(std::move(attributes)) {}

  void add_nodes(const JsonView& nodes) {
    for (const JsonView& node : nodes.items()) add_node(node);
  }

 private:
  void add_node(const JsonView& node) {
    node.allow_only({yaml_tag_key, "name", "class", "subclass", "attributes", "spatial", "constraints", "nodes",
                     "actions", "required_actions", "enabled", "version", "sparse_optimizations"});
    const std::string tag = node.at(yaml_tag_key).string();
    if (tag == "Container") {
      add_container(node);
    } else if (tag == "Component") {
      add_leaf(node);
    } else if (tag == "Hierarchical" || tag == "Pipelined") {
      // Attributes set inside end with it, instances do not: what follows stands below.
      const TimeloopAttributes outside = attributes_;
      add_nodes(node.at("nodes"));
      attributes_ = outside;
    } else if (tag == "Parallel") {
      add_parallel(node);
    } else if (tag != "Nothing") {
      node.at(yaml_tag_key).fail("!Container, !Component, !Parallel, !Hierarchical or !Nothing");
    }
  }

  void add_container(const JsonView& node) {
    if (const auto own = node.find("attributes")) attributes_.add(*own);
    const RangedName ranged = read_ranged_name(node.at("name"));
    const int64_t x = x_, y = y_;
    fan_out(node, ranged.count);
    if (x != x_ || y != y_) builder_.add_fanout(node, ranged.name, x, y);
    if (const auto constraints = node.find("constraints")) {
      if (x == x_ && y == y_) constraints->fail("constraints on a container that fans out");
      builder_.add_constraints(*constraints, ranged.name);
    }
  }

  void add_leaf(const JsonView& node) {
    TimeloopAttributes attributes = attributes_;
    if (const auto own = node.find("attributes")) attributes.add(*own);
    const RangedName ranged = read_ranged_name(node.at("name"));
    fan_out(node, ranged.count);
    builder_.add_component(node, ranged.name, attributes, x_, y_);
    if (const auto sparse = node.find("sparse_optimizations")) builder_.add_sparse_optimizations(*sparse, ranged.name);
    if (const auto constraints = node.find("constraints")) builder_.add_constraints(*constraints, ranged.name);
  }

  // Branches share what is above them; none of them may hold more instances than the others for what comes below.
  void add_parallel(const JsonView& node) {
    const TimeloopAttributes outside = attributes_;
    const int64_t x = x_, y = y_;
    for (const JsonView& branch : node.at("nodes").items()) {
      attributes_ = outside;
      add_node(branch);
      if (x_ != x || y_ != y) branch.fail("no fan-out inside a !Parallel node");
    }
    attributes_ = outside;
  }

  void fan_out(const JsonView& node, int64_t count) {
    x_ = multiplied(node, x_, count);
    const auto spatial = node.find("spatial");
    if (!spatial) return;
    spatial->allow_only({"meshX", "meshY"});
    const auto mesh = [&](std::string_view key) -> int64_t {
      const auto view = spatial->find(key);
      if (!view) return 1;
      const auto value = exact_integer(attributes_.value_of(*view));
      if (!value || *value < 1 || *value > most_instances) view->fail("a whole number of instances");
      return *value;
    };
    x_ = multiplied(node, x_, mesh("meshX"));
    y_ = multiplied(node, y_, mesh("meshY"));
  }

  ArchitectureBuilder& builder_;
  TimeloopAttributes attributes_;
  int64_t x_ = 1, y_ = 1;
};

}  // namespace

TimeloopArchitecture read_timeloop_architecture(const JsonView& view, const TimeloopAttributes& variables) {
  view.allow_only({"version", "subtree", "nodes", "name", "attributes"});
  ArchitectureBuilder builder(view);
  if (const auto nodes = view.find("nodes")) {
    NodeWalk(builder, variables).add_nodes(*nodes);
    return builder.take("timeloop");
  }
  const auto trees = view.at("subtree").items();
  if (trees.size() != 1) view.at("subtree").fail("one node at the top");
  add_subtree(trees.front(), variables, 1, builder);
  return builder.take(read_ranged_name(trees.front().at("name")).name);
}

}  // namespace foretoken
