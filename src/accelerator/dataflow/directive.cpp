#include "accelerator/dataflow/directive.h"

#include <cstdlib>

#include <fmt/format.h>

namespace foretoken {

int64_t SizeExpression::value(const DimSizes& sizes) const {
  int64_t sum = constant;
  for (const LayerDim dim : all_layer_dims) sum += times[dim] * sizes[dim];
  return sum;
}

std::string SizeExpression::text() const {
  std::string text;
  for (const LayerDim dim : all_layer_dims) {
    for (int count = 0; count < std::abs(times[dim]); ++count) {
      if (times[dim] < 0) {
        text += '-';
      } else if (!text.empty()) {
        text += '+';
      }
      text += fmt::format("Sz({})", layer_dim_name(dim));
    }
  }
  if (text.empty()) return fmt::format("{}", constant);
  return constant == 0 ? text : text + fmt::format("{:+}", constant);
}

std::string Directive::text() const {
  if (kind == DirectiveKind::cluster) return fmt::format("Cluster({}, {})", size.text(), is_logical ? 'L' : 'P');
  return fmt::format("{}({},{}) {}{}", kind == DirectiveKind::spatial_map ? "SpatialMap" : "TemporalMap", size.text(),
                     offset.text(), layer_dim_name(dim), of_output ? "'" : "");
}

}  // namespace foretoken
