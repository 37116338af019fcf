// Parts of a server that depend on the machine it stands in, where the user names another than the usual one.
#include <gtest/gtest.h>

#include "app/cli/flags/ffn_flags.h"
#include "app/cli/flags/kv_tier_flags.h"
#include "base/error.h"
#include "compose/model_spec.h"
#include "library/library.h"
#include "serving/engine/engine_builder.h"

namespace foretoken::placed_parts_test {

EngineSpec placed(const Library& library, const PlacementSpec& placement) {
  const Device device = library.hardware().device("a100_sxm");
  return {.model = open_model(library, {.model = "Llama-3.1-8B"}, device), .device = device, .placement = placement};
}

TEST(PlacedParts, a_remote_tier_is_read_through_the_network_cards_of_the_node) {
  const Library library = Library::open();
  KvTierFlags flags;
  flags.tiers = {"kind=remote,size=1TB"};
  const auto read = [&](const PlacementSpec& placement) {
    EngineBuilder builder(serving_facts(library));
    std::vector<ReplicaGroup> groups;
    groups.push_back(builder.build(placed(library, placement)));
    return flags.settings(groups, false, library).tiers.front().read.value();
  };
  EXPECT_LT(read({.node = "hgx_a100_4nic"}), read({}));
  EXPECT_LT(read({.link = {.nic_bandwidth = BytesPerSecond(1e9)}}), read({.node = "hgx_a100_4nic"}));
  EXPECT_THROW(read({.node = "hgx_h100"}), InputError);
}

TEST(PlacedParts, feed_forward_devices_are_reached_over_the_link_that_was_given) {
  const Library library = Library::open();
  const FfnFlags flags{.pool = "count=1"};
  const auto port = [&](const PlacementSpec& placement) {
    const EngineSpec spec = placed(library, placement);
    return flags.read(spec.model, spec.device, spec.plan, spec.placement, Tier::best, library).attention_port.value();
  };
  EXPECT_DOUBLE_EQ(port({.link = {.bandwidth = BytesPerSecond(20e9)}}), 20e9);
  EXPECT_GT(port({}), 100e9);
}

}  // namespace foretoken::placed_parts_test
