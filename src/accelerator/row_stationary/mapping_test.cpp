#include "accelerator/row_stationary/mapping.h"

#include <gtest/gtest.h>

#include "accelerator/row_stationary/estimate.h"
#include "accelerator/row_stationary/test_support.h"
#include "base/error.h"
#include "base/random.h"

namespace foretoken::row_stationary_mapping_test {

const std::filesystem::path mapping_test_data = FORETOKEN_SOURCE_DIR "/data";

// JSSC 52(1) 2017, table III, in part as recalled rather than read (docs/accelerators/eyeriss.md), but CONV3: q = 4,
// r = 1, t = 4 would move 69 MB through the buffer; table V counts 50.2 MB there, which is what those below move.
TEST(RowStationaryMapping, the_rules_choose_the_published_mapping_of_alexnet) {
  const RowStationaryChip chip = eyeriss_v1(mapping_test_data);
  const std::vector<PublishedConvLayer> rows = eyeriss_layers("alexnet");
  const auto mapping = [](int64_t m, int64_t n, int64_t e, int64_t columns, int64_t q, int64_t r, int64_t t) {
    return RowStationaryMapping{.buffered_filters = m,
                                .images = n,
                                .strip_rows = e,
                                .slice_columns = columns,
                                .filters_per_pe = 16,
                                .channels_per_pe = q,
                                .sets_over_channels = r,
                                .sets_over_filters = t};
  };
  const RowStationaryMapping published[] = {mapping(96, 1, 7, 55, 1, 1, 2), mapping(64, 1, 27, 27, 2, 1, 1),
                                            mapping(64, 4, 13, 13, 3, 2, 2), mapping(64, 4, 13, 13, 3, 2, 2),
                                            mapping(64, 4, 13, 13, 3, 2, 2)};
  ASSERT_EQ(rows.size(), std::size(published));
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(choose_row_stationary_mapping(chip, rows[i].layer), published[i]) << rows[i].layer.name;
  }
}

TEST(RowStationaryMapping, as_many_pes_work_as_on_the_chip) {
  const RowStationaryChip chip = eyeriss_v1(mapping_test_data);
  for (const char* network : {"alexnet", "vgg16"}) {
    for (const PublishedConvLayer& row : eyeriss_layers(network)) {
      EXPECT_EQ(active_pes(row.layer, choose_row_stationary_mapping(chip, row.layer)), row.active_pes)
          << row.layer.name;
    }
  }
}

ConvLayer random_layer(RandomStream& random) {
  const auto size = [&](uint64_t most) { return static_cast<int64_t>(random.below(most)) + 1; };
  ConvLayer layer{.name = "random", .batch = size(5), .height = size(120), .width = size(120)};
  layer.filter_rows = size(static_cast<uint64_t>(std::min<int64_t>(12, layer.height)));
  layer.filter_columns = size(static_cast<uint64_t>(std::min<int64_t>(12, layer.width)));
  layer.stride = size(4);
  layer.padding = static_cast<int64_t>(random.below(3));
  layer.groups = size(4);
  layer.channels = layer.groups * size(100);
  layer.filters = layer.groups * size(100);
  return layer;
}

TEST(RowStationaryMapping, every_chosen_mapping_fits_the_chip) {
  const RowStationaryChip chip = eyeriss_v1(mapping_test_data);
  RandomStream random(7, "row_stationary_mapping_test");
  for (int i = 0; i < 100; ++i) {
    const ConvLayer layer = random_layer(random);
    const RowStationaryMapping mapping = choose_row_stationary_mapping(chip, layer);
    EXPECT_NO_THROW(check_row_stationary_mapping(chip, layer, mapping));
    EXPECT_LE(active_pes(layer, mapping), chip.processing_elements());
  }
}

TEST(RowStationaryMapping, what_does_not_fit_is_refused_by_name) {
  const RowStationaryChip chip = eyeriss_v1(mapping_test_data);
  const auto complaint = [](const auto& act) {
    try {
      act();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const ConvLayer tall{.name = "tall", .height = 40, .width = 40, .filter_rows = 13, .filter_columns = 3};
  EXPECT_NE(complaint([&] { choose_row_stationary_mapping(chip, tall); }).find("filter_rows"), std::string::npos);
  const ConvLayer wide{.name = "wide", .height = 40, .width = 40, .filter_rows = 3, .filter_columns = 13};
  EXPECT_NE(complaint([&] { choose_row_stationary_mapping(chip, wide); }).find("filter_columns"), std::string::npos);

  const ConvLayer layer = eyeriss_layers("alexnet")[1].layer;
  const RowStationaryMapping good = choose_row_stationary_mapping(chip, layer);
  RowStationaryMapping crowded = good;
  crowded.sets_over_filters = 2;
  EXPECT_NE(complaint([&] { check_row_stationary_mapping(chip, layer, crowded); }).find("sets"), std::string::npos);
  RowStationaryMapping large = good;
  large.buffered_filters = 128;
  EXPECT_NE(complaint([&] { check_row_stationary_mapping(chip, layer, large); }).find("banks"), std::string::npos);
}

TEST(RowStationaryMapping, parts_cover_an_extent_once) {
  for (int64_t extent = 1; extent <= 40; ++extent) {
    for (int64_t size = 1; size <= 45; ++size) {
      int64_t covered = 0, count = 0;
      for (const ExtentPart& part : parts_of_extent(extent, size)) {
        covered += part.size * part.count;
        count += part.count;
      }
      EXPECT_EQ(covered, extent);
      EXPECT_EQ(count, part_count(extent, size));
    }
  }
  EXPECT_EQ(inputs_under(7, 11, 4), 35);
  EXPECT_EQ(inputs_under(7, 1, 2), 7);
  EXPECT_EQ(inputs_under_parts(55, 7, 11, 4), 276);
}

}  // namespace foretoken::row_stationary_mapping_test
