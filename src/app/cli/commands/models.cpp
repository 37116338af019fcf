#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/graph_flags.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/text.h"
#include "model/onnx/read_graph.h"
#include "report/step/graph_report.h"
#include "report/step/model_report.h"

namespace foretoken {
namespace {

class ModelsCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text("name", name_,
                 "Built-in name, config.json, directory that contains one, or ONNX file; part of a name lists the "
                 "models that match; "
                 "without it, all models are listed");
    graph_.declare(options);
    options_ = &options;
    options.footer(
        "Examples:\n"
        "  foretoken models\n"
        "  foretoken models llama\n"
        "  foretoken models Llama-3.1-8B\n"
        "  foretoken models path/to/config.json --json\n"
        "  foretoken models path/to/network.onnx --bind batch=8");
  }

  Answer run(const Library& library) const override {
    if (is_graph_file(name_)) {
      const OnnxGraph graph = read_onnx(name_, graph_.options());
      const OnnxSummary summary = summarize(graph);
      return {.text = graph_text(graph, summary), .json = graph_json(graph, summary)};
    }
    options_->refuse({"--bind"}, {}, "a model that is not an ONNX file");
    const ModelCatalogue catalogue = library.models();
    const std::vector<std::string> names = listed_names(catalogue);
    if (!name_.empty() && names.empty()) {
      const DescribedModel described = describe(catalogue, name_);
      return {.text = model_text(described), .json = model_json(described)};
    }
    std::vector<DescribedModel> models;
    for (const std::string& name : names) models.push_back(describe(catalogue, name));
    return {.text = model_list_text(models) +
                    fmt::format("\n{}{}. `foretoken models NAME` shows one in full.\n", counted(models.size(), "model"),
                                name_.empty() ? "" : fmt::format(" with \"{}\" in the name", name_)),
            .json = Json::object({{"models", model_list_json(models)}})};
  }

 private:
  // All of them, or those with the given text in their names; none where that names a model.
  std::vector<std::string> listed_names(const ModelCatalogue& catalogue) const {
    if (name_.empty()) return catalogue.names();
    std::vector<std::string> names;
    try {
      catalogue.model(name_);
    } catch (const InputError&) {
      for (const std::string& name : catalogue.names()) {
        if (lower_case(name).find(lower_case(name_)) != std::string::npos) names.push_back(name);
      }
    }
    return names;
  }

  static DescribedModel describe(const ModelCatalogue& catalogue, const std::string& name) {
    Model model = catalogue.model(name);
    const auto& names = catalogue.names();
    const bool is_built_in = std::binary_search(names.begin(), names.end(), model.name);
    return {.model = std::move(model), .entry = is_built_in ? std::optional(catalogue.entry(name)) : std::nullopt};
  }

  std::string name_;
  GraphFlags graph_;
  const Options* options_ = nullptr;
};

}  // namespace

std::unique_ptr<Command> make_models() {
  return std::make_unique<ModelsCommand>();
}

}  // namespace foretoken
