#include "accelerator/dataflow/dataflow_file.h"

#include <map>
#include <tuple>

#include <fmt/format.h>

#include "accelerator/dataflow/maestro_text.h"
#include "base/error.h"
#include "base/file.h"

namespace foretoken {
namespace {

constexpr size_t most_mapping_bytes = size_t{8} << 20;
constexpr size_t most_mapped_layers = 10'000;
constexpr size_t most_directives = 64;
constexpr int most_size_terms = 16;
constexpr Range<int64_t> allowed_dim_size{1, 1'000'000'000};
constexpr Range<int64_t> allowed_dim_stride{1, 1'000};

class DataflowFileReader {
 public:
  DataflowFileReader(std::string_view text, const std::string& source) : text_(text, source) {}

  MappedNetwork network() {
    MappedNetwork network;
    while (!text_.at_end()) {
      const std::string_view word = text_.take_word("Network or Constant");
      if (word == "Constant") {
        read_constant();
      } else if (word == "Network") {
        network.name = text_.take_title();
        read_network_body(network);
      } else {
        text_.fail_unknown(word, "Network or Constant", std::vector<std::string>{"Network", "Constant"});
      }
    }
    if (network.layers.empty()) text_.fail("a Network with a Layer");
    return network;
  }

  std::vector<Directive> lone_directives() {
    if (text_.peek_word() == "Dataflow") {
      text_.take_word("Dataflow");
      return directive_block();
    }
    std::vector<Directive> directives;
    while (!text_.at_end()) add_directive(directives);
    if (directives.empty()) text_.fail("a directive");
    return directives;
  }

 private:
  void read_constant() {
    const std::string name(text_.take_word("the name of a constant"));
    constants_[name] = text_.take_integer(allowed_dim_size);
  }

  void read_network_body(MappedNetwork& network) {
    text_.expect('{');
    while (!text_.take('}')) {
      const std::string_view word = text_.take_word("Layer or }");
      if (word != "Layer") text_.fail_unknown(word, "Layer or }", std::vector<std::string>{"Layer"});
      if (network.layers.size() == most_mapped_layers) text_.fail(fmt::format("at most {} layers", most_mapped_layers));
      MappedLayer layer = read_layer();
      if (layer.dataflow.empty()) {
        if (network.layers.empty()) text_.fail_at(text_.line(), layer.layer.name, "a Dataflow in the first layer");
        layer.dataflow = network.layers.back().dataflow;
      }
      network.layers.push_back(std::move(layer));
    }
  }

  MappedLayer read_layer() {
    const int line = text_.line();
    MappedLayer mapped;
    mapped.layer.name = text_.take_title();
    output_sizes_ = {};
    text_.expect('{');
    while (!text_.take('}')) {
      const std::string_view word = text_.take_word("Type, Stride, Dimensions, Dataflow or }");
      if (word == "Type") {
        mapped.layer.type = layer_type();
      } else if (word == "Stride") {
        read_strides(mapped.layer);
      } else if (word == "Dimensions") {
        read_dimensions(mapped.layer);
      } else if (word == "Dataflow") {
        mapped.dataflow = directive_block();
      } else {
        text_.fail_unknown(word, "Type, Stride, Dimensions, Dataflow or }",
                           std::vector<std::string>{"Type", "Stride", "Dimensions", "Dataflow"});
      }
    }
    // Sizes of the output say what the input must be; the other way round rows may be left over.
    for (const LayerDim dim : {LayerDim::Y, LayerDim::X}) {
      if (output_sizes_[dim] == 0) continue;
      mapped.layer.sizes[dim] =
          (output_sizes_[dim] - 1) * mapped.layer.stride(dim) + mapped.layer.sizes[*window_of(dim)];
    }
    check_layer(mapped.layer, text_.source(), line);
    return mapped;
  }

  DataflowLayerType layer_type() {
    const std::string_view name = text_.take_word("a type of layer");
    const std::optional<DataflowLayerType> type = layer_type_named(name);
    if (!type) text_.fail_unknown(name, "CONV, DSCONV, NGCONV, TRCONV, FC, GEMM or BMM", layer_type_names());
    return *type;
  }

  void read_strides(DataflowLayer& layer) {
    text_.expect('{');
    while (!text_.take('}')) {
      const std::string_view name = text_.take_word("Y or X");
      if (name != "Y" && name != "X") text_.fail_at(text_.line(), name, "Y or X, which alone have a stride");
      (name == "Y" ? layer.stride_y : layer.stride_x) = number(allowed_dim_stride);
    }
  }

  void read_dimensions(DataflowLayer& layer) {
    text_.expect('{');
    while (!text_.take('}')) {
      const auto [dim, of_output] = dimension();
      int64_t& size = (of_output ? output_sizes_ : layer.sizes)[dim];
      if (layer.sizes[dim] != 0 || output_sizes_[dim] != 0) {
        text_.fail_at(text_.line(), layer_dim_name(dim), "each dimension once");
      }
      size = number(allowed_dim_size);
    }
  }

  std::pair<LayerDim, bool> dimension() {
    const std::string_view name = text_.take_word("a dimension");
    const bool of_output = name == "X'" || name == "Y'";
    const std::optional<LayerDim> dim = layer_dim_named(of_output ? name.substr(0, 1) : name);
    if (!dim) text_.fail_at(text_.line(), name, "a dimension: B, G, M, K, N, C, R, S, Y, X, Y' or X'");
    return {*dim, of_output};
  }

  int64_t number(Range<int64_t> allowed) {
    const auto found = constants_.find(text_.peek_word());
    if (found == constants_.end()) return text_.take_integer(allowed);
    if (!allowed.holds(found->second)) text_.fail(range_text(allowed));
    text_.take_word("a constant");
    return found->second;
  }

  std::vector<Directive> directive_block() {
    std::vector<Directive> directives;
    text_.expect('{');
    while (!text_.take('}')) add_directive(directives);
    if (directives.empty()) text_.fail("a directive");
    return directives;
  }

  void add_directive(std::vector<Directive>& directives) {
    if (directives.size() == most_directives) text_.fail(fmt::format("at most {} directives", most_directives));
    const std::string_view name = text_.take_word("TemporalMap, SpatialMap or Cluster");
    Directive directive{.line = text_.line()};
    if (name == "SpatialMap") {
      directive.kind = DirectiveKind::spatial_map;
    } else if (name == "Cluster") {
      directive.kind = DirectiveKind::cluster;
    } else if (name != "TemporalMap") {
      text_.fail_unknown(name, "TemporalMap, SpatialMap or Cluster",
                         std::vector<std::string>{"TemporalMap", "SpatialMap", "Cluster"});
    }
    text_.expect('(');
    directive.size = size_expression();
    if (directive.kind == DirectiveKind::cluster) {
      const std::string_view kind = text_.take_word("P or L");
      if (kind != "P" && kind != "L") text_.fail_at(directive.line, kind, "P (physical) or L (logical)");
      directive.is_logical = kind == "L";
      text_.expect(')');
    } else {
      directive.offset = size_expression();
      text_.expect(')');
      std::tie(directive.dim, directive.of_output) = dimension();
    }
    directives.push_back(directive);
  }

  SizeExpression size_expression() {
    SizeExpression sum;
    int sign = 1;
    for (int terms = 1;; ++terms) {
      if (terms > most_size_terms) text_.fail(fmt::format("at most {} terms in a size", most_size_terms));
      if (text_.peek_word() == "Sz") {
        text_.take_word("Sz");
        text_.expect('(');
        const auto [dim, of_output] = dimension();
        if (of_output) text_.fail_at(text_.line(), layer_dim_name(dim), "a dimension of the input in Sz()");
        text_.expect(')');
        sum.times[dim] += sign;
      } else {
        sum.constant += sign * number(allowed_dim_size);
      }
      if (text_.take('+')) {
        sign = 1;
      } else if (text_.take('-')) {
        sign = -1;
      } else {
        return sum;
      }
    }
  }

  MaestroText text_;
  std::map<std::string, int64_t, std::less<>> constants_;
  DimSizes output_sizes_;  // of the layer being read: Y' and X'
};

}  // namespace

MappedNetwork parse_mapped_network(std::string_view text, const std::string& source) {
  return DataflowFileReader(text, source).network();
}

MappedNetwork read_mapped_network(const std::filesystem::path& path) {
  return parse_mapped_network(read_file(path, most_mapping_bytes), path.string());
}

std::vector<Directive> parse_directives(std::string_view text, const std::string& source) {
  return DataflowFileReader(text, source).lone_directives();
}

std::vector<Directive> read_directives(const std::filesystem::path& path) {
  return parse_directives(read_file(path, most_mapping_bytes), path.string());
}

}  // namespace foretoken
