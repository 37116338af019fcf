// Questions that the page offers to a visitor; the first is answered before anybody asks.
#pragma once

#include <span>
#include <string_view>

namespace foretoken {

struct PageExample {
  std::string_view title;
  std::string_view question;  // JSON, as run_request.h reads it
};

std::span<const PageExample> page_examples();

// Fields that the page adds to each question of `serve`, for what it draws; JSON.
std::string_view drawn_fields();

}  // namespace foretoken
