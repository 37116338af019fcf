// The flags that engines are started with, and the fields of a question (`foretoken schema serve`) that they become.
// Launch lines are read and written by this one table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "compose/serving_engine.h"

namespace foretoken {

enum class LaunchFlagUse : uint8_t {
  value,         // its value is the field's
  on,            // a switch that sets the field
  off,           // a switch that clears it
  derived,       // a value that decides a field together with others (launch_line.cpp)
  derived_on,    // the same of a switch
  derived_list,  // of several words
  harmless,      // a value without effect on speed or memory
  harmless_on,   // a switch without effect
  harmless_list,
  other,     // a value that changes speed in a way that is not simulated
  other_on,  // the same of a switch
};

struct LaunchFlag {
  LaunchStyle style;
  std::string_view names;  // separated by spaces, with dashes for underscores; launch lines are written with the first
  std::string_view field;  // empty for harmless ones and those that are not simulated
  LaunchFlagUse use;

  bool takes_value() const;
  bool takes_list() const { return use == LaunchFlagUse::derived_list || use == LaunchFlagUse::harmless_list; }
};

std::span<const LaunchFlag> launch_flags();

// Null where the engine has no such flag. `name` may have underscores.
const LaunchFlag* find_launch_flag(LaunchStyle style, std::string_view name);

// The flag by which an engine takes a field, as its users write it; empty where it has none.
std::string launch_flag_name(LaunchStyle style, std::string_view field);

// What is written before the flags; {} stands for the model.
std::string_view launch_program(LaunchStyle style);

// Host memory below the KV cache of an engine on so many devices: what its flag says where each device has so many
// bytes, and the bytes of the whole engine that a flag says. vLLM counts GiB of all devices, SGLang GB and TensorRT-LLM
// bytes of each; all of them in whole numbers.
double host_cache_value(LaunchStyle style, int64_t devices, double bytes_each);
double host_cache_bytes(LaunchStyle style, int64_t devices, double value);

// The engine's tensor-parallel size counts the ranks of data-parallel attention too.
bool tensor_size_counts_attention_ranks(LaunchStyle style);

// Data-parallel attention has every rank attend alone: none of them is cut by tensor parallelism.
bool attention_ranks_are_whole(LaunchStyle style);

}  // namespace foretoken
