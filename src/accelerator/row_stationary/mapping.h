// How a layer lies on a row-stationary array, in the parameters of Eyeriss (JSSC 52(1) 2017, table II).
#pragma once

#include <cstdint>
#include <vector>

#include "accelerator/conv_layer.h"
#include "accelerator/row_stationary/chip.h"

namespace foretoken {

// A processing pass convolves `pass_channels` channels of `images` images with `pass_filters` filters, for a strip of
// `strip_rows` x `slice_columns` outputs. A PE set is filter_rows x strip_rows PEs.
struct RowStationaryMapping {
  int64_t buffered_filters = 1;    // m: filters whose partial sums the buffer holds
  int64_t images = 1;              // n
  int64_t strip_rows = 1;          // e
  int64_t slice_columns = 1;       // output columns of a strip; all of them unless the buffer is too small
  int64_t filters_per_pe = 1;      // p
  int64_t channels_per_pe = 1;     // q
  int64_t sets_over_channels = 1;  // r
  int64_t sets_over_filters = 1;   // t

  int64_t pass_channels() const { return channels_per_pe * sets_over_channels; }
  int64_t pass_filters() const { return filters_per_pe * sets_over_filters; }
  bool operator==(const RowStationaryMapping&) const = default;
};

// A dimension cut into equal parts and, perhaps, a smaller last one.
struct ExtentPart {
  int64_t size = 0;
  int64_t count = 0;
};
std::vector<ExtentPart> parts_of_extent(int64_t extent, int64_t part);
int64_t part_count(int64_t extent, int64_t part);

// Input rows (or columns) under `outputs` neighbouring outputs; rows that a wide stride skips are not read.
int64_t inputs_under(int64_t outputs, int64_t filter, int64_t stride);
// The same summed over the parts of all outputs: neighbours read their halo again.
int64_t inputs_under_parts(int64_t outputs, int64_t part, int64_t filter, int64_t stride);

// How many PE sets of this layer fit the array side by side when each computes `strip_rows` output rows. A set wider
// than the array is cut into segments. 0: none fits.
int64_t sets_on_array(const RowStationaryChip& chip, const ConvLayer& layer, int64_t strip_rows);
int64_t active_pes(const ConvLayer& layer, const RowStationaryMapping& mapping);

// Input words of one channel of one image that the strips read, with padding and the halo between strips.
double plane_words(const ConvLayer& layer, const RowStationaryMapping& mapping);

// Words read from DRAM if nothing were compressed and padding were stored: inputs once per block of buffered filters,
// filters once per strip and block of images.
struct PlainDramReads {
  double ifmap = 0;
  double filter = 0;
  double total() const { return ifmap + filter; }
};
PlainDramReads plain_dram_reads(const ConvLayer& layer, const RowStationaryMapping& mapping);

// The mapping by the rules that the published ones follow (docs/accelerators/eyeriss.md): least plain DRAM traffic.
// InputError where the filter is taller than the array or wider than a scratch pad.
RowStationaryMapping published_rule_mapping(const RowStationaryChip& chip, const ConvLayer& layer);

// Many that fit: any strip, any filters and images to buffer, several ways to share the sets out. InputError as above.
std::vector<RowStationaryMapping> fitting_mappings(const RowStationaryChip& chip, const ConvLayer& layer);

// InputError when a mapping that somebody wrote down does not fit scratch pads, array or buffer.
void check_row_stationary_mapping(const RowStationaryChip& chip, const ConvLayer& layer,
                                  const RowStationaryMapping& mapping);

}  // namespace foretoken
