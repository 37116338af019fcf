#include "app/cli/commands/list.h"

namespace foretoken {
namespace {

// Add your line here; the name is what users type. The order is that of --help.
constexpr CommandKind kinds[] = {
    {"demo", "The first thing to run: how to serve Llama-3.1-70B on eight H100s", make_demo},
    {"devices", "The hardware library: every number with its source", make_devices},
    {"models", "The model library: parameters, KV bytes, layers", make_models},
    {"stacks", "Software stacks: how each launches kernels, and which", make_stacks},
    {"kernel", "One kernel on one device, explained", make_kernel},
    {"step", "One step of a model (prefill, decode, mixed, train), by operator", make_step},
    {"train", "A training run on a cluster: step time, memory, how steps vary, days and cost", make_train},
    {"rlhf", "An iteration of an RLHF loop: answers, scores, training, new weights", make_rlhf},
    {"plan", "Search: how to serve a model within its limits, how to train it fastest", make_plan},
    {"collective", "One collective on a cluster, node or any topology, over sizes", make_collective},
    {"replay", "Execution traces (Chakra) of all ranks, run on a cluster", make_replay},
    {"serve", "A simulated serving run: requests in, TTFT, TPOT and throughput out", make_serve},
    {"speculate", "When speculative decoding pays, over batch sizes and contexts", make_speculate},
    {"accel", "A custom accelerator: the best mapping of an operator or network, its cycles and energy", make_accel},
    {"systolic", "Systolic arrays, SCALE-Sim's files and TPU chips: cycles, stalls and words by layer", make_systolic},
    {"dataflow", "MAESTRO's dataflows: cycles, buffers and energy by layer, and which one suits it", make_dataflow},
    {"chip", "Eyeriss and NVDLA as built: time, traffic, power and what bounds each layer", make_chip},
    {"edge", "A network on a CPU: milliseconds by fused kernel from its ONNX file, and what to change", make_edge},
    {"pim", "Memory that computes (UPMEM): kernel and transfers of the PrIM benchmarks", make_pim},
    {"adapt", "A new device from ten timings: latencies of networks of a known space", make_adapt},
    {"compare", "Two answers side by side: what changed, and which parts made the difference", make_compare},
    {"suite", "The benchmark suite: every scenario's answer, and scores of any tool's answers", make_suite},
    {"profile", "Measure this machine: kernels of its GPU or CPU, what a runtime fuses", make_profile},
    {"validate", "Compare predictions with measurements, yours or published", make_validate},
    {"replay-run", "A measured run of your server beside its prediction: where they differ, and why", make_replay_run},
    {"calibrate", "Learn a few constants of your deployment from measured runs", make_calibrate},
    {"check-run", "Whether a new measured run agrees with a calibrated deployment", make_check_run},
    {"import", "Read what other tools wrote: profiler traces, load tests of real servers", make_import},
    {"ui", "A page in the browser: ask, compare, explore", make_ui},
    {"endpoint", "An OpenAI-compatible server that answers at the predicted speed", make_endpoint},
    {"observe", "Load a real OpenAI-compatible server and measure it: the run folder and vLLM's table", make_observe},
    {"fit", "Fit coefficients from measurements", make_fit},
    {"explain", "What a word means: TTFT, KV cache, interval, ...", make_explain},
    {"check", "Check data files for mistakes", make_check},
    {"man", "The manual page of all commands, for man; with --json, every flag", make_man},
    {"schema", "The JSON Schema of a command's question, for --spec", make_schema},
    {"completions", "What a shell completes: a script for bash, zsh or fish", make_completions},
};

}  // namespace

std::span<const CommandKind> all_commands() {
  return kinds;
}

}  // namespace foretoken
