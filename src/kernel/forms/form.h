// A physical form: the time of one kernel family as a formula of device facts, the shape, and a few constants that are
// fitted once over several devices and port to others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/device.h"
#include "hardware/generation.h"
#include "model/shapes.h"

namespace foretoken {

// The facts of a device that forms use, in base units.
struct DeviceTraits {
  double processors = 0;
  double clock = 0;                                  // Hz
  double held_clock = 1;                             // times that, while power allows
  double cache = 0;                                  // bytes of L2
  double bandwidth = 0;                              // bytes/s of DRAM
  const GpuGeneration* generation = &no_generation;  // what kernels it runs
  bool asynchronous = false;                         // tensor cores fed by an asynchronous copy engine
  bool stacked_memory = false;                       // HBM rather than GDDR
  bool inline_ecc = false;                           // error-correcting codes lie in the same DRAM as the data
  bool amd = false;                                  // a CDNA GPU
  double exponentials_per_clock = 16;                // exp() results of a processor
  double power = 0;                                  // watts the board may draw; 0 = not known
  double peak[dtype_count] = {};                     // FLOP/s by DType, fallbacks filled in; 0 = none
  double reached[scheme_count] = {};                 // the same of one large multiply, by Scheme; 0 = not known
};

// Whether weights are found in L2: cold = other layers ran since, as in a model step; benchmark = a few copies are used
// in turn, as the collectors of measurements do.
enum class Caches { cold, benchmark };

// Names of measurements whose every call found its inputs out of the cache end in this: "torch_linear_cold".
inline constexpr std::string_view cold_suffix = "_cold";

// One measured or asked-for call: its shape and the kernel variant if known ("fa3", "triton", "" = not known;
// "eager ...": the framework's kernel, timed with events around the call, forms/eager_form.h).
struct FormCall {
  KernelShape shape;
  std::string variant;
  Caches keys = Caches::benchmark;  // attention: cold = the KV cache comes from DRAM, whatever its size
};

struct FormConstant {
  std::string_view name;
  double start;              // where fitting begins, and what an unfitted form uses
  double least, most;        // sane bounds
  std::string_view reading;  // what it means, with its unit
};

// One line of the answer to "why this long?".
struct Explained {
  enum class Kind {
    fact,   // about the call: tile, waves, share of the traffic that DRAM serves
    limit,  // seconds that one resource would need by itself; within a part, limits hide one another
    part,   // seconds; the parts of a form add up to its time
  };
  Kind kind = Kind::fact;
  std::string_view name;     // "tile_rows"
  double value = 0;          // in `unit`
  std::string_view unit;     // "s", "B", "B/s", "share" (0 to 1); empty = a count
  std::string_view reading;  // what it means
};

class Form {
 public:
  virtual ~Form() = default;
  virtual std::string_view name() const = 0;
  virtual std::span<const FormConstant> constants() const = 0;

  // Effects whose offsets make up a call's constants, widest first: "common", "asynchronous", "class fp8", "kernel
  // fa3", ... (the device's own effects are added by the fitter).
  virtual std::vector<std::string> effects(const FormCall& call, const DeviceTraits& device) const = 0;

  // The effect that stands for the kernel itself: a calibration without it has seen other kernels alone. Empty = all
  // kernels of the form are variations of one.
  virtual std::string kernel_effect(const FormCall& /*call*/, const DeviceTraits& /*device*/) const { return {}; }

  // The variant that a current engine runs for a call whose variant is not known; empty if there is only one.
  virtual std::string_view usual_variant(const FormCall& /*call*/, const DeviceTraits& /*device*/) const { return {}; }

  // The variant name of measurements that describe a call best; where there are none, those of the call's own do.
  virtual std::string measured_as(const FormCall& call) const { return call.variant; }

  // Which constants of a sweep say something about its machine, not its GPU: on another machine, a sibling's too, they
  // are those of machines in general.
  virtual std::vector<size_t> machine_constants() const { return {}; }
  // Whether the call was timed on some other machine than the sweep's.
  virtual bool is_of_another_machine(const FormCall& /*call*/) const { return false; }

  // Calls with the same key, variant and formats (call_formats) have the same effects and usual variant, so that these
  // are worked out once for all of them. Nothing = not known, and they are worked out for every call.
  virtual std::optional<uint64_t> kind_key(const FormCall& /*call*/) const { return std::nullopt; }

  // Seconds under the given constants (not logarithms). `choice`: -1 = choose the best tile/split and return it here.
  virtual double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                         int& choice) const = 0;

  // What those seconds are made of, at the choice that seconds() returned. Empty for a form that does not say.
  virtual std::vector<Explained> explain(const FormCall& /*call*/, const DeviceTraits& /*device*/,
                                         std::span<const double> /*constants*/, int /*choice*/) const {
    return {};
  }

  // Variants that the form tells apart by name; others share what is common.
  virtual std::vector<std::string_view> known_variants() const { return {}; }

  // Dimensionless features of a call for the residual trees, at the chosen tile.
  virtual size_t feature_count() const = 0;
  virtual void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int choice,
                        std::span<float> out) const = 0;

  // Share of the logarithm of a tree's correction that applies to this call: less than 1 where the trees were fitted on
  // timings that hold more than the kernel asked about.
  virtual double residual_share(const FormCall& /*call*/, const DeviceTraits& /*device*/,
                                std::span<const double> /*constants*/, int /*choice*/) const {
    return 1;
  }

  // Seconds at the best choice, which is returned, and the features there. A form for which they share most of the work
  // does it once.
  virtual double seconds_and_features(const FormCall& call, const DeviceTraits& device,
                                      std::span<const double> constants, int& choice, std::span<float> out) const {
    choice = -1;
    const double result = seconds(call, device, constants, choice);
    features(call, device, constants, choice, out);
    return result;
  }
};

}  // namespace foretoken
