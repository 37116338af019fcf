#include "report/serving/lora_report.h"

#include <fmt/format.h>

#include "base/simulated_time.h"
#include "base/text.h"

namespace foretoken {
namespace {

double loading_share(const LoraReport& report) {
  return report.duration_s > 0 ? to_seconds(report.counts.loads.time).value() / report.duration_s : 0;
}

}  // namespace

std::string lora_text(const LoraReport& report) {
  const LoraCounts& counts = report.counts;
  const Bytes slots = report.slot_bytes * static_cast<double>(report.settings.max_loras);
  std::string text = "LoRA adapters\n";
  text += fmt::format("{:<28} {:>10}   of rank {}, {} each, {} of GPU memory in total\n", "Slots",
                      report.settings.max_loras, report.settings.max_lora_rank, bytes_text(report.slot_bytes.value()),
                      bytes_text(slots.value()));
  text += fmt::format("{:<28} {:>10.2f}   at most {}\n", "Adapters in a step, mean", counts.mean_adapters(),
                      counts.most_adapters);
  text += fmt::format("{:<28} {:>10}   {:.2f} ms each\n", "Loaded to the device", counts.loads.from_host,
                      report.loading.from_host.value() * 1e3);
  text += fmt::format("{:<28} {:>10}   {:.2f} ms each, before that\n", "of them from disk", counts.loads.from_disk,
                      report.loading.from_disk.value() * 1e3);
  text +=
      fmt::format("{:<28} {:>9.1f}%   of the run's time\n", "Steps waited for adapters", 100 * loading_share(report));
  return text;
}

Json lora_json(const LoraReport& report) {
  const LoraCounts& counts = report.counts;
  return Json::object({{"max_loras", report.settings.max_loras},
                       {"max_lora_rank", report.settings.max_lora_rank},
                       {"slot_bytes", report.slot_bytes.value()},
                       {"adapter_bytes", report.adapter_bytes.value()},
                       {"load_from_host_ms", report.loading.from_host.value() * 1e3},
                       {"load_from_disk_ms", report.loading.from_disk.value() * 1e3},
                       {"steps_with_adapters", counts.steps},
                       {"mean_adapters", counts.mean_adapters()},
                       {"most_adapters", counts.most_adapters},
                       {"loads", counts.loads.from_host},
                       {"loads_from_disk", counts.loads.from_disk},
                       {"loading_s", to_seconds(counts.loads.time).value()}});
}

}  // namespace foretoken
