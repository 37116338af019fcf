#include "report/serving/kv_tier_report.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

double share_of_prompts(int64_t tokens, int64_t all) {
  return all > 0 ? static_cast<double>(tokens) / static_cast<double>(all) : 0;
}

double bytes(int64_t tokens, const KvTierUsage& usage) {
  return static_cast<double>(tokens) * usage.kv_bytes_per_token;
}

double milliseconds(Picoseconds time) {
  return to_seconds(time).value() * 1e3;
}

}  // namespace

std::string kv_tiers_text(const KvTierUsage& usage, int64_t prompt_tokens, int64_t cached_tokens) {
  Table table({{"KV found in"}, {"prompt tokens"}, {"share"}, {"read"}, {"written"}, {"held at most"}});
  const auto percent = [&](int64_t tokens) {
    return fmt::format("{:.1f}%", 100 * share_of_prompts(tokens, prompt_tokens));
  };
  const int64_t on_gpu = cached_tokens - usage.hit_tokens();
  table.add({"GPU", fmt::format("{}", on_gpu), percent(on_gpu), "", "", ""});
  for (const KvTierUse& tier : usage.tiers) {
    table.add({tier.kind, fmt::format("{}", tier.hit_tokens), percent(tier.hit_tokens),
               bytes_text(bytes(tier.read_tokens, usage)), bytes_text(bytes(tier.written_tokens, usage)),
               bytes_text(bytes(tier.most_tokens, usage))});
  }
  std::string text = "\n" + table.text();
  if (usage.waiting_requests > 0) {
    text += fmt::format("{:<28} {:>10}   requests, {:.2f} ms each\n", "Waited for loads", usage.waiting_requests,
                        milliseconds(usage.requests_waited) / static_cast<double>(usage.waiting_requests));
  }
  text += fmt::format("{:<28} {:>10}   steps, {:.2f} ms together\n", "Held up by loads", usage.waiting_steps,
                      milliseconds(usage.waited));
  if (usage.swapped_sequences > 0) {
    text += fmt::format("{:<28} {:>10}   preempted sequences\n", "Swapped out", usage.swapped_sequences);
  }
  return text;
}

Json kv_tiers_json(const KvTierUsage& usage, int64_t prompt_tokens, int64_t cached_tokens) {
  Json tiers = Json::array();
  for (const KvTierUse& tier : usage.tiers) {
    tiers.push(Json::object({{"kind", tier.kind},
                             {"hit_tokens", tier.hit_tokens},
                             {"hit_share", share_of_prompts(tier.hit_tokens, prompt_tokens)},
                             {"resumed_tokens", tier.resumed_tokens},
                             {"read_bytes", bytes(tier.read_tokens, usage)},
                             {"written_bytes", bytes(tier.written_tokens, usage)},
                             {"most_bytes_held", bytes(tier.most_tokens, usage)},
                             {"read_busy_s", to_seconds(tier.read_busy).value()},
                             {"write_busy_s", to_seconds(tier.write_busy).value()}}));
  }
  return Json::object({{"gpu_hit_tokens", cached_tokens - usage.hit_tokens()},
                       {"tiers", std::move(tiers)},
                       {"requests_waiting_for_loads", usage.waiting_requests},
                       {"requests_waited_ms", milliseconds(usage.requests_waited)},
                       {"steps_held_up_by_loads", usage.waiting_steps},
                       {"steps_held_up_ms", milliseconds(usage.waited)},
                       {"swapped_sequences", usage.swapped_sequences}});
}

}  // namespace foretoken
