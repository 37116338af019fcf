#include <map>
#include <sstream>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/output/progress.h"
#include "app/cli/profile/cpu_profile.h"
#include "app/cli/profile/fusion_profile.h"
#include "base/child_process.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "kernel/kernel.h"
#include "kernel/validate.h"
#include "library/own_device.h"
#include "report/parts/table.h"
#include "report/serving/calibration_report.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

// What Python says about itself and the GPU: one word, then the name of the device.
constexpr const char* probe =
    "try:\n"
    "    import torch\n"
    "except ImportError:\n"
    "    print('no-torch')\n"
    "else:\n"
    "    kind = 'rocm ' if getattr(torch.version, 'hip', None) else 'cuda '\n"
    "    print(kind + torch.cuda.get_device_name(0) if torch.cuda.is_available() else 'no-device')\n";

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  return fmt::format("{}", fmt::join(words, between));
}

struct PlannedFamily {
  std::string name;
  int64_t rows = 0, done = 0;
  double seconds = 0;
};

// The table that the script prints before it starts: family, rows, done, seconds.
std::vector<PlannedFamily> read_plan(const std::vector<std::string>& lines) {
  std::vector<PlannedFamily> plan;
  for (const std::string& line : lines) {
    std::istringstream words(line);
    std::string name, rows, done, seconds, more;
    words >> name >> rows >> done >> seconds;
    if (words >> more) continue;
    const auto row_count = parse_integer(rows), done_count = parse_integer(done);
    const auto expected = parse_number(seconds);
    if (row_count && done_count && expected) plan.push_back({name, *row_count, *done_count, *expected});
  }
  return plan;
}

class ProfileCommand : public Command {
 public:
  void declare(Options& options) override {
    cuda_ = &declare_gpu(options, "cuda", "NVIDIA");
    rocm_ = &declare_gpu(options, "rocm", "AMD");

    cpu_ = &options.subcommand("cpu",
                               "Measure the CPU of this machine with XNNPACK: every kernel on one thread, some on more "
                               "threads, in about three minutes");
    cpu_->text("--out", cpu_request_.out, "Folder for kernels.csv and predictor.json; without it, nothing is written");
    cpu_->text("--device", cpu_request_.device, "Name of the processor [as reported by the machine]");
    cpu_->text("--date", cpu_request_.date, "Date of the sweep; stored in the predictor");
    cpu_->integer("--threads", cpu_request_.threads, {.least = 0, .most = 4096},
                  "Also measure speedups on 2, 4, ... up to this many threads; 1 = skip [all cores]");
    cpu_->flag("--quick", cpu_request_.quick, "Take fewer and shorter samples of each kernel");
    cpu_->flag("--plan", cpu_request_.plan, "Print the kernels to measure, without measuring");
    cpu_->footer(
        "Example:\n  foretoken profile cpu --plan\n\nTo use ONNX Runtime instead of XNNPACK: tools/measure_ort.py (or "
        ".mjs) reads the printed plan and writes the same\ntable; `foretoken fit edge-kernels --whole-calls` makes the "
        "predictor.");
    declare_find_fusion(options);
  }

  Answer run(const Library& library) const override {
    if (cpu_->was_chosen()) return profile_cpu(cpu_request_);
    if (find_fusion_) return profile_fusion(fusion_request_, library);
    if (!cuda_->was_chosen() && !rocm_->was_chosen()) {
      throw InputError(
          {.source = "foretoken profile", .value = "nothing chosen", .expected = "cuda, rocm, cpu, or --find-fusion"});
    }
    if (!from_.empty()) {
      if (install_.empty()) throw InputError({.source = "--from", .expected = "--install NAME together with it"});
      return installed(library, from_, {});
    }
    const fs::path script = library.tools() / "profile_cuda.py";
    if (std::error_code ignored; !fs::exists(script, ignored)) {
      throw InputError({.source = command(),
                        .value = script.string(),
                        .expected = "the profiling script that is installed with foretoken"});
    }
    if (plan_) return show_plan(script);
    const std::string device = probed_device(script, library.hardware());
    const fs::path folder = fs::path(out_) / device;
    if (std::error_code ignored; !resume_ && fs::exists(folder / "meta.json", ignored)) {
      throw InputError({.source = "--out",
                        .value = folder.string(),
                        .expected = "a folder without measurements, or --resume to continue"});
    }
    show_progress(joined(output_of(script_call(script, folder, {"--plan"})).lines, "\n"));
    const Output sweep = output_of(script_call(script, folder, {"--progress"}), show_progress_line);
    if (sweep.status != 0) fail(sweep, folder);
    if (!install_.empty()) return installed(library, folder, sweep.lines);
    return summary(library, device, folder, sweep.lines);
  }

