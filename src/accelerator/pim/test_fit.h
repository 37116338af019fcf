// How the constants of data/accelerators/pim were made: what no data sheet says about a PIM machine, from measured
// runs.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "accelerator/pim/device.h"
#include "accelerator/pim/prim_benchmarks.h"
#include "accelerator/pim/prim_rows.h"
#include "base/error.h"
#include "base/statistics.h"

namespace foretoken::pim_fit {

struct RelativeFitRow {
  std::vector<double> columns;  // as many in every row
  double measured = 0;          // above zero
};

// The weighted normal equations of columns / measured against 1.
struct NormalEquations {
  std::vector<std::vector<double>> products;
  std::vector<double> targets;
};

inline NormalEquations normal_equations(std::span<const RelativeFitRow> rows, std::span<const double> weights) {
  const size_t count = rows.front().columns.size();
  NormalEquations equations{.products = std::vector(count, std::vector<double>(count)),
                            .targets = std::vector<double>(count)};
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t a = 0; a < count; ++a) {
      const double share = rows[i].columns[a] / rows[i].measured;
      equations.targets[a] += weights[i] * share;
      for (size_t b = 0; b < count; ++b) {
        equations.products[a][b] += weights[i] * share * rows[i].columns[b] / rows[i].measured;
      }
    }
  }
  return equations;
}

// Coordinate descent on a convex quadratic: each unknown is set to its best, again and again.
inline void descend(const NormalEquations& equations, std::vector<double>& coefficients) {
  constexpr int rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    for (size_t a = 0; a < coefficients.size(); ++a) {
      if (equations.products[a][a] <= 0) continue;
      double rest = equations.targets[a];
      for (size_t b = 0; b < coefficients.size(); ++b) {
        if (b != a) rest -= equations.products[a][b] * coefficients[b];
      }
      coefficients[a] = std::max(0.0, rest / equations.products[a][a]);
    }
  }
}

// Coefficients, none below zero, with the least sum of |columns . coefficients / measured - 1|; zero for a column that
// is zero in every row. Deterministic.
//
// Least absolute errors by reweighted least squares; errors below the floor count as squares.
inline std::vector<double> fit_relative(std::span<const RelativeFitRow> rows) {
  ensure(!rows.empty(), "there are rows to fit");
  constexpr double floor = 0.01;
  constexpr int rounds = 30;
  std::vector<double> coefficients(rows.front().columns.size());
  std::vector<double> weights(rows.size(), 1);
  for (int round = 0; round < rounds; ++round) {
    descend(normal_equations(rows, weights), coefficients);
    for (size_t i = 0; i < rows.size(); ++i) {
      double predicted = 0;
      for (size_t a = 0; a < coefficients.size(); ++a) predicted += coefficients[a] * rows[i].columns[a];
      weights[i] = 1 / std::max(floor, std::abs(predicted / rows[i].measured - 1));
    }
  }
  return coefficients;
}

inline constexpr size_t least_rows = 3;

struct KernelSample {
  double elements = 0;  // of a DPU; more where threads wait for the busiest
  Seconds measured;
};

struct TransferSample {
  PimTransferKind kind = PimTransferKind::to_dpus;
  size_t row = 0;
  double dpus = 0;
  Bytes bytes;
  double calls = 1;
  Seconds measured;
};

// Inputs out of the cache and beyond it are fitted together, so that the cache never makes them slower.
inline PimTransferKind fitted_with(PimTransferKind kind) {
  return kind == PimTransferKind::to_dpus_cached ? PimTransferKind::to_dpus : kind;
}

// With a single DPU there is no difference between these, so a run on one speaks of all of them.
inline constexpr std::array to_one_dpu = {PimTransferKind::to_dpus, PimTransferKind::to_dpus_cached,
                                          PimTransferKind::broadcast};
inline constexpr std::array from_one_dpu = {PimTransferKind::from_dpus, PimTransferKind::from_dpus_serial};

struct PimSamples {
  std::map<std::string, std::vector<KernelSample>> kernels;
  std::map<PimTransferKind, std::vector<TransferSample>> transfers;  // by fitted_with
};

