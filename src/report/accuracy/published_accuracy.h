// How far predictions are from measurements, by group of rows: data/accuracy/published.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

struct PublishedGroup {
  std::string layer;  // kernels (attention is one of them), collectives, steps, serving, training, edge, accelerators
  std::string group;  // "gemm, NVIDIA H100 80GB HBM3": the device or system comes last
  std::string seen;   // what fits had seen of its rows: "unseen", "fitted"
  std::string source;
  int64_t rows = 0;
  double mean_error = 0;              // of single rows, percent
  std::optional<double> in_interval;  // rows inside their 90% intervals, percent

  std::string_view system() const;  // the last part of `group`
};

// In the order of the file. InputError, with the path inside the file, for what is missing or out of range.
std::vector<PublishedGroup> read_published_accuracy(const std::filesystem::path& path);
std::vector<PublishedGroup> parse_published_accuracy(std::string_view text, const std::string& source);

}  // namespace foretoken
