// Parts of a page about steps of a model: where their time goes, and their operators on the device's roofline.
#pragma once

#include <vector>

#include "hardware/device.h"
#include "report/drawing/html_page.h"
#include "report/serving/serving_breakdown.h"

namespace foretoken {

// Time of all steps by operator, as one bar.
void add_operator_times(HtmlPage& page, const std::vector<TypicalStep>& steps, const std::string& title,
                        const std::string& caption);

// The slowest operators of each step, with a table of what the figure shows. Says nothing where the device's sheet has
// no roofline. Steps are of this device.
void add_roofline(HtmlPage& page, const std::vector<TypicalStep>& steps, const Device& device);

}  // namespace foretoken
