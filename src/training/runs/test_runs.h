// Made-up training runs of a made-up source on a cluster of the library, for tests of fits and validations.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hardware/catalogue.h"
#include "training/runs/training_case.h"
#include "training/test_machine.h"

namespace foretoken::training_test {

// A small GPT on H100s.
inline TrainingRow made_up_run(const std::string& id) {
  return {.row = 1,
          .id = id,
          .source = "made-up",
          .model = "Tiny-GPT",
          .task = "pretrain",
          .layers = 8,
          .hidden = 2048,
          .heads = 16,
          .kv_heads = 16,
          .head_dim = 128,
          .ffn = 8192,
          .vocab = 32000,
          .seq = 2048,
          .dense_layers = 8,
          .attn = "mha",
          .gpu = "H100",
          .gpus_per_node = 8,
          .n_gpus = 8,
          .dp = 8,
          .micro_batch = 1,
          .global_batch = 8,
          .dtype = "bf16",
          .recompute = "none",
          .primary = "iter_time_s",
          .config_grade = "A"};
}

inline const HardwareCatalogue& library_hardware() {
  static const HardwareCatalogue catalogue(FORETOKEN_SOURCE_DIR "/data/hardware");
  return catalogue;
}

// Kernels by roofline.
inline TrainingCaseLibrary made_up_library(std::vector<TrainingStack> stacks) {
  return {std::move(stacks),
          {{.gpu = "H100", .cluster = "h100_ib_rail", .sources = {}}},
          library_hardware(),
          [](const Cluster& cluster) { return roofline_machine(cluster); }};
}

}  // namespace foretoken::training_test