 private:
  Options& declare_gpu(Options& options, const std::string& name, std::string_view vendor) {
    Options& gpu = options.subcommand(
        name, fmt::format(
                  "Measure the kernels of one {} GPU: GEMM, attention, small kernels, launch overhead, sustained power",
                  vendor));
    gpu.text("--out", out_, "Folder for the measurements; a subfolder named after the device is created in it");
    gpu.number("--minutes", minutes_, {.least = 0.1, .most = 600},
               "Stop after this many minutes; --resume continues later");
    gpu.flag("--resume", resume_, "Continue a stopped sweep and keep its finished rows");
    gpu.list("--only", only_, "Only these kernel families (see --plan)");
    gpu.number("--scale", scale_, {.least = 0.01, .most = 100}, "Multiply the usual number of rows by this factor");
    gpu.flag("--probe", probe_,
             "Measure only 30 rows of each kernel and number format, in about a minute; fit them with `foretoken fit "
             "kernels --probe 30`");
    gpu.flag("--plan", plan_, "Print what would be measured and how long it takes, without measuring");
    gpu.text("--python", python_, "Python interpreter to use: 3.8 or newer, with PyTorch");
    gpu.heading("Your own device");
    gpu.text("--install", install_,
             "Install the measured GPU as your own device with this name, so that every command accepts --device NAME. "
             "Replaces an earlier device of this name");
    gpu.text("--from", from_, "With --install: use this finished sweep instead of measuring; needs no GPU");
    gpu.text("--like", like_,
             "With --install: library device whose spec sheet supplies what the driver does not report (peaks) [the "
             "one the driver names, otherwise the nearest of its generation]");
    gpu.footer(
        fmt::format("Your own devices are stored in FORETOKEN_HOME, else foretoken/ in XDG_DATA_HOME, else "
                    "~/.local/share/foretoken.\nExamples:\n  foretoken profile {0} --plan\n  foretoken profile {0} "
                    "--install my_gpu\nWithout a GPU here: tools/profile_cuda.py is a single file for CUDA and ROCm. "
                    "Copy it to the machine with the\nGPU, run `python3 profile_cuda.py --out my_gpu` there, and bring "
                    "the folder back:\n  foretoken profile {0} --install my_gpu --from path/to/my_gpu",
                    name));
    return gpu;
  }

  std::string command() const { return rocm_->was_chosen() ? "foretoken profile rocm" : "foretoken profile cuda"; }

  Answer installed(const Library& library, const fs::path& sweep, const std::vector<std::string>& said) const {
    const OwnDevice own =
        install_own_device(library, {.sweep = sweep, .name = install_, .like = like_, .progress = show_progress});
    std::string text = said.empty() ? "" : said.back() + "\n";
    text += calibration_summary_text(own.fit);
    text += fmt::format("{} {}: {}\n", own.replaced ? "replaced" : "installed", own.device.name, own.file.string());
    text += wrap_lines(fmt::format("Numbers that the driver does not report come from {}. Power: {}.", own.sheet_of,
                                   own.has_power ? "from the sustained rows of the sweep"
                                                 : "from other boards, because the sweep has too few sustained rows"),
                       page_width(), 2);
    text += fmt::format("Next:\n  foretoken step --model Llama-3.1-8B --device {}\n", own.device.name);
    return {.text = std::move(text),
            .json = Json::object({{"device", own.device.name},
                                  {"file", own.file.string()},
                                  {"sheet_of", own.sheet_of},
                                  {"replaced", own.replaced},
                                  {"has_power", own.has_power},
                                  {"fit", calibration_summary_json(own.fit)}})};
  }

