// Any bytes are either published figures of a chip whose layers can be timed, or an InputError.
#include <cmath>

#include "accelerator/nvdla.h"
#include "accelerator/row_stationary/published_layers.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  const std::string_view text = as_text(data, size);
  read_or_refuse([&] {
    const PublishedNvdla published = parse_published_nvdla(text, "input");
    for (const PublishedNvdlaRow& row : published.rows) {
      promise(std::isfinite(nvdla_network_time(row.configuration, published.layers).value()), "a network takes time");
    }
  });
  read_or_refuse([&] {
    for (const PublishedConvLayer& row : parse_published_conv_layers(text, "input").layers) {
      promise(row.layer.macs() > 0, "a layer multiplies");
    }
  });
  return 0;
}
