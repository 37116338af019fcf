// Power and energy of serving engines that were published, against simulated runs.
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "app/cli/flags/energy_flags.h"
#include "app/cli/flags/load_flags.h"

namespace foretoken::energy_test {

// The ML.ENERGY Leaderboard v3.0 (Chung et al., NeurIPS 2025, arXiv 2505.06371; github.com/ml-energy/leaderboard,
// public/data/tasks/lm-arena-chat.json), vLLM 0.11.1, a steady number of requests in flight. Its prompts, from LM
// Arena, are of unknown length: power hardly depends on it, energy of a token does.
struct Published {
  const char* model;
  const char* device;
  int64_t tensor;
  int64_t output_tokens;  // mean
  int64_t in_flight;
  double watts;  // of all boards
  double joules_per_output_token;
};
constexpr Published rows[] = {
    {"Llama-3.1-8B", "h100_sxm", 1, 396, 8, 486.4, 0.4548},
    {"Llama-3.1-8B", "h100_sxm", 1, 396, 16, 513.3, 0.2627},
    {"Llama-3.1-8B", "h100_sxm", 1, 396, 32, 559.7, 0.1651},
    {"Llama-3.1-8B", "h100_sxm", 1, 396, 64, 610.3, 0.1186},
    {"Llama-3.1-8B", "h100_sxm", 1, 396, 96, 644.0, 0.1029},
    {"Llama-3.1-8B", "h100_sxm", 1, 396, 128, 669.2, 0.0951},
    {"Llama-3.1-8B", "h100_sxm", 1, 396, 192, 688.3, 0.0837},
    {"Llama-3.1-8B", "h100_sxm", 1, 396, 256, 690.5, 0.0766},
    {"Llama-3.1-8B", "h100_sxm", 1, 396, 512, 688.3, 0.0702},
    {"Qwen3-14B", "h100_sxm", 1, 616, 8, 443.0, 0.7061},
    {"Qwen3-14B", "h100_sxm", 1, 616, 16, 465.3, 0.3983},
    {"Qwen3-14B", "h100_sxm", 1, 616, 32, 493.9, 0.2441},
    {"Qwen3-14B", "h100_sxm", 1, 616, 64, 525.0, 0.1672},
    {"Qwen3-14B", "h100_sxm", 1, 616, 128, 572.1, 0.1279},
    {"Qwen3-14B", "h100_sxm", 1, 616, 256, 644.7, 0.1119},
    {"Llama-3.3-70B-Instruct", "h100_sxm", 4, 411, 16, 1838.8, 2.1016},
    {"Llama-3.3-70B-Instruct", "h100_sxm", 4, 411, 32, 1895.6, 1.2491},
    {"Llama-3.3-70B-Instruct", "h100_sxm", 4, 411, 128, 2351.3, 0.6036},
    {"Llama-3.3-70B-Instruct", "h100_sxm", 4, 411, 256, 2519.4, 0.4911},
    {"Llama-3.3-70B-Instruct", "h100_sxm", 4, 411, 512, 2490.5, 0.4251},
    {"Qwen3-32B", "b200_sxm", 1, 631, 8, 859.6, 1.5451},
    {"Qwen3-32B", "b200_sxm", 1, 631, 16, 836.4, 0.8159},
    {"Qwen3-32B", "b200_sxm", 1, 631, 32, 848.8, 0.4735},
    {"Qwen3-32B", "b200_sxm", 1, 631, 64, 945.4, 0.3126},
    {"Qwen3-32B", "b200_sxm", 1, 631, 128, 975.6, 0.2086},
    {"Qwen3-32B", "b200_sxm", 1, 631, 256, 971.3, 0.1507},
    {"Qwen3-8B", "b200_sxm", 1, 648, 8, 646.3, 0.4304},
    {"Qwen3-8B", "b200_sxm", 1, 648, 16, 532.4, 0.2552},
    {"Qwen3-8B", "b200_sxm", 1, 648, 32, 494.1, 0.1848},
    {"Qwen3-8B", "b200_sxm", 1, 648, 64, 543.0, 0.1225},
    {"Qwen3-8B", "b200_sxm", 1, 648, 128, 747.9, 0.0820},
    {"Qwen3-8B", "b200_sxm", 1, 648, 256, 830.6, 0.0725},
    {"Qwen3-8B", "b200_sxm", 1, 648, 512, 752.2, 0.0618},
};

EnergyAccount simulated(const Published& row, const Library& library) {
  ReplicaFlags flags;
  flags.model.model = row.model;
  flags.model.device = row.device;
  flags.model.plan.tensor = row.tensor;
  flags.engine.engine.max_num_seqs = row.in_flight;
  flags.engine.engine.max_model_len = 8192;
  flags.stack = "vllm-0.11";
  flags.metered = true;
  LoadFlags load;
  load.max_concurrency = row.in_flight;
  load.num_prompts = std::max<int64_t>(64, 6 * row.in_flight);
  load.input_len = 200;  // assumed
  load.output_len = row.output_tokens;
  load.range_ratio = 0.8;
  std::vector<ReplicaGroup> groups;
  groups.push_back(flags.build(library, false));
  EnergyMeter meter = energy_meter(groups);
  ServingRunRequest request;
  request.config.replicas = {groups.front().config};
  request.load = load.load();
  request.step_bounds = false;
  request.observers = {&meter};
  return EnergyFlags().report(meter, groups, run_serving(request), library).account;
}

TEST(PublishedEnergy, power_of_vllm_on_boards_whose_power_nobody_fitted) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  double watts_error = 0, joules_error = 0;
  size_t inside = 0;
  for (const Published& row : rows) {
    const EnergyAccount account = simulated(row, library);
    const double watts = account.mean_board_watts.value / row.watts - 1;
    const double joules = account.board_joules_per_output_token.value / row.joules_per_output_token - 1;
    watts_error += std::abs(watts);
    joules_error += std::abs(joules);
    inside += account.mean_board_watts.low <= row.watts && row.watts <= account.mean_board_watts.high ? 1 : 0;
    fmt::print("{:24} {:8} {:4} in flight: power {:+6.1f}%, energy of a token {:+6.1f}%\n", row.model, row.device,
               row.in_flight, 100 * watts, 100 * joules);
  }
  const auto n = static_cast<double>(std::size(rows));
  fmt::print("mean absolute error: power {:.1f}%, energy of a token {:.1f}%; {} of {} in the interval\n",
             100 * watts_error / n, 100 * joules_error / n, inside, std::size(rows));
  EXPECT_LT(watts_error / n, 0.10);
  EXPECT_LT(joules_error / n, 0.25);
  EXPECT_GE(static_cast<double>(inside), 0.85 * n);
}

}  // namespace foretoken::energy_test
