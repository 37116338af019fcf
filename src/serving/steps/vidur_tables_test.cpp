#include "serving/steps/vidur_tables.h"

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "serving/test_support.h"

namespace foretoken::vidur_tables_test {

namespace fs = std::filesystem;

std::vector<Request> read_requests(const fs::path& file, int64_t limit) {
  CsvReader csv(file);
  const size_t arrival = csv.column("arrived_at_s");
  const size_t input = csv.column("num_prefill_tokens"), output = csv.column("num_decode_tokens");
  std::vector<Request> requests;
  while (csv.next() && static_cast<int64_t>(requests.size()) < limit) {
    requests.push_back({.id = static_cast<int64_t>(requests.size()),
                        .arrival = to_picoseconds(Seconds(csv.number(arrival))),
                        .input_tokens = csv.integer(input),
                        .output_tokens = csv.integer(output),
                        .prefix_blocks = {}});
  }
  return requests;
}

struct Replay {
  const char* run;
  const char* requests;
  int64_t count;
  const char* scheduler;
  int64_t blocks;
  int64_t tokens;
};

class VidurReplayNeedsData : public testing::TestWithParam<Replay> {};

// VIDUR's own answer for every request, with its own tables: only the scheduling is compared.
TEST_P(VidurReplayNeedsData, every_request_ends_when_vidur_says) {
  const auto data = measured_data();
  if (!data) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const Replay& replay = GetParam();
  const fs::path folder = *data / "vidur/replay";
  const auto times = read_vidur_tables(folder / "cost_tables/llama2-7b_a100_tp1", {.layers = 32});
  const SchedulerOptions options{
      .max_num_batched_tokens = replay.tokens, .max_num_seqs = 128, .num_gpu_blocks = replay.blocks};
  ListedRequests source(read_requests(folder / "requests" / replay.requests, replay.count));
  RecordedRun run;
  simulate({.replicas = {{.scheduler = replay.scheduler, .options = options, .times = times.get()}}}, source, run);

  CsvReader expected(folder / "runs" / replay.run);
  const size_t e2e = expected.column("e2e_s"), ttft = expected.column("ttft_s");
  const std::vector<RequestRecord> records = run.sorted();
  ASSERT_EQ(static_cast<int64_t>(records.size()), replay.count);
  double worst = 0, sum = 0;
  for (const RequestRecord& record : records) {
    ASSERT_TRUE(expected.next());
    const double total = to_seconds(record.last_token - record.arrival).value();
    const double error = std::abs(total / expected.number(e2e) - 1);
    worst = std::max(worst, error);
    sum += error;
    EXPECT_NEAR(to_seconds(record.first_token - record.arrival).value() / expected.number(ttft), 1, 1e-3) << record.id;
  }
  EXPECT_LT(worst, 1e-4);
  RecordProperty("worst_e2e_error", std::to_string(worst));
  RecordProperty("mean_e2e_error", std::to_string(sum / static_cast<double>(records.size())));
}

INSTANTIATE_TEST_SUITE_P(
    replays, VidurReplayNeedsData,
    testing::Values(Replay{"T8_llama2-7b_a100_tp1_vllm_n200.csv", "uniform128-512_r20_poisson2.0_seed42_n200.csv", 200,
                           "vidur_vllm", 7648, 4096},
                    Replay{"T8_llama2-7b_a100_tp1_sarathi512_n200.csv", "uniform128-512_r20_poisson2.0_seed42_n200.csv",
                           200, "sarathi", 7648, 512},
                    Replay{"T8_llama2-7b_a100_tp1_sarathi512_n50.csv", "uniform128-512_r20_poisson2.0_seed42_n200.csv",
                           50, "sarathi", 7648, 512},
                    Replay{"L3_llama2-7b_a100_tp1_vllm_n2000.csv", "splitwiseconv_poisson6.45_seed42_n2000.csv", 2000,
                           "vidur_vllm", 7424, 4096}),
    [](const auto& replay) {
      std::string name = replay.param.run;
      name.resize(name.size() - 4);
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace foretoken::vidur_tables_test
