#include "report/step/hardware_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "hardware/device_file.h"
#include "hardware/software.h"
#include "report/parts/device_notes.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

// A node's or cluster's number in the form of a device's.
template <class Value>
void add_fact(std::vector<DeviceFact>& rows, const std::string& key, const std::string& unit,
              const MaybeFact<Value>& fact, double value) {
  if (!fact) return;
  rows.push_back(
      {.key = key, .unit = unit, .value = value, .source = fact->source, .assumed = fact->assumed, .note = fact->note});
}

template <class Unit>
void add_rate(std::vector<DeviceFact>& rows, const std::string& key, const MaybeFact<Quantity<Unit>>& fact) {
  add_fact(rows, key, "GB/s", fact, fact ? fact->value.value() / giga : 0);
}

template <class Number>
void add_count(std::vector<DeviceFact>& rows, const std::string& key, const MaybeFact<Number>& fact) {
  add_fact(rows, key, "", fact, fact ? static_cast<double>(fact->value) : 0);
}

void add_latency(std::vector<DeviceFact>& rows, const std::string& key, const MaybeFact<Seconds>& fact) {
  add_fact(rows, key, "us", fact, fact ? fact->value.value() * 1e6 : 0);
}

std::vector<DeviceFact> facts_of(const Node& node) {
  std::vector<DeviceFact> rows;
  add_count(rows, "devices_per_host", node.host_devices);
  add_rate(rows, "fabric_bandwidth_gb_per_s", MaybeFact<BytesPerSecond>(node.fabric.bandwidth));
  add_latency(rows, "fabric_latency_us", node.fabric.latency);
  add_fact(rows, "power_limit_w", "W", node.power_limit, node.power_limit ? node.power_limit->value.value() : 0);
  if (node.network_cards) {
    add_count(rows, "network_cards", MaybeFact<int>(node.network_cards->count));
    add_rate(rows, "network_card_bandwidth_gb_per_s", MaybeFact<BytesPerSecond>(node.network_cards->bandwidth));
  }
  return rows;
}

std::vector<DeviceFact> facts_of(const Cluster& cluster) {
  const ClusterFabric& fabric = cluster.fabric;
  std::vector<DeviceFact> rows;
  add_rate(rows, "nic_bandwidth_gb_per_s", MaybeFact<BytesPerSecond>(fabric.nic_bandwidth));
  add_count(rows, "oversubscription", MaybeFact<double>(fabric.oversubscription));
  add_count(rows, "nodes_per_leaf", MaybeFact<int>(fabric.nodes_per_leaf));
  add_count(rows, "spine_switches", fabric.spine_switches);
  add_latency(rows, "latency_us", fabric.latency);
  return rows;
}

// The numbers, then the sources they point to: a source is a sentence, and many numbers share one.
std::string facts_text(const std::vector<DeviceFact>& rows) {
  Table table({{"fact", Table::Align::left}, {"value"}, {"unit", Table::Align::left}, {"source", Table::Align::left}});
  std::vector<std::string> sources;
  for (const DeviceFact& row : rows) {
    const auto known = std::find(sources.begin(), sources.end(), row.source);
    const auto number = known - sources.begin() + 1;
    if (known == sources.end()) sources.push_back(row.source);
    table.add({row.key, row.word.empty() ? fmt::format("{:g}", row.value) : row.word, row.unit,
               fmt::format("[{}]{}", number, row.assumed ? " assumed" : "")});
  }
  std::string text = table.text() + "\n";
  for (size_t i = 0; i < sources.size(); ++i)
    text += wrap_lines(fmt::format("[{}] {}", i + 1, sources[i]), page_width(), 4);
  for (const DeviceFact& row : rows) {
    if (!row.note.empty()) text += wrap_lines(fmt::format("{}: {}", row.key, row.note), page_width(), 2);
  }
  return text;
}

Json facts_json(const std::vector<DeviceFact>& rows) {
  Json result = Json::object();
  for (const DeviceFact& row : rows) {
    Json fact = Json::object({{"value", row.word.empty() ? Json(row.value) : Json(row.word)},
                              {"unit", row.unit},
                              {"source", row.source},
                              {"assumed", row.assumed}});
    if (!row.note.empty()) fact.set("note", row.note);
    result.set(row.key, std::move(fact));
  }
  return result;
}

Json aliases_json(const std::vector<std::string>& aliases) {
  Json list = Json::array();
  for (const std::string& alias : aliases) list.push(alias);
  return list;
}

template <class Value>
std::string shown_or_unknown(const MaybeFact<Value>& fact, auto shown) {
  return fact ? shown(fact->value) : std::string("?");
}

std::string note_text(const std::string& note) {
  return note.empty() ? "" : wrap_lines(fmt::format("note: {}", note), page_width(), 2);
}

std::string memory_sentence(const Device& device) {
  if (!device.computing_memory) return {};
  return fmt::format("Units in the memory run the attention of decode steps{}. Source: {}",
                     device.computing_memory->beside ? ", also while the device runs other sequences of the batch" : "",
                     device.computing_memory->source);
}

