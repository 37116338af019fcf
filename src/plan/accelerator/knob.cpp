#include "plan/accelerator/knob.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "accelerator/problem.h"
#include "base/byte_size.h"
#include "base/error.h"
#include "base/range.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr std::string_view all_levels = "all";
constexpr size_t most_knob_values = 64;

constexpr std::array<std::pair<std::string_view, KnobKind>, 6> knob_kinds{{
    {"capacity", KnobKind::capacity},
    {"depth", KnobKind::depth},
    {"x", KnobKind::across},
    {"y", KnobKind::down},
    {"bandwidth", KnobKind::bandwidth},
    {"word-bits", KnobKind::word_bits},
}};

int64_t access_bits(const AcceleratorLevel& level) {
  return int64_t{level.word_bits} * level.words_per_access;
}

size_t level_of(const Architecture& architecture, const Knob& knob) {
  if (knob.kind == KnobKind::word_bits) return architecture.levels.size() - 1;
  const int found = find_level(architecture, knob.level);
  ensure(found >= 0, "a knob turns a level of its design");
  return static_cast<size_t>(found);
}

void scale(std::optional<double>& rate, double factor) {
  if (rate) *rate *= factor;
}

void set_word_bits(Architecture& architecture, int bits) {
  for (AcceleratorLevel& level : architecture.levels) {
    const double words = static_cast<double>(level.word_bits) / bits;
    if (level.depth > 0) level.depth = std::max<int64_t>(1, level.depth * level.word_bits / bits);
    scale(level.bandwidth.read, words);
    scale(level.bandwidth.write, words);
    scale(level.bandwidth.shared, words);
    level.word_bits = bits;
  }
}

void set_bandwidth(LevelBandwidth& own, double value) {
  const std::optional<double> alone = own.read ? own.read : own.write;
  if (own.shared || !alone) {
    own.shared = value;
    return;
  }
  scale(own.read, value / *alone);
  scale(own.write, value / *alone);
}

// A level has all the instances of the level around it times its own: so do those inside it.
void set_side(Architecture& architecture, size_t level, int64_t AcceleratorLevel::*side, int64_t value) {
  const int64_t outer = level > 0 ? architecture.levels[level - 1].*side : 1;
  const int64_t before = architecture.levels[level].*side / outer;
  for (size_t i = level; i < architecture.levels.size(); ++i) {
    architecture.levels[i].*side = architecture.levels[i].*side / before * value;
  }
}

bool is_whole(double value) {
  return value == std::floor(value);
}

// What is wrong with a value; nothing when it can be set.
std::string value_fault(const Architecture& base, const Knob& knob, double value) {
  constexpr double most_side = 1 << 20, most_bits = 4096, most_rate = 1e12;
  switch (knob.kind) {
    case KnobKind::capacity: {
      const double least = static_cast<double>(access_bits(base.levels[level_of(base, knob)])) / 8;
      return value >= least && value <= static_cast<double>(max_dimension_size)
                 ? ""
                 : fmt::format("bytes, at least the {} of an access: 32K", number_text(least));
    }
    case KnobKind::depth:
      return value >= 1 && is_whole(value) && value <= static_cast<double>(max_dimension_size)
                 ? ""
                 : "a whole number of accesses";
    case KnobKind::across:
    case KnobKind::down:
      return value >= 1 && is_whole(value) && value <= most_side ? "" : "a whole number of instances";
    case KnobKind::bandwidth:
      return value > 0 && value <= most_rate ? "" : "words per cycle, above 0";
    case KnobKind::word_bits:
      return value >= 1 && is_whole(value) && value <= most_bits ? "" : "bits of a word, 1 to 4096";
  }
  throw InternalError("a knob without limits");
}

std::optional<double> parse_value(KnobKind kind, std::string_view text) {
  if (const auto plain = parse_scaled_number(text)) return plain;
  return kind == KnobKind::capacity ? parse_bytes(text) : std::nullopt;
}

