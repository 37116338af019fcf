#include "accelerator/validate/validate_accelerator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "accelerator/pim/prim_rows.h"
#include "base/error.h"

namespace foretoken {
namespace {

bool first_case_has(const AcceleratorCaseFile& file, std::string_view key) {
  const JsonView* document = file.document;
  if (document == nullptr || !document->is(Json::Kind::object) || !document->has("cases")) return false;
  const auto cases = document->at("cases").items();
  return !cases.empty() && cases.front().is(Json::Kind::object) && cases.front().has(key);
}

bool has_key(const AcceleratorCaseFile& file, std::string_view key) {
  return file.document != nullptr && file.document->is(Json::Kind::object) && file.document->has(key);
}

bool is_dense(const AcceleratorCaseFile& file) {
  return first_case_has(file, "mapping_outer_to_inner") &&
         file.document->at("cases").items().front().at("expected").at("summary").has("computes");
}

// Dense cases among sparse ones say densities as well, of which their chip makes no use.
bool is_sparse(const AcceleratorCaseFile& file) {
  if (!first_case_has(file, "mapping_outer_to_inner")) return false;
  for (const JsonView& one : file.document->at("cases").items()) {
    const auto densities = one.at("problem").at("instance").find("densities");
    if (densities && !densities->members().empty()) return true;
  }
  return false;
}

struct CaseKind {
  bool (*recognises)(const AcceleratorCaseFile& file);
  CaseFigures figures;
};

// Add your line here; the first that recognises a file reads it.
constexpr CaseKind case_kinds[] = {
    {is_sparse, sparse_figures},
    {is_dense, loop_nest_figures},
    {[](const AcceleratorCaseFile& file) { return first_case_has(file, "sram_kB"); }, scalesim_figures_of},
    {[](const AcceleratorCaseFile& file) { return first_case_has(file, "dataflow"); }, dataflow_figures},
    {[](const AcceleratorCaseFile& file) { return has_key(file, "networks"); }, eyeriss_figures},
    {[](const AcceleratorCaseFile& file) { return has_key(file, "layers"); }, nvdla_figures},
    {[](const AcceleratorCaseFile& file) { return has_key(file, "workloads"); }, tpu_v1_figures},
    {[](const AcceleratorCaseFile& file) { return file.document == nullptr && is_prim_table(file.path); },
     prim_figures},
    {[](const AcceleratorCaseFile& file) { return file.document == nullptr; }, tpu_v3_figures},
};

std::vector<std::filesystem::path> case_files(const std::filesystem::path& data) {
  std::error_code error;
  if (!std::filesystem::is_directory(data, error)) return {data};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(data)) {
    const auto extension = entry.path().extension();
    if (extension == ".json" || extension == ".csv") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    throw InputError({.source = data.string(), .expected = "a file of cases, or a folder with some"});
  }
  return files;
}

bool is_wanted_figure(const AcceleratorValidationRequest& request, const AcceleratorFigure& figure) {
  const auto& cases = request.cases;
  if (!cases.empty() && std::find(cases.begin(), cases.end(), figure.case_id) == cases.end()) return false;
  const auto holds = [&](const std::string& part) { return figure.figure.find(part) != std::string::npos; };
  return request.figures.empty() || std::any_of(request.figures.begin(), request.figures.end(), holds);
}

std::string group_of(const std::string& group_by, const std::string& file, const AcceleratorFigure& figure) {
  if (group_by == "case") return figure.case_id;
  if (group_by == "figure") return figure.figure.substr(figure.figure.rfind('.') + 1);
  return file;
}

}  // namespace

Validation validate_accelerator(const AcceleratorValidationRequest& request, const ScoredFigureSink& sink) {
  Validation validation;
  validation.has_intervals = false;
  ValidationTally tally(std::numeric_limits<double>::infinity());  // figures are no times
  size_t exact = 0, wrong_zeros = 0, all = 0;
  for (const std::filesystem::path& path : case_files(request.data)) {
    const auto start = std::chrono::steady_clock::now();
    const bool is_table = path.extension() == ".csv";
    const Json document = is_table ? Json() : read_json_file(path);
    const JsonView view(document, path.string());
    const AcceleratorCaseFile cases{.path = path, .document = is_table ? nullptr : &view, .shipped = request.shipped};
    const auto kind = std::find_if(std::begin(case_kinds), std::end(case_kinds),
                                   [&](const CaseKind& candidate) { return candidate.recognises(cases); });
    const std::string file = path.stem().string();
    if (kind == std::end(case_kinds)) {
      validation.skipped.push_back({.file = path.string(), .why = "not a file of cases of a kind we know"});
      continue;
    }
    std::vector<AcceleratorFigure> figures = kind->figures(cases);
    std::erase_if(figures, [&](const AcceleratorFigure& figure) { return !is_wanted_figure(request, figure); });
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    for (const AcceleratorFigure& figure : figures) {
      if (!figure.why_not.empty()) {
        validation.skipped.push_back({.file = path.string(), .why = figure.case_id + ": " + figure.why_not});
        continue;
      }
      const std::string group = group_of(request.group_by, file, figure);
      ++all;
      if (figure.predicted == figure.expected) ++exact;
      if (figure.expected > 0) {
        tally.add(group,
                  {.measured = figure.expected,
                   .predicted = figure.predicted,
                   .low = figure.predicted,
                   .high = figure.predicted},
                  spent.count() / static_cast<double>(figures.size()));
      } else if (figure.predicted != figure.expected) {
        ++wrong_zeros;
        validation.notes.push_back(fmt::format("{} {}: expected {}, predicted {}", figure.case_id, figure.figure,
                                               figure.expected, figure.predicted));
      }
      if (sink) sink({.file = file, .group = group, .figure = &figure});
    }
  }
  if (all == 0 && validation.skipped.empty()) {
    throw InputError({.source = request.data.string(),
                      .expected = request.cases.empty() && request.figures.empty() ? "files of cases of a kind we know"
                                                                                   : "figures that the filters leave"});
  }
  tally.write(validation);
  if (all > 0) validation.notes.push_back(fmt::format("{} of {} figures are met exactly", exact, all));
  if (wrong_zeros > 0) {
    validation.notes.push_back(fmt::format("{} figures should be zero, have no percentage and are not", wrong_zeros));
  }
  return validation;
}

}  // namespace foretoken
