#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "base/error.h"
#include "base/text.h"
#include "report/parts/table.h"
#include "report/step/hardware_report.h"

namespace foretoken {
namespace {

class DevicesCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text("name", name_,
                 "Device, node or cluster (or a device JSON file) to show in full; part of a name lists the devices "
                 "that match; without it, all are listed");
    options.footer(
        "Examples:\n"
        "  foretoken devices\n"
        "  foretoken devices mi3\n"
        "  foretoken devices h100_sxm\n"
        "  foretoken devices hgx_h100 --json");
  }

  Answer run(const Library& library) const override {
    const HardwareCatalogue catalogue = library.hardware();
    return name_.empty() ? list(catalogue) : one(catalogue);
  }

 private:
  static Answer list(const HardwareCatalogue& catalogue) {
    std::vector<Device> devices;
    for (const std::string& name : catalogue.device_names()) devices.push_back(catalogue.find_device(name));
    Json nodes = Json::array(), clusters = Json::array();
    for (const std::string& name : catalogue.node_names()) nodes.push(name);
    for (const std::string& name : catalogue.cluster_names()) clusters.push(name);
    std::string text = device_list_text(devices) + "\n";
    text += wrap_lines(
        "memory: as data sheets state it, usually in GiB; for some devices the usable part of it. Other answers give "
        "the memory that programs can "
        "allocate, in GB of 10^9 bytes: an 80 GB H100 has 85.0 GB (79.2 GiB).",
        page_width(), 2);
    Json own = Json::array();
    for (const std::string& name : catalogue.own_device_names()) own.push(name);
    if (!catalogue.own_device_names().empty()) {
      text += wrap_lines(
          fmt::format("your own (foretoken profile --install): {}", fmt::join(catalogue.own_device_names(), ", ")), 100,
          2);
    }
    text += wrap_lines(fmt::format("nodes: {}", fmt::join(catalogue.node_names(), ", ")), page_width(), 2);
    text += wrap_lines(fmt::format("clusters: {}", fmt::join(catalogue.cluster_names(), ", ")), page_width(), 2);
    text += "\n`foretoken devices NAME` shows every number with its source.\n";
    return {.text = std::move(text),
            .json = Json::object({{"devices", device_list_json(devices)},
                                  {"own_devices", std::move(own)},
                                  {"nodes", nodes},
                                  {"clusters", clusters}})};
  }

  Answer one(const HardwareCatalogue& catalogue) const {
    const auto is_one_of = [&](const std::vector<std::string>& names) {
      return std::any_of(names.begin(), names.end(),
                         [&](const std::string& known) { return comparable_name(known) == comparable_name(name_); });
    };
    if (is_one_of(catalogue.node_names())) return answer_of(catalogue.node(name_));
    if (is_one_of(catalogue.cluster_names())) return answer_of(catalogue.cluster(name_));
    const std::vector<Device> matching = devices_with_name_part(catalogue);
    if (!matching.empty()) {
      return {.text = device_list_text(matching) + "\n`foretoken devices NAME` shows one in full.\n",
              .json = Json::object({{"devices", device_list_json(matching)}})};
    }
    // Aliases of nodes and clusters come last: some repeat the name of a device.
    if (const auto device = named([&] { return catalogue.device(name_); })) return answer_of(*device);
    if (const auto node = named([&] { return catalogue.node(name_); })) return answer_of(*node);
    if (const auto cluster = named([&] { return catalogue.cluster(name_); })) return answer_of(*cluster);
    return answer_of(catalogue.device(name_));  // whose complaint suggests names
  }

  static Answer answer_of(const Device& device) { return {.text = device_text(device), .json = device_json(device)}; }
  static Answer answer_of(const Node& node) { return {.text = node_text(node), .json = node_json(node)}; }
  static Answer answer_of(const Cluster& cluster) {
    return {.text = cluster_text(cluster), .json = cluster_json(cluster)};
  }

  // Nothing where nothing has that name.
  template <class LookUp>
  static auto named(const LookUp& look_up) -> std::optional<decltype(look_up())> {
    try {
      return look_up();
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

  // None where the text names a device.
  std::vector<Device> devices_with_name_part(const HardwareCatalogue& catalogue) const {
    std::vector<Device> matching;
    try {
      catalogue.device(name_);
    } catch (const InputError&) {
      if (catalogue.is_refused(name_)) throw;
      const std::string wanted = lower_case(name_);
      for (const std::string& name : catalogue.device_names()) {
        if (name.find(wanted) != std::string::npos) matching.push_back(catalogue.find_device(name));
      }
    }
    return matching;
  }

  std::string name_;
};

}  // namespace

std::unique_ptr<Command> make_devices() {
  return std::make_unique<DevicesCommand>();
}

}  // namespace foretoken
