// A form with fitted constants and trees -> seconds. Fitting and prediction share it, so that they cannot drift apart.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernel/calibration.h"
#include "kernel/forms/form.h"

namespace foretoken {

// Logarithms of a call's constants: the sum of its effects, within the form's bounds. `device` adds what is odd about
// that device; empty = a device nobody measured.
std::vector<double> cross_log_constants(const Form& form, const FormCalibration& calibration, const FormCall& call,
                                        const DeviceTraits& traits, std::string_view device);

// Seconds of the form times exp(strength x trees). `group_number` is given for the trees of a measured device, which
// see the call's group and raw sizes besides the form's features.
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
