// Which serving software runs on which hardware, as its documentation of installation says.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/device.h"

namespace foretoken {

struct Software {
  std::string_view name;     // of an engine's family (vllm, sglang, trtllm) or of software that is only named here
  std::string_view needs;    // what must be installed beside it; empty = nothing
  std::string_view source;   // who says so
  int least_capability = 0;  // of NVIDIA GPUs: compute capability x 10
  std::string_view least_title{};  // the first generation of that capability, in words
};

// Hardware that takes the same builds of software.
struct Platform {
  std::string_view name;   // cuda
  std::string_view title;  // NVIDIA GPUs
  bool (*holds)(const Device& device);
  std::span<const Software> software;
};

std::span<const Platform> platforms();
// Null for hardware that nobody here knows, such as a described accelerator.
const Platform* platform_of(const Device& device);

// What runs on the device; nothing for hardware without a platform.
std::vector<Software> software_of(const Device& device);

// Whether it runs on the device. Hardware without a platform runs what every kind of hardware has been given: software
// with plugins (vLLM), and for GPUs and CPUs also SGLang.
bool software_runs_on(std::string_view name, const Device& device);

// What the software needs on the device beside itself; empty = nothing.
std::string_view software_needs(std::string_view name, const Device& device);

// "NVIDIA GPUs of Ampere and later, AMD GPUs": where it runs.
std::string hardware_of_software(std::string_view name);

}  // namespace foretoken
