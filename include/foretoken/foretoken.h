// The public face of foretoken: open the library of facts, fill a spec, call one function, read or print the result.
//
//   const foretoken::Library library(foretoken::Library::find());
//   const auto answer = foretoken::predict_step(library, {.model = {.model = "Llama-3.1-8B"}, .device = "h100_sxm"});
//   answer.step.seconds is an Estimate: value, 90% interval, what it rests on; to_json(answer) is what --json prints.
//
//   what                  spec                                   answer
//   predict_step          StepSpec                               StepPrediction
//   simulate_serving      EngineSpec, LoadSpec, DeploymentSpec   ServingPrediction
//   estimate_training     TrainingSpec                           TrainingPrediction
//   ServingPlanner        ServingQuestion, Traffic               ServingSearchResult (search)
//   plan_training         TrainingQuestion                       TrainingSearchResult
//   size_training         TrainingQuestion, a goal and limits    JobSizing: how many devices
//   Library::predictor    a device                               KernelPredictor: predict(shape)
//   Library::collectives  a device                               CommunicationPredictor
//
// Wrong input throws InputError, which names what was wrong, what was expected and the nearest valid name. Nothing here
// prints, exits or reads the command line. One thread may use one answer; a Library may be shared between threads.
#pragma once

#include "base/error.h"
#include "base/estimate.h"
#include "base/json.h"
#include "compose/model_spec.h"
#include "compose/step_spec.h"
#include "library/library.h"
#include "plan/serving/serving_planner.h"
#include "plan/training_search.h"
#include "plan/training_sizing.h"
#include "report/answer_json.h"
#include "serving/engine/engine_setup.h"
#include "serving/engine/engine_spec.h"
#include "serving/load/load_spec.h"
#include "serving/serving_spec.h"
#include "training/estimate/training_spec.h"
