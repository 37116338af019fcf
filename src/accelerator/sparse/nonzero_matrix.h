// The places of a matrix's nonzeros, from a file of somebody's weights or activations.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

struct NonzeroPlace {
  int32_t row = 0, column = 0;
};

struct NonzeroMatrix {
  int64_t rows = 0, columns = 0;
  std::vector<NonzeroPlace> places;  // each once
};

constexpr int64_t max_matrix_side = int64_t{1} << 24;
constexpr int64_t max_matrix_nonzeros = int64_t{1} << 24;

// Values in rows separated by commas, without a header; anything but 0 is a nonzero.
NonzeroMatrix parse_csv_matrix(std::string_view text, const std::string& source);

// Matrix Market: coordinates, general, symmetric or skew-symmetric, or an array, general or symmetric. Entries written
// as 0 are not nonzeros.
NonzeroMatrix parse_matrix_market(std::string_view text, const std::string& source);

// Either, by the banner with which Matrix Market begins; plain or gzip.
NonzeroMatrix read_nonzero_matrix(const std::filesystem::path& path);

}  // namespace foretoken