std::string software_text(const Device& device) {
  const std::vector<Software> running = software_of(device);
  if (running.empty()) return {};
  std::vector<std::string> names;
  for (const Software& one : running) {
    names.push_back(one.needs.empty() ? std::string(one.name) : fmt::format("{} (with {})", one.name, one.needs));
  }
  return wrap_lines(fmt::format("software: {}", fmt::join(names, ", ")), page_width(), 2);
}

Json software_json(const Device& device) {
  Json list = Json::array();
  for (const Software& one : software_of(device)) {
    list.push(Json::object(
        {{"name", one.name}, {"needs", one.needs.empty() ? Json() : Json(one.needs)}, {"source", one.source}}));
  }
  return list;
}

}  // namespace

std::string device_list_text(const std::vector<Device>& devices) {
  Table table({{"name", Table::Align::left},
               {"device", Table::Align::left},
               {"memory"},
               {"bandwidth"},
               {"bf16/fp16 peak"},
               {"power"}});
  for (const Device& device : devices) {
    const auto& bf16 = device.dense_peak[static_cast<size_t>(DType::bf16)];
    const auto& half = bf16 ? bf16 : device.dense_peak[static_cast<size_t>(DType::fp16)];
    table.add(
        {device.name, device.title,
         shown_or_unknown(device.memory, [](Bytes size) { return fmt::format("{:g} GB", size.value() / giga); }),
         shown_or_unknown(device.memory_bandwidth, [](BytesPerSecond rate) { return rate_text(rate.value(), "B/s"); }),
         shown_or_unknown(half, [](FlopsPerSecond rate) { return rate_text(rate.value(), "FLOP/s"); }),
         shown_or_unknown(device.power_limit, [](Watts power) { return fmt::format("{:g} W", power.value()); })});
  }
  return table.text();
}

Json device_list_json(const std::vector<Device>& devices) {
  Json list = Json::array();
  for (const Device& device : devices) list.push(device_json(device));
  return list;
}

std::string device_text(const Device& device) {
  std::string text = fmt::format(
      "{} ({}): {} {}{}\n\n{}", device.title, device.name, device.vendor, device.architecture,
      device.instruction_set.empty() ? "" : ", " + device.instruction_set, facts_text(device_facts(device)));
  const std::vector<std::string> unknown = unknown_device_facts(device);
  if (!unknown.empty()) text += wrap_lines(fmt::format("not published: {}", fmt::join(unknown, ", ")), page_width(), 2);
  return text + software_text(device) + note_text(like_sentence(device)) + note_text(memory_sentence(device)) +
         note_text(device.note);
}

Json device_json(const Device& device) {
  return Json::object({{"name", device.name},
                       {"title", device.title},
                       {"kind", device_kind_name(device.kind)},
                       {"vendor", device.vendor},
                       {"memory_computes", device.computing_memory.has_value()},
                       {"architecture", device.architecture},
                       {"instruction_set", device.instruction_set.empty() ? Json() : Json(device.instruction_set)},
                       {"like", device.like ? Json(device.like->name) : Json()},
                       {"aliases", aliases_json(device.aliases)},
                       {"facts", facts_json(device_facts(device))},
                       {"software", software_json(device)},
                       {"note", device.note}});
}

std::string node_text(const Node& node) {
  std::string text = wrap_lines(fmt::format("{} ({}): {} x {}, {}", node.title, node.name, node.device_count,
                                            node.device.title, node_fabric_name(node.fabric.kind)),
                                page_width(), 2);
  if (node.host) {
    text += fmt::format("host: {} x {}{}\n", node.host->count, node.host->cpu.title,
                        node.host->cpu.memory
                            ? fmt::format(" with {} of memory each", bytes_text(node.host->cpu.memory->value.value()))
                            : "");
  }
  return text + "\n" + facts_text(facts_of(node)) + note_text(node.note);
}

Json node_json(const Node& node) {
  Json result = Json::object({{"name", node.name},
                              {"title", node.title},
                              {"device", node.device.name},
                              {"device_count", node.device_count},
                              {"fabric", node_fabric_name(node.fabric.kind)},
                              {"aliases", aliases_json(node.aliases)},
                              {"facts", facts_json(facts_of(node))},
                              {"note", node.note}});
  if (node.host) result.set("host", Json::object({{"cpu", node.host->cpu.name}, {"count", node.host->count}}));
  return result;
}

std::string cluster_text(const Cluster& cluster) {
  const std::string headline =
      fmt::format("{} ({}): {} x {}, {} {}", cluster.title, cluster.name, cluster.node_count, cluster.node.title,
                  cluster_fabric_name(cluster.fabric.kind), cluster.fabric.technology);
  return wrap_lines(headline, page_width(), 2) + "\n" + facts_text(facts_of(cluster)) + note_text(cluster.note);
}

Json cluster_json(const Cluster& cluster) {
  return Json::object({{"name", cluster.name},
                       {"title", cluster.title},
                       {"node", cluster.node.name},
                       {"node_count", cluster.node_count},
                       {"fabric", cluster_fabric_name(cluster.fabric.kind)},
                       {"technology", cluster.fabric.technology},
                       {"aliases", aliases_json(cluster.aliases)},
                       {"facts", facts_json(facts_of(cluster))},
                       {"note", cluster.note}});
}

}  // namespace foretoken
