// Any bytes are either a vision encoder that gives pictures tokens, or an InputError.
#include "base/error.h"
#include "fuzz.h"
#include "model/vision.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    const VisionEncoder encoder = parse_vision_config(as_text(data, size), "input", "input");
    for (const int64_t side : {1, 100, 2000}) {
      const PictureTokens picture = picture_tokens(encoder, side, side, "input");
      promise(picture.patches > 0 && picture.tokens > 0, "a picture has patches and tokens");
    }
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
