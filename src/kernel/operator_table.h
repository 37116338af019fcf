// Tables of operators on several devices in one file, as NeuSight, LLMCompass and AMD's aiter publish them: `device` is
// a column, not a folder. Recognised by their columns; docs/kernels.md lists them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "model/shapes.h"

namespace foretoken {

enum class OperatorTableKind {
  neusight_matmul,  // op linear or bmm, batch, m, n, k; fp32
  neusight_vector,  // op add ... ln on [rows, cols]; fp32
  neusight_conv,    // square images and kernels; fp32
  neusight_trace,   // nodes of a traced model: op, fw_ops, in_shapes, fw_us; fp32
  llmcompass,       // op, m, n, k, latency_ms; fp16
  aiter_gemm,       // dtype, m, n, k: the fastest kernel that AMD's tuner found
  aiter_moe,        // fused expert layers of the same tuner
};

// Nothing for columns that are none of these.
std::optional<OperatorTableKind> operator_table_kind(const std::vector<std::string>& columns);

struct OperatorRow {
  KernelShape shape;
  std::string variant;  // "eager <op>": these tables time calls of a framework with events, host gap included
  int64_t copied = 0;   // elements that the call copies before its kernel, in a kernel of their own
  bool tuned = false;   // TableRow::tuned
};

// Reads the rows of one such file; columns are looked up once.
class OperatorRowReader {
 public:
  OperatorRowReader(OperatorTableKind kind, const CsvReader& csv);

  std::string_view device(const CsvReader& csv) const { return csv.cell(device_); }
  // The kernel family of the current row; empty for what is no kernel (views, collectives).
  std::string_view family(const CsvReader& csv) const;
  // Nothing, and the reason in `why`, for a row that cannot be expressed; InputError for broken numbers.
  std::optional<OperatorRow> read(const CsvReader& csv, std::string& why) const;
  double measured_us(const CsvReader& csv) const;

 private:
  std::string_view op(const CsvReader& csv) const;
  int64_t size(const CsvReader& csv, size_t column) const;
  std::optional<OperatorRow> tuned_gemm(const CsvReader& csv, std::string& why) const;
  std::optional<OperatorRow> tuned_experts(const CsvReader& csv, std::string& why) const;

  OperatorTableKind kind_;
  size_t device_ = 0, time_ = 0;
  std::optional<size_t> op_;
  double to_us_ = 1;
  std::vector<size_t> sizes_;  // columns of the sizes, in the order of the format
  std::vector<size_t> words_;  // of its other columns
};

}  // namespace foretoken