inline Seconds measured_phase(const PrimRow& row, PimPhase phase) {
  if (phase == PimPhase::to_dpus) return row.to_dpus;
  return phase == PimPhase::from_dpus ? row.from_dpus : row.between_dpus;
}

inline void add_transfer(PimSamples& samples, TransferSample sample) {
  const auto share = [&](std::span<const PimTransferKind> kinds) {
    if (std::find(kinds.begin(), kinds.end(), sample.kind) == kinds.end()) return false;
    for (const PimTransferKind kind : kinds) {
      sample.kind = kind;
      samples.transfers[fitted_with(kind)].push_back(sample);
    }
    return true;
  };
  if (sample.dpus == 1 && (share(to_one_dpu) || share(from_one_dpu))) return;
  samples.transfers[fitted_with(sample.kind)].push_back(sample);
}

inline PimSamples samples_of(const PimDevice& device, std::span<const PrimRow> rows) {
  PimSamples samples;
  for (const PrimRow& row : rows) {
    auto kernel = prim_kernel(device, row.benchmark, row.size, row.dpus);
    if (!kernel || !pim_kernel_fits(device, *kernel)) continue;
    kernel->instructions_per_element = 1;
    const double elements = estimate_pim(device, *kernel).pipeline_cycles;
    if (row.kernel > Seconds(0)) samples.kernels[row.benchmark].push_back({elements, row.kernel});
    for (const PimTransfer& transfer : kernel->transfers) {
      const Seconds measured = measured_phase(row, transfer.phase);
      // A phase of several transfers does not say which of them took how long.
      const auto of_phase = std::count_if(kernel->transfers.begin(), kernel->transfers.end(),
                                          [&](const PimTransfer& other) { return other.phase == transfer.phase; });
      if (measured <= Seconds(0) || of_phase > 1) continue;
      add_transfer(samples,
                   {transfer.kind, row.row, static_cast<double>(row.dpus), transfer.bytes, transfer.calls, measured});
    }
  }
  return samples;
}

inline void fit_program(std::span<const KernelSample> samples, Hertz clock, PimProgram& program) {
  std::vector<RelativeFitRow> rows;
  for (const KernelSample& sample : samples) rows.push_back({{1, sample.elements}, sample.measured.value()});
  const std::vector<double> fitted = fit_relative(rows);
  program.setup = Seconds(fitted[0]);
  program.instructions_per_element = fitted[1] * clock.value();
}

// Costs per byte at each number of DPUs that was measured: never more on more DPUs (unless one DPU comes after the
// other), and for inputs beyond the cache the cost of cached ones and something on top.
inline void fit_transfer_group(std::span<const TransferSample> samples, PimDevice& device) {
  std::set<double> counts;
  std::set<PimTransferKind> kinds;
  // Scratchpads are emptied word by word, whatever the number of DPUs: one rate.
  const auto count_of = [](const TransferSample& sample) {
    return sample.kind == PimTransferKind::scratchpad ? 1 : sample.dpus;
  };
  for (const TransferSample& sample : samples) {
    counts.insert(count_of(sample));
    kinds.insert(sample.kind);
  }
  const bool has_cached = kinds.contains(PimTransferKind::to_dpus_cached);
  std::vector<RelativeFitRow> rows;
  for (const TransferSample& sample : samples) {
    const bool is_serial = sample.kind == PimTransferKind::from_dpus_serial;
    const bool is_beyond_cache = has_cached && sample.kind == PimTransferKind::to_dpus;
    RelativeFitRow row{.columns = {sample.calls, sample.calls * sample.dpus}, .measured = sample.measured.value()};
    for (const double dpus : counts) {
      const bool counts_here = is_serial ? dpus == count_of(sample) : dpus >= count_of(sample);
      row.columns.push_back(counts_here ? sample.bytes.value() : 0);
    }
    for (const double dpus : counts) {
      row.columns.push_back(is_beyond_cache && dpus >= count_of(sample) ? sample.bytes.value() : 0);
    }
    rows.push_back(row);
  }
  const std::vector<double> fitted = fit_relative(rows);
  for (const PimTransferKind kind : kinds) {
    PimTransferLaw& law = device.transfer(kind);
    law.call = Seconds(fitted[0]);
    law.per_dpu = Seconds(fitted[1]);
    law.rates.clear();
    constexpr double least_seconds_per_byte = 1e-15;
    for (auto from = counts.begin(); from != counts.end(); ++from) {
      const auto first = static_cast<size_t>(std::distance(counts.begin(), from));
      const size_t last = kind == PimTransferKind::from_dpus_serial ? first + 1 : counts.size();
      double seconds_per_byte = least_seconds_per_byte;
      for (size_t i = first; i < last; ++i) {
        seconds_per_byte += fitted[2 + i];
        if (kind == PimTransferKind::to_dpus) seconds_per_byte += fitted[2 + counts.size() + i];
      }
      law.rates.push_back({*from, BytesPerSecond(1 / seconds_per_byte)});
    }
  }
}

