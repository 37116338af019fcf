#include "accelerator/pim/prim_benchmarks.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/kinds.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

struct PrimSize {
  int64_t size = 0;
  int64_t dpus = 1;
  Bytes host_cache;

  double elements() const { return static_cast<double>(size); }
  double share() const { return static_cast<double>((size + dpus - 1) / dpus); }  // of the DPU with the most
};

constexpr double word = 4;         // int32: VA, GEMV, MLP, HST, TS
constexpr double double_word = 8;  // int64: the others
constexpr double gemv_columns = 64;
constexpr double histogram_bins = 256;
constexpr double mlp_layers = 3;
constexpr double ts_query = 64;
constexpr int64_t prim_tasklets = 16;

PimTransfer inputs(double bytes) {
  return {.phase = PimPhase::to_dpus, .kind = PimTransferKind::to_dpus, .bytes = Bytes(bytes)};
}

// The host computes its own answer right before it sends: inputs that fit its cache come out of it.
PimTransfer inputs_just_read(const PrimSize& at, double bytes) {
  PimTransfer transfer = inputs(bytes);
  if (Bytes(bytes) <= at.host_cache) transfer.kind = PimTransferKind::to_dpus_cached;
  return transfer;
}

PimTransfer broadcast(double bytes) {
  return {.phase = PimPhase::to_dpus, .kind = PimTransferKind::broadcast, .bytes = Bytes(bytes)};
}

PimTransfer results(double bytes, PimTransferKind kind = PimTransferKind::from_dpus) {
  return {.phase = PimPhase::from_dpus, .kind = kind, .bytes = Bytes(bytes)};
}

// What every thread leaves in its DPU's scratchpad.
PimTransfer thread_results(PimPhase phase, const PrimSize& at, double bytes_per_thread) {
  const double bytes = bytes_per_thread * static_cast<double>(prim_tasklets * at.dpus);
  return {.phase = phase, .kind = PimTransferKind::scratchpad, .bytes = Bytes(bytes)};
}

// Vector addition.
PimKernel va(const PrimSize& at) {
  return {.elements_per_dpu = at.share(),
          .read_per_element = Bytes(2 * word),
          .written_per_element = Bytes(word),
          .resident_per_dpu = Bytes(3 * word * at.share()),
          .transfers = {inputs_just_read(at, 2 * word * at.elements()), results(word * at.elements())}};
}

// Matrix times vector, an element being a multiply-add; the size is its rows.
PimKernel gemv(const PrimSize& at) {
  const double row_bytes = word * gemv_columns;
  return {
      .elements_per_dpu = gemv_columns * at.share(),
      .read_per_element = Bytes(2 * word),
      .written_per_element = Bytes(word / gemv_columns),
      .block = Bytes(row_bytes),
      .resident_per_dpu = Bytes((row_bytes + word) * at.share()),
      .transfers = {inputs(row_bytes * (at.elements() + static_cast<double>(at.dpus))), results(word * at.elements())}};
}

// Three layers of a square matrix each; the weights of the next layer are sent between kernels.
PimKernel mlp(const PrimSize& at) {
  const double matrix_bytes = word * at.elements() * at.elements();
  const double vector_bytes = word * at.elements();
  const auto dpus = static_cast<double>(at.dpus);
  PimKernel kernel{.elements_per_dpu = mlp_layers * at.elements() * at.share(),
                   .read_per_element = Bytes(2 * word),
                   .resident_per_dpu = Bytes(word * at.elements() * at.share()),
                   .transfers = {inputs(matrix_bytes), results(vector_bytes)}};
  for (int layer = 1; layer < static_cast<int>(mlp_layers); ++layer) {
    for (PimTransfer transfer : {results(vector_bytes), broadcast(vector_bytes * dpus), inputs(matrix_bytes)}) {
      transfer.phase = PimPhase::between_dpus;
      kernel.transfers.push_back(transfer);
    }
  }
  return kernel;
}

// Histograms: one per thread (short) or one that all threads share under locks (long).
PimKernel histogram(const PrimSize& at) {
  return {.elements_per_dpu = at.share(),
          .read_per_element = Bytes(word),
          .resident_per_dpu = Bytes(word * at.share()),
          .transfers = {inputs(word * at.elements()), results(word * histogram_bins * static_cast<double>(at.dpus))}};
}

PimKernel reduction(const PrimSize& at) {
  return {.elements_per_dpu = at.share(),
          .read_per_element = Bytes(double_word),
          .resident_per_dpu = Bytes(double_word * at.share()),
          .transfers = {inputs(double_word * at.elements()), thread_results(PimPhase::from_dpus, at, 2 * double_word)}};
}

PimKernel scan_with(const PrimSize& at, double reads, double writes) {
  return {.elements_per_dpu = at.share(),
          .read_per_element = Bytes(reads * double_word),
          .written_per_element = Bytes(writes * double_word),
          .resident_per_dpu = Bytes(2 * double_word * at.share()),
          .transfers = {inputs_just_read(at, double_word * at.elements()), results(double_word * at.elements()),
                        thread_results(PimPhase::between_dpus, at, double_word)}};
}

// Scan-scan-add passes twice over data in and out; reduce-scan-scan only reads in its first pass.
PimKernel scan_ssa(const PrimSize& at) {
  return scan_with(at, 2, 2);
}
PimKernel scan_rss(const PrimSize& at) {
  return scan_with(at, 2, 1);
}

