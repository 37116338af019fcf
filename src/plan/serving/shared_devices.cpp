#include "plan/serving/shared_devices.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"

namespace foretoken {
namespace {

// What is left of devices and money.
struct Remainder {
  std::map<std::string, int64_t> devices;
  std::optional<double> usd_per_hour;

  explicit Remainder(const ServingQuestion& question) : usd_per_hour(question.budget_usd_per_hour) {
    for (const HardwareChoice& choice : question.hardware) devices[choice.device.name] = choice.most_devices;
  }
  void take(const ServingQuestion& question, const ServingLayout& layout) {
    for (const auto& [choice, count] : question.hardware_of(layout)) devices[choice->device.name] -= count;
    if (usd_per_hour) *usd_per_hour -= question.usd_per_hour(layout).value_or(0);
  }
  bool is_overdrawn() const {
    const auto short_of = [](const auto& one) { return one.second < 0; };
    return std::any_of(devices.begin(), devices.end(), short_of) || (usd_per_hour && *usd_per_hour < -1e-9);
  }
  // Nothing where not one device is left.
  std::optional<ServingQuestion> of(const ServingQuestion& question) const {
    ServingQuestion left = question;
    left.budget_usd_per_hour = usd_per_hour;
    std::erase_if(left.hardware, [&](HardwareChoice& choice) {
      choice.most_devices = devices.at(choice.device.name);
      const bool affordable = !usd_per_hour || choice.usd_per_hour.value_or(0) <= *usd_per_hour;
      return choice.most_devices < 1 || !affordable;
    });
    return left.hardware.empty() ? std::nullopt : std::optional(left);
  }
};

bool all_served(const SharedPlan& plan) {
  return std::all_of(plan.results.begin(), plan.results.end(),
                     [](const ServingSearchResult& result) { return result.winner() != nullptr; });
}

}  // namespace

std::optional<double> SharedPlan::usd_per_hour() const {
  double sum = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].winner() == nullptr) continue;
    const std::optional<double> own = questions[i].usd_per_hour(results[i].winner()->layout);
    if (!own) return std::nullopt;
    sum += *own;
  }
  return sum;
}

SharedPlan share_devices(
    std::vector<ServingQuestion> questions,
    const std::function<ServingSearchResult(size_t model, const ServingQuestion& question)>& search) {
  ensure(!questions.empty(), "models to plan for");
  SharedPlan plan{.questions = std::move(questions), .results = {}};
  for (size_t i = 0; i < plan.questions.size(); ++i) plan.results.push_back(search(i, plan.questions[i]));
  if (!all_served(plan)) return plan;
  const Remainder all(plan.questions.front());
  Remainder left = all;
  for (size_t i = 0; i < plan.results.size(); ++i) left.take(plan.questions[i], plan.results[i].winner()->layout);
  plan.fits = !left.is_overdrawn();
  if (plan.fits) return plan;

  std::vector<size_t> order(plan.results.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return plan.results[a].winner()->layout.devices() > plan.results[b].winner()->layout.devices();
  });
  left = all;
  for (const size_t i : order) {
    const std::optional<ServingQuestion> question = left.of(plan.questions[i]);
    plan.results[i] = question ? search(i, *question) : ServingSearchResult{};
    if (question) plan.questions[i] = *question;
    if (const PlanPoint* winner = plan.results[i].winner()) left.take(plan.questions[i], winner->layout);
  }
  plan.fits = all_served(plan);
  return plan;
}

}  // namespace foretoken
