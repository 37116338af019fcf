// Uses the installed headers and libraries as a stranger would: JSON, gzip (zlib) and text (fmt).
#include <cstdio>

#include "base/error.h"
#include "base/estimate.h"
#include "base/json.h"

int main() {
  const foretoken::Estimate parts[] = {foretoken::exactly(1), foretoken::exactly(2)};
  if (foretoken::sum_of_independent(parts).value != 3) return 1;
  if (foretoken::parse_json("[1, 2]", "text").items().size() != 2) return 1;
  try {
    foretoken::read_json_file("no-such-file.json");
  } catch (const foretoken::InputError& error) {
    std::printf("as expected: %s\n", error.what());
    return 0;
  }
  return 1;
}
