// What C++ programs are answered is what the command line prints, to the last digit.
#include <string>
#include <vector>

#include <foretoken/foretoken.h>
#include <gtest/gtest.h>

#include "app/cli/grammar/declarations.h"
#include "run.h"

namespace foretoken::api_test {

// Every key that the API gives; notes on ranks and the run's own record are the command's. Sentences name fields where
// the command names flags.
void expect_equal(Json api, const std::string& command) {
  name_flags(api);
  const Outcome run = run_foretoken(command + " --json");
  ASSERT_TRUE(run.status == 0 || run.status == 3) << run.err;
  const Json printed = parse_json(run.out, "answer");
  size_t compared = 0;
  for (const auto& [key, value] : api.members()) {
    if (key == "notes" || key == "date") continue;
    const Json* const own = printed.find(key);
    ASSERT_NE(own, nullptr) << key;
    EXPECT_EQ(own->dump(0), value.dump(0)) << key;
    ++compared;
  }
  EXPECT_GT(compared, 3);
}

TEST(Api, a_step_is_that_of_the_command) {
  const Library library(Library::find());
  const StepSpec decode{.model = {.model = "Llama-3.1-8B"},
                        .device = "h100_sxm",
                        .request = {.phase = StepPhase::decode, .batch = 32, .input_len = 1024, .context_len = 2048}};
  expect_equal(to_json(predict_step(library, decode)),
               "step --model Llama-3.1-8B --device h100_sxm --batch 32 --context-len 2048");
  StepSpec quantized = decode;
  quantized.model.quantization = "fp8";
  quantized.model.kv_cache_dtype = "fp8";
  quantized.plan.tensor = 2;
  quantized.plan.exchange = ExpertExchange::all_gather;
  expect_equal(to_json(predict_step(library, quantized)),
               "step --model Llama-3.1-8B --device h100_sxm --batch 32 --context-len 2048 --quantization fp8 "
               "--kv-cache-dtype fp8 -tp 2");
}

TEST(Api, a_serving_run_is_that_of_the_command) {
  const Library library(Library::find());
  const Device device = library.hardware().device("h100_sxm");
  EngineSpec engine{.model = open_model(library, {.model = "Llama-3.1-8B"}, device), .device = device, .replicas = 2};
  const LoadSpec load{.num_prompts = 100, .arrivals = {.rate = 8}, .output_len = 64};
  for (const EngineKind& kind : engine_kinds()) {
    engine.flags = {.engine = std::string(kind.name), .max_num_seqs = 64, .max_model_len = 8192};
    expect_equal(to_json(simulate_serving(library, engine, load)),
                 "serve --model Llama-3.1-8B --device h100_sxm --replicas 2 --request-rate 8 --num-prompts 100 "
                 "--random-output-len 64 --max-num-seqs 64 --max-model-len 8192 --engine " +
                     std::string(kind.name));
  }
}

TEST(Api, a_training_job_is_that_of_the_command) {
  const Library library(Library::find());
  TrainingSpec spec{.job = {.model = library.models().model("Llama-3.1-8B"), .sequence_length = 8192},
                    .cluster = "h100_ib_rail",
                    .devices = 64};
  spec.plan.global_batch = 128;
  spec.plan.parallel = {.tensor = 2, .data = 32};
  expect_equal(to_json(estimate_training(library, spec)),
               "train --model Llama-3.1-8B --cluster h100_ib_rail --devices 64 -tp 2 --seq-length 8192 "
               "--global-batch-size 128");
}

TEST(Api, an_engine_that_would_not_start_says_how_much_is_missing) {
  const Library library(Library::find());
  const Device device = library.hardware().device("h100_sxm");
  const EngineSpec engine{.model = open_model(library, {.model = "Llama-3.1-405B"}, device), .device = device};
  try {
    simulate_serving(library, engine, {.num_prompts = 10});
    FAIL() << "810 GB of weights do not fit 80 GB";
  } catch (const EngineDoesNotFit& error) {
    EXPECT_GT(error.memory().short_by.value(), 100e9);
  }
}

}  // namespace foretoken::api_test
