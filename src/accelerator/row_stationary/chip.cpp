#include "accelerator/row_stationary/chip.h"

#include "base/json.h"
#include "hardware/fact_reader.h"

namespace foretoken {
namespace {

constexpr int64_t bits_per_byte = 8;

class ChipFacts {
 public:
  explicit ChipFacts(const JsonView& file) : file_(file) {}

  int64_t count(const char* key) const {
    return static_cast<int64_t>(
        read_fact(file_.at(key), {.unit = "a whole number", .least = 1, .most = 1 << 20, .whole = true}).value);
  }
  Bytes word(const char* key) const {
    const int64_t bits = count(key);
    if (bits % bits_per_byte != 0) file_.at(key).at("value").fail("whole bytes: a multiple of 8 bits");
    return Bytes(static_cast<double>(bits / bits_per_byte));
  }
  double number(const char* key, std::string_view unit, double most) const {
    return read_fact(file_.at(key), {.unit = unit, .least = 1e-3, .most = most}).value;
  }

 private:
  const JsonView& file_;
};

RowStationaryChip row_stationary_chip_from(const JsonView& view) {
  view.allow_only({"name",
                   "title",
                   "array_rows",
                   "array_columns",
                   "word_bits",
                   "ifmap_spad_words",
                   "filter_spad_words",
                   "psum_spad_words",
                   "buffer_banks",
                   "buffer_bank_bytes",
                   "filter_prefetch_bytes",
                   "filter_words_per_cycle",
                   "ifmap_words_per_cycle",
                   "psum_words_per_cycle",
                   "core_clock_mhz",
                   "link_clock_mhz",
                   "link_bits",
                   "buffer_word_pj",
                   "effective_mac_pj",
                   "idle_power_mw"});
  const ChipFacts facts(view);
  constexpr double most_words = 4096, most_mhz = 10'000, most_pj = 1e6, most_mw = 1e6;
  const double link_transfers = facts.number("link_clock_mhz", "MHz", most_mhz) * mega;
  return {.name = read_text(view.at("name")),
          .title = read_text(view.at("title")),
          .array_rows = facts.count("array_rows"),
          .array_columns = facts.count("array_columns"),
          .word = facts.word("word_bits"),
          .ifmap_spad_words = facts.count("ifmap_spad_words"),
          .filter_spad_words = facts.count("filter_spad_words"),
          .psum_spad_words = facts.count("psum_spad_words"),
          .buffer_banks = facts.count("buffer_banks"),
          .buffer_bank_bytes = facts.count("buffer_bank_bytes"),
          .filter_prefetch_bytes = facts.count("filter_prefetch_bytes"),
          .filter_words_per_cycle = facts.number("filter_words_per_cycle", "words per cycle", most_words),
          .ifmap_words_per_cycle = facts.number("ifmap_words_per_cycle", "words per cycle", most_words),
          .psum_words_per_cycle = facts.number("psum_words_per_cycle", "words per cycle", most_words),
          .core_clock = Hertz(facts.number("core_clock_mhz", "MHz", most_mhz) * mega),
          .link = BytesPerSecond(link_transfers * facts.word("link_bits").value()),
          .buffer_word_energy = Joules(facts.number("buffer_word_pj", "pJ", most_pj) / tera),
          .effective_mac_energy = Joules(facts.number("effective_mac_pj", "pJ", most_pj) / tera),
          .idle_power = Watts(facts.number("idle_power_mw", "mW", most_mw) / kilo)};
}

}  // namespace

RowStationaryChip parse_row_stationary_chip(std::string_view text, const std::string& source) {
  const Json json = parse_json(text, source);
  return row_stationary_chip_from(JsonView(json, source));
}

RowStationaryChip read_row_stationary_chip(const std::filesystem::path& file) {
  const Json json = read_json_file(file);
  return row_stationary_chip_from(JsonView(json, file.string()));
}

RowStationaryChip eyeriss_v1(const std::filesystem::path& data) {
  return read_row_stationary_chip(data / "accelerators" / "chips" / "eyeriss_v1.json");
}

}  // namespace foretoken
