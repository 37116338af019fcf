#include "app/cli/commands/list.h"

namespace foretoken {
namespace {

// Add your line here; the name is what users type. The order is that of --help.
constexpr CommandKind kinds[] = {
    {"demo", "Start here: how to serve Llama-3.1-70B on eight H100s", make_demo},
    {"devices", "Show the hardware library: every number with its source", make_devices},
    {"models", "Show the model library: parameters, KV bytes, layers", make_models},
    {"stacks", "Show software stacks: which kernels each one launches, and how", make_stacks},
    {"kernel", "Predict and explain one kernel on one device", make_kernel},
    {"schedules", "Rank the tile schedules of a Triton matrix multiply before compiling any", make_schedules},
    {"step", "Predict one step of a model (prefill, decode, mixed, train), operator by operator", make_step},
    {"train", "Predict a training run on a cluster: step time and its variation, memory, days and cost", make_train},
    {"rlhf", "Predict one iteration of an RLHF loop: generation, scoring, training, weight update", make_rlhf},
    {"plan", "Search for the best way to serve or train a model", make_plan},
    {"study", "Plan every combination of models, hardware, traffic and engines: one table, resumable", make_study},
    {"collective", "Predict one collective on a cluster, node or any topology, over message sizes", make_collective},
    {"replay", "Replay execution traces (Chakra) of all ranks on a cluster", make_replay},
    {"port", "Predict a PyTorch profiler trace on another GPU or parallel plan, kernel by kernel", make_port},
    {"serve", "Simulate a serving run: TTFT, TPOT and throughput of a load on an engine", make_serve},
    {"speculate", "Show when speculative decoding pays off, by batch size and context length", make_speculate},
    {"image", "Predict a diffusion model that draws images (SDXL, SD3, FLUX): time per image, kernel by kernel",
     make_image},
    {"accel", "Find the best mapping of an operator or network on a custom accelerator, with cycles and energy",
     make_accel},
    {"systolic", "Predict systolic arrays, SCALE-Sim files and TPU chips: cycles, stalls and words by layer",
     make_systolic},
    {"dataflow", "Evaluate MAESTRO dataflows: cycles, buffers and energy by layer, and the best dataflow",
     make_dataflow},
    {"chip", "Predict Eyeriss and NVDLA chips: time, traffic, power and the bottleneck of each layer", make_chip},
    {"edge", "Predict a network on a CPU: time of each fused kernel from an ONNX file, and what to change", make_edge},
    {"pim", "Predict processing in memory (UPMEM): kernels and transfers of the PrIM benchmarks", make_pim},
    {"adapt", "Predict network latencies on a new device from ten timings", make_adapt},
    {"compare", "Compare two questions: how their answers differ, and which parts explain the difference",
     make_compare},
    {"suite", "Run the benchmark suite: answer every scenario, and score the answers of any tool", make_suite},
    {"bench", "Run other prediction tools beside foretoken on the same work: time and error", make_bench},
    {"profile", "Measure this machine: GPU or CPU kernels, and operator fusion of a runtime", make_profile},
    {"validate", "Compare predictions with measurements, yours or published", make_validate},
    {"replay-run", "Compare a measured run of your server with its prediction, and explain the difference",
     make_replay_run},
    {"calibrate", "Learn a few constants of your deployment from measured runs", make_calibrate},
    {"check-run", "Check whether a new measured run agrees with a calibrated deployment", make_check_run},
    {"import", "Import files of other tools: profiler traces, load tests of real servers", make_import},
    {"ui", "Open the page in the browser: ask, compare, explore", make_ui},
    {"endpoint", "Run an OpenAI-compatible server that answers at the predicted speed", make_endpoint},
    {"observe", "Send load to a real OpenAI-compatible server and measure it", make_observe},
    {"fit", "Fit coefficients from measurements", make_fit},
    {"explain", "What a word means: TTFT, KV cache, interval, ...", make_explain},
    {"check", "Check data files for mistakes", make_check},
    {"man", "Print the manual page of all commands; with --json, every flag", make_man},
    {"schema", "Print the JSON Schema of a command's question, for --spec", make_schema},
    {"completions", "Print shell completions for bash, zsh or fish", make_completions},
};

}  // namespace

std::span<const CommandKind> all_commands() {
  return kinds;
}

}  // namespace foretoken
