#include "app/cli/flags/lora_flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "serving/lora/adapter_requests.h"

namespace foretoken {
namespace {

constexpr const char* engine_heading = "LoRA adapters";
constexpr const char* load_heading = "Load: adapters (--enable-lora)";
constexpr int64_t slot_ranks[] = {1, 8, 16, 32, 64, 128, 256, 320, 512};  // vLLM, config/lora.py

}  // namespace

void LoraFlags::declare(Options& options, std::vector<std::string>* slots) {
  options.heading(engine_heading);
  options.flag("--enable-lora", enabled, "Serve LoRA adapters on top of the base model (vllm scheduler only)");
  if (slots != nullptr) {
    options.list(
        "--max-loras", *slots,
        "Maximum numbers of different adapters in one step (adapter slots in GPU memory) to try [4, 16 and 64, "
        "up to the number of adapters]");
  } else {
    options.integer("--max-loras", settings.max_loras, {.least = 1, .most = 100'000},
                    "Maximum number of different adapters in one step (adapter slots in GPU memory)");
  }
  options.integer("--max-cpu-loras", settings.max_cpu_loras, {.least = 0, .most = 10'000'000},
                  "Adapters kept in host memory, including those on the GPU; 0 = same as --max-loras");
  options.integer(
      "--max-lora-rank", settings.max_lora_rank, {.least = 1, .most = 512},
      "Rank of the adapter slots: 1, 8, 16, 32, 64, 128, 256, 320 or 512. LoRA kernels always run at this rank");
  options.integer("--lora-rank", settings.rank, {.least = 0, .most = 512},
                  "Rank of the adapters being served; 0 = same as --max-lora-rank");
  options.list("--lora-target-modules", targets, "Layers that have adapters: attention, mlp [both]");
  options.number("--lora-disk-bandwidth", disk_gb_s, {.least = 1e-3, .most = 1e4},
                 "Disk bandwidth in GB/s for loading an adapter that is not in host memory");
}

void LoraFlags::check_use(const Options& options) const {
  if (enabled) return;
  options.refuse_without("--enable-lora", {"--max-loras", "--max-cpu-loras", "--max-lora-rank", "--lora-rank",
                                           "--lora-target-modules", "--lora-disk-bandwidth"});
}

LoraSettings LoraFlags::read() const {
  LoraSettings result = settings;
  result.disk_bandwidth = BytesPerSecond(disk_gb_s * 1e9);
  if (std::find(std::begin(slot_ranks), std::end(slot_ranks), settings.max_lora_rank) == std::end(slot_ranks)) {
    const auto next = std::upper_bound(std::begin(slot_ranks), std::end(slot_ranks), settings.max_lora_rank);
    throw InputError({.source = "--max-lora-rank",
                      .value = fmt::format("{}", settings.max_lora_rank),
                      .expected = fmt::format("one of {} (vLLM's list)", fmt::join(slot_ranks, ", ")),
                      .suggestion = fmt::format("{}", *next)});
  }
  if (settings.rank > settings.max_lora_rank) {
    throw InputError({.source = "--lora-rank",
                      .value = fmt::format("{}", settings.rank),
                      .expected = fmt::format("at most --max-lora-rank {}", settings.max_lora_rank)});
  }
  if (settings.max_cpu_loras > 0 && settings.max_cpu_loras < settings.max_loras) {
    throw InputError({.source = "--max-cpu-loras",
                      .value = fmt::format("{}", settings.max_cpu_loras),
                      .expected = fmt::format("at least --max-loras {}, or 0", settings.max_loras)});
  }
  if (targets.empty()) return result;
  const std::vector<std::string> known = {"attention", "mlp"};
  result.on_attention = result.on_mlp = false;
  for (const std::string& name : targets) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw InputError({.source = "--lora-target-modules",
                        .value = printable(name),
                        .expected = "attention, mlp or both",
                        .suggestion = nearest_name(name, known).value_or("")});
    }
    (name == "mlp" ? result.on_mlp : result.on_attention) = true;
  }
  return result;
}

void AdapterLoadFlags::declare(Options& options) {
  options.heading(load_heading);
  options.integer("--num-adapters", adapters, {.least = 0, .most = 10'000'000},
                  "Number of different adapters that requests use; 0 = read them from the trace's adapter column");
  options.choice("--adapter-distribution", distribution, {"uniform", "zipf"},
                 "How requests are distributed over the adapters");
  options.number("--adapter-zipf-exponent", zipf_exponent, {.least = 0, .most = 10},
                 "With --adapter-distribution zipf: exponent of the distribution");
  options.number("--adapter-share", share, {.least = 0, .most = 1}, "Share of requests that use an adapter");
}

void AdapterLoadFlags::check_use(const Options& options, bool enabled, bool from_trace) const {
  if (!enabled) options.refuse_without("--enable-lora", {}, {load_heading});
  if (distribution != "zipf") options.refuse({"--adapter-zipf-exponent"}, {}, "--adapter-distribution uniform");
  if (adapters > 0 || !enabled) return;
  options.refuse_without("--num-adapters", {}, {load_heading});
  if (!from_trace) {
    throw InputError(
        {.source = "--enable-lora",
         .expected = "--num-adapters N, or a --trace with an adapter column, to choose the adapter of each request"});
  }
}

LoadMaker AdapterLoadFlags::load(LoadMaker inner) const {
  if (adapters == 0) return inner;
  const AdapterMix mix{
      .adapters = adapters, .zipf_exponent = distribution == "zipf" ? zipf_exponent : 0, .share = share};
  return [inner = std::move(inner), mix](uint64_t seed) { return with_adapters(inner(seed), mix, seed); };
}

}  // namespace foretoken
