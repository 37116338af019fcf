// Requests of another source, each changed a little when it is taken.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "serving/requests/request.h"

namespace foretoken {

class ChangedSource : public RequestSource {
 public:
  explicit ChangedSource(std::unique_ptr<RequestSource> inner) : inner_(std::move(inner)) {}

  std::optional<Picoseconds> next_arrival() final { return inner_->next_arrival(); }
  Request next() final {
    Request request = inner_->next();
    change(request);
    return request;
  }
  void ended(int64_t id, Picoseconds when) final { inner_->ended(id, when); }
  void rejected(int64_t id, Picoseconds when) final { inner_->rejected(id, when); }

 protected:
  // Of everything but its id and arrival.
  virtual void change(Request& request) = 0;

 private:
  std::unique_ptr<RequestSource> inner_;
};

}  // namespace foretoken
