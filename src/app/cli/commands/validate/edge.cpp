#include <filesystem>

#include <fmt/format.h>

#include "app/cli/commands/validate/list.h"
#include "app/cli/commands/validate/validation_answer.h"
#include "app/cli/flags/edge_flags.h"
#include "app/cli/output/out_file.h"
#include "app/cli/output/progress.h"
#include "base/counted.h"
#include "base/error.h"
#include "compose/edge/validate_edge_models.h"
#include "kernel/fewshot/validate_fewshot.h"
#include "report/accuracy/validation_report.h"
#include "report/edge/edge_report.h"

namespace foretoken {
namespace {

constexpr const char* kernel_file = "host_ort_kernels.csv";
constexpr const char* model_file = "host_ort_models.csv";
constexpr const char* model_folder = "onnx";

// What there is to compare with; empty: no such table.
struct EdgeTables {
  std::filesystem::path kernels, models;
  std::vector<std::pair<std::string, std::filesystem::path>> spaces;
};

// A folder's tables, plain or compressed, or one table, known by its name; a name that says nothing is one of kernels.
EdgeTables tables_of(const std::filesystem::path& data) {
  const bool is_folder = std::filesystem::is_directory(data);
  const auto found = [&](const std::string& name) -> std::filesystem::path {
    for (const std::string& own : {name, name + ".gz"}) {
      if (is_folder && std::filesystem::exists(data / own)) return data / own;
      if (!is_folder && data.filename() == own) return data;
    }
    return {};
  };
  EdgeTables tables{.kernels = found(kernel_file), .models = found(model_file)};
  for (const ArchitectureSpace& space : architecture_spaces()) {
    const std::filesystem::path path = found(fmt::format("{}_latency.csv", space.name));
    if (!path.empty()) tables.spaces.emplace_back(space.name, path);
  }
  if (!is_folder && tables.models.empty() && tables.spaces.empty()) tables.kernels = data;
  return tables;
}

class ValidateEdge : public Command {
 public:
  void declare(Options& options) override {
    options.text("--data", data_,
                 "Folder with host_ort_kernels.csv, host_ort_models.csv (graphs in onnx/) and SPACE_latency.csv, or "
                 "one of these files; a file with another name lists kernels (kind, params, cpu_ms_min)",
                 true);
    device_.declare(options);
    options.integer("--draws", draws_, {.least = 0, .most = 1000},
                    "Number of times ten timings are drawn from each withheld device of a space; 0 = skip spaces");
    options.text("--out", out_, "Write every kernel and model, measured and predicted, to this CSV file");
    options.footer(
        "Examples:\n  foretoken validate edge --data measurements/edge --device neoverse_v1_ort --draws 20\n  "
        "foretoken validate edge --data measurements/edge/host_ort_kernels.csv\nModels are predicted from their graphs "
        "and kernel times alone. In a space of architectures, each device is\npredicted from ten of its timings and a "
        "prior fitted to the other devices, or the shipped prior if it has not\nseen that device. Latencies that are "
        "sums of blocks are listed apart from measured ones; failed measurements are\nlisted as skipped.");
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
    const EdgeTables tables = tables_of(data_);
    if (!tables.kernels.empty()) {
      show_progress("kernels");
      score_edge_kernels(predictor, read_edge_rows(tables.kernels), tables.kernels.string(), scores);
    }
    if (!tables.models.empty()) {
      show_progress("whole models");
      score_edge_models(predictor, device_.fusion_rules(library), tables.models,
                        tables.models.parent_path() / model_folder, scores);
    }
    const std::vector<FewshotSpace> spaces = spaces_of(tables, library, scores);
    file.close();
    const Validation validation = scores.result();
    if (tables.kernels.empty() && tables.models.empty() && spaces.empty()) {
      throw InputError({.source = "--data",
                        .value = data_,
                        .expected = fmt::format("{}, {} or tables of spaces in the folder", kernel_file, model_file)});
    }
    Answer answer = validation_answer(validation, "edge");
    size_t queries = 0;
    for (const FewshotSpace& space : spaces)
      queries += space.validation.measured.queries + space.validation.sums.queries;
    if (queries > 0) {
      answer.failure.clear();
      answer.text = (validation.overall.n > 0 ? answer.text + "\n" : std::string()) + fewshot_text(spaces);
      add_fewshot_groups(answer.json, spaces);
    }
    answer.json.set("fewshot", fewshot_json(spaces));
    return answer;
  }

 private:
  std::vector<FewshotSpace> spaces_of(const EdgeTables& tables, const Library& library, EdgeScores& scores) const {
    std::vector<FewshotSpace> spaces;
    for (const auto& [space_name, path] : tables.spaces) {
      if (draws_ == 0) continue;
      show_progress(fmt::format("{}: devices from ten timings", space_name));
      const ArchitectureSpace& space = architecture_space(space_name);
      const LatencyPrior shipped =
          read_latency_prior(library.directory() / "edge" / "priors" / fmt::format("{}.json", space_name));
      FewshotSpace own{.name = space_name};
      own.validation =
          validate_fewshot(space, read_latency_table(space, path), {.draws = static_cast<size_t>(draws_)}, &shipped);
      for (const std::string& why : own.validation.skipped) scores.skip({.file = path.string(), .why = why});
      for (const FewshotGroup& group : own.validation.groups) {
        if (group.failed_rows == 0) continue;
        scores.skip(
            {.file = path.string(),
             .why = fmt::format("{}: {}", group.device, counted(group.failed_rows, "row of failed measurements"))});
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
