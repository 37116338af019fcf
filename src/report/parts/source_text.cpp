#include "report/parts/source_text.h"

#include <fmt/format.h>

#include "report/parts/json_parts.h"

namespace foretoken {

std::string source_text(const StepSources& sources, std::string_view time) {
  if (sources.mapped > 0 && sources.measured + sources.other_devices > 0) {
    return fmt::format(
        "{:.0f}% of {} comes from mappings onto the design, {} from kernels measured on this device, {} from other "
        "devices, {} from spec sheets",
        100 * sources.mapped, time, share_words(sources.measured), share_words(sources.other_devices),
        share_words(sources.sheets));
  }
  if (sources.mapped > 0) {
    return fmt::format("{:.0f}% of {} comes from mappings onto the design, {:.0f}% from its roofline",
                       100 * sources.mapped, time, 100 * (1 - sources.mapped));
  }
  return fmt::format("{} of {} comes from kernels measured on this device, {} from other devices, {} from spec sheets",
                     share_words(sources.measured), time, share_words(sources.other_devices),
                     share_words(sources.sheets));
}

Json to_json(const StepSources& sources) {
  return Json::object({{"measured", sources.measured},
                       {"other_devices", sources.other_devices},
                       {"mapped", sources.mapped},
                       {"sheets", sources.sheets}});
}

}  // namespace foretoken
