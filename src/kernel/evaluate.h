// A form with fitted constants and trees -> seconds. Fitting and prediction share it, so that they cannot drift apart.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernel/calibration.h"
#include "kernel/forms/call.h"
#include "kernel/forms/form.h"

namespace foretoken {

// Logarithms of a call's constants: the sum of its effects, within the form's bounds. `device` adds what is odd about
// that device; empty = a device nobody measured.
std::vector<double> cross_log_constants(const Form& form, const FormCalibration& calibration, const FormCall& call,
                                        const DeviceTraits& traits, std::string_view device);

// How unsure a calibration is of a kernel that it has never seen, beside its usual half-width; 0 where it has.
double unseen_kernel_half_width(const Form& form, const FormCalibration& calibration, const FormCall& call,
                                const DeviceTraits& traits);

// The constants themselves; the same bits on every machine.
std::vector<double> natural_constants(std::span<const double> log_values);

// What the trees see of a call, on the stack. With a group number, the group and the raw sizes follow the form's own.
struct ResidualFeatures {
  std::array<float, 64> values;  // the first `count` are filled
  size_t count = 0;
  std::span<const float> span() const { return {values.data(), count}; }
  std::span<const float> raw() const { return span().last(raw_feature_count); }  // with a group number only
};

// Seconds of the form under natural constants, times exp(strength x trees). `group_number` is given for the trees of a
// measured device, which see the call's group and raw sizes besides the form's features. `features` are filled if there
// are trees, or a group number.
double seconds_with_residual(const Form& form, const FormCall& call, const DeviceTraits& traits,
                             std::span<const double> constants, const BoostedTrees& trees, double strength,
                             std::optional<float> group_number, ResidualFeatures& features);

// The same with what a sweep knows of the call's group, whose number is given: its trees, or the mean of those
// and a smooth residual.
double swept_seconds(const Form& form, const FormCall& call, const DeviceTraits& traits,
                     std::span<const double> constants, const DeviceCalibration& sweep, double strength,
                     float group_number, ResidualFeatures& features);

// The device with multiply units as fast as its board's power allows; what ports between GPUs is fitted and used so.
DeviceTraits powered_traits(const DeviceTraits& device);

// The other device's sheet as constants found on the swept one read it. What holds only one of the two boards back, the
// power for its multiply units or error-correcting codes in its DRAM, is in those constants.
DeviceTraits sibling_traits(const DeviceTraits& swept, const DeviceTraits& other);

// How much of the trees' correction on the swept device holds for its siblings. While power holds a board back, its
// clock wanders with its temperature (multiplies of L40S in its sweep: 180 to 280 TFLOP/s), and its trees learned that
// too: none of it where multiplies decide the time, all of it where they do not.
double carried_residual(const Form& form, const FormCall& call, const DeviceTraits& swept,
                        std::span<const double> constants);

struct CarriedTime {
  double seconds = 0;
  double half_width = 0;  // of the logarithm, 90%: what the two spec sheets leave open
};

// What a sweep on one device found (`swept_seconds`), times what the form makes of the other device's spec sheet. The
// half-width is how far that moves when the facts that decide it are off by as much as they usually are: clock,
// processors, L2, bandwidth, power, rates of formats and of exponentials, and the host's part of a launch.
// `pairs_known`: what two boards with the same sheet differ by is known from pairs of them, and left out.
CarriedTime carried_to_sibling(const Form& form, const FormCall& call, const DeviceTraits& swept,
                               const DeviceTraits& other, std::span<const double> constants, double swept_seconds,
                               bool pairs_known);

// The same as seconds_with_residual, from logarithms.
double form_seconds_with_residual(const Form& form, const FormCall& call, const DeviceTraits& traits,
                                  std::span<const double> log_values, const BoostedTrees& trees, double strength,
                                  std::optional<float> group_number);

// What those seconds are made of, before the trees.
std::vector<Explained> explain_form(const Form& form, const FormCall& call, const DeviceTraits& traits,
                                    std::span<const double> log_values);

// The features those trees see.
std::vector<float> residual_features(const Form& form, const FormCall& call, const DeviceTraits& traits,
                                     std::span<const double> log_values, std::optional<float> group_number);

}  // namespace foretoken
