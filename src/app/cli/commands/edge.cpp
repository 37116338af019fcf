#include <algorithm>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/edge_flags.h"
#include "app/cli/flags/graph_flags.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/output/out_file.h"
#include "base/error.h"
#include "base/file.h"
#include "compose/model_spec.h"
#include "compose/step_estimate.h"
#include "model/onnx/read_graph.h"
#include "model/weights.h"
#include "report/edge/edge_model_report.h"
#include "report/edge/edge_step_report.h"
#include "report/parts/device_notes.h"
#include "report/parts/json_rows_csv.h"
#include "report/parts/model_notes.h"
#include "report/step/graph_run_report.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> batch_range{.least = 1, .most = 4096};

class EdgeCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    options.heading("Network");
    options.text("--onnx", onnx_, "An ONNX file, or a graph of another framework (.graph.json)");
    graph_.declare(options);
    options.text("--model", model_.model,
                 "Instead of --onnx: one step of a language model, a built-in name (`foretoken models` lists them) or "
                 "a config.json");
    options.text(
        "--quantization,-q", model_.quantization,
        "With --model: number format of the linear layers, for example int4_wo or int8 [from the model's config]");
    options.choice("--phase", phase_, {"prefill", "decode"}, "With --model: kind of step");
    options.integer("--batch", batch_, {.least = 1, .most = 4096}, "With --model: number of sequences");
    options.integer("--input-len", input_len_, {.least = 1, .most = 1 << 20}, "With --model: prompt length in tokens");
    options.integer("--context-len", context_len_, {.least = 0, .most = 1 << 20},
                    "With --model: tokens already in the KV cache of each sequence");
    options.list("--batch-sizes", batches_, "Batch sizes to report, as multiples of the graph's batch: 1,2,4");
    options.heading("Device");
    device_.declare(options);
    options.integer(
        "--threads", threads_, {.least = 0, .most = 4096},
        "Number of CPU threads. Uses the speedups measured with this many threads. If there are none, the interval "
        "reaches from perfect speedup to none; 0 = the number of threads in the sweep");
    declare_calibration(options);
    options.heading("Output");
    options.integer("--top", top_, {.least = 1, .most = 100'000}, "Number of slowest steps to show");
    options.flag("--all", all_, "Show all steps in the order they run");
    options.text("--svg", svg_, "Plot the time by kind of kernel and by step in this SVG file");
    options.text("--html", html_, "Write an HTML report with the figure and the tables");
    options.text("--csv", csv_, "Write every step to this CSV file");
    options.footer(
        "Examples:\n"
        "  foretoken edge --onnx data/edge/networks/mobilenet_v2.onnx --device neoverse_v1_ort\n"
        "  foretoken edge --onnx data/edge/networks/encoder.onnx --bind batch=8 --all\n"
        "  foretoken edge --onnx net.onnx --device mine.json --fusion xnnpack --batch-sizes 1,2,4 --html net.html\n"
        "  foretoken edge --onnx data/edge/networks/encoder.onnx --device h100_sxm\n"
        "  foretoken edge --model Qwen3-0.6B -q int4_wo --context-len 512\n"
        "On a GPU (foretoken devices) each node is a kernel of its own; `accel`, `systolic` and `chip` take the same "
        "file as --network.\n"
        "A dimension called batch is 1 unless bound. `foretoken profile cpu` makes a predictor of the machine it runs "
        "on.\n"
        "Time is what the core computes (CPU time), inputs ready in memory.");
  }

  Answer run(const Library& library) const override {
    if (onnx_.empty() == model_.model.empty()) {
      throw InputError({.source = "--onnx, --model",
                        .value = onnx_.empty() ? "neither" : "both",
                        .expected = "one of them: a graph file, or a language model by name"});
    }
    if (!model_.model.empty()) return of_model(library);
    options_->refuse({"--quantization", "--phase", "--batch", "--input-len", "--context-len"}, {}, "--onnx");
    const OnnxOptions options = graph_.options();
    if (device_.is_hardware(library)) return on_gpu(library, read_onnx(onnx_, options));
    const EdgePredictor predictor = device_.predictor(library);
    const FusionRules rules = device_.fusion_rules(library);
    const OnnxGraph graph = read_onnx(onnx_, options);
    EdgeLowering lowering = with_measured_formats(lower_edge(graph, rules), predictor);
    lowering.notes.insert(lowering.notes.begin(), graph.notes.begin(), graph.notes.end());
    if (const auto note = unmeasured_threads_note(predictor, threads_)) lowering.notes.push_back(*note);
    const auto has_calls = [](const EdgeStep& step) { return !step.calls.empty(); };
    if (std::none_of(lowering.steps.begin(), lowering.steps.end(), has_calls)) {
      throw InputError({.source = onnx_, .expected = "a network that computes something; is a dimension bound to 0?"});
    }
    const EdgeModelEstimate estimate = estimate_edge_model(lowering, predictor, {.threads = threads_});
    EdgeModelReport report{.graph = graph,
                           .rules = rules,
                           .lowering = lowering,
                           .predictor = predictor,
                           .estimate = estimate,
                           .memory = edge_memory(graph, lowering),
                           .threads = threads_ > 0 ? threads_ : predictor.threads};
    report.advice = edge_advice(lowering, predictor, estimate);
    report.device_name = device_.device();
    for (const std::string& text : batches_) {
      const int64_t times = parse_size("--batch-sizes", text, batch_range);
      report.batches.push_back(
          {.times = times,
           .seconds = estimate_edge_model(lowering, predictor, {.batch_times = times, .threads = threads_}).seconds});
    }
    Answer answer{.text = edge_model_text(report, all_ ? 0 : static_cast<size_t>(top_)),
                  .json = edge_model_json(report)};
    const auto write = [&](const std::string& file, const std::string& content) {
      if (file.empty()) return;
      write_report(file, content);
      answer.text += fmt::format("wrote {}\n", file);
    };
    if (!csv_.empty()) write(csv_, json_rows_csv(*answer.json.find("steps")));
    if (!svg_.empty()) write(svg_, edge_model_svg(report));
    if (!html_.empty()) write(html_, edge_model_html(report));
    return answer;
  }

 private:
  Answer of_model(const Library& library) const {
    options_->refuse({"--bind", "--batch-sizes", "--fusion", "--top", "--all", "--svg", "--html", "--csv"}, {},
                     "--model");
    if (phase_ == "decode") options_->refuse({"--input-len"}, {}, "a decode step");
    if (device_.is_hardware(library)) {
      throw InputError(
          {.source = "--device",
           .value = device_.device(),
           .expected = "a CPU with a sweep (foretoken profile cpu); foretoken step runs models on others"});
    }
    const EdgePredictor predictor = device_.predictor(library);
    const Model model = open_model(library, model_);
    const StepRequest request{.phase = step_phase_from_name(phase_).value(),
                              .batch = batch_,
                              .input_len = input_len_,
                              .context_len = context_len_};
    EdgeLowering lowering = with_measured_formats(lower_edge_step(stage_operators(model, request, {}, 0)), predictor);
    if (const auto note = unmeasured_threads_note(predictor, threads_)) lowering.notes.push_back(*note);
    const EdgeModelEstimate estimate = estimate_edge_model(lowering, predictor, {.threads = threads_});
    const EdgeStepReport report{.model = model_.model,
                                .phase = phase_,
                                .predictor = predictor,
                                .lowering = lowering,
                                .estimate = estimate,
                                .threads = threads_ > 0 ? threads_ : predictor.threads,
                                .tokens = phase_ == "decode" ? batch_ : batch_ * input_len_,
                                .weights = weight_bytes(model),
                                .device_name = device_.device()};
    return {.text = model_warnings_text(model.notes) + edge_step_text(report), .json = edge_step_json(report)};
  }

  // Of a device of the hardware library, whose kernels are those of GPUs.
  Answer on_gpu(const Library& library, const OnnxGraph& graph) const {
    options_->refuse_without("a CPU as its device", {"--fusion", "--threads", "--svg"});
    const KernelPredictor predictor = library.predictor(device_.device());
    const StageEstimate run = estimate_graph(graph, predictor);
    GraphRunReport report{.graph = graph, .device = predictor.device(), .run = run, .batches = {}};
    for (const std::string& text : batches_) {
      const int64_t times = parse_size("--batch-sizes", text, batch_range);
      const OnnxGraph larger = read_onnx(onnx_, with_batch_times(graph, times));
      report.batches.push_back({.times = times, .seconds = estimate_graph(larger, predictor).kernels});
    }
    Answer answer{.text = graph_run_text(report, all_ ? 0 : static_cast<size_t>(top_)), .json = graph_run_json(report)};
    add_like_note(answer.text, answer.json, predictor.device());
    if (!csv_.empty()) {
      write_file(csv_, json_rows_csv(*answer.json.find("steps")));
      answer.text += fmt::format("wrote {}\n", csv_);
    }
    if (!html_.empty()) {
      write_report(html_, graph_run_html(report));
      answer.text += fmt::format("wrote {}\n", html_);
    }
    return answer;
  }

  // The first dimension of every input is its batch.
  OnnxOptions with_batch_times(const OnnxGraph& graph, int64_t times) const {
    OnnxOptions options = graph_.options();
    for (const int64_t input : graph.inputs) {
      const OnnxTensor& tensor = graph.tensor(input);
      if (!tensor.dims.empty()) options.bind[fmt::format("{}.0", tensor.name)] = tensor.dims.front() * times;
    }
    return options;
  }

  const Options* options_ = nullptr;
  std::string onnx_, svg_, html_, csv_;
  GraphFlags graph_;
  EdgeFlags device_;
  std::vector<std::string> batches_;
  ModelSpec model_;
  std::string phase_ = "decode";
  int64_t batch_ = 1, input_len_ = 128, context_len_ = 0;
  int64_t threads_ = 0, top_ = 15;
  bool all_ = false;
};

}  // namespace

std::unique_ptr<Command> make_edge() {
  return std::make_unique<EdgeCommand>();
}

}  // namespace foretoken
