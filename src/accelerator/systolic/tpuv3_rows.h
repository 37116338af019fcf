// Measured cycles on a core of TPU v3 (the table of PyTorchSim's artifact): workload names to work for the chip.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/systolic/chip_work.h"

namespace foretoken {

struct TpuV3Row {
  size_t row = 0;
  std::string workload;  // gemm_256x256x256
  std::string family;    // gemm
  double measured_cycles = 0;
  ChipWork work;
  std::string why_not;  // not empty: no work is known for the name
};

// Columns workload and tpuv3_cycles; others are passed over.
std::vector<TpuV3Row> read_tpuv3_rows(const std::filesystem::path& path);

// gemm_MxKxN, conv_BATCHxHxWxCINxCOUTxKERNELxSTRIDExPAD, softmax_ROWSxCOLS, layernorm_ROWSxCOLS,
// attention_HEADSxSEQxDIM, resnetN, bert_base|large|xlarge (one block, sequence 512); nothing for another name.
std::optional<ChipWork> named_work(std::string_view workload);

}  // namespace foretoken
