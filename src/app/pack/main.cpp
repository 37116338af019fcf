// Run by the build: pack_calibrations FOLDER FILE writes the pack of a folder's calibrations
// (kernel/calibration_pack.h).
#include <exception>
#include <iostream>

#include "base/file.h"
#include "kernel/calibration_pack.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: pack_calibrations FOLDER FILE\n";
    return 2;
  }
  try {
    const std::vector<uint8_t> pack = foretoken::pack_calibrations(argv[1]);
    foretoken::write_file(argv[2], {reinterpret_cast<const char*>(pack.data()), pack.size()});
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}