  void declare_find_fusion(Options& options) {
    options.make_subcommand_optional();
    options.heading("Fusion");
    options.flag("--find-fusion", find_fusion_,
                 "Find which operators a runtime fuses, by timing test models of operator chains and their parts");
    options.text("--runner", fusion_request_.runner,
                 "Command that times models: called with --models FILE... --rounds N, prints a table with the columns "
                 "model and cpu_ms_min [node tools/measure_ort.mjs (ONNX Runtime)]");
    options.text("--out", fusion_request_.out, "Folder for the test models and fusion.json");
    options.text("--runtime", fusion_request_.runtime, "Name of the runtime [as reported by the runner]");
    options.text("--device", fusion_request_.device, "Name of the processor [as reported by the machine]");
    options.integer("--rounds", fusion_request_.rounds, {.least = 1, .most = 1000}, "Samples of each model per pass");
    options.integer(
        "--passes", fusion_request_.passes, {.least = 2, .most = 100},
        "Maximum number of timing passes. After the second pass, only ambiguous operator chains are timed again");
    options.number("--noise", fusion_request_.noise_percent, {.least = 0.01, .most = 50},
                   "Measurement noise to allow for, in percent");
    options.number("--minutes", fusion_request_.minutes, {.least = 0.01, .most = 600},
                   "Maximum duration of a pass, in minutes");
    options.footer("Example:\n  foretoken profile cuda --plan\n\nWithout a subcommand: --find-fusion (docs/edge.md)");
  }

  struct Output {
    int status = 0;
    std::vector<std::string> lines;
  };

  static void show_progress_line(std::string_view line) { show_progress(std::string(line)); }

  static Output output_of(const std::vector<std::string>& call,
                          const std::function<void(std::string_view)>& also = {}) {
    Output output;
    output.status = run_child(call, [&](std::string_view line) {
      output.lines.emplace_back(line);
      if (also) also(line);
    });
    return output;
  }

  std::vector<std::string> script_call(const fs::path& script, const fs::path& folder,
                                       const std::vector<std::string>& more) const {
    std::vector<std::string> call = {python_,     script.string(),       "--out",   folder.string(),
                                     "--minutes", number_text(minutes_), "--scale", number_text(scale_)};
    if (!only_.empty()) {
      call.emplace_back("--families");
      call.push_back(joined(only_, ","));
    }
    if (probe_) call.insert(call.end(), {"--probe", "30"});
    call.insert(call.end(), more.begin(), more.end());
    return call;
  }

  [[noreturn]] void fail(const Output& output, const fs::path& folder) const {
    constexpr size_t shown = 3;
    const size_t first = output.lines.size() > shown ? output.lines.size() - shown : 0;
    const std::vector<std::string> last(output.lines.begin() + static_cast<std::ptrdiff_t>(first), output.lines.end());
    throw InputError(
        {.source = command(),
         .value = joined(last, "; "),
         .expected = fmt::format(
             "a sweep that ends without error (exit status {}); finished rows are in {}, --resume continues with them",
             output.status, folder.string())});
  }

  Answer show_plan(const fs::path& script) const {
    const Output plan = output_of(script_call(script, fs::path(out_), {"--plan"}));
    if (plan.status != 0) fail(plan, out_);
    Json families = Json::array();
    double seconds = 0;
    for (const PlannedFamily& family : read_plan(plan.lines)) {
      seconds += family.seconds;
      families.push(Json::object(
          {{"family", family.name}, {"rows", family.rows}, {"done", family.done}, {"seconds", family.seconds}}));
    }
    return {.text = joined(plan.lines, "\n") + "\n",
            .json = Json::object({{"families", std::move(families)}, {"seconds", seconds}})};
  }

