#include "serving/load/images.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "serving/load/changed_source.h"

namespace foretoken {
namespace {

class ImageSource final : public ChangedSource {
 public:
  ImageSource(std::unique_ptr<RequestSource> inner, const ImageSettings& settings, uint64_t seed)
      : ChangedSource(std::move(inner)), settings_(settings), random_(seed, "images") {
    ensure(!settings.sizes.empty() && settings.per_request >= 1, "there are pictures to draw from");
  }

 protected:
  void change(Request& request) override {
    if (random_.uniform() >= settings_.share) return;
    const auto shared = static_cast<int64_t>(request.prefix_blocks.size()) * request.prefix_block_tokens;
    int64_t next = std::min(shared, request.input_tokens);
    for (int64_t i = 0; i < settings_.per_request; ++i) {
      ImageInput image = settings_.sizes[random_.below(settings_.sizes.size())];
      image.first_token = next;
      next += image.tokens;
      request.input_tokens += image.tokens;
      request.images.push_back(image);
    }
  }

 private:
  ImageSettings settings_;
  RandomStream random_;
};

}  // namespace

std::unique_ptr<RequestSource> with_images(std::unique_ptr<RequestSource> inner, const ImageSettings& settings,
                                           uint64_t seed) {
  return std::make_unique<ImageSource>(std::move(inner), settings, seed);
}

}  // namespace foretoken
