#include "accelerator/row_stationary/mapping.h"

#include <algorithm>
#include <bit>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

// The published mappings pair sets over filters before they spread sets over channels.
constexpr int64_t preferred_sets_over_filters = 2;
// Strips may leave this share of the busiest strip's PEs idle where that saves DRAM traffic.
constexpr double tolerated_idle_share = 0.1;

int64_t word_bytes(const RowStationaryChip& chip) {
  return static_cast<int64_t>(chip.word.value());
}

int64_t psum_banks(const RowStationaryChip& chip, const RowStationaryMapping& mapping) {
  const int64_t words = mapping.images * mapping.buffered_filters * mapping.strip_rows * mapping.slice_columns;
  return part_count(words * word_bytes(chip), chip.buffer_bank_bytes);
}

int64_t filter_bytes_of_pass(const RowStationaryChip& chip, const ConvLayer& layer,
                             const RowStationaryMapping& mapping) {
  return mapping.pass_channels() * mapping.pass_filters() * layer.filter_rows * layer.filter_columns * word_bytes(chip);
}

int64_t ifmap_room(const RowStationaryChip& chip, const RowStationaryMapping& mapping) {
  return (chip.buffer_banks - psum_banks(chip, mapping)) * chip.buffer_bank_bytes;
}

// One channel of the inputs under a strip of `output_columns` columns.
int64_t channel_bytes(const RowStationaryChip& chip, const ConvLayer& layer, const RowStationaryMapping& mapping,
                      int64_t output_columns) {
  return mapping.images * inputs_under(mapping.strip_rows, layer.filter_rows, layer.stride) *
         inputs_under(output_columns, layer.filter_columns, layer.stride) * word_bytes(chip);
}

// Channels whose inputs fit the banks that partial sums leave. Rows are kept whole where they fit. Where a plane takes
// several strips, the rows of the next channels are fetched beside those in use (twice the room), but for one channel
// that fits only once.
int64_t channels_in_buffer(const RowStationaryChip& chip, const ConvLayer& layer, const RowStationaryMapping& mapping) {
  const int64_t room = ifmap_room(chip, mapping);
  const int64_t whole_rows = channel_bytes(chip, layer, mapping, layer.output_columns());
  const bool one_strip = mapping.strip_rows == layer.output_rows() && mapping.slice_columns == layer.output_columns();
  if (one_strip) return room / whole_rows;
  if (room >= whole_rows) return std::max<int64_t>(1, room / (2 * whole_rows));
  return room >= channel_bytes(chip, layer, mapping, mapping.slice_columns) ? 1 : 0;
}

int64_t filter_blocks(const ConvLayer& layer, const RowStationaryMapping& mapping) {
  return part_count(layer.filters_per_group(), mapping.filters_per_pe);
}

// Spreads channels and filters over scratch pads and sets: beside the first sets over filters as many channels a pass
// as fit, as they save partial sums trips to the buffer; then filters take the sets that are left. False: not even one
// channel fits.
bool spread_over_sets(const RowStationaryChip& chip, const ConvLayer& layer, int64_t sets, int64_t first_over_filters,
                      RowStationaryMapping& mapping) {
  const int64_t buffered_channels = channels_in_buffer(chip, layer, mapping);
  if (buffered_channels < 1) return false;
  const int64_t paired = std::min(first_over_filters, sets);
  const int64_t most_channels = std::min({chip.ifmap_spad_words / layer.filter_columns,
                                          chip.filter_spad_words / (mapping.filters_per_pe * layer.filter_columns),
                                          layer.channels_per_group(), buffered_channels});
  const auto prefetched = [&] { return filter_bytes_of_pass(chip, layer, mapping) <= chip.filter_prefetch_bytes; };
  RowStationaryMapping best = mapping;
  best.channels_per_pe = 0;
  mapping.sets_over_filters = paired;
  for (int64_t q = most_channels; q >= 1; --q) {
    const int64_t most_sets =
        std::min({sets / paired, buffered_channels / q, part_count(layer.channels_per_group(), q)});
    for (int64_t r = 1; r <= most_sets; ++r) {
      mapping.channels_per_pe = q;
      mapping.sets_over_channels = r;
      if (prefetched() && mapping.pass_channels() > best.pass_channels()) best = mapping;
    }
  }
  if (best.channels_per_pe == 0) return false;
  mapping = best;
  const int64_t most_filter_sets = std::min(sets / mapping.sets_over_channels, filter_blocks(layer, mapping));
  while (mapping.sets_over_filters < most_filter_sets) {
    ++mapping.sets_over_filters;
    if (prefetched()) continue;
    --mapping.sets_over_filters;
    break;
  }
  return true;
}

