// Where kernel times come from: --tier and --calibration, wherever kernels are priced.
#pragma once

#include <string>

#include "app/cli/grammar/options.h"

namespace foretoken {

// Both flags.
void declare_kernel_source(Options& options, std::string& tier);
// --calibration alone, for commands that choose the tier themselves. Options keep the folder; whoever asks the command
// (question.h) opens the library with it.
void declare_calibration(Options& options);
// --deployment: a deployment that `foretoken calibrate` wrote. Options keep the file, as above.
void declare_deployment(Options& options);
// --tier alone: of flags inside a setting, whose calibrations are those of the whole command.
void declare_tier(Options& options, std::string& tier);

}  // namespace foretoken
