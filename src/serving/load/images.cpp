#include "serving/load/images.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "serving/load/drawn_fields.h"

namespace foretoken {

std::unique_ptr<RequestSource> with_images(std::unique_ptr<RequestSource> inner, const ImageSettings& settings,
                                           uint64_t seed) {
  ensure(!settings.sizes.empty() && settings.per_request >= 1, "there are pictures to draw from");
  const auto draw = [settings](Request& request, RandomStream& random) {
    if (random.uniform() >= settings.share) return;
    const auto shared = static_cast<int64_t>(request.prefix_blocks.size()) * request.prefix_block_tokens;
    int64_t next = std::min(shared, request.input_tokens);
    for (int64_t i = 0; i < settings.per_request; ++i) {
      ImageInput image = settings.sizes[random.below(settings.sizes.size())];
      image.first_token = next;
      next += image.tokens;
      request.input_tokens += image.tokens;
      request.images.push_back(image);
    }
  };
  return with_drawn(std::move(inner), seed, "images", draw);
}

}  // namespace foretoken
