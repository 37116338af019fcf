// One operator on one device -> seconds, from the best tier there is: measured on the device, ported from others, or
// the bare roofline.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "base/units.h"
#include "hardware/device.h"
#include "kernel/error_correlation.h"
#include "kernel/learned.h"
#include "kernel/roofline_intervals.h"
#include "kernel/sheet_derates.h"
#include "model/shapes.h"
#include "model/work.h"

namespace foretoken {

class EstimateMemory;  // kernel.cpp

// Kernel times that a device's own description gives, where there is nothing to measure yet. Safe to call from many
// threads.
class DescribedKernels {
 public:
  virtual ~DescribedKernels() = default;
  struct Time {
    Estimate seconds;
    bool mapped = false;  // onto the design; else by the roofline of its sheet
  };
  virtual Time time(const KernelShape& shape) const = 0;
  // Whether it says more of this call than the bare roofline.
  virtual bool describes(const KernelShape&) const { return true; }
  // What the sheet is derated by; null where the description is a design.
  virtual const SheetDerates* derates() const { return nullptr; }
  // Sentences: what it assumes beyond the sheet.
  virtual std::vector<std::string> notes() const { return {}; }
};

// By the sheet, derated by what kernels reach on devices that were measured.
std::shared_ptr<const DescribedKernels> derated_sheet(Device device, SheetDerates derates);
// For families without a form on a device whose multiplies were measured: the sheet with the rate that those reach.
std::shared_ptr<const DescribedKernels> derated_sheet_of_measured(Device device, SheetDerates derates);

// What a kernel reads that other layers have evicted since it was last read: weights, the keys and values of the
// context, and the state of a recurrence.
Bytes cold_bytes(const KernelShape& shape, const Work& work);

enum class Bound { compute, memory };
std::string_view bound_name(Bound bound);

struct KernelEstimate {
  Estimate seconds;
  Tier tier = Tier::roofline;    // what the prediction rests on
  bool inside_envelope = false;  // measured tier: within the sizes that were measured
  bool derated = false;          // roofline tier: not the bare bound, but what measured devices reach of it
  Work work;
  Seconds compute;  // FLOPs at the dense peak, stretched by partial last waves
  Seconds memory;   // least bytes at DRAM bandwidth
  Bound bound = Bound::memory;
  double waves = 0;            // output tiles over processors; 0 where the family has no tile grid
  double wave_efficiency = 1;  // share of the tile slots that hold a tile
};

// Predicts kernels on one device. Cheap to copy; estimate() is const and safe to call from many threads.
class KernelPredictor {
 public:
  // InputError when the device's sheet lacks what even a roofline needs (memory bandwidth, any peak). Without
  // `learned`, or with Tier::roofline, only the roofline answers. Copies share the calibrations, hence the shared
  // pointer.
  // `caches` must be those of `learned`.
  explicit KernelPredictor(Device device, RooflineIntervals intervals = {},
                           std::shared_ptr<const LearnedKernels> learned = nullptr, Tier tier = Tier::best,
                           Caches caches = Caches::cold, ErrorCorrelations correlations = {});
  // For a device that is only described so far.
  KernelPredictor(Device device, std::shared_ptr<const DescribedKernels> described, RooflineIntervals intervals = {});

  // The same, with the description for kernels that no learned tier answers for. With Tier::roofline, no change: a
  // bound was asked for.
  KernelPredictor with_description(std::shared_ptr<const DescribedKernels> described) const;
  // The same, with the attention of decodes by these kernels (Device::computing_memory).
  KernelPredictor with_computing_memory(std::shared_ptr<const DescribedKernels> in_memory) const;
  // The same to the bit, for callers that ask for the same calls again and again: it keeps some thousands of its
  // answers, and so do its copies, together.
  KernelPredictor remembering() const;

  const Device& device() const { return device_; }
  const ErrorCorrelations& correlations() const { return correlations_; }

  // `variant` names the implementation where it is known ("fa3"); empty = what a current engine would run.
  // Never faster than the multiply units, nor than DRAM: for weights and KV cache with cold caches, for all data where
  // they do not fit in the last-level cache. InputError when the shape cannot run there (no
  // peak for its dtype, and no wider type to fall back to).
  // `basis`, where given, is filled if a learned tier answered (its form is null otherwise).
  KernelEstimate estimate(const KernelShape& shape, std::string_view variant = {}, LearnedBasis* basis = nullptr) const;

  const RooflineIntervals& intervals() const { return intervals_; }
  const SheetDerates* derates() const { return described_ ? described_->derates() : nullptr; }
  std::vector<std::string> notes() const;
  // By memory that computes, in whole.
  bool runs_in_memory(const KernelShape& shape) const;
  Tier tier() const { return tier_; }  // that was asked for
  Caches caches() const { return caches_; }

  // Its multiplications are priced by its sheet: none was measured on it, nor on devices that port to it. A device that
  // is described by a design is not.
  bool is_known_by_sheet_only() const;

  // The same for many calls: estimates[i] of shapes[i] and variants[i], to the bit. Without `variants` none is known.
  void estimate_batch(std::span<const KernelShape> shapes, std::span<const std::string_view> variants,
                      std::span<KernelEstimate> estimates) const;

 private:
  KernelEstimate work_out(const KernelShape& shape, std::string_view variant, LearnedBasis* basis) const;
  Estimate no_faster_than_unpacked(const Estimate& seconds, const KernelShape& shape, std::string_view variant) const;
  KernelEstimate in_memory(const KernelShape& shape) const;

  Device device_;
  RooflineIntervals intervals_;
  std::shared_ptr<const LearnedKernels> learned_;
  std::shared_ptr<const DescribedKernels> described_;
  std::shared_ptr<const DescribedKernels> in_memory_;  // null: the memory does not compute
  Tier tier_;
  Caches caches_;
  ErrorCorrelations correlations_;
  std::shared_ptr<EstimateMemory> memory_;  // null: keeps nothing
};

}  // namespace foretoken
