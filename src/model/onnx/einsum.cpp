#include "model/onnx/einsum.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {

std::optional<EinsumSizes> einsum_sizes(const OnnxNodeView& node) {
  std::string equation = node.text_attribute("equation", "");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  if (equation.find('.') != std::string::npos) return std::nullopt;
  const size_t arrow = equation.find("->");
  const std::string_view left = std::string_view(equation).substr(0, arrow);
  const std::vector<std::string_view> operands = split(left, ",");
  std::map<char, int64_t> sizes, uses;
  for (size_t i = 0; i < operands.size(); ++i) {
    const OnnxDims& dims = node.dims(i);
    if (operands[i].size() != dims.size()) {
      node.fail(fmt::format("'{}' for {}", printable(operands[i]), dims_text(dims)), "one letter for each dimension");
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      const auto [known, is_new] = sizes.emplace(operands[i][d], dims[d]);
      ++uses[operands[i][d]];
      if (!is_new && known->second == 1) known->second = dims[d];
      if (known->second != dims[d] && dims[d] != 1) {
        node.fail(fmt::format("{} and {} for one letter", known->second, dims[d]), "the same size everywhere");
      }
    }
  }
  // Without an arrow: the letters that stand once, in alphabetical order.
  std::string result;
  for (const auto& [letter, count] : uses) {
    if (count == 1) result += letter;
  }
  if (arrow != std::string::npos) result = equation.substr(arrow + 2);
  EinsumSizes answer;
  for (const char letter : result) {
    const auto known = sizes.find(letter);
    if (known == sizes.end()) node.fail(printable(equation), "letters of the operands only");
    answer.output.push_back(known->second);
  }
  for (const auto& [letter, size] : sizes) answer.products *= static_cast<double>(size);
  constexpr double most_products = 4e18;  // that an int64_t holds
  if (operands.size() == 2 && answer.products < most_products) {
    answer.matrix.emplace();
    for (const auto& [letter, size] : sizes) {
      const bool in_left = operands[0].find(letter) != std::string_view::npos;
      const bool in_right = operands[1].find(letter) != std::string_view::npos;
      const bool stays = result.find(letter) != std::string::npos;
      MatrixProduct& product = *answer.matrix;
      (!stays ? product.k : in_left && in_right ? product.batch : in_left ? product.m : product.n) *= size;
    }
  }
  if (operands.size() > 2) answer.products *= static_cast<double>(operands.size() - 1);
  return answer;
}

}  // namespace foretoken
