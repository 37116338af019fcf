#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "report/model_report.h"

namespace foretoken {
namespace {

class ModelsCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text("name", name_, "A built-in name, a config.json or a directory with one; without it, the list");
    options.footer(
        "Examples:\n"
        "  foretoken models\n"
        "  foretoken models Llama-3.1-8B\n"
        "  foretoken models path/to/config.json --json");
  }

  Answer run(const Library& library) const override {
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
};

}  // namespace

std::unique_ptr<Command> make_models() {
  return std::make_unique<ModelsCommand>();
}

}  // namespace foretoken
