#include "report/serving/run_explanation_report.h"

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {
namespace {

Json share_or_null(const std::optional<double>& share) {
  return share ? Json(*share) : Json();
}

}  // namespace

std::string run_explanation_words(const RunExplanation& explanation) {
  const TtftParts& parts = explanation.ttft;
  std::string text = fmt::format(
      "a p{} TTFT of {:.0f} ms consists of {:.0f} ms in the queue, {:.0f} ms of prefill and {:.1f} ms waiting for the "
      "host",
      number_text(parts.percentile), parts.ttft_ms, parts.queue_ms, parts.prefill_ms, parts.host_ms);
  if (parts.transfer_ms > 0)
    text += fmt::format(", and {:.0f} ms from the end of prefill to the first token", parts.transfer_ms);
  text += fmt::format(". GPUs run steps {:.0f}% of the time", 100 * explanation.busy_share);
  if (explanation.model_flops_utilization && explanation.memory_bandwidth_utilization) {
    text += fmt::format(" and reach {:.0f}% of their peak FLOP/s (MFU) and {:.0f}% of their memory bandwidth (MBU)",
                        100 * *explanation.model_flops_utilization, 100 * *explanation.memory_bandwidth_utilization);
  }
  return text + ".";
}

void set_run_explanation(Json& json, const RunExplanation& explanation) {
  const TtftParts& parts = explanation.ttft;
  json.set("percentile", parts.percentile);
  json.set("ttft_ms", parts.ttft_ms);
  json.set("queue_ms", parts.queue_ms);
  json.set("prefill_ms", parts.prefill_ms);
  json.set("host_ms", parts.host_ms);
  json.set("transfer_ms", parts.transfer_ms);
  json.set("busy_share", explanation.busy_share);
  json.set("model_flops_utilization", share_or_null(explanation.model_flops_utilization));
  json.set("memory_bandwidth_utilization", share_or_null(explanation.memory_bandwidth_utilization));
}

}  // namespace foretoken
