#include "accelerator/systolic/tpu_v1_counters.h"

#include "base/json.h"

namespace foretoken {
namespace {

constexpr Range<double> counter_percent{0, 100};

TpuV1Workload tpu_v1_workload_in(const JsonView& entry, const SystolicChip& chip) {
  entry.allow_only({"name", "note", "cell_share", "cycles_per_row", "parts", "published"});
  TpuV1Workload workload{.name = entry.at("name").string()};
  const double cell_share = entry.at("cell_share").number({0.01, 1});
  const double cycles_per_row = entry.at("cycles_per_row").number({1, 4});
  for (const JsonView& part : entry.at("parts").items()) {
    workload.parts.push_back({.weights = part.at("weights").number({1, 1e12}),
                              .rows = part.at("rows").number({1, 1e9}),
                              .cell_share = cell_share,
                              .cycles_per_row = cycles_per_row});
  }
  const JsonView published = entry.at("published");
  const auto share = [&](std::string_view name) { return published.at(name).number(counter_percent) / 100; };
  workload.counters = {.active = share("active"),
                       .useful = share("useful"),
                       .weight_stall = share("weight_stall"),
                       .weight_shift = share("weight_shift"),
                       .non_matrix = share("non_matrix")};
  workload.tops = published.at("tops").number({0.001, 1e6});
  workload.counted_tops = workload.counters.useful * chip.peak().value() / 1e12 / cycles_per_row;
  workload.authors_model_error_percent = published.at("authors_model_error").number(counter_percent);
  workload.weight_bound = published.at("weight_bound").boolean();
  return workload;
}

}  // namespace

TpuV1Figures read_tpu_v1_figures(const std::filesystem::path& path, const SystolicChip& chip) {
  const Json document = read_json_file(path, {.max_bytes = size_t{1} << 20});
  const JsonView file(document, path.string());
  file.allow_only({"about", "workloads", "throughput", "tiles"});
  TpuV1Figures figures;
  for (const JsonView& entry : file.at("workloads").items()) {
    figures.workloads.push_back(tpu_v1_workload_in(entry, chip));
  }
  for (const JsonView& entry : file.at("throughput").items()) {
    figures.throughput.push_back({.workload = entry.at("workload").string(),
                                  .batch = entry.at("batch").number({1, 1e6}),
                                  .host_share = entry.at("host_share").number({0, 10}),
                                  .inferences_per_second = entry.at("inferences_per_second").number({1, 1e9})});
  }
  constexpr Range<int64_t> size{1, 1 << 20};
  for (const JsonView& entry : file.at("tiles").items()) {
    figures.tiles.push_back({.matrix_rows = entry.at("matrix_rows").integer(size),
                             .matrix_columns = entry.at("matrix_columns").integer(size),
                             .array_side = entry.at("array_side").integer(size),
                             .tiles = entry.at("tiles").integer(size),
                             .microseconds = entry.at("microseconds").number({0.001, 1e9})});
  }
  return figures;
}

}  // namespace foretoken