  // The device's name in the library, or its own with letters and digits only. InputError where nothing can be
  // measured.
  std::string probed_device(const fs::path& script, const HardwareCatalogue& hardware) const {
    const bool is_rocm = rocm_->was_chosen();
    const std::string elsewhere = fmt::format(
        "{} with PyTorch and an {} GPU. On another machine: copy {} there (a single file without dependencies), run "
        "`python3 profile_cuda.py --out my_gpu`, bring the folder back and pass it to --install NAME --from",
        python_, is_rocm ? "AMD" : "NVIDIA", script.string());
    const auto cannot = [&](std::string why) {
      return InputError({.source = command(), .value = std::move(why), .expected = elsewhere});
    };
    Output answer;
    try {
      answer = output_of({python_, "-c", probe});
    } catch (const InputError& error) {
      throw cannot(fmt::format("{}: {}", python_, error.problem().value));
    }
    const std::string said = answer.lines.empty() ? "" : answer.lines.back();
    if (said == "no-torch") throw cannot(fmt::format("{} has no PyTorch", python_));
    if (said == "no-device") throw cannot(is_rocm ? "PyTorch sees no ROCm device" : "PyTorch sees no CUDA device");
    const std::string_view start = is_rocm ? "rocm " : "cuda ";
    if (said.starts_with(is_rocm ? "cuda " : "rocm ")) {
      throw cannot(fmt::format("this PyTorch is for {}: use `foretoken profile {}`", is_rocm ? "CUDA" : "ROCm",
                               is_rocm ? "cuda" : "rocm"));
    }
    if (answer.status != 0 || !said.starts_with(start)) {
      throw cannot(fmt::format("{} answers: {}", python_, printable(said)));
    }
    const std::string name = said.substr(start.size());
    try {
      return hardware.device(name).name;
    } catch (const InputError&) {
      // Not in the library: rows are measured all the same, and fitted once the device has a file.
      std::string plain;
      for (const char c : name)
        plain += ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') ? c : c >= 'A' && c <= 'Z' ? lower_case(c) : '_';
      return plain;
    }
  }

  // Reads every file as `fit` and `validate` will.
  Answer summary(const Library& library, const std::string& device, const fs::path& folder,
                 const std::vector<std::string>& said) const {
    const HardwareCatalogue hardware = library.hardware();
    Json families = Json::object();
    std::string text = said.empty() ? "" : said.back() + "\n";
    bool known = true;
    try {
      hardware.device(device);
    } catch (const InputError&) {
      known = false;
    }
    size_t rows = 0;
    if (known) {
      const Validation read = validate_kernels(
          {.data = folder}, hardware, [](const Device& swept, Caches /*caches*/) { return KernelPredictor(swept); });
      for (const ValidationGroup& group : read.groups) families.set(group.name, group.errors.n);
      rows = read.overall.n;
      text += fmt::format("{} of {} read back from {}; {} cannot be expressed\n", counted(rows, "kernel row"),
                          counted(read.groups.size(), "family"), folder.string(), read.skipped.size());
    } else {
      text += fmt::format("{} is not in the library: install it, or describe it (docs/extending.md, \"Add a GPU\")\n",
                          device);
    }
    text += fmt::format(
        "Next:\n"
        "  foretoken profile {1} --install NAME --from {2}\n"
        "or, to fit by hand:\n"
        "  foretoken fit kernels --data {0} --source 'own sweep' --date YYYY-MM-DD --out calibrations\n"
        "  foretoken fit power --data {0} --source 'own sweep' --date YYYY-MM-DD --out power.json\n"
        "  foretoken validate kernels --data {0} --calibration calibrations\n",
        out_, rocm_->was_chosen() ? "rocm" : "cuda", folder.string());
    return {.text = std::move(text),
            .json = Json::object({{"device", device},
                                  {"known_device", known},
                                  {"folder", folder.string()},
                                  {"rows", rows},
                                  {"families", std::move(families)}})};
  }

  Options* cuda_ = nullptr;
  Options* rocm_ = nullptr;
  Options* cpu_ = nullptr;
  CpuProfileRequest cpu_request_;
  FusionProfileRequest fusion_request_;
  std::string out_ = "measured", python_ = "python3", install_, from_, like_;
  std::vector<std::string> only_;
  double minutes_ = 6, scale_ = 1;
  bool resume_ = false, plan_ = false, probe_ = false, find_fusion_ = false;
};

}  // namespace

std::unique_ptr<Command> make_profile() {
  return std::make_unique<ProfileCommand>();
}

}  // namespace foretoken
