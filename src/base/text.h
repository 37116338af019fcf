// Numbers to text and back, the same bytes on every machine and locale.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// The whole of `text` as a number; nothing for anything else, including nan, inf, spaces and trailing characters.
std::optional<double> parse_number(std::string_view text);
// Also "4096.0" and "1e3", as spreadsheets write them; nothing for 4096.5 or beyond what an int64_t holds.
std::optional<int64_t> parse_integer(std::string_view text);

// A number as users type it: 4096, 4k (4,000), 4K (4,096), 1.5m, 2M, 1g, 1G.
std::optional<double> parse_scaled_number(std::string_view text);

// A number that is whole and within +-2^53 (so that no digit was lost on the way), as an integer.
std::optional<int64_t> exact_integer(double value);

// The fewest digits that read back as the same number ("0.1", "100000", "1e+30").
std::string number_text(double value);

// For people: three significant digits with a unit prefix that fits.
std::string duration_text(double seconds);                        // "1.23 ms", "45.6 us"
std::string bytes_text(double bytes);                             // "1.41 GB" (10^9)
std::string count_text(double count);                             // "70.6 B" (10^9), "1.2 M"
std::string rounded_text(double count);                           // three digits: "812", "1.23 M"
std::string rate_text(double per_second, std::string_view unit);  // "989 TFLOP/s" from 9.89e14, "FLOP/s"

// The pieces of `text` between separators, empty ones too: one more than there are separators. They look into `text`.
std::vector<std::string_view> split(std::string_view text, std::string_view separator);
// Without the empty ones.
std::vector<std::string_view> split_words(std::string_view text, std::string_view separator);
// Pieces of a string that ends with the call would dangle.
template <std::same_as<std::string> Text>
std::vector<std::string_view> split(Text&& text, std::string_view separator) = delete;
template <std::same_as<std::string> Text>
std::vector<std::string_view> split_words(Text&& text, std::string_view separator) = delete;

// One word of a command for a POSIX shell: in single quotes where it must be.
std::string shell_word(std::string_view word);
// The words of a command: split at white space; '...' and "..." keep a word together, a backslash the next character
// (but within single quotes). Nothing where a quote is not closed. No variables, no patterns.
std::optional<std::vector<std::string>> shell_words(std::string_view line);

// Case of the letters A-Z only, whatever the locale.
char lower_case(char letter);
std::string lower_case(std::string_view text);
bool equal_ignoring_case(std::string_view a, std::string_view b);
bool starts_with_ignoring_case(std::string_view text, std::string_view prefix);
bool contains_ignoring_case(std::string_view whole, std::string_view part);

// Length in bytes of the well-formed UTF-8 character at the front of `text` (Unicode 15, table 3-7); 0 when there is
// none.
size_t utf8_length(std::string_view text);

}  // namespace foretoken