// Calls visit(mapping, sets) for all images and filters whose partial sums the buffer can hold beside inputs, in strips
// of this size. Nothing is spread over the sets yet.
template <class Visit>
void for_each_buffered(const RowStationaryChip& chip, const ConvLayer& layer, int64_t strip_rows, int64_t slice_columns,
                       const Visit& visit) {
  const int64_t sets = sets_on_array(chip, layer, strip_rows);
  if (sets < 1) return;
  const auto largest_power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(chip.psum_spad_words)));
  const int64_t filters_per_pe =
      std::min({largest_power, chip.filter_spad_words / layer.filter_columns, layer.filters_per_group()});
  for (int64_t images = 1; images <= layer.batch; ++images) {
    RowStationaryMapping mapping{
        .images = images, .strip_rows = strip_rows, .slice_columns = slice_columns, .filters_per_pe = filters_per_pe};
    const int64_t blocks = filter_blocks(layer, mapping);
    int64_t block = 1;
    for (; block <= blocks; ++block) {
      mapping.buffered_filters = std::min(block * filters_per_pe, layer.filters_per_group());
      if (psum_banks(chip, mapping) >= chip.buffer_banks) break;
      visit(mapping, sets);
    }
    if (block == 1) break;  // more images need more room still
  }
}

// Chosen by plain traffic, as the share of zeros is not known when a chip is configured.
struct MappingCandidate {
  RowStationaryMapping mapping;
  double dram_words = 0;
};

std::optional<MappingCandidate> best_for_strip(const RowStationaryChip& chip, const ConvLayer& layer,
                                               int64_t strip_rows, int64_t slice_columns) {
  std::optional<MappingCandidate> best;
  for_each_buffered(chip, layer, strip_rows, slice_columns, [&](RowStationaryMapping mapping, int64_t sets) {
    const int64_t paired = std::min(preferred_sets_over_filters, filter_blocks(layer, mapping));
    if (!spread_over_sets(chip, layer, sets, paired, mapping)) return;
    const bool all = mapping.buffered_filters == layer.filters_per_group();
    if (!all && mapping.buffered_filters % mapping.pass_filters() != 0) return;
    const double words = plain_dram_reads(layer, mapping).total();
    if (!best || words < best->dram_words) best = {.mapping = mapping, .dram_words = words};
  });
  return best;
}

std::vector<int64_t> divisors_of(int64_t value) {
  std::vector<int64_t> divisors;
  for (int64_t divisor = 1; divisor <= value; ++divisor) {
    if (value % divisor == 0) divisors.push_back(divisor);
  }
  return divisors;
}

[[noreturn]] void fail_mapping(const RowStationaryChip& chip, const ConvLayer& layer, const char* what, int64_t value,
                               std::string expected) {
  throw InputError({.source = chip.name,
                    .path = fmt::format("layer {}: {}", printable(layer.name), what),
                    .value = fmt::format("{}", value),
                    .expected = std::move(expected)});
}

[[noreturn]] void fail_strip(const RowStationaryChip& chip, const ConvLayer& layer) {
  fail_mapping(chip, layer, "width", layer.width, "a strip that fits the chip's buffer");
}

