// The PrIM benchmarks (Gomez-Luna et al., IEEE Access 10, 2022) as kernels: what each element reads, writes and does,
// and what the host moves. Sizes mean what the data preparation of uPIMulator makes of them (strong scaling).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/pim/estimate.h"

namespace foretoken {

// Instructions, setup and interval are those of the device's program of that name; without one they are zero, and the
// interval is wide. Nothing for a name outside prim_benchmark_names().
std::optional<PimKernel> prim_kernel(const PimDevice& device, std::string_view benchmark, int64_t size, int64_t dpus);

std::vector<std::string> prim_benchmark_names();

}  // namespace foretoken
