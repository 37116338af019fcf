// How far predictions lie from measurements, for people and for programs. The JSON is the same for every layer.
#pragma once

#include <string>

#include "accelerator/validate/validate_accelerator.h"
#include "base/json.h"
#include "kernel/validate.h"
#include "validate/serving/validate_serving.h"
#include "validate/steps/validate_steps.h"
#include "validate/training/validate_training.h"

namespace foretoken {

std::string validation_text(const Validation& validation);
Json validation_json(const Validation& validation, const std::string& layer);

std::string step_validation_text(const StepValidation& validation);
Json step_validation_json(const StepValidation& validation);
std::string scored_step_header();
std::string scored_step_row(const ScoredStep& scored);

std::string scored_training_header();
std::string scored_training_row(const ScoredTraining& scored);

std::string scored_serving_header();
std::string scored_serving_row(const ScoredServing& scored);

std::string scored_figure_header();
std::string scored_figure_row(const ScoredFigure& scored);

// Header and rows of `--out F.csv`.
std::string scored_kernel_header();
std::string scored_kernel_row(const ScoredKernel& scored);

}  // namespace foretoken
