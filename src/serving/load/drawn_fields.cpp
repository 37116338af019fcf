#include "serving/load/drawn_fields.h"

#include <utility>

#include <fmt/format.h>

#include "serving/load/changed_source.h"

namespace foretoken {
namespace {

class DrawnSource final : public ChangedSource {
 public:
  DrawnSource(std::unique_ptr<RequestSource> inner, RandomStream random, FieldDraw draw)
      : ChangedSource(std::move(inner)), random_(random), draw_(std::move(draw)) {}

 protected:
  void change(Request& request) override { draw_(request, random_); }

 private:
  RandomStream random_;
  FieldDraw draw_;
};

}  // namespace

std::unique_ptr<RequestSource> with_drawn(std::unique_ptr<RequestSource> inner, uint64_t seed, const std::string& name,
                                          FieldDraw draw) {
  return std::make_unique<DrawnSource>(std::move(inner), RandomStream(seed, name), std::move(draw));
}

std::unique_ptr<RequestSource> with_drawn_by_session(std::unique_ptr<RequestSource> inner, uint64_t seed,
                                                     const std::string& name, FieldDraw draw) {
  const auto by_session = [seed, name, draw = std::move(draw)](Request& request, RandomStream& random) {
    if (request.session < 0) {
      draw(request, random);
    } else {
      RandomStream own(seed, fmt::format("{} of session {}", name, request.session));
      draw(request, own);
    }
  };
  return with_drawn(std::move(inner), seed, name, by_session);
}

}  // namespace foretoken
