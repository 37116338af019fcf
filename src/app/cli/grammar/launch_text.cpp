#include "app/cli/grammar/launch_text.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace foretoken {
namespace {

constexpr size_t most_launch_bytes = size_t{1} << 20;

int64_t experts_in_a_layer(const Model& model) {
  for (const Layer& layer : model.layers) {
    if (const Moe* moe = std::get_if<Moe>(&layer.feed_forward)) return moe->experts;
  }
  return 0;
}

}  // namespace

LaunchLine read_launch_text(const std::string& flag, const std::string& given, const ExpertsOfModel& experts_of) {
  const bool is_file = given.starts_with('@');
  const std::string file = is_file ? given.substr(1) : "";
  const std::string text = is_file ? read_file(file, most_launch_bytes) : given;
  if (text.empty()) {
    throw InputError({.source = is_file ? file : flag,
                      .value = "empty",
                      .expected = "a command that starts an engine, for example vllm serve MODEL, or a YAML file that "
                                  "contains one"});
  }
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  const auto beside = [&](const std::string& name) -> std::optional<std::string> {
    const std::filesystem::path path = folder / name;
    std::error_code none;
    if (!std::filesystem::is_regular_file(path, none)) return std::nullopt;
    return read_file(path, most_launch_bytes);
  };
  return read_launch_line(text, is_file ? file : flag, beside, experts_of);
}

ExpertsOfModel experts_of_models(const Library& library) {
  return [&library](const std::string& model) -> std::optional<int64_t> {
    try {
      return model.empty() ? std::nullopt : std::optional(experts_in_a_layer(library.models().model(model)));
    } catch (const InputError&) {
      return std::nullopt;  // the command that is asked about the model says what is wrong with its name
    }
  };
}

}  // namespace foretoken
