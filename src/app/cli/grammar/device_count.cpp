#include "app/cli/grammar/device_count.h"

#include "base/error.h"
#include "base/text.h"

namespace foretoken {

std::pair<std::string, std::string> named_value(const char* flag, const std::string& text, char sign,
                                                const char* expected) {
  const size_t place = text.rfind(sign);
  if (place == 0 || place == std::string::npos || place + 1 == text.size()) {
    throw InputError({.source = flag, .value = printable(text), .expected = expected});
  }
  return {text.substr(0, place), text.substr(place + 1)};
}

std::pair<std::string, std::string> device_and_count(const std::string& text) {
  const size_t sign = text.find_first_not_of("0123456789");
  if (sign != 0 && sign != std::string::npos && lower_case(text[sign]) == 'x' && sign + 1 < text.size() &&
      text.find(':') == std::string::npos) {
    return {text.substr(sign + 1), text.substr(0, sign)};
  }
  const size_t number = text.find_last_not_of("0123456789");  // h100x8
  if (number != std::string::npos && number > 0 && number + 1 < text.size() && lower_case(text[number]) == 'x' &&
      text.find(':') == std::string::npos) {
    return {text.substr(0, number), text.substr(number + 1)};
  }
  return named_value("--hardware", text, ':', "DEVICE:COUNT, as in h100_sxm:8, or COUNTxDEVICE, as in 8xH100");
}

}  // namespace foretoken