// Select and unique keep every other element; what is kept differs by DPU, so it is fetched one DPU after the other.
PimKernel filter(const PrimSize& at) {
  constexpr double kept = 0.5;
  return {.elements_per_dpu = at.share(),
          .read_per_element = Bytes(double_word),
          .written_per_element = Bytes(kept * double_word),
          .resident_per_dpu = Bytes((1 + kept) * double_word * at.share()),
          .transfers = {inputs_just_read(at, double_word * at.elements()),
                        results(kept * double_word * at.elements(), PimTransferKind::from_dpus_serial)}};
}

// Every DPU has the whole array and searches its share of one query per eight elements; an element is one step.
PimKernel binary_search(const PrimSize& at) {
  const auto dpus = static_cast<double>(at.dpus);
  const double queries = std::ceil(at.elements() / 8 / dpus);
  const double steps = std::max(1.0, portable_log(at.elements()) / portable_log(2));
  return {.elements_per_dpu = queries * steps,
          .read_per_element = Bytes(double_word),
          .block = Bytes(double_word),
          .resident_per_dpu = Bytes(double_word * (at.elements() + queries)),
          .transfers = {broadcast(double_word * dpus * (at.elements() + queries)),
                        thread_results(PimPhase::from_dpus, at, double_word)}};
}

// Time series: the dot product of a query with every window; blocks of the series twice, the query, means and sigmas.
PimKernel time_series(const PrimSize& at) {
  const auto unit = static_cast<int64_t>(ts_query) * prim_tasklets * at.dpus;
  const PrimSize padded{.size = (at.size + unit - 1) / unit * unit, .dpus = at.dpus, .host_cache = at.host_cache};
  return {.elements_per_dpu = padded.share(),
          .read_per_element = Bytes(5 * word),
          .block = Bytes(word * ts_query),
          .resident_per_dpu = Bytes(3 * word * padded.share()),
          .transfers = {inputs(3 * word * padded.elements()), thread_results(PimPhase::from_dpus, at, 4 * word)}};
}

// Transposition of tiles: inside each tile, then the rows of tiles along cycles of the permutation, under one lock.
// That lock makes a row as long as eleven and a half elements of the first step (counted from the program's source).
PimKernel transposition(const PrimSize& at) {
  constexpr double row_in_elements = 11.5;
  const bool is_alone = at.dpus == 1;
  const double columns = is_alone ? 1 : 64;  // of blocks, dealt to the DPUs in rounds
  const double row = is_alone ? 16 : 4;
  const double rows = is_alone ? 4 : 8;
  const double rounds = std::ceil(columns / static_cast<double>(at.dpus));
  const double tiles = at.elements();  // in one column
  const double column_bytes = double_word * row * rows * tiles;
  PimTransfer in = inputs(column_bytes * columns);
  in.calls = rounds * tiles * row;
  PimTransfer out = results(column_bytes * columns);
  out.calls = rounds;
  return {.elements_per_dpu = rounds * tiles * rows * (row + row_in_elements),
          .read_per_element = Bytes(double_word),
          .written_per_element = Bytes(double_word),
          .block = Bytes(double_word * row),
          .resident_per_dpu = Bytes(column_bytes),
          .transfers = {in, out}};
}

struct PrimBenchmark {
  std::string_view name;
  PimKernel (*kernel)(const PrimSize& at);
};

// Add your line here, and the program's constants to the device's file.
constexpr PrimBenchmark prim_benchmarks[] = {
    {"BS", binary_search},
    {"GEMV", gemv},
    {"HST-L", histogram},
    {"HST-S", histogram},
    {"MLP", mlp},
    {"RED", reduction},
    {"SCAN-RSS", scan_rss},
    {"SCAN-SSA", scan_ssa},
    {"SEL", filter},
    {"TRNS", transposition},
    {"TS", time_series},
    {"UNI", filter},
    {"VA", va},
};

}  // namespace

std::optional<PimKernel> prim_kernel(const PimDevice& device, std::string_view benchmark, int64_t size, int64_t dpus) {
  ensure(size > 0 && dpus > 0, "a benchmark has elements and DPUs");
  const auto* known = std::find_if(std::begin(prim_benchmarks), std::end(prim_benchmarks),
                                   [&](const PrimBenchmark& candidate) { return candidate.name == benchmark; });
  if (known == std::end(prim_benchmarks)) return std::nullopt;
  PimKernel kernel = known->kernel({.size = size, .dpus = dpus, .host_cache = device.host_cache.value});
  kernel.dpus = dpus;
  if (const auto program = device.programs.find(benchmark); program != device.programs.end()) {
    kernel.instructions_per_element = program->second.instructions_per_element;
    kernel.setup = program->second.setup;
    kernel.relative_error = program->second.relative_error;
    if (const std::optional<PimMeasured>& measured = program->second.measured) {  // others say how wrong they may be
      kernel.dpus_are_measured = dpus >= measured->least_dpus && dpus <= measured->most_dpus;
      constexpr double rounding = 1e-9;  // of elements that are a product with a logarithm
      kernel.is_outside = !kernel.dpus_are_measured ||
                          kernel.elements_per_dpu < measured->least_elements * (1 - rounding) ||
                          kernel.elements_per_dpu > measured->most_elements * (1 + rounding);
      kernel.confidence = kernel.is_outside ? Confidence::extrapolated : Confidence::interpolated;
    }
  }
  return kernel;
}

std::vector<std::string> prim_benchmark_names() {
  return kind_names(prim_benchmarks);
}

}  // namespace foretoken
