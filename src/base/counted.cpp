#include "base/counted.h"

namespace foretoken {

std::string plural_of(std::string_view noun) {
  const size_t end = noun.find(" of ");
  std::string word(noun.substr(0, end));
  const std::string_view rest = end == std::string_view::npos ? std::string_view() : noun.substr(end);
  const auto ends_in = [&](std::string_view letters) { return word.ends_with(letters); };
  const bool vowel_before_last =
      word.size() > 1 && std::string_view("aeiou").find(word[word.size() - 2]) != std::string_view::npos;
  if (ends_in("y") && !vowel_before_last) {
    word.replace(word.size() - 1, 1, "ies");
  } else if (ends_in("s") || ends_in("x") || ends_in("ch") || ends_in("sh")) {
    word += "es";
  } else {
    word += "s";
  }
  return word.append(rest);
}

}  // namespace foretoken
