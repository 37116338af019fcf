#include "serving/load/pooling.h"

#include <utility>

#include "serving/load/changed_source.h"

namespace foretoken {
namespace {

class PooledSource final : public ChangedSource {
 public:
  using ChangedSource::ChangedSource;

 protected:
  void change(Request& request) override {
    request.pooled = true;
    request.output_tokens = 1;  // the answer
    request.thinking_tokens = 0;
  }
};

}  // namespace

std::unique_ptr<RequestSource> pooled_load(std::unique_ptr<RequestSource> inner) {
  return std::make_unique<PooledSource>(std::move(inner));
}

}  // namespace foretoken