// Calls visit(rows, columns) for the strips of at most an array's width; slices of columns are equal.
template <class Visit>
void for_each_strip(const RowStationaryChip& chip, const ConvLayer& layer, const Visit& visit) {
  const std::vector<int64_t> slices = divisors_of(layer.output_columns());
  for (int64_t rows = std::min(chip.array_columns, layer.output_rows()); rows >= 1; --rows) {
    for (const int64_t columns : slices) visit(rows, columns);
  }
}

void check_filter_size(const RowStationaryChip& chip, const ConvLayer& layer) {
  if (layer.filter_rows > chip.array_rows) {
    fail_mapping(chip, layer, "filter_rows", layer.filter_rows,
                 fmt::format("at most {}, the height of the array", chip.array_rows));
  }
  const int64_t most_columns = std::min(chip.ifmap_spad_words, chip.filter_spad_words);
  if (layer.filter_columns > most_columns) {
    fail_mapping(chip, layer, "filter_columns", layer.filter_columns,
                 fmt::format("at most {}, the words of a scratch pad", most_columns));
  }
}

}  // namespace

int64_t part_count(int64_t extent, int64_t part) {
  return (extent + part - 1) / part;
}

std::vector<ExtentPart> parts_of_extent(int64_t extent, int64_t part) {
  std::vector<ExtentPart> parts;
  if (extent >= part) parts.push_back({.size = part, .count = extent / part});
  if (extent % part != 0) parts.push_back({.size = extent % part, .count = 1});
  return parts;
}

int64_t inputs_under(int64_t outputs, int64_t filter, int64_t stride) {
  return (outputs - 1) * std::min(stride, filter) + filter;
}

int64_t inputs_under_parts(int64_t outputs, int64_t part, int64_t filter, int64_t stride) {
  int64_t inputs = 0;
  for (const ExtentPart& piece : parts_of_extent(outputs, part)) {
    inputs += piece.count * inputs_under(piece.size, filter, stride);
  }
  return inputs;
}

int64_t sets_on_array(const RowStationaryChip& chip, const ConvLayer& layer, int64_t strip_rows) {
  const int64_t segments = part_count(strip_rows, chip.array_columns);
  const int64_t segment_columns = part_count(strip_rows, segments);
  const int64_t segments_on_array = (chip.array_columns / segment_columns) * (chip.array_rows / layer.filter_rows);
  return segments_on_array / segments;
}

int64_t active_pes(const ConvLayer& layer, const RowStationaryMapping& mapping) {
  return layer.filter_rows * mapping.strip_rows * mapping.sets_over_channels * mapping.sets_over_filters;
}

double plane_words(const ConvLayer& layer, const RowStationaryMapping& mapping) {
  return static_cast<double>(
      inputs_under_parts(layer.output_rows(), mapping.strip_rows, layer.filter_rows, layer.stride) *
      inputs_under_parts(layer.output_columns(), mapping.slice_columns, layer.filter_columns, layer.stride));
}

PlainDramReads plain_dram_reads(const ConvLayer& layer, const RowStationaryMapping& mapping) {
  const int64_t ifmap_reads = part_count(layer.filters_per_group(), mapping.buffered_filters);
  const int64_t filter_reads = part_count(layer.output_rows(), mapping.strip_rows) *
                               part_count(layer.output_columns(), mapping.slice_columns) *
                               part_count(layer.batch, mapping.images);
  const double filter_words = static_cast<double>(layer.filters * layer.channels_per_group()) *
                              static_cast<double>(layer.filter_rows * layer.filter_columns);
  return {.ifmap = plane_words(layer, mapping) * static_cast<double>(layer.batch * layer.channels) *
                   static_cast<double>(ifmap_reads),
          .filter = filter_words * static_cast<double>(filter_reads)};
}