// Half-width of an interval around predictions, equal in logarithms, that holds 90% of the measurements.
inline double relative_error_of(const std::vector<double>& predicted_over_measured) {
  std::vector<double> excess;
  for (const double ratio : predicted_over_measured) excess.push_back(std::max(ratio, 1 / ratio) - 1);
  return quantile(excess, 0.9);
}

template <class Sample>
std::vector<Sample> all_but(const std::vector<Sample>& samples, size_t left_out) {
  std::vector<Sample> others = samples;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
  return others;
}

// The device with programs and transfer laws that the rows speak of set to what fits them; the others stay as they are.
// Rows of unknown benchmarks, or that the machine cannot hold, are passed over. Kernels are taken to be bound by
// instructions: cycles per element are called instructions, waits for locks among them.
inline PimDevice fit_pim_device(const PimDevice& device, std::span<const PrimRow> rows) {
  PimDevice fitted = device;
  const PimSamples samples = samples_of(device, rows);
  for (const auto& [name, own] : samples.kernels) {
    if (own.size() < least_rows) continue;
    fit_program(own, device.clock.value, fitted.programs[name]);
  }
  for (const auto& [kind, own] : samples.transfers) {
    if (own.size() >= least_rows) fit_transfer_group(own, fitted);
  }
  return fitted;
}

// The same device with intervals that hold 90% of the rows, each predicted by a fit that has not seen it.
inline PimDevice with_fitted_intervals(const PimDevice& fitted, std::span<const PrimRow> rows) {
  PimDevice device = fitted;
  const PimSamples samples = samples_of(fitted, rows);
  for (const auto& [name, own] : samples.kernels) {
    if (own.size() <= least_rows) continue;
    std::vector<double> ratios;
    for (size_t i = 0; i < own.size(); ++i) {
      PimProgram program;
      fit_program(all_but(own, i), fitted.clock.value, program);
      const Seconds work(own[i].elements * program.instructions_per_element / fitted.clock.value.value());
      ratios.push_back((program.setup + work) / own[i].measured);
    }
    device.programs[name].relative_error = relative_error_of(ratios);
  }
  for (const auto& [group, own] : samples.transfers) {
    std::map<PimTransferKind, std::vector<double>> ratios;
    for (const TransferSample& left_out : own) {
      std::vector<TransferSample> others = own;
      std::erase_if(others, [&](const TransferSample& sample) { return sample.row == left_out.row; });
      if (others.size() < least_rows) continue;
      PimDevice without = fitted;
      fit_transfer_group(others, without);
      const Seconds predicted = without.transfer(left_out.kind).seconds(left_out.dpus, left_out.bytes, left_out.calls);
      ratios[left_out.kind].push_back(predicted / left_out.measured);
    }
    for (const auto& [kind, own_ratios] : ratios) device.transfer(kind).relative_error = relative_error_of(own_ratios);
  }
  return device;
}

}  // namespace foretoken::pim_fit
