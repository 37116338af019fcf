#include "serving/steps/vidur_tables.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "base/error.h"
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
  const char* tables = "llama2-7b_a100_tp1";
  VidurTableOptions options = {.layers = 32};
};

class VidurReplayNeedsData : public testing::TestWithParam<Replay> {};

// VIDUR's own answer for every request, with its own tables: only the scheduling is compared.
TEST_P(VidurReplayNeedsData, every_request_ends_when_vidur_says) {
  const auto data = measured_data();
  if (!data) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const Replay& replay = GetParam();
  const fs::path folder = *data / "vidur/replay";
  const auto times = read_vidur_tables(folder / "cost_tables" / replay.tables, replay.options);
  const SchedulerOptions options{.max_num_batched_tokens = replay.tokens,
                                 .max_num_seqs = 128,
                                 .num_gpu_blocks = replay.blocks,
                                 .pipeline_stages = replay.options.pipeline_stages};
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
                           "vidur_vllm", 7424, 4096},
                    Replay{"L1_llama2-70b_a100_tp2pp2_vllm_n1000.csv",
                           "splitwiseconv_poisson2.0_seed42_n1000.csv",
                           1000,
                           "vidur_vllm",
                           32768,
                           4096,
                           "llama2-70b_a100_tp2",
                           {.layers = 80, .grouped_query = true, .tensor = 2, .pipeline_stages = 2}}),
    [](const auto& replay) {
      std::string name = replay.param.run;
      name.resize(name.size() - 4);
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

const VidurTableOptions llama_70b{.layers = 80, .grouped_query = true, .tensor = 2, .pipeline_stages = 2};

// What VIDUR's own event loop, schedulers and routers (commit 7d475133, run on these tables and requests) answer.
struct VidurAnswer {
  const char* name;
  const char* requests;
  const char* scheduler;
  int64_t tokens;
  int64_t blocks;
  const char* tables;
  VidurTableOptions options;
  size_t replicas;
  const char* router;
  double mean_e2e, mean_ttft;
  int64_t preemptions;
  std::vector<int64_t> requests_by_replica;  // the rest get none
};

class VidurAnswerNeedsData : public testing::TestWithParam<VidurAnswer> {};

TEST_P(VidurAnswerNeedsData, is_ours) {
  const auto data = measured_data();
  if (!data) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const VidurAnswer& answer = GetParam();
  const fs::path folder = *data / "vidur/replay";
  const auto times = read_vidur_tables(folder / "cost_tables" / answer.tables, answer.options);
  const ReplicaConfig replica{.scheduler = answer.scheduler,
                              .options = {.max_num_batched_tokens = answer.tokens,
                                          .max_num_seqs = 128,
                                          .num_gpu_blocks = answer.blocks,
                                          .enable_prefix_caching = false,
                                          .pipeline_stages = answer.options.pipeline_stages},
                              .times = times.get()};
  const std::vector<Request> requests = read_requests(folder / "requests" / answer.requests, 2000);
  const SimulatedRun run =
      simulated({.replicas = std::vector<ReplicaConfig>(answer.replicas, replica), .router = answer.router}, requests);

  double e2e = 0, ttft = 0;
  std::vector<int64_t> by_replica(answer.replicas);
  for (const RequestRecord& record : run.told.requests) {
    e2e += to_seconds(record.last_token - record.arrival).value();
    ttft += to_seconds(record.first_token - record.arrival).value();
    ++by_replica[static_cast<size_t>(record.replica)];
  }
  const auto count = static_cast<double>(requests.size());
  EXPECT_NEAR(e2e / count / answer.mean_e2e, 1, 1e-9);
  EXPECT_NEAR(ttft / count / answer.mean_ttft, 1, 1e-9);
  EXPECT_EQ(run.totals.preemptions, answer.preemptions);
  std::vector<int64_t> expected = answer.requests_by_replica;
  expected.resize(answer.replicas);
  EXPECT_EQ(by_replica, expected);
}

constexpr const char* two_a_second = "splitwiseconv_poisson2.0_seed42_n1000.csv";
constexpr const char* six_a_second = "splitwiseconv_poisson6.45_seed42_n2000.csv";
const VidurAnswer vidur_answers[] = {
    {"sarathi_in_two_stages",
     two_a_second,
     "sarathi",
     512,
     32768,
     "llama2-70b_a100_tp2",
     llama_70b,
     1,
     "round_robin",
     28.87935170859171,
     0.8322309945102957,
     0,
     {1000}},
    {"sarathi_in_two_stages_with_few_blocks",
     two_a_second,
     "sarathi",
     512,
     4000,
     "llama2-70b_a100_tp2",
     llama_70b,
     1,
     "round_robin",
     51.1310258413189,
     25.456682805210246,
     13,
     {1000}},
    {"vllm_in_four_stages",
     two_a_second,
     "vidur_vllm",
     4096,
     32768,
     "llama2-70b_a100_tp2",
     {.layers = 80, .grouped_query = true, .tensor = 2, .pipeline_stages = 4},
     1,
     "round_robin",
     43.23273465618294,
     0.9542050734177281,
     0,
     {1000}},
    {"lor_to_16_replicas",
     six_a_second,
     "vidur_vllm",
     4096,
     7424,
     "llama2-7b_a100_tp1",
     {.layers = 32},
     16,
     "vidur_lor",
     11.861816922878605,
     0.13698438220178671,
     0,
     {1517, 443, 39, 1}},
    {"lor_to_16_replicas_of_two_stages",
     six_a_second,
     "vidur_vllm",
     4096,
     4000,
     "llama2-70b_a100_tp2",
     llama_70b,
     16,
     "vidur_lor",
     29.980362684501287,
     0.8367934833210288,
     10,
     {470, 467, 424, 377, 171, 62, 21, 6, 2}},
    {"round_robin_to_16_replicas",
     six_a_second,
     "vidur_vllm",
     4096,
     7424,
     "llama2-7b_a100_tp1",
     {.layers = 32},
     16,
     "round_robin",
     2.238132008116909,
     0.09567030514900292,
     0,
     std::vector<int64_t>(16, 125)},
};
INSTANTIATE_TEST_SUITE_P(answers, VidurAnswerNeedsData, testing::ValuesIn(vidur_answers),
                         [](const auto& answer) { return std::string(answer.param.name); });

const std::map<std::string, std::string> two_gpu_tables{
    {"per_token_ops_ms",
     "num_tokens_from,num_tokens_to,attn_pre_proj,attn_kv_cache_save,add,send_recv,all_reduce\n"
     "1,8,0.1,0.01,0.2,0.5,0.08\n9,64,0.3,0.02,0.4,0.7,0.1\n"},
    {"attn_decode_ms", "batch_size,kv_from,kv_to,ms\n1,0,4096,0.05\n"},
    {"attn_prefill_ms", "kv,chunk_from,chunk_to,ms\n0,1,4096,0.06\n"}};

TEST(VidurTables, tensor_parallelism_adds_two_all_reduces_and_their_launches_to_each_layer) {
  const PromptChunk prompt{.new_tokens = 6};
  const auto alone = vidur_tables_from_text(two_gpu_tables, {.layers = 10});
  const auto two = vidur_tables_from_text(two_gpu_tables, {.layers = 10, .tensor = 2});
  EXPECT_NEAR(alone->step_seconds({.prompts = {&prompt, 1}}).value, 10 * 0.37e-3, 1e-12);
  EXPECT_NEAR(two->step_seconds({.prompts = {&prompt, 1}}).value, 10 * (0.37e-3 + 2 * 0.1e-3), 1e-12);
}

TEST(VidurTables, every_pipeline_stage_but_the_last_sends) {
  const auto times = vidur_tables_from_text(two_gpu_tables, {.layers = 12, .pipeline_stages = 3});
  const StepBatch decode{.decodes = 1, .decode_context_tokens = 100, .longest_decode_context = 100, .prompts = {}};
  std::array<Estimate, 3> stages;
  times->stage_seconds(decode, stages);
  EXPECT_NEAR(stages[0].value, 4 * 0.36e-3 + 0.5e-3, 1e-12);
  EXPECT_NEAR(stages[1].value, stages[0].value, 1e-12);
  EXPECT_NEAR(stages[2].value, 4 * 0.36e-3, 1e-12);
  EXPECT_NEAR(times->step_seconds(decode).value, stages[0].value + stages[1].value + stages[2].value, 1e-12);
}

TEST(VidurTables, a_folder_without_them_is_refused_with_what_is_missing) {
  try {
    read_vidur_tables(testing::TempDir() + "no such folder", {});
    FAIL() << "read";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().field, "vidur_tables");
    EXPECT_NE(error.problem().value.find("per_token_ops_ms.csv"), std::string::npos);
  }
}

TEST(VidurTables, a_plan_whose_communication_has_no_column_is_refused) {
  std::map<std::string, std::string> tables = two_gpu_tables;
  tables["per_token_ops_ms"] = "num_tokens_from,num_tokens_to,add\n1,8,0.1\n";
  EXPECT_NO_THROW(vidur_tables_from_text(tables, {}));
  EXPECT_THROW(vidur_tables_from_text(tables, {.tensor = 2}), InputError);
  EXPECT_THROW(vidur_tables_from_text(tables, {.pipeline_stages = 2}), InputError);
}

}  // namespace foretoken::vidur_tables_test
