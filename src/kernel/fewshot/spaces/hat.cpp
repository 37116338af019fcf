// HAT: encoder-decoder Transformers described by averages over their layers. H. Wang et al., "HAT: Hardware-Aware
// Transformers for Efficient Natural Language Processing", ACL 2020, section 3.1 and appendix.
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "kernel/fewshot/feature_list.h"
#include "kernel/fewshot/spaces/list.h"

namespace foretoken {
namespace {

constexpr std::string_view transformer_columns[] = {"encoder_embed_dim",
                                                    "encoder_layer_num",
                                                    "encoder_ffn_embed_dim_avg",
                                                    "encoder_self_attention_heads_avg",
                                                    "decoder_embed_dim",
                                                    "decoder_layer_num",
                                                    "decoder_ffn_embed_dim_avg",
                                                    "decoder_self_attention_heads_avg",
                                                    "decoder_ende_attention_heads_avg",
                                                    "decoder_arbitrary_ende_attn_avg"};
constexpr size_t number_count = std::size(transformer_columns);
// Ranges a typing error is likely to leave, and a typical value of each.
constexpr std::array<double, number_count> most = {16'384, 128, 65'536, 256, 16'384, 128, 65'536, 256, 256, 16};
constexpr std::array<double, number_count> typical = {512, 6, 2048, 6, 512, 4, 2048, 6, 6, 1};

using Transformer = std::array<double, number_count>;

Transformer parse_transformer(std::span<const std::string_view> cells, const CellComplaint& complain) {
  Transformer values{};
  for (size_t c = 0; c < number_count; ++c) {
    const auto [end, error] = std::from_chars(cells[c].data(), cells[c].data() + cells[c].size(), values[c]);
    const bool may_be_zero = c + 1 == number_count;
    if (error != std::errc() || end != cells[c].data() + cells[c].size() || !(values[c] <= most[c]) ||
        !(may_be_zero ? values[c] >= -1 : values[c] > 0))
      complain(c, fmt::format("a number between {} and {}", may_be_zero ? -1 : 0, most[c]));
  }
  return values;
}

FeatureList describe_transformer(const Transformer& given) {
  FeatureList list;
  std::array<double, number_count> relative{};
  for (size_t c = 0; c < number_count; ++c) {
    relative[c] = given[c] / typical[c];
    list.add(std::string(transformer_columns[c]), relative[c]);
  }
  const double encoder_layers = given[1], decoder_layers = given[5];
  list.add_log("encoder_layers", encoder_layers);
  list.add_log("decoder_layers", decoder_layers);
  const double encoder_parameters = encoder_layers * given[0] * (2 * given[2] + 4 * 64 * given[3]);
  const double decoder_parameters =
      decoder_layers * given[4] * (2 * given[6] + 4 * 64 * given[7] + 4 * 64 * given[8]) + given[4] * 32'768;
  list.add_log("encoder_parameters", encoder_parameters);
  list.add_log("decoder_parameters", decoder_parameters);
  list.add("encoder_parameters", encoder_parameters * 1e-7);
  list.add("decoder_parameters", decoder_parameters * 1e-7);
  for (size_t a = 0; a < number_count; ++a) {
    for (size_t b = a; b < number_count; ++b) {
      list.add(fmt::format("{}*{}", transformer_columns[a], transformer_columns[b]), relative[a] * relative[b]);
    }
  }
  // A decode runs its layers one after the other once per token, so its time follows 1/layers-normalised costs too.
  for (size_t c = 0; c < number_count; ++c) {
    list.add(fmt::format("{}_per_decoder_layer", transformer_columns[c]), relative[c] / decoder_layers);
  }
  return list;
}

std::vector<std::string> hat_names() {
  return describe_transformer(typical).names;
}

std::vector<double> hat_features(std::span<const std::string_view> cells, const CellComplaint& complain) {
  return describe_transformer(parse_transformer(cells, complain)).values;
}

std::vector<std::string> draw_hat(RandomStream& stream) {
  const auto among = [&](std::initializer_list<double> values) { return values.begin()[stream.below(values.size())]; };
  const auto average = [&](std::initializer_list<double> values, double count) {
    double sum = 0;
    for (int l = 0; l < count; ++l) sum += among(values);
    return sum / count;
  };
  Transformer values{};
  values[0] = among({512, 640});
  values[1] = 6;
  values[2] = average({1024, 2048, 3072}, 6);
  values[3] = average({4, 8}, 6);
  values[4] = among({512, 640});
  values[5] = among({1, 2, 3, 4, 5, 6});
  values[6] = average({1024, 2048, 3072}, values[5]);
  values[7] = average({4, 8}, values[5]);
  values[8] = average({4, 8}, values[5]);
  values[9] = average({1, 2, 3}, values[5]);
  std::vector<std::string> cells;
  for (const double value : values) cells.push_back(fmt::format("{:.6g}", value));
  return cells;
}

}  // namespace

ArchitectureSpace hat_space() {
  return {.name = "hat",
          .summary = "encoder-decoder Transformers for translation (HAT)",
          .columns = transformer_columns,
          .feature_names = hat_names,
          .features = hat_features,
          .draw = draw_hat,
          .fit = {.first = 0, .count = 1500},
          .query = {.first = 1500, .count = 500}};
}

}  // namespace foretoken
