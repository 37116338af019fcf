#include "app/cli/flags/link_flags.h"

#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/quantity_text.h"
#include "base/text.h"
#include "base/units.h"

namespace foretoken {
namespace {

// "20" or "20GB/s", "400Gb/s"; nothing where the text is empty.
std::optional<BytesPerSecond> rate_of(const std::string& name, const std::string& text) {
  constexpr double least = 0.01, most = 1e5;  // GB/s
  if (text.empty()) return std::nullopt;
  const std::optional<BytesPerSecond> with_unit = parse_rate(text);
  const std::optional<double> number = parse_number(text);
  const double gigabytes = with_unit ? with_unit->value() / giga : number.value_or(0);
  if (gigabytes < least || gigabytes > most) {
    throw InputError({.source = "--link",
                      .value = fmt::format("{} = {}", name, printable(text)),
                      .expected = "GB/s from 0.01 to 100000, or a rate with its unit: 20, 20GB/s or 400Gb/s"});
  }
  return BytesPerSecond(with_unit ? with_unit->value() : gigabytes * giga);
}

// "10" or "10us", "0.5ms".
std::optional<Seconds> latency_of(const std::string& text) {
  constexpr double most = 1;  // second
  if (text.empty()) return std::nullopt;
  std::optional<Seconds> time = parse_duration(text);
  if (const std::optional<double> number = parse_number(text)) time = Seconds(*number * 1e-6);
  if (!time || time->value() < 0 || time->value() > most) {
    throw InputError({.source = "--link",
                      .value = fmt::format("latency = {}", printable(text)),
                      .expected = "microseconds from 0 to 1000000, or a time with its unit: 10, 10us or 0.5ms"});
  }
  return time;
}

}  // namespace

void LinkFlags::declare(Options& options) {
  options.settings(
      "--link", link,
      "Known properties of the links, for example bandwidth=20,latency=10 or bandwidth=20GB/s,latency=10us: bandwidth "
      "(GB/s between two GPUs of a node, one direction) and latency (us per hop) achieved by collectives; pcie "
      "(generation of x16 slots); peer-access=yes or no; nvlink-pairs; nics (network cards per node) and nic-bandwidth "
      "(GB/s each)");
}

LinkSpec LinkFlags::spec() const {
  LinkSpec result;
  if (link.empty()) return result;
  int64_t pcie = 0, nics = 0;
  std::string peer_access, bandwidth, latency, nic_bandwidth;
  const auto declare = [&](Options& options) {
    options.text("--bandwidth", bandwidth, "Bandwidth between two GPUs in one direction: GB/s, or with its unit");
    options.text("--latency", latency, "Latency per hop: microseconds, or with its unit");
    options.integer("--pcie", pcie, {.least = 3, .most = 7}, "PCIe generation of the x16 slots");
    options.choice("--peer-access", peer_access, {"yes", "no"}, "Whether GPUs can write to each other over PCIe");
    options.flag("--nvlink-pairs", result.nvlink_pairs, "GPUs 2i and 2i+1 are connected by an NVLink bridge");
    options.integer("--nics", nics, {.least = 1, .most = 4096}, "Number of network cards per node");
    options.text("--nic-bandwidth", nic_bandwidth, "Bandwidth of each network card: GB/s, or with its unit");
  };
  parse_settings("--link", link, declare);
  result.bandwidth = rate_of("bandwidth", bandwidth);
  result.latency = latency_of(latency);
  result.nic_bandwidth = rate_of("nic-bandwidth", nic_bandwidth);
  if (!peer_access.empty()) result.peer_access = peer_access == "yes";
  result.pcie_generation = static_cast<int>(pcie);
  result.nics = static_cast<int>(nics);
  return result;
}

void declare_host_factor(Options& options, double& factor) {
  options.number("--host-factor", factor, {.least = 0.01, .most = 100},
                 "Multiply the host times of the software stack by this factor: 2 = a host half as fast");
}

}  // namespace foretoken
