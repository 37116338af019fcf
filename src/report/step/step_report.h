// A step estimate for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "compose/step_estimate.h"
#include "compose/sustained_step.h"
#include "hardware/device.h"
#include "model/model.h"
#include "report/parts/device_notes.h"

namespace foretoken {

// `more`: what is known of the devices besides the step's own times.
Json step_json(const StepEstimate& step, const Model& model, const Device& device, DeviceNotes more = {});

// A headline, a table by operator (slowest first if `by_time`, else in order of use), memory, notes.
std::string step_text(const StepEstimate& step, const Model& model, const Device& device, bool by_time,
                      DeviceNotes more = {});

// Where much of the time is priced by the device's sheet: that it is, or that it is a bound.
void add_step_notes(DeviceNotes& notes, const StepEstimate& step, const Device& device);

// One sentence: "Llama-3.1-70B on 8 x H100: a decode step of 64 sequences takes ...".
std::string step_sentence(const StepEstimate& step, const Model& model, const Device& device);

// "Out of memory: ..." where a stage of it does not fit on its device; empty where all do, or where nobody knows.
std::string step_failure(const StepEstimate& step, const Model& model, const Device& device);

// The slowest operators of the step on the device's roofline.
std::string step_roofline(const StepEstimate& step, const Model& model, const Device& device);

// The step repeated without pause.
std::string sustained_step_text(const SustainedStep& held, const StepEstimate& step);
Json sustained_step_json(const SustainedStep& held);

}  // namespace foretoken
