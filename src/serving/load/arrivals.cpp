#include "serving/load/arrivals.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/simulated_time.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr std::string_view stream_name = "arrivals";
constexpr std::string_view shape_names[] = {"constant", "linear", "exponential", "daily"};

void check(bool holds, const char* field, double value, const char* expected) {
  if (!holds) throw InputError({.field = field, .value = number_text(value), .expected = expected});
}

// A gap of mean 1. The exponential is the gamma of shape 1, and cheaper to draw.
double unit_gap(RandomStream& random, double burstiness) {
  return burstiness == 1 ? random.exponential(1) : random.gamma(burstiness, 1 / burstiness);
}

}  // namespace

// Bhaskara I's approximation.
double sine_of_turns(double turns) {
  const double part = turns - std::floor(turns);
  const double half = part < 0.5 ? 2 * part : 2 * part - 1;
  const double product = half * (1 - half);
  const double value = 16 * product / (5 - 4 * product);
  return part < 0.5 ? value : -value;
}

std::vector<std::string> rate_shape_names() {
  return {std::begin(shape_names), std::end(shape_names)};
}

std::optional<RateShape> rate_shape_from_name(const std::string& name) {
  const auto* const found = std::find(std::begin(shape_names), std::end(shape_names), name);
  if (found == std::end(shape_names)) return std::nullopt;
  return static_cast<RateShape>(found - std::begin(shape_names));
}

void check_arrivals(const ArrivalSettings& settings) {
  check(settings.rate > 0, "request_rate", settings.rate, "a rate above 0, or inf for all at once");
  check(settings.burstiness > 0 && std::isfinite(settings.burstiness), "burstiness", settings.burstiness,
        "a number above 0 (1 = Poisson, below 1 = burstier, above 1 = smoother)");
  check(settings.count >= 1 && settings.count <= most_made_up_requests, "num_prompts",
        static_cast<double>(settings.count), "at least one request and at most 100 million");
  if (settings.shape == RateShape::linear || settings.shape == RateShape::exponential) {
    check(settings.ramp_start > 0, "ramp_up_start_rps", settings.ramp_start, "a rate above 0");
    check(settings.ramp_end > 0, "ramp_up_end_rps", settings.ramp_end, "a rate above 0");
  }
  if (settings.shape == RateShape::daily) {
    check(std::isfinite(settings.rate), "request_rate", settings.rate,
          "a finite mean rate, because it changes over time");
    check(settings.swing >= 0 && settings.swing <= 0.99, "daily_swing", settings.swing, "a number from 0 to 0.99");
    check(settings.period_s >= 1e-6, "daily_period", settings.period_s, "a number of seconds, at least 1e-6");
  }
}

Arrivals::Arrivals(const ArrivalSettings& settings, uint64_t seed) : settings_(settings), random_(seed, stream_name) {
  check_arrivals(settings);
  if (settings.shape != RateShape::constant || !std::isfinite(settings.rate)) return;
  RandomStream rehearsal(seed, stream_name);
  double sum = 0;
  for (int64_t i = 0; i < settings.count; ++i) sum += unit_gap(rehearsal, settings.burstiness);
  if (sum > 0) stretch_ = static_cast<double>(settings.count) / sum;
}

Picoseconds Arrivals::next() {
  seconds_ += gap_seconds();
  ++given_;
  if (seconds_ > longest_simulated_time.value()) {
    const bool ramps = settings_.shape == RateShape::linear || settings_.shape == RateShape::exponential;
    throw InputError({.field = ramps ? "ramp_up_start_rps" : "request_rate",
                      .value = number_text(ramps ? settings_.ramp_start : settings_.rate),
                      .expected = fmt::format(
                          "a rate at which request {} of {} arrives within {:.0f} days, the longest run simulated",
                          given_, settings_.count, longest_simulated_time.value() / 86400)});
  }
  return to_picoseconds(Seconds(seconds_));
}

double Arrivals::gap_seconds() {
  const bool ramps = settings_.shape == RateShape::linear || settings_.shape == RateShape::exponential;
  if (!ramps && !std::isfinite(settings_.rate)) return 0;
  const double requests = unit_gap(random_, settings_.burstiness) * stretch_;
  const double progress =
      std::min(1.0, static_cast<double>(given_) / std::max(1.0, static_cast<double>(settings_.count - 1)));
  switch (settings_.shape) {
    case RateShape::linear:
      return requests / (settings_.ramp_start + (settings_.ramp_end - settings_.ramp_start) * progress);
    case RateShape::exponential:
      return requests / (settings_.ramp_start * portable_pow(settings_.ramp_end / settings_.ramp_start, progress));
    case RateShape::daily:
      return daily_gap_seconds(requests);
    case RateShape::constant:
      break;
  }
  return requests / settings_.rate;
}

// Walks through the day in small pieces until the rate has brought `requests`. Whole days bring the mean rate: the
// pieces of one half undo those of the other.
double Arrivals::daily_gap_seconds(double requests) const {
  const double piece = settings_.period_s / 1024, a_day = settings_.rate * settings_.period_s;
  const double days = std::floor(requests / a_day);
  double gap = days * settings_.period_s;
  requests = std::max(0.0, requests - days * a_day);
  for (;;) {
    const double turns = (seconds_ + gap) / settings_.period_s;
    const double rate = settings_.rate * (1 + settings_.swing * sine_of_turns(turns));
    if (requests <= rate * piece) return gap + requests / rate;
    requests -= rate * piece;
    gap += piece;
  }
}

}  // namespace foretoken
