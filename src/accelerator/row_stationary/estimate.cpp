#include "accelerator/row_stationary/estimate.h"

#include <algorithm>

#include "accelerator/row_stationary/run_length.h"

namespace foretoken {
namespace {

// What one pass works on; smaller than the mapping says at the edges of the layer.
struct PassShape {
  int64_t images, rows, columns;                      // outputs
  int64_t filters_per_pe, channels_per_pe, channels;  // channels over all sets
};

RowStationaryCycles cycles_of_pass(const RowStationaryChip& chip, const ConvLayer& layer,
                                   const RowStationaryMapping& mapping, const PassShape& pass) {
  const auto words = [](auto... factors) { return (static_cast<double>(factors) * ...); };
  const int64_t input_rows = inputs_under(pass.rows, layer.filter_rows, layer.stride);
  const int64_t input_columns = inputs_under(pass.columns, layer.filter_columns, layer.stride);
  const double window_macs = words(pass.filters_per_pe, pass.channels_per_pe, layer.filter_columns);
  const double psums_of_column = words(pass.rows, pass.filters_per_pe, mapping.sets_over_filters);
  const double columns = words(pass.images, pass.columns);
  // Partial sums come in and leave on networks of their own, equally wide: one of the two is the limit.
  const double psum_cycles = psums_of_column / chip.psum_words_per_cycle;
  const double ifmap_cycles = words(pass.images, input_rows, input_columns, pass.channels) / chip.ifmap_words_per_cycle;
  RowStationaryCycles cycles;
  cycles.mac = columns * window_macs;
  cycles.feed = std::max({cycles.mac, columns * psum_cycles, ifmap_cycles}) - cycles.mac;
  const double filter_words =
      words(pass.filters_per_pe, mapping.sets_over_filters, pass.channels, layer.filter_rows, layer.filter_columns);
  const double first_window = words(input_rows, pass.channels, layer.filter_columns);
  cycles.ramp = filter_words / chip.filter_words_per_cycle + first_window / chip.ifmap_words_per_cycle + window_macs +
                psum_cycles;
  return cycles;
}

// Calls visit(pass, how often) for every kind of pass: whole ones, and those cut off at the edges of the layer.
template <class Visit>
void for_each_pass(const ConvLayer& layer, const RowStationaryMapping& mapping, const Visit& visit) {
  const auto images = parts_of_extent(layer.batch, mapping.images);
  const auto rows = parts_of_extent(layer.output_rows(), mapping.strip_rows);
  const auto columns = parts_of_extent(layer.output_columns(), mapping.slice_columns);
  const auto filters = parts_of_extent(layer.filters_per_group(), mapping.pass_filters());
  const auto channels = parts_of_extent(layer.channels_per_group(), mapping.pass_channels());
  for (const ExtentPart& image : images) {
    for (const ExtentPart& row : rows) {
      for (const ExtentPart& column : columns) {
        for (const ExtentPart& filter : filters) {
          for (const ExtentPart& channel : channels) {
            const PassShape pass{.images = image.size,
                                 .rows = row.size,
                                 .columns = column.size,
                                 .filters_per_pe = part_count(filter.size, mapping.sets_over_filters),
                                 .channels_per_pe = part_count(channel.size, mapping.sets_over_channels),
                                 .channels = channel.size};
            visit(pass, static_cast<double>(layer.groups * image.count * row.count) *
                            static_cast<double>(column.count * filter.count * channel.count));
          }
        }
      }
    }
  }
}

double output_words(const ConvLayer& layer) {
  return static_cast<double>(layer.batch * layer.filters) *
         static_cast<double>(layer.output_rows() * layer.output_columns());
}

// Partial sums are read and written once a pass; inputs once for all filters of a pass, with padding. Filters bypass
// the banks.
RowStationaryTraffic buffer_traffic(const RowStationaryChip& chip, const ConvLayer& layer,
                                    const RowStationaryMapping& mapping) {
  const auto channel_passes = static_cast<double>(part_count(layer.channels_per_group(), mapping.pass_channels()));
  const auto filter_passes = static_cast<double>(part_count(layer.filters_per_group(), mapping.pass_filters()));
  const double ifmap_words = plane_words(layer, mapping) * static_cast<double>(layer.batch * layer.channels);
  return {.ifmap = chip.word * (ifmap_words * filter_passes),
          .filter = Bytes(0),
          .psum = chip.word * (2 * output_words(layer) * channel_passes)};
}

// Padding is not stored.
RowStationaryTraffic dram_traffic(const RowStationaryChip& chip, const ConvLayer& layer,
                                  const RowStationaryMapping& mapping) {
  const PlainDramReads plain = plain_dram_reads(layer, mapping);
  const double stored_share = static_cast<double>(layer.height * layer.width) /
                              static_cast<double>(layer.padded_height() * layer.padded_width());
  const double ifmap_ratio = layer.ifmap_compressed ? run_length_ratio(layer.ifmap_zero_share) : 1;
  return {.ifmap = chip.word * (plain.ifmap * stored_share * ifmap_ratio),
          .filter = chip.word * plain.filter,
          .psum = chip.word * (output_words(layer) * run_length_ratio(layer.ofmap_zero_share))};
}

RowStationaryEnergy energy_of(const RowStationaryChip& chip, const ConvLayer& layer,
                              const RowStationaryResult& result) {
  return {.processing_elements = chip.effective_mac_energy * (layer.macs() * (1 - layer.ifmap_zero_share)),
          .buffer = chip.buffer_word_energy * (result.buffer.total() / chip.word),
          .idle = chip.idle_power * result.total};
}

RowStationaryResult estimate_fitting(const RowStationaryChip& chip, const ConvLayer& layer,
                                     const RowStationaryMapping& mapping) {
  RowStationaryResult result{.mapping = mapping};
  result.active_pes = active_pes(layer, result.mapping);
  for_each_pass(layer, result.mapping, [&](const PassShape& pass, double times) {
    const RowStationaryCycles cycles = cycles_of_pass(chip, layer, result.mapping, pass);
    result.passes += times;
    result.cycles.mac += times * cycles.mac;
    result.cycles.feed += times * cycles.feed;
    result.cycles.ramp += times * cycles.ramp;
  });
  result.processing = Seconds(result.cycles.total() / chip.core_clock.value());
  result.buffer = buffer_traffic(chip, layer, result.mapping);
  result.dram = dram_traffic(chip, layer, result.mapping);
  // Filters are prefetched beside the work; features are not (JSSC 52(1) 2017, section VI-A).
  result.total =
      std::max(result.processing, result.dram.filter / chip.link) + (result.dram.ifmap + result.dram.psum) / chip.link;
  result.energy = energy_of(chip, layer, result);

  const double mac_seconds = result.cycles.mac / chip.core_clock.value();
  const double feed_seconds = (result.cycles.feed + result.cycles.ramp) / chip.core_clock.value();
  const double dram_seconds = (result.total - result.processing).value();
  if (dram_seconds > std::max(mac_seconds, feed_seconds)) {
    result.bound = RowStationaryBound::dram;
  } else if (feed_seconds > mac_seconds) {
    result.bound = RowStationaryBound::array_feeding;
  }
  return result;
}

}  // namespace

std::string_view row_stationary_bound_name(RowStationaryBound bound) {
  switch (bound) {
    case RowStationaryBound::mac:
      return "mac";
    case RowStationaryBound::array_feeding:
      return "array feeding";
    case RowStationaryBound::dram:
      return "dram";
  }
  return "";
}

RowStationaryResult estimate_row_stationary(const RowStationaryChip& chip, const ConvLayer& layer,
                                            const std::optional<RowStationaryMapping>& mapping) {
  if (!mapping) return estimate_fitting(chip, layer, choose_row_stationary_mapping(chip, layer));
  check_row_stationary_mapping(chip, layer, *mapping);
  return estimate_fitting(chip, layer, *mapping);
}

RowStationaryMapping choose_row_stationary_mapping(const RowStationaryChip& chip, const ConvLayer& layer) {
  if (layer.filter_rows > 1) return published_rule_mapping(chip, layer);
  const std::vector<RowStationaryMapping> all = fitting_mappings(chip, layer);
  const RowStationaryMapping* fastest = nullptr;
  std::pair<Seconds, Seconds> least;  // where DRAM alone decides the total, the array's own time does
  for (const RowStationaryMapping& own : all) {
    const RowStationaryResult result = estimate_fitting(chip, layer, own);
    const std::pair time(result.total, result.processing);
    if (fastest != nullptr && time >= least) continue;
    fastest = &own;
    least = time;
  }
  return *fastest;
}

}  // namespace foretoken
