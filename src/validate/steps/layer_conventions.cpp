#include "validate/steps/layer_conventions.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "library/library.h"

namespace foretoken {

LayerConventions read_layer_conventions(const std::filesystem::path& path) {
  const Json document = read_json_file(path);
  const JsonView view(document, path.string());
  view.allow_only({"about", "source", "stack", "dtype", "device_suffixes", "missing_columns", "operators"});
  LayerConventions result{.source = view.at("source").string(), .stack = view.at("stack").string()};
  const std::optional<DType> dtype = dtype_from_name(view.at("dtype").string());
  if (!dtype) view.at("dtype").fail("a number format, such as fp16");
  result.dtype = *dtype;
  for (const JsonView& suffix : view.at("device_suffixes").items()) {
    if (suffix.string().empty()) suffix.fail("a text that ends a device's name");
    result.device_suffixes.push_back(suffix.string());
  }
  const JsonView missing = view.at("missing_columns");
  missing.allow_only({"model", "batch", "input_len", "context_len", "tp"});
  constexpr Range<int64_t> counts{1, 1'000'000'000};
  result.model = missing.at("model").string();
  result.batch = missing.at("batch").integer(counts);
  result.input_len = missing.at("input_len").integer(counts);
  result.context_len = missing.at("context_len").integer(counts);
  result.tensor = missing.at("tp").integer(counts);
  for (const auto& [name, launch] : view.at("operators").members()) result.operators.emplace(name, launch.string());
  return result;
}

std::string layer_device_name(std::string_view text, const LayerConventions& conventions) {
  const size_t times = text.find('x');
  const bool counted = times != std::string_view::npos && times > 0 &&
                       std::all_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(times),
                                   [](char letter) { return letter >= '0' && letter <= '9'; });
  std::string_view rest = counted ? text.substr(times + 1) : text;
  for (const std::string& suffix : conventions.device_suffixes) rest = rest.substr(0, rest.find(suffix));
  return std::string(rest);
}

LayerConventions layer_conventions_of(const Library& library) {
  return read_layer_conventions(library.directory() / "layers" / "llmcompass.json");
}

}  // namespace foretoken
