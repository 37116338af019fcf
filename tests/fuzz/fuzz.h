// What the fuzz targets share. A target returns 0 for any input; what it lets out as an exception is a finding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace foretoken {

// Thrown rather than aborted: both drivers keep the input that lets an exception out.
inline void promise(bool kept, const char* what) {
  if (!kept) throw std::logic_error(what);
}

inline std::string_view as_text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Runs `read`, which either succeeds or complains as a reader of outside files should.
template <class Read>
void read_or_refuse(const Read& read) {
  try {
    read();
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
}

}  // namespace foretoken
