// Parts of a page about energy and money.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "report/drawing/html_page.h"
#include "report/parts/energy_report.h"

namespace foretoken {

// What devices cost while they work.
struct RentedWork {
  std::string device;
  int64_t devices = 1;
  double usd_per_device_hour = 0;
  std::string price_source;
  double tokens_per_second = 0;  // of all devices
  std::string tokens;            // which: "output tokens"
};
void add_rent(HtmlPage& page, const RentedWork& work);

// What the boards of a serving run draw, cost and emit, with what was taken for it.
void add_energy(HtmlPage& page, const EnergyReport& report);

}  // namespace foretoken
