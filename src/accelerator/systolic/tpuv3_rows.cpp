#include "accelerator/systolic/tpuv3_rows.h"

#include <algorithm>
#include <array>

#include "accelerator/systolic/chip_networks.h"
#include "base/csv.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr int64_t largest_named_size = 1 << 20;

// "256x128x64" as sizes; none unless there are `count` of them within limits. Only a padding may be 0.
std::vector<int64_t> named_sizes(std::string_view text, size_t count) {
  std::vector<int64_t> sizes;
  for (const std::string_view piece : split(text, "x")) {
    const auto size = parse_integer(piece);
    if (!size || *size < 0 || *size > largest_named_size) return {};
    sizes.push_back(*size);
  }
  if (sizes.size() != count) return {};
  return sizes;
}

bool all_positive(const std::vector<int64_t>& sizes) {
  return !sizes.empty() && std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size > 0; });
}

std::string_view family_of(std::string_view workload) {
  return workload.substr(0, workload.find_first_of("_0123456789"));
}

std::optional<ChipWork> named_convolution(std::string_view text) {
  const std::vector<int64_t> sizes = named_sizes(text, 8);
  if (sizes.empty() || !all_positive({sizes.begin(), sizes.end() - 1})) return std::nullopt;
  const PaddedConvolution size{.batch = sizes[0],
                               .height = sizes[1],
                               .width = sizes[2],
                               .input_channels = sizes[3],
                               .output_channels = sizes[4],
                               .kernel = sizes[5],
                               .stride = sizes[6],
                               .padding = sizes[7]};
  if (size.kernel > size.height + 2 * size.padding || size.kernel > size.width + 2 * size.padding) return std::nullopt;
  return convolution_work(size);
}

struct NamedBert {
  std::string_view name;
  int64_t hidden;
  int64_t heads;
};

constexpr std::array named_berts = {NamedBert{"base", 768, 12}, NamedBert{"large", 1024, 16},
                                    NamedBert{"xlarge", 2048, 32}};

}  // namespace

std::optional<ChipWork> named_work(std::string_view workload) {
  const std::string_view family = family_of(workload);
  std::string_view rest = workload.substr(family.size());
  if (family == "resnet") {
    for (const int64_t layers : {18, 34, 50, 101, 152}) {
      if (rest == std::to_string(layers)) return resnet_work(layers, 1);
    }
    return std::nullopt;
  }
  if (rest.empty() || rest.front() != '_') return std::nullopt;
  rest.remove_prefix(1);
  if (family == "conv") return named_convolution(rest);
  if (family == "bert") {
    for (const NamedBert& bert : named_berts) {
      if (rest == bert.name) return bert_block_work(bert.hidden, bert.heads, 512);
    }
    return std::nullopt;
  }
  const bool is_pair = family == "softmax" || family == "layernorm";
  const std::vector<int64_t> sizes = named_sizes(rest, is_pair ? 2 : 3);
  if (!all_positive(sizes)) return std::nullopt;
  if (family == "softmax") return softmax_work(sizes[0], sizes[1]);
  if (family == "layernorm") return layernorm_work(sizes[0], sizes[1]);
  if (family == "gemm") return gemm_work(sizes[0], sizes[1], sizes[2]);
  if (family == "attention") return attention_work(sizes[0], sizes[1], sizes[2]);
  return std::nullopt;
}

std::vector<TpuV3Row> read_tpuv3_rows(const std::filesystem::path& path) {
  CsvReader csv(path, {.max_bytes = size_t{16} << 20});
  const size_t workload = csv.column("workload");
  const size_t cycles = csv.column("tpuv3_cycles");
  std::vector<TpuV3Row> rows;
  while (csv.next()) {
    TpuV3Row row{.row = csv.row(),
                 .workload = std::string(csv.cell(workload)),
                 .family = std::string(family_of(csv.cell(workload))),
                 .measured_cycles = csv.number(cycles, {1, 1e15})};
    if (const auto work = named_work(row.workload)) {
      row.work = *work;
    } else {
      row.why_not = "no workload of this name is known";
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace foretoken
