#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/graph_flags.h"
#include "model/onnx/read_graph.h"
#include "report/graph_report.h"
#include "report/model_report.h"

namespace foretoken {
namespace {

class ModelsCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text("name", name_,
                 "A built-in name, a config.json or a directory with one, or an ONNX file; without it, the list");
    graph_.declare(options);
    options_ = &options;
    options.footer(
        "Examples:\n"
        "  foretoken models\n"
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
    options_->refuse({"--bind"}, {}, "a model that is no ONNX file");
    const ModelCatalogue catalogue = library.models();
    if (!name_.empty()) {
      const DescribedModel described = describe(catalogue, name_);
      return {.text = model_text(described), .json = model_json(described)};
    }
    std::vector<DescribedModel> models;
    for (const std::string& name : catalogue.names()) models.push_back(describe(catalogue, name));
    return {.text = model_list_text(models) +
                    fmt::format("\n{} models. `foretoken models NAME` shows one in full.\n", models.size()),
            .json = Json::object({{"models", model_list_json(models)}})};
  }

 private:
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