std::vector<double> around(double base, std::span<const double> factors, bool whole) {
  std::vector<double> values;
  for (const double factor : factors) {
    const double value = whole ? std::floor(base * factor) : base * factor;
    if (value > 0) values.push_back(value);
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::pair<std::string, KnobKind> parse_knob_name(const std::string& source, std::string_view text,
                                                 const Architecture& base) {
  const size_t dot = text.rfind('.');
  const std::string_view level = text.substr(0, dot);
  const std::string_view number = dot == std::string_view::npos ? "" : text.substr(dot + 1);
  std::vector<std::string> kind_names;
  std::optional<KnobKind> kind;
  for (const auto& [name, own] : knob_kinds) {
    if (name == number) kind = own;
    kind_names.emplace_back(name);
  }
  if (!kind) {
    throw InputError({.source = source,
                      .value = printable(text),
                      .expected = "LEVEL.capacity, .depth, .x, .y or .bandwidth, or all.word-bits, then =VALUES",
                      .suggestion = nearest_name(number, kind_names).value_or("")});
  }
  if (*kind == KnobKind::word_bits) {
    if (equal_ignoring_case(level, all_levels)) return {std::string(all_levels), *kind};
    throw InputError(
        {.source = source, .value = printable(text), .expected = "all.word-bits: the words of all levels together"});
  }
  for (const AcceleratorLevel& own : base.levels) {
    if (!equal_ignoring_case(own.name, level)) continue;
    const bool sized = *kind == KnobKind::capacity || *kind == KnobKind::depth;
    if ((sized || *kind == KnobKind::bandwidth) && own.kind != LevelKind::storage) {
      throw InputError({.source = source, .value = printable(text), .expected = "a level of storage"});
    }
    return {own.name, *kind};
  }
  const std::vector<std::string> names = level_names(base);
  throw InputError({.source = source,
                    .value = printable(level),
                    .expected = fmt::format("the name of a level: {}", fmt::join(names, ", ")),
                    .suggestion = nearest_name(level, names).value_or("")});
}

}  // namespace

std::string Knob::name() const {
  for (const auto& [name, own] : knob_kinds) {
    if (own == kind) return fmt::format("{}.{}", level, name);
  }
  throw InternalError("a knob without a name");
}

Knob parse_knob(const std::string& source, const std::string& text, const Architecture& base) {
  const auto parts = split(text, "=");
  if (parts.size() != 2) {
    throw InputError({.source = source,
                      .value = printable(text),
                      .expected = "a number of a level and its values: "
                                  "GLB.capacity=32K,64K,128K"});
  }
  const auto [level, kind] = parse_knob_name(source, parts[0], base);
  Knob knob{.level = level, .kind = kind};
  for (const std::string_view item : split(parts[1], ",")) {
    const auto value = parse_value(kind, item);
    const std::string fault = value ? value_fault(base, knob, *value) : value_fault(base, knob, -1);
    if (!fault.empty()) throw InputError({.source = source, .value = printable(item), .expected = fault});
    knob.values.push_back(*value);
  }
  std::sort(knob.values.begin(), knob.values.end());
  knob.values.erase(std::unique(knob.values.begin(), knob.values.end()), knob.values.end());
  if (knob.values.size() > most_knob_values) {
    throw InputError({.source = source,
                      .value = fmt::format("{} values of {}", knob.values.size(), knob.name()),
                      .expected = fmt::format("at most {}", most_knob_values)});
  }
  return knob;
}

std::vector<Knob> automatic_knobs(const Architecture& base) {
  constexpr std::array<double, 5> sizes = {0.25, 0.5, 1, 2, 4};
  constexpr std::array<double, 3> sides = {0.5, 1, 2};
  std::vector<Knob> knobs;
  const auto add = [&](const AcceleratorLevel& level, KnobKind kind, std::span<const double> factors) {
    Knob knob{.level = level.name, .kind = kind};
    const double now = knob_value(base, knob);
    const bool is_side = kind == KnobKind::across || kind == KnobKind::down;
    if (now <= (is_side ? 1 : 0)) return;
    for (const double value : around(now, factors, is_side)) {
      if (!value_fault(base, knob, value).empty()) continue;
      Architecture changed = base;
      set_knob(changed, knob, value);
      if (architecture_fault(changed).empty()) knob.values.push_back(value);
    }
    if (knob.values.size() > 1) knobs.push_back(std::move(knob));
  };
  add(base.levels.front(), KnobKind::bandwidth, sides);
  for (size_t i = 0; i < base.levels.size(); ++i) {
    const AcceleratorLevel& level = base.levels[i];
    if (level.kind == LevelKind::storage) add(level, KnobKind::capacity, sizes);
    if (i == 0) continue;
    add(level, KnobKind::across, sides);
    add(level, KnobKind::down, sides);
  }
  return knobs;
}

double knob_value(const Architecture& architecture, const Knob& knob) {
  const size_t at = level_of(architecture, knob);
  const AcceleratorLevel& level = architecture.levels[at];
  switch (knob.kind) {
    case KnobKind::capacity:
      return static_cast<double>(level.depth * access_bits(level)) / 8;
    case KnobKind::depth:
      return static_cast<double>(level.depth);
    case KnobKind::across:
      return static_cast<double>(at > 0 ? fanout_x(architecture, at - 1) : level.instances_x);
    case KnobKind::down:
      return static_cast<double>(at > 0 ? fanout_y(architecture, at - 1) : level.instances_y);
    case KnobKind::bandwidth: {
      const LevelBandwidth& own = level.bandwidth;
      return own.shared ? *own.shared : own.read ? *own.read : own.write.value_or(0);
    }
    case KnobKind::word_bits:
      return level.word_bits;
  }
  throw InternalError("a knob without a value");
}

void set_knob(Architecture& architecture, const Knob& knob, double value) {
  const size_t at = level_of(architecture, knob);
  AcceleratorLevel& level = architecture.levels[at];
  switch (knob.kind) {
    case KnobKind::capacity:
      level.depth = std::max<int64_t>(1, static_cast<int64_t>(value * 8) / access_bits(level));
      break;
    case KnobKind::depth:
      level.depth = static_cast<int64_t>(value);
      break;
    case KnobKind::across:
      set_side(architecture, at, &AcceleratorLevel::instances_x, static_cast<int64_t>(value));
      break;
    case KnobKind::down:
      set_side(architecture, at, &AcceleratorLevel::instances_y, static_cast<int64_t>(value));
      break;
    case KnobKind::bandwidth:
      set_bandwidth(level.bandwidth, value);
      break;
    case KnobKind::word_bits:
      set_word_bits(architecture, static_cast<int>(value));
      break;
  }
}

std::string knob_value_text(const Knob& knob, double value) {
  if (knob.kind != KnobKind::capacity) return number_text(value);
  constexpr double kibibyte = 1024, mebibyte = kibibyte * kibibyte;
  if (value >= mebibyte) return fmt::format("{:.4g} MiB", value / mebibyte);
  return value >= kibibyte ? fmt::format("{:.4g} KiB", value / kibibyte) : fmt::format("{} B", number_text(value));
}

}  // namespace foretoken
