#include "network/topology/topology_text.h"

#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/kinds.h"
#include "base/quantity_text.h"
#include "base/text.h"
#include "network/topology/product.h"
#include "network/topology/topology_kind.h"

namespace foretoken {
namespace {

constexpr size_t most_parts = 8;

[[noreturn]] void reject(std::string_view value, std::string expected, std::string suggestion = "") {
  throw InputError({.source = "topology",
                    .value = printable(value),
                    .expected = std::move(expected),
                    .suggestion = std::move(suggestion)});
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> trimmed_pieces(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> pieces = split(text, separator);
  for (std::string_view& piece : pieces) piece = trimmed(piece);
  return pieces;
}

std::optional<double> parse_in(SettingUnit unit, std::string_view text) {
  switch (unit) {
    case SettingUnit::rate: {
      const std::optional<BytesPerSecond> rate = parse_rate(text);
      return rate ? std::optional(rate->value()) : std::nullopt;
    }
    case SettingUnit::time: {
      const std::optional<Seconds> time = parse_duration(text);
      return time ? std::optional(time->value()) : std::nullopt;
    }
    case SettingUnit::number:
      return parse_number(text);
  }
  return std::nullopt;
}

std::string_view example_of(SettingUnit unit) {
  switch (unit) {
    case SettingUnit::rate:
      return "a rate such as 50GB/s or 400Gb/s";
    case SettingUnit::time:
      return "a time such as 500ns or 1.5us";
    case SettingUnit::number:
      return "a number";
  }
  return "";
}

void read_setting(TopologyPart& part, const TopologyKind& kind, std::string_view item, size_t equals) {
  const std::string name(trimmed(item.substr(0, equals)));
  const std::string_view value = trimmed(item.substr(equals + 1));
  const TopologySetting* const known = find_kind(kind.settings, name);
  if (known == nullptr) {
    reject(item,
           kind.settings.empty() ? fmt::format("no settings for {}", kind.name)
                                 : fmt::format("a setting of {}", kind.name),
           nearest_name(name, kind_names(kind.settings)).value_or(""));
  }
  const std::optional<double> number = parse_in(known->unit, value);
  if (!number) reject(item, std::string(example_of(known->unit)));
  part.settings.emplace_back(name, *number);
}

void read_links(TopologyPart& part, const TopologyKind& kind, std::string_view text) {
  bool has_bandwidth = false, has_latency = false;
  for (const std::string_view item : trimmed_pieces(text, ",")) {
    if (const size_t equals = item.find('='); equals != std::string_view::npos) {
      read_setting(part, kind, item, equals);
    } else if (const std::optional<BytesPerSecond> rate = parse_rate(item); rate && !has_bandwidth) {
      part.bandwidth = *rate;
      has_bandwidth = true;
    } else if (const std::optional<Seconds> time = parse_duration(item); time && !has_latency) {
      part.latency = *time;
      has_latency = true;
    } else {
      reject(item, "a bandwidth such as 50GB/s, a latency such as 500ns, or name=value; each once");
    }
  }
  if (!has_bandwidth) reject(part.text, "the bandwidth of a link after '@', such as @50GB/s");
}

void read_sizes(TopologyPart& part, const TopologyKind& kind, std::string_view text) {
  for (const std::string_view size : trimmed_pieces(text, "x")) {
    const std::optional<int64_t> number = parse_integer(size);
    if (!number || *number < 1 || *number > most_topology_devices) {
      reject(part.text,
             fmt::format("whole numbers from 1 to {} as sizes: {}:{}", most_topology_devices, kind.name, kind.sizes));
    }
    part.sizes.push_back(*number);
  }
  if (part.sizes.size() < kind.least_sizes || part.sizes.size() > kind.most_sizes) {
    reject(part.text, fmt::format("{}:{}", kind.name, kind.sizes));
  }
}

// Devices of the part; the product of a few sizes below 2^22 each is exact in a double or far too large.
double device_count(const TopologyPart& part) {
  double devices = 1;
  for (const int64_t size : part.sizes) devices *= static_cast<double>(size);
  return devices;
}

}  // namespace

Topology parse_topology(std::string_view text) {
  const std::vector<std::string_view> pieces = trimmed_pieces(text, " x ");
  if (pieces.size() > most_parts) reject(text, fmt::format("at most {} dimensions", most_parts));
  std::vector<const TopologyKind*> kinds;
  std::vector<TopologyPart> parts;
  double devices = 1;
  for (const std::string_view piece : pieces) {
    const size_t colon = piece.find(':');
    const size_t at = piece.find('@');
    if (colon == std::string_view::npos || at == std::string_view::npos || at < colon) {
      reject(piece, "KIND:SIZES@BANDWIDTH[,LATENCY], such as switch:8@450GB/s,500ns");
    }
    const TopologyKind& kind = topology_kind(trimmed(piece.substr(0, colon)));
    TopologyPart part{.text = printable(piece)};
    read_sizes(part, kind, piece.substr(colon + 1, at - colon - 1));
    read_links(part, kind, piece.substr(at + 1));
    devices *= device_count(part);
    kinds.push_back(&kind);
    parts.push_back(std::move(part));
  }
  if (devices > static_cast<double>(most_topology_devices)) {
    reject(text, fmt::format("at most {} devices in all", most_topology_devices));
  }
  std::vector<NetworkGraph> dimensions;
  double links = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    dimensions.push_back(kinds[i]->make(parts[i]));
    links += static_cast<double>(dimensions[i].links.size()) * devices / device_count(parts[i]);
    check_link_count(parts[i], links);
  }
  return Topology(product_of(dimensions));
}

std::string topology_kinds_text() {
  std::string text;
  for (const TopologyKind& kind : topology_kinds()) {
    text += fmt::format("{}:{}\n    {}\n", kind.name, kind.sizes, kind.summary);
    for (const TopologySetting& setting : kind.settings)
      text += fmt::format("    {}: {}\n", setting.name, setting.summary);
  }
  return text;
}

}  // namespace foretoken
