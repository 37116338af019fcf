// What the page may ask the program to run: commands and fields by name, and nothing that names a file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/range.h"

namespace foretoken {

enum class PageFlagKind {
  value,         // a number, a switch, a choice or a list of them
  model,         // a name of the library; the flag itself would also take a file
  device,        // the same
  device_count,  // the same with a number behind: h100_sxm:8
  cluster,       // the same
  stack,         // the same
  job_stack,     // the same, of training
  design,        // an accelerator that ships
  layers,        // a network that ships, by its layers
  edge_device,   // a device, or a CPU that ships a sweep
  fusion,        // rules that ship
  graph_upload,  // the content of a file: upload.h
  run_upload     // the same, of a measured run
};

struct PageFlag {
  std::string_view name;  // of the field: num_prompts
  PageFlagKind kind = PageFlagKind::value;
  Range<int64_t> allowed = {};  // of whole numbers: where a larger one would keep the server busy for hours
};

struct PageCommand {
  std::string_view name;  // "step", "plan serve"
  std::span<const PageFlag> flags;
  std::string_view unless_given = "{}";  // fields, as JSON, that bound what it may cost
};

std::span<const PageCommand> page_commands();

}  // namespace foretoken
