#include "plan/serving/serving_question.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "compose/device_formats.h"
#include "model/expert_popularity.h"
#include "model/step.h"

namespace foretoken {

int64_t HardwareChoice::host_devices() const {
  const int64_t of_node = std::max<int64_t>(1, node_devices);
  return node && node->host_devices ? std::min<int64_t>(of_node, node->host_devices->value) : of_node;
}

int64_t routed_experts(const Model& model) {
  for (const Layer& layer : model.layers) {
    if (const auto* moe = std::get_if<Moe>(&layer.feed_forward)) return moe->experts;
  }
  return 0;
}

Model with_expert_copies(Model model, int64_t copies) {
  if (copies == 0) return model;
  ExpertPopularity popularity =
      model.expert_popularity ? *model.expert_popularity : zipf_popularity(routed_experts(model), 0);
  popularity.redundant = copies;
  model.expert_popularity = std::make_shared<const ExpertPopularity>(std::move(popularity));
  return model;
}

const HardwareChoice& ServingQuestion::hardware_of(const std::string& device) const {
  const auto found = std::find_if(hardware.begin(), hardware.end(),
                                  [&](const HardwareChoice& one) { return one.device.name == device; });
  ensure(found != hardware.end(), "layouts are of the hardware that was offered");
  return *found;
}

std::vector<std::pair<const HardwareChoice*, int64_t>> ServingQuestion::hardware_of(const ServingLayout& layout) const {
  std::vector<std::pair<const HardwareChoice*, int64_t>> all = {
      {&hardware_of(layout.pool.engine.device), layout.pool.devices()}};
  if (!layout.decode) return all;
  if (!layout.is_mixed()) {
    all.front().second += layout.decode->devices();
  } else {
    all.emplace_back(&hardware_of(layout.decode->engine.device), layout.decode->devices());
  }
  return all;
}

std::optional<double> ServingQuestion::usd_per_hour(const ServingLayout& layout) const {
  double sum = 0;
  for (const auto& [choice, devices] : hardware_of(layout)) {
    if (!choice->usd_per_hour) return std::nullopt;
    sum += *choice->usd_per_hour * static_cast<double>(devices);
  }
  return sum;
}

bool ServingQuestion::all_have_prices() const {
  return std::all_of(hardware.begin(), hardware.end(),
                     [](const HardwareChoice& one) { return one.usd_per_hour.has_value(); });
}

double ServingQuestion::compared_cost(const ServingLayout& layout) const {
  const bool by_devices = !money_decides() && !all_have_prices();
  const std::optional<double> usd = by_devices ? std::nullopt : usd_per_hour(layout);
  return usd.value_or(static_cast<double>(layout.devices()));
}

bool ServingQuestion::is_judged_by_slow_end(const ServingLayout& layout) const {
  const auto parts = hardware_of(layout);
  return std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part.first->rests_on_sheet(); });
}

Model ServingQuestion::model_of(const EngineChoice& choice) const {
  return with_expert_copies(
      choice.scheme ? with_scheme(model, *choice.scheme) : run_on(model, hardware_of(choice.device).device),
      choice.expert_copies);
}

bool LayoutChoices::tries_host_memory() const {
  return host_as_gpu || std::any_of(host_gib.begin(), host_gib.end(), [](int64_t gib) { return gib > 0; });
}

std::string ServingQuestion::key(const Traffic& traffic) const {
  std::string text = fmt::format("{}|{}", model.served_name(), traffic.key());
  for (const LatencySlo& slo : slos) text += "|" + slo_key(slo);
  if (joint_percent) text += fmt::format("|together {}", number_text(*joint_percent));
  if (pessimistic) text += "|pessimistic";
  if (choices.tries_host_memory()) text += "|host memory";  // runs then tell what it could save
  if (in_flight) text += fmt::format("|in flight {}", *in_flight);
  // Short runs also look for the slow end of such a device.
  for (const HardwareChoice& one : hardware) text += one.rests_on_sheet() ? "|sheet " + one.device.name : "";
  text += fmt::format("|rate {}|len {}|memory {}", rate ? number_text(*rate) : "any", max_model_len,
                      number_text(memory_fraction));
  if (lora) {
    text += fmt::format("|lora rank {} of {} on host {} {}{} from disk {}", lora->rank, lora->max_lora_rank,
                        lora->max_cpu_loras, lora->on_attention ? "attention" : "", lora->on_mlp ? " mlp" : "",
                        number_text(lora->disk_bandwidth.value()));
  }
  if (drafts) {
    text += fmt::format("|drafts {} {} {} {} {}", drafts->config.method->name, drafts->config.num_speculative_tokens,
                        drafts->config.model,
                        number_text(drafts->config.acceptance->expected_tokens(drafts->config.num_speculative_tokens)),
                        drafts->text);
  }
  return text;
}

}  // namespace foretoken
