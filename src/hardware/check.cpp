#include "hardware/check.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "hardware/catalogue.h"
#include "hardware/device_file.h"
#include "hardware/generation.h"
#include "hardware/node_file.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

class Checker {
 public:
  explicit Checker(fs::path folder) : folder_(std::move(folder)) {}

  std::vector<DataProblem> run() {
    if (!fs::is_directory(folder_ / "devices")) {
      add(folder_, "a folder of hardware descriptions has devices/ in it");
      return std::move(problems_);
    }
    const HardwareCatalogue catalogue(folder_);
    const auto find_device = [&](const std::string& name) { return catalogue.device(name); };
    const auto find_node = [&](const std::string& name) { return catalogue.node(name); };
    check_folder(
        "devices", [&](const fs::path& file) { return read_device_file(file, catalogue.like_finder()); },
        [&](const fs::path& file, const Device& device) {
          check_narrower_types(file, device);
          check_fp32_peak(file, device);
          check_allocatable_memory(file, device);
          check_generation_facts(file, device);
          check_mig(file, device);
        });
    check_folder(
        "nodes", [&](const fs::path& file) { return read_node_file(file, find_device); },
        [&](const fs::path& file, const Node& node) { check_node(file, node); });
    check_folder(
        "clusters", [&](const fs::path& file) { return read_cluster_file(file, find_node); },
        [&](const fs::path& file, const Cluster& cluster) { check_cluster(file, cluster); });
    return std::move(problems_);
  }

 private:
  void add(const fs::path& file, const std::string& what) {
    problems_.push_back({.file = file.string(), .message = fmt::format("{}: {}", file.string(), what)});
  }

  template <class Read, class Check>
  void check_folder(const char* name, const Read& read, const Check& check) {
    std::vector<fs::path> files;
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(folder_ / name, missing)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::map<std::string, fs::path> owner_of_name;
    for (const fs::path& file : files) {
      if (file.extension() != ".json") {
        add(file, "only .json files belong here");
        continue;
      }
      try {
        const auto described = read(file);
        check_name(file, described.name);
        claim(file, described.name, owner_of_name);
        for (const std::string& alias : described.aliases) claim(file, alias, owner_of_name);
        check(file, described);
      } catch (const InputError& error) {
        problems_.push_back({.file = file.string(), .message = error.sentence()});
      }
    }
  }

