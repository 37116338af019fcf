#include "accelerator/systolic/buffers.h"

#include <algorithm>

#include "accelerator/systolic/array.h"
#include "base/error.h"

namespace foretoken {
namespace {

// SCALE-Sim divides an SRAM into hundredths; half of them serve the array.
constexpr int64_t sets_per_sram = 100;
constexpr int64_t sets_per_half = 50;
constexpr int64_t dram_latency_cycles = 1;
constexpr int64_t hit_latency_cycles = 1;

}  // namespace

UnlimitedReadBuffer::UnlimitedReadBuffer(int64_t sram_words, int64_t addresses, int64_t fill_words_per_cycle)
    : words_per_set_(sram_words / sets_per_sram),
      fill_words_per_cycle_(fill_words_per_cycle),
      set_of_address_(static_cast<size_t>(addresses), -1) {
  ensure(words_per_set_ > 0, "an SRAM holds at least a hundred words");
}

int64_t UnlimitedReadBuffer::read(int64_t cycle, int64_t /*waited*/, int64_t address) {
  if (first_request_ < 0) first_request_ = cycle;
  int32_t& set = set_of_address_[static_cast<size_t>(address)];
  if (set >= first_live_set_) return 0;
  set = current_set_;
  if (++words_in_current_set_ == words_per_set_) close_set(cycle);
  return 0;
}

void UnlimitedReadBuffer::close_set(int64_t cycle) {
  words_in_current_set_ = 0;
  ++current_set_;
  if (current_set_ < first_live_set_ + sets_per_half) return;
  const int64_t words = sets_per_half * words_per_set_;
  if (!swapped_) {
    traffic_.first_cycle = first_request_ - ceil_quotient(words, fill_words_per_cycle_);
    traffic_.last_cycle = first_request_ - 1;
    swapped_ = true;
  } else {
    traffic_.last_cycle = last_swap_ + dram_latency_cycles;
  }
  traffic_.words += words;
  first_live_set_ = current_set_;
  last_swap_ = cycle;
}

DramTraffic UnlimitedReadBuffer::finish() {
  const int64_t words = (current_set_ - first_live_set_) * words_per_set_ + words_in_current_set_;
  traffic_.words += words;
  if (swapped_) {
    traffic_.last_cycle = last_swap_ + dram_latency_cycles;
  } else {  // SCALE-Sim asks for whole sets, and has them before cycle 0
    const int64_t sets = current_set_ + (words_in_current_set_ > 0 ? 1 : 0);
    traffic_.first_cycle = -ceil_quotient(sets * words_per_set_, fill_words_per_cycle_);
    traffic_.last_cycle = -1;
  }
  return traffic_;
}

PrefetchingReadBuffer::PrefetchingReadBuffer(int64_t sram_words, int64_t addresses, int64_t words_per_cycle,
                                             const std::vector<int64_t>& prefetch_order, LateWords late_words)
    : late_words_(late_words) {
  const int64_t active_words = ceil_quotient(sram_words, 2);
  const int64_t prefetched_words = sram_words - active_words;
  const int64_t words_per_line = ceil_quotient(sram_words, sets_per_sram);

  // Which lines hold an address: counted, then filled in.
  line_begin_.assign(static_cast<size_t>(addresses) + 1, 0);
  for (const int64_t address : prefetch_order) {
    if (address >= 0) ++line_begin_[static_cast<size_t>(address) + 1];
  }
  for (size_t i = 1; i < line_begin_.size(); ++i) line_begin_[i] += line_begin_[i - 1];
  lines_of_address_.resize(static_cast<size_t>(line_begin_.back()));
  std::vector<int64_t> next(line_begin_.begin(), line_begin_.end() - 1);
  int64_t words = 0;
  for (const int64_t address : prefetch_order) {
    if (address < 0) continue;
    int64_t& place = next[static_cast<size_t>(address)];
    lines_of_address_[static_cast<size_t>(place)] = static_cast<int32_t>(words / words_per_line);
    ++place;
    ++words;
  }
  lines_ = words / words_per_line + 1;
  active_lines_ = std::min(lines_, ceil_quotient(active_words, words_per_line));
  prefetched_lines_ = std::min(lines_ - active_lines_, ceil_quotient(prefetched_words, words_per_line));

  const auto slots = static_cast<int64_t>(prefetch_order.size());
  const int64_t first_fetch =
      std::min(ceil_quotient(active_words, words_per_cycle), ceil_quotient(slots, words_per_cycle));
  fetch_cycles_ = ceil_quotient(prefetched_words, words_per_cycle);
  fetch_words_ = fetch_cycles_ * words_per_cycle;
  traffic_ = {.words = first_fetch * words_per_cycle, .first_cycle = -first_fetch, .last_cycle = -1};
}

// A fetch moves the active lines on by as many as it brings, never by more than are active, so no line is passed over.
int64_t PrefetchingReadBuffer::fetches_until_held(int64_t address) const {
  const auto at = static_cast<size_t>(address);
  int64_t fewest = lines_;
  for (int64_t i = line_begin_[at]; i < line_begin_[at + 1]; ++i) {
    int64_t distance = lines_of_address_[static_cast<size_t>(i)] - first_active_;
    if (distance < 0) distance += lines_;
    if (distance < active_lines_) return 0;
    fewest = std::min(fewest, (distance - active_lines_) / prefetched_lines_ + 1);
  }
  ensure(fewest < lines_, "every word that is read lies in the order of prefetches");
  return fewest;
}

int64_t PrefetchingReadBuffer::read(int64_t cycle, int64_t waited, int64_t address) {
  const int64_t fetches = fetches_until_held(address);
  if (fetches == 0) return 0;
  first_active_ = (first_active_ + fetches * prefetched_lines_) % lines_;
  traffic_.words += fetches * fetch_words_;
  const int64_t asked = cycle + hit_latency_cycles + waited;
  int64_t served = asked;
  for (int64_t i = 0; i < fetches; ++i) {
    traffic_.last_cycle += fetch_cycles_ + dram_latency_cycles;
    const int64_t late = traffic_.last_cycle - served;
    if (late_words_ == LateWords::physical) {
      served += std::max<int64_t>(0, late);
    } else {
      served += late > 0 ? 2 * late : late;
    }
  }
  return served - asked;
}

WriteBuffer::WriteBuffer(int64_t sram_words, int64_t words_per_cycle)
    : sram_words_(sram_words),
      drain_words_(sram_words - ceil_quotient(sram_words, 2)),
      words_per_line_(words_per_cycle),
      free_words_(sram_words) {}

void WriteBuffer::close_line() {
  if (words_in_line_ == 0) return;
  line_words_.push_back(words_in_line_);
  words_in_line_ = 0;
}

int64_t WriteBuffer::drain(int64_t cycle) {
  const auto most = static_cast<size_t>(ceil_quotient(drain_words_, words_per_line_));
  const size_t lines = std::min(most, line_words_.size() - drained_lines_);
  ensure(lines > 0, "a drain has lines to write");
  drained_lines_ += lines;
  // SCALE-Sim counts every line but the last as full, also those that an earlier drain cut short.
  const int64_t words = (static_cast<int64_t>(lines) - 1) * words_per_line_ + line_words_[drained_lines_ - 1];
  traffic_.words += words;
  free_words_ += words;
  const int64_t last_cycle = cycle + static_cast<int64_t>(lines) - 1;
  traffic_.first_cycle = any_drained_ ? std::min(traffic_.first_cycle, cycle) : cycle;
  traffic_.last_cycle = any_drained_ ? std::max(traffic_.last_cycle, last_cycle) : last_cycle;
  any_drained_ = true;
  return last_cycle;
}

int64_t WriteBuffer::write(int64_t cycle, int64_t words) {
  int64_t now = cycle;
  for (int64_t i = 0; i < words; ++i) {
    --free_words_;
    if (++words_in_line_ == words_per_line_) close_line();
    if (now < drain_end_) {
      if (free_words_ <= 0) now = drain_end_;
    } else if (free_words_ < sram_words_ - drain_words_) {
      close_line();
      drain_end_ = drain(now);
    }
  }
  return now - cycle;
}

DramTraffic WriteBuffer::finish(int64_t cycle) {
  close_line();
  while (drained_lines_ < line_words_.size()) cycle = drain(cycle) + 1;
  return traffic_;
}

}  // namespace foretoken
