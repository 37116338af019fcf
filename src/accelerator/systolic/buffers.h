// The double-buffered SRAMs of SCALE-Sim v3: half of each serves the array while the other half talks to DRAM.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace foretoken {

// What crossed between an SRAM and DRAM, and when: cycle 0 is the first of the array, prefetches lie before it.
struct DramTraffic {
  int64_t words = 0;
  int64_t first_cycle = 0;
  int64_t last_cycle = 0;
};

// Reads as the array asks for them.
class ReadBuffer {
 public:
  virtual ~ReadBuffer() = default;
  // The array wants `address` in this cycle, after `waited` cycles; returns the cycles to wait besides. Negative where
  // the words came before they were asked for: that offsets other waits of the same cycle and nothing else.
  virtual int64_t read(int64_t cycle, int64_t waited, int64_t address) = 0;
  virtual DramTraffic finish() = 0;
};

// Bandwidth not given: reads never wait. The words of half an SRAM, gathered in hundredths of the whole, are replaced
// together, and each half is taken as loaded during the time its predecessor was used.
class UnlimitedReadBuffer : public ReadBuffer {
 public:
  // `addresses`: all lie in [0, addresses). `fill_words_per_cycle`: of the load before the array starts.
  UnlimitedReadBuffer(int64_t sram_words, int64_t addresses, int64_t fill_words_per_cycle);

  int64_t read(int64_t cycle, int64_t waited, int64_t address) override;
  DramTraffic finish() override;

 private:
  void close_set(int64_t cycle);

  int64_t words_per_set_;
  int64_t fill_words_per_cycle_;
  std::vector<int32_t> set_of_address_;  // the last set that took it in
  int32_t first_live_set_ = 0;
  int32_t current_set_ = 0;
  int64_t words_in_current_set_ = 0;
  int64_t first_request_ = -1;
  int64_t last_swap_ = 0;
  bool swapped_ = false;
  DramTraffic traffic_;
};

// What a word that is late costs the array. SCALE-Sim counts what is left of its transfer twice, and time gained within
// the cycle for a transfer that ended early; `physical` counts what is left once and gains nothing.
enum class LateWords { as_scalesim, physical };

// Bandwidth given: words come in the order `prefetch_order` (-1 = an empty slot), half an SRAM at a time, around and
// around; the array waits for a half that is still on its way.
class PrefetchingReadBuffer : public ReadBuffer {
 public:
  PrefetchingReadBuffer(int64_t sram_words, int64_t addresses, int64_t words_per_cycle,
                        const std::vector<int64_t>& prefetch_order, LateWords late_words);

  int64_t read(int64_t cycle, int64_t waited, int64_t address) override;
  DramTraffic finish() override { return traffic_; }

 private:
  int64_t fetches_until_held(int64_t address) const;

  LateWords late_words_;
  int64_t lines_ = 0;             // hundredths of the SRAM that the whole order fills
  int64_t active_lines_ = 0;      // as many of them as serve the array
  int64_t prefetched_lines_ = 0;  // as many as one fetch replaces
  int64_t first_active_ = 0;
  int64_t fetch_cycles_ = 0;
  int64_t fetch_words_ = 0;
  std::vector<int64_t> line_begin_;  // per address: where its lines start in lines_of_address_
  std::vector<int32_t> lines_of_address_;
  DramTraffic traffic_;
};

// Outputs gather into lines of `words_per_cycle`; once more than half an SRAM waits, half an SRAM of lines drains.
class WriteBuffer {
 public:
  WriteBuffer(int64_t sram_words, int64_t words_per_cycle);

  // `words` outputs of one cycle; returns the cycles the array has to wait for room.
  int64_t write(int64_t cycle, int64_t words);
  // Everything that is left drains from `cycle` on.
  DramTraffic finish(int64_t cycle);

 private:
  void close_line();
  int64_t drain(int64_t cycle);  // returns the cycle of the last line

  int64_t sram_words_;
  int64_t drain_words_;
  int64_t words_per_line_;
  int64_t free_words_;
  int64_t words_in_line_ = 0;
  std::vector<int64_t> line_words_;
  size_t drained_lines_ = 0;
  int64_t drain_end_ = 0;
  bool any_drained_ = false;
  DramTraffic traffic_;
};

}  // namespace foretoken