RowStationaryMapping published_rule_mapping(const RowStationaryChip& chip, const ConvLayer& layer) {
  check_conv_layer(layer, chip.name);
  check_filter_size(chip, layer);
  // A plane that fits array and buffer whole reads no halo twice.
  if (const auto whole = best_for_strip(chip, layer, layer.output_rows(), layer.output_columns())) {
    return whole->mapping;
  }
  std::vector<MappingCandidate> candidates;
  int64_t most_active = 0;
  for_each_strip(chip, layer, [&](int64_t rows, int64_t columns) {
    const auto candidate = best_for_strip(chip, layer, rows, columns);
    if (!candidate) return;
    candidates.push_back(*candidate);
    most_active = std::max(most_active, active_pes(layer, candidate->mapping));
  });
  const MappingCandidate* best = nullptr;
  for (const MappingCandidate& candidate : candidates) {
    const double active = static_cast<double>(active_pes(layer, candidate.mapping));
    if (active < (1 - tolerated_idle_share) * static_cast<double>(most_active)) continue;
    if (best == nullptr || candidate.dram_words < best->dram_words) best = &candidate;
  }
  if (best == nullptr) fail_strip(chip, layer);
  return best->mapping;
}

std::vector<RowStationaryMapping> fitting_mappings(const RowStationaryChip& chip, const ConvLayer& layer) {
  check_conv_layer(layer, chip.name);
  check_filter_size(chip, layer);
  std::vector<RowStationaryMapping> all;
  const auto add = [&](int64_t rows, int64_t columns) {
    for_each_buffered(chip, layer, rows, columns, [&](const RowStationaryMapping& buffered, int64_t sets) {
      // Up to the next power of two: a set may work on a filter fewer, and so be padded.
      const auto most = std::bit_ceil(static_cast<uint64_t>(filter_blocks(layer, buffered)));
      for (int64_t over_filters = 1; over_filters <= std::min(sets, static_cast<int64_t>(most)); over_filters *= 2) {
        RowStationaryMapping mapping = buffered;
        if (spread_over_sets(chip, layer, sets, over_filters, mapping)) all.push_back(mapping);
      }
    });
  };
  if (layer.output_rows() > chip.array_columns) add(layer.output_rows(), layer.output_columns());
  for_each_strip(chip, layer, add);
  if (all.empty()) fail_strip(chip, layer);
  return all;
}

void check_row_stationary_mapping(const RowStationaryChip& chip, const ConvLayer& layer,
                                  const RowStationaryMapping& mapping) {
  check_conv_layer(layer, chip.name);
  check_filter_size(chip, layer);
  const auto within = [&](const char* what, int64_t value, int64_t most) {
    if (value < 1 || value > most) fail_mapping(chip, layer, what, value, fmt::format("from 1 to {}", most));
  };
  within("n (images)", mapping.images, layer.batch);
  within("e (strip_rows)", mapping.strip_rows, layer.output_rows());
  within("slice_columns", mapping.slice_columns, layer.output_columns());
  within("p (filters_per_pe)", mapping.filters_per_pe, std::min(chip.psum_spad_words, layer.filters_per_group()));
  within("q (channels_per_pe)", mapping.channels_per_pe,
         std::min(chip.ifmap_spad_words / layer.filter_columns, layer.channels_per_group()));
  within("p x q x filter_columns", mapping.filters_per_pe * mapping.channels_per_pe * layer.filter_columns,
         chip.filter_spad_words);
  within("r x t (sets)", mapping.sets_over_channels * mapping.sets_over_filters,
         sets_on_array(chip, layer, mapping.strip_rows));
  within("m (buffered_filters)", mapping.buffered_filters, layer.filters_per_group());
  within("banks for partial sums", psum_banks(chip, mapping), chip.buffer_banks - 1);
  within("bytes of a pass's inputs",
         mapping.pass_channels() * channel_bytes(chip, layer, mapping, mapping.slice_columns),
         ifmap_room(chip, mapping));
  within("bytes of a pass's filters", filter_bytes_of_pass(chip, layer, mapping), chip.filter_prefetch_bytes);
}

}  // namespace foretoken