  void check_name(const fs::path& file, const std::string& name) {
    if (name != file.stem())
      add(file, fmt::format("name is `{}`, but the file is called `{}`", name, file.stem().string()));
    const bool plain = std::all_of(name.begin(), name.end(),
                                   [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
    if (!plain) add(file, fmt::format("name `{}` has characters other than a-z, 0-9 and _", printable(name)));
  }

  void claim(const fs::path& file, const std::string& name, std::map<std::string, fs::path>& owner_of_name) {
    const auto [owner, is_new] = owner_of_name.emplace(comparable_name(name), file);
    if (is_new) return;
    add(file, owner->second == file ? fmt::format("`{}` is listed twice among name and aliases", printable(name))
                                    : fmt::format("`{}` also names {}", printable(name), owner->second.string()));
  }

  // Halving the width of a float never lowers the rate of the multipliers.
  void check_narrower_types(const fs::path& file, const Device& device) {
    using enum DType;
    constexpr std::pair<DType, DType> wide_and_narrow[] = {{fp32, bf16}, {fp32, tf32}, {tf32, bf16}, {bf16, fp8},
                                                           {fp16, fp8},  {fp8, fp4},   {fp64, fp32}};
    for (const auto& [wide, narrow] : wide_and_narrow) {
      const auto& wide_peak = device.dense_peak[static_cast<size_t>(wide)];
      const auto& narrow_peak = device.dense_peak[static_cast<size_t>(narrow)];
      if (!wide_peak || !narrow_peak || !narrow_peak->note.empty()) continue;
      if (narrow_peak->value >= wide_peak->value) continue;
      add(file, fmt::format("dense_peak_tflops.{} = {} is below {} = {}; say why in its note if that is right",
                            dtype_name(narrow), number_text(narrow_peak->value.value() / tera), dtype_name(wide),
                            number_text(wide_peak->value.value() / tera)));
    }
  }

  void check_fp32_peak(const fs::path& file, const Device& device) {
    const auto& peak = device.dense_peak[static_cast<size_t>(DType::fp32)];
    if (!peak || !peak->note.empty()) return;
    if (!device.processors || !device.fp32_lanes_per_processor || !device.boost_clock) return;
    const double expected =
        2.0 * device.processors->value * device.fp32_lanes_per_processor->value * device.boost_clock->value.value();
    if (std::abs(peak->value.value() / expected - 1) <= 0.10) return;
    add(file, fmt::format("dense_peak_tflops.fp32 = {} but processors x lanes x 2 x clock is {:.4g}; "
                          "say why in its note if that is right",
                          number_text(peak->value.value() / tera), expected / tera));
  }

  // Boxes round to powers of two: their GB are GiB. A driver and error correction keep up to an eighth.
  void check_allocatable_memory(const fs::path& file, const Device& device) {
    if (!device.memory || !device.allocatable_memory || !device.allocatable_memory->note.empty()) return;
    const double share = device.allocatable_memory->value.value() / (device.memory->value.value() / giga * gibi);
    if (share >= 0.875 && share <= 1) return;
    add(file,
        fmt::format("allocatable_memory_mib = {} is {:.3g} of memory_gb in GiB; say why in its note if that is right",
                    number_text(device.allocatable_memory->value.value() / mebi), share));
  }

  // What decides kernels stands in the file of every GPU whose kernels are known.
  void check_generation_facts(const fs::path& file, const Device& device) {
    const GpuGeneration& generation = kernel_generation(device);
    if (generation.key.empty()) return;
    if (!device.memory_type) add(file, "memory_type is missing: kernels differ between HBM and GDDR");
    const auto& asynchronous = device.asynchronous_multiplies;
    if (asynchronous && asynchronous->note.empty() && asynchronous->value != generation.asynchronous_multiplies) {
      add(file, fmt::format("asynchronous_multiplies = {}, but {} GPUs {}; say why in its note if that is right",
                            asynchronous->value, generation.title,
                            generation.asynchronous_multiplies ? "have them" : "do not have them"));
    }
  }

  // The largest profile is the whole device.
  void check_mig(const fs::path& file, const Device& device) {
    if (!device.mig) return;
    const bool whole = std::any_of(device.mig->profiles.begin(), device.mig->profiles.end(), [&](const auto& profile) {
      return profile.processors == device.mig->processors && profile.memory == device.mig->memory;
    });
    if (!whole) add(file, "mig.profiles has none that takes all slices of the device");
  }

  void check_node(const fs::path& file, const Node& node) {
    const bool on_pcie = node.fabric.kind == NodeFabricKind::pcie;
    const auto& limit = on_pcie ? node.device.host_bandwidth : node.device.link_bandwidth;
    const std::string_view limit_key = on_pcie ? "host_bandwidth_gb_per_s" : "link_bandwidth_gb_per_s";
    if (!limit) {
      add(file, fmt::format("fabric is {}, but {} lists no {}", node_fabric_name(node.fabric.kind), node.device.name,
                            limit_key));
    } else if (node.fabric.bandwidth.value > limit->value * 1.001) {
      add(file, fmt::format("fabric.bandwidth_gb_per_s = {} exceeds {} = {} of {}; both are one direction",
                            number_text(node.fabric.bandwidth.value.value() / giga), limit_key,
                            number_text(limit->value.value() / giga), node.device.name));
    }
    if (node.host && node.host->cpu.kind != DeviceKind::cpu) {
      add(file, fmt::format("host.cpu = {} is not a CPU", node.host->cpu.name));
    }
  }

  void check_cluster(const fs::path& file, const Cluster& cluster) {
    const BytesPerSecond card = cluster.node.network_cards->bandwidth.value;
    if (cluster.fabric.nic_bandwidth.value > card * 1.001) {
      add(file, fmt::format("fabric.nic_bandwidth_gb_per_s = {} exceeds the {} of the cards in {}",
                            number_text(cluster.fabric.nic_bandwidth.value.value() / giga),
                            number_text(card.value() / giga), cluster.node.name));
    }
  }

  fs::path folder_;
  std::vector<DataProblem> problems_;
};

}  // namespace

std::vector<DataProblem> check_hardware_data(const std::filesystem::path& folder) {
  return Checker(folder).run();
}

}  // namespace foretoken
