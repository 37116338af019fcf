#include "accelerator/systolic/chip_layers.h"

#include "accelerator/systolic/array.h"
#include "accelerator/systolic/weight_fed.h"
#include "base/error.h"

namespace foretoken {
namespace {

double chip_real(int64_t value) {
  return static_cast<double>(value);
}

// A layer as what a chip multiplies and moves, once.
struct LayerParts {
  ArrayProduct product;         // one per place of a kernel
  ArrayProduct by_rows;         // one per row of a kernel, its places side by side; the same where that is not done
  ArrayProduct unrolled;        // the places of a kernel side by side
  double inputs = 0;            // words
  double weights = 0;           // words from outside the network
  double outputs = 0;           // words
  double finished_outputs = 0;  // that are scaled, shifted and rectified
};

LayerParts parts_of_layer(const GemmSize& gemm) {
  const ArrayProduct product{.rows = gemm.m, .depth = gemm.k, .columns = gemm.n, .repeats = chip_real(gemm.batch)};
  LayerParts parts{.product = product, .by_rows = product, .unrolled = product};
  parts.inputs = product.repeats * chip_real(gemm.m) * chip_real(gemm.k);
  parts.outputs = product.repeats * chip_real(gemm.m) * chip_real(gemm.n);
  // The right-hand sides of a batch are results too: keys and values of attention.
  const double right = product.repeats * chip_real(gemm.k) * chip_real(gemm.n);
  (gemm.batch > 1 ? parts.inputs : parts.weights) += right;
  return parts;
}

// Compilers put a row of the kernel side by side where an image has few channels, with images in groups of eight, the
// sublanes of a vector register. A single image does not pay for that (measured: ResNet-18's first layer).
ArrayProduct product_by_rows(const ConvShape& conv) {
  constexpr int64_t sublanes = 8;
  const ConvOutput output = conv_output(conv);
  return {.rows = sublanes * ceil_quotient(conv.batch, sublanes) * output.height * output.width,
          .depth = conv.in_channels * conv.kernel_width,
          .columns = conv.out_channels,
          .repeats = chip_real(conv.kernel_height)};
}

LayerParts parts_of_layer(const ConvShape& conv) {
  const ConvOutput output = conv_output(conv);
  const int64_t channels = conv.in_channels / conv.groups, filters = conv.out_channels / conv.groups;
  const int64_t places = conv.kernel_height * conv.kernel_width;
  const int64_t rows = conv.batch * output.height * output.width;
  const ArrayProduct product{
      .rows = rows, .depth = channels, .columns = filters, .repeats = chip_real(places) * chip_real(conv.groups)};
  LayerParts parts{
      .product = product,
      .by_rows = conv.groups == 1 ? product_by_rows(conv) : product,
      .unrolled = {.rows = rows, .depth = channels * places, .columns = filters, .repeats = chip_real(conv.groups)}};
  parts.inputs = chip_real(conv.batch * conv.height * conv.width) * chip_real(conv.in_channels);
  parts.weights = parts.product.repeats * chip_real(channels) * chip_real(filters);
  parts.outputs = chip_real(rows) * chip_real(conv.out_channels);
  parts.finished_outputs = parts.outputs;
  return parts;
}

struct LayerPlace {
  bool first = true;
  bool last = true;
  int64_t count = 1;
};

// Rows of a kernel are put side by side only where they fit into rows of the array that would be idle.
const ArrayProduct& faster_product(const SystolicChip& chip, const LayerParts& parts) {
  if (parts.by_rows.depth > chip.array_rows.value) return parts.product;
  const auto cycles = [&](const ArrayProduct& product) { return chip_cycles(chip, {.products = {product}}).matrix; };
  return cycles(parts.by_rows) < cycles(parts.product) ? parts.by_rows : parts.product;
}

ChipLayerCycles program_part(const SystolicChip& chip, const LayerParts& parts, const LayerPlace& place) {
  const double count = chip_real(place.count);
  const bool alone = place.first && place.last;
  ChipWork work{.products = {faster_product(chip, parts)}, .matrix_words = count * parts.weights};
  work.products.front().repeats *= count;
  if (place.first) work.matrix_words += parts.inputs * (alone ? count : 1);
  if (place.last) work.matrix_words += parts.outputs * (alone ? count : 1);
  if (!alone) work.simple_operations = 3 * count * parts.finished_outputs;
  const ChipCycles cycles = chip_cycles(chip, work);
  return {.matrix = cycles.matrix, .memory = cycles.memory, .vector = cycles.vector};
}

ChipLayerCycles weight_fed_part(const SystolicChip& chip, const LayerParts& parts, int64_t count) {
  const ArrayProduct& product = parts.unrolled;
  const double weights = chip_real(product.depth) * chip_real(product.columns);
  const double cells = chip_real(weight_tiles(chip, product.depth, product.columns)) *
                       chip_real(chip.array_rows.value * chip.array_columns.value);
  const WeightFedPart part{.weights = weights * product.repeats * chip_real(count),
                           .rows = chip_real(product.rows),
                           .cell_share = weights / cells};
  const WeightFedRun run = run_weight_fed(chip, std::span(&part, 1));
  return {.matrix = run.cycles * run.shares.active,
          .memory = run.cycles * (run.shares.weight_stall + run.shares.weight_shift),
          .vector = run.cycles * run.shares.non_matrix};
}

}  // namespace

std::string_view chip_bound_name(ChipBound bound) {
  switch (bound) {
    case ChipBound::arrays:
      return "arrays";
    case ChipBound::memory:
      return "memory";
    case ChipBound::vector:
      return "vector unit";
  }
  ensure(false, "a bound is one of three");
  return "";
}

ChipBound chip_bound(const ChipLayerCycles& cycles) {
  if (cycles.matrix >= cycles.memory && cycles.matrix >= cycles.vector) return ChipBound::arrays;
  return cycles.memory >= cycles.vector ? ChipBound::memory : ChipBound::vector;
}

ChipLayerCycles ChipNetworkRun::sum() const {
  ChipLayerCycles all;
  for (const ChipLayerRun& layer : layers) {
    all.matrix += layer.cycles.matrix;
    all.memory += layer.cycles.memory;
    all.vector += layer.cycles.vector;
  }
  return all;
}

double ChipNetworkRun::macs() const {
  double all = 0;
  for (const ChipLayerRun& layer : layers) all += layer.macs;
  return all;
}

Seconds ChipNetworkRun::time(const SystolicChip& chip) const {
  return Seconds((sum().total() + launch_cycles) / chip.clock.value.value());
}

ChipNetworkRun run_chip_network(const SystolicChip& chip, std::span<const NetworkLayer> layers) {
  if (!chip.vector && !chip.non_matrix_share) {
    throw InputError({.source = chip.name,
                      .path = "vector",
                      .value = "(not given)",
                      .expected = "a vector unit, or non_matrix_share of a chip fed with weights tile by tile"});
  }
  ChipNetworkRun run;
  if (chip.vector) run.launch_cycles = chip.vector->launch_cycles.value;
  for (size_t i = 0; i < layers.size(); ++i) {
    const NetworkLayer& layer = layers[i];
    refuse_dilation(layer);
    const LayerParts parts = std::visit([](const auto& work) { return parts_of_layer(work); }, layer.work);
    const LayerPlace place{.first = i == 0, .last = i + 1 == layers.size(), .count = layer.count};
    run.layers.push_back(
        {.name = layer.name,
         .macs = chip_real(layer.count) * operations(layer_problem(layer)),
         .cycles = chip.vector ? program_part(chip, parts, place) : weight_fed_part(chip, parts, layer.count)});
  }
  return run;
}

}  // namespace foretoken
