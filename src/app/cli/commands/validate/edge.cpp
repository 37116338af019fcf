#include <filesystem>

#include <fmt/format.h>

#include "app/cli/commands/validate/list.h"
#include "app/cli/edge_flags.h"
#include "app/cli/out_file.h"
#include "base/error.h"
#include "compose/edge/validate_edge_models.h"
#include "kernel/fewshot/validate_fewshot.h"
#include "report/edge_report.h"
#include "report/validation_report.h"

namespace foretoken {
namespace {

constexpr const char* kernel_file = "host_ort_kernels.csv";
constexpr const char* model_file = "host_ort_models.csv";
constexpr const char* model_folder = "onnx";

// The table of a space: plain or compressed. Empty where there is none.
std::filesystem::path latency_file(const std::filesystem::path& folder, std::string_view space) {
  for (const char* end : {".csv", ".csv.gz"}) {
    const std::filesystem::path path = folder / fmt::format("{}_latency{}", space, end);
    if (std::filesystem::exists(path)) return path;
  }
  return {};
}

class ValidateEdge : public Command {
 public:
  void declare(Options& options) override {
    options.text(
        "--data", data_,
        "Folder with host_ort_kernels.csv, host_ort_models.csv (graphs in onnx/) and SPACE_latency.csv, or one "
        "CSV file of kernels: kind, params, cpu_ms_min",
        true);
    device_.declare(options);
    options.integer("--draws", draws_, {.least = 0, .most = 1000},
                    "Times that ten timings are drawn from each withheld device of a space; 0 = leave spaces out");
    options.text("--out", out_, "Write every kernel and model with what was measured and predicted to this CSV file");
    options.footer(
        "Examples:\n"
        "  foretoken validate edge --data measurements/edge --device neoverse_v1_ort --draws 20\n"
        "  foretoken validate edge --data measurements/edge/host_ort_kernels.csv\n"
        "Models are predicted from their graphs by kernel prices alone. Of a space of architectures every device is\n"
        "predicted from ten of its timings by a prior of the others; latencies that were added up from blocks stand\n"
        "apart from measured ones, and failed measurements are listed as skipped.");
  }

  Answer run(const Library& library) const override {
    const EdgePredictor predictor = device_.predictor(library);
    OutFile file("--out", out_);
    ScoredEdgeSink sink;
    if (file.wanted()) {
      file.stream() << scored_edge_header();
      sink = [&](const ScoredEdge& scored) { file.stream() << scored_edge_row(scored); };
    }
    EdgeScores scores(sink);
    const std::filesystem::path data(data_);
    const bool is_folder = std::filesystem::is_directory(data);
    const std::filesystem::path kernels = is_folder ? data / kernel_file : data;
    if (!is_folder || std::filesystem::exists(kernels))
      score_edge_kernels(predictor, read_edge_rows(kernels), kernels.string(), scores);
    if (is_folder && std::filesystem::exists(data / model_file))
      score_edge_models(predictor, device_.fusion_rules(library), data / model_file, data / model_folder, scores);
    const std::vector<FewshotSpace> spaces = is_folder ? spaces_of(data, scores) : std::vector<FewshotSpace>{};
    file.close();
    const Validation validation = scores.result();
    if (validation.overall.n == 0 && spaces.empty()) {
      throw InputError({.source = "--data",
                        .value = data_,
                        .expected = fmt::format("{}, {} or tables of spaces in the folder", kernel_file, model_file)});
    }
    Answer answer{.json = validation_json(validation, "edge")};
    if (validation.overall.n > 0) answer.text = validation_text(validation) + "\n";
    if (!spaces.empty()) answer.text += fewshot_text(spaces);
    answer.json.set("fewshot", fewshot_json(spaces));
    return answer;
  }

 private:
  std::vector<FewshotSpace> spaces_of(const std::filesystem::path& folder, EdgeScores& scores) const {
    std::vector<FewshotSpace> spaces;
    for (const ArchitectureSpace& space : architecture_spaces()) {
      const std::filesystem::path path = latency_file(folder, space.name);
      if (draws_ == 0 || path.empty()) continue;
      FewshotSpace own{.name = std::string(space.name)};
      own.validation = validate_fewshot(space, read_latency_table(space, path), {.draws = static_cast<size_t>(draws_)});
      for (const std::string& why : own.validation.skipped) scores.skip({.file = path.string(), .why = why});
      for (const FewshotGroup& group : own.validation.groups) {
        if (group.failed_rows == 0) continue;
        scores.skip({.file = path.string(),
                     .why = fmt::format("{}: {} rows are failed measurements", group.device, group.failed_rows)});
      }
      spaces.push_back(std::move(own));
    }
    return spaces;
  }

  std::string data_, out_;
  EdgeFlags device_;
  int64_t draws_ = 5;
};

}  // namespace

std::unique_ptr<Command> make_validate_edge() {
  return std::make_unique<ValidateEdge>();
}

}  // namespace foretoken
