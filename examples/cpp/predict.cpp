// A step, a serving run, a training job and a plan, predicted from C++.
//   find_package(foretoken REQUIRED)
//   target_link_libraries(predict PRIVATE foretoken::foretoken)
#include <cstdio>

#include <foretoken/foretoken.h>

using namespace foretoken;

namespace {

void print(const char* what, const Estimate& seconds) {
  std::printf("%-14s %.3g ms (%.3g to %.3g)\n", what, 1e3 * seconds.value, 1e3 * seconds.low, 1e3 * seconds.high);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const Library library(count > 1 ? std::filesystem::path(arguments[1]) : Library::find());
    const ModelSpec llama{.model = "Llama-3.1-8B"};
    const Device h100 = library.hardware().device("h100_sxm");

    // One decode step of 32 sequences with 2,048 tokens behind each.
    const StepPrediction step =
        predict_step(library, {.model = llama,
                               .device = "h100_sxm",
                               .request = {.phase = StepPhase::decode, .batch = 32, .context_len = 2048}});
    print("decode step", step.step.seconds);

    // Two engines behind a router; 8 requests a second.
    const Model model = open_model(library, llama, h100);
    EngineSpec engine{.model = model, .device = h100, .replicas = 2};
    engine.flags.max_model_len = 8192;
    const ServingPrediction run =
        simulate_serving(library, engine, {.num_prompts = 200, .arrivals = {.rate = 8}, .output_len = 64});
    const Headline ttft = run.run.headline([](const ServingMetrics& metrics) { return metrics.ttft.mean_ms; });
    std::printf("%-14s %.3g ms (%.3g to %.3g)\n", "mean TTFT", ttft.value, ttft.low, ttft.high);

    // A training job on 64 GPUs, and the fastest plan for it.
    TrainingSpec training{.job = {.model = library.models().model("Llama-3.1-8B"), .sequence_length = 8192},
                          .cluster = "h100_ib_rail",
                          .devices = 64};
    training.plan.global_batch = 128;
    training.plan.parallel = {.tensor = 2, .data = 32};
    const TrainingPrediction iteration = estimate_training(library, training);
    print("training step", iteration.estimate.iteration.seconds);
    const auto machine = machine_of(library, iteration.question.cluster);
    print("best plan", plan_training(iteration.question, *machine).best.front().seconds);

    // How to serve 5 requests a second within 500 ms to the first token.
    const auto requests = make_load({.num_prompts = 500, .arrivals = {.rate = 1}, .output_len = 64})(0);
    const ServingPlanner planner{.library = library,
                                 .question = {.model = library.models().model("Llama-3.1-8B"),
                                              .slos = {{.metric = SloMetric::ttft, .limit_ms = 500}},
                                              .rate = 5,
                                              .hardware = {hardware_choice(library, "h100_sxm", 2, std::nullopt)}},
                                 .traffic = Traffic(Traffic::taken_from(*requests, 500))};
    const ServingSearchResult plan = planner.search();
    std::printf("%-14s %s\n", "plan", to_json(planner, plan).find("sentence")->string().c_str());
    return 0;
  } catch (const InputError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
