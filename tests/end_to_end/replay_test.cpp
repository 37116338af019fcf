// Execution traces in and out: what comes from one command goes into the other, and broken ones are refused.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/json.h"
#include "network/chakra/chakra.h"
#include "run.h"

namespace foretoken::end_to_end_replay_test {

using testing::HasSubstr;
namespace fs = std::filesystem;

const std::string example = FORETOKEN_SOURCE_DIR "/examples/chakra/pipeline";
const std::string small_machine = "switch:4@100GB/s,1us";

class ReplayCommand : public testing::Test {
 protected:
  ReplayCommand() : folder_(fs::temp_directory_path() / ("foretoken_replay_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    for (int rank = 0; rank < 4; ++rank) fs::copy_file(chakra_path(example, rank), trace(rank));
  }
  ~ReplayCommand() override { fs::remove_all(folder_); }

  std::string prefix() const { return (folder_ / "run").string(); }
  std::string trace(int64_t rank) const { return chakra_path(prefix(), rank).string(); }

  static std::string read(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const std::string& file, const std::string& content) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
  }
  void change(int64_t rank, const std::function<void(ChakraTrace&)>& edit) const {
    ChakraTrace changed = parse_chakra(read(trace(rank)), "x");
    edit(changed);
    write(trace(rank), chakra_text(changed));
  }

  Outcome replay(std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"replay", "--chakra", prefix(), "--topology", small_machine};
    words.insert(words.end(), more.begin(), more.end());
    return run_foretoken(words);
  }

  void expect_refused(const std::string& mentions, std::vector<std::string> more = {}) const {
    const Outcome run = replay(std::move(more));
    EXPECT_EQ(run.status, 2) << run.err << run.out;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(in_one_line(run.err), HasSubstr(mentions));
  }

  fs::path folder_;
};

TEST_F(ReplayCommand, what_links_carried_over_time_is_written_at_flow_level) {
  const std::string file = (folder_ / "links.csv").string();
  const Outcome run = replay({"--network", "flow", "--link-use", file});
  EXPECT_EQ(run.status, 0) << run.err;
  const std::string table = read(file);
  EXPECT_TRUE(table.starts_with("time_s,link,from,to,bytes_per_s,share\n")) << table;
  EXPECT_GT(std::count(table.begin(), table.end(), '\n'), 2);
  expect_refused("--network flow", {"--link-use", file});
}

TEST_F(ReplayCommand, answers_at_both_fidelities_with_one_json_document) {
  for (const std::string network : {"closed", "flow"}) {
    const Outcome run = replay({"--network", network, "--json"});
    ASSERT_EQ(run.status, 0) << run.err;
    const Json json = parse_json(run.out, network);
    EXPECT_EQ(json.find("ranks")->integer(), 4);
    EXPECT_GT(json.find("seconds")->number(), 11e-3);
    EXPECT_EQ(run.out, replay({"--network", network, "--json"}).out) << "the same bytes every time";
  }
}

TEST_F(ReplayCommand, a_step_that_was_exported_replays) {
  const std::string step = (folder_ / "step").string();
  const Outcome exported = run_foretoken({"step", "--model", "Llama-3.1-8B", "--device", "h100_sxm", "-tp", "2", "-pp",
                                          "2", "--batch", "8", "--context-len", "512", "--export-chakra", step});
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_TRUE(fs::exists(step + ".3.et"));
  for (const std::string compute : {"recorded", "predicted"}) {
    const Outcome run = run_foretoken({"replay", "--chakra", step, "--node", "hgx_h100", "--compute", compute});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("all_reduce"));
  }
}

TEST_F(ReplayCommand, a_replayed_step_runs_the_engines_own_all_reduce) {
  const std::string step = (folder_ / "tensor").string();
  const Outcome estimate = run_foretoken({"step", "--model", "Llama-3.1-70B", "--device", "h100_sxm", "-tp", "8",
                                          "--batch", "64", "--context-len", "2048", "--export-chakra", step, "--json"});
  ASSERT_EQ(estimate.status, 0) << estimate.err;
  const Outcome replayed =
      run_foretoken({"replay", "--chakra", step, "--node", "hgx_h100", "--compute", "recorded", "--json"});
  ASSERT_EQ(replayed.status, 0) << replayed.err;
  const double expected = parse_json(estimate.out, "step").find("seconds")->find("value")->number();
  EXPECT_NEAR(parse_json(replayed.out, "replay").find("seconds")->number() / expected, 1, 0.005);
}

TEST_F(ReplayCommand, a_profiled_job_replays) {
  const auto event = [](int rank, double duration) {
    return R"({"distributedInfo": {"rank": )" + std::to_string(rank) + R"(, "world_size": 2}, "traceEvents": [
      {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","tid":1,"ts":0,"dur":1,"args":{"correlation":1}},
      {"ph":"X","cat":"kernel","name":"gemm","tid":7,"ts":5,"dur":)" +
           std::to_string(duration) + R"(,"args":{"correlation":1,"stream":7}},
      {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","tid":1,"ts":2,"dur":1,"args":{"correlation":2}},
      {"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","tid":20,"ts":500,"dur":50,"args":{"correlation":2,
       "stream":20,"Collective name":"allreduce","dtype":"Float","In msg nelems":1000000,"Out msg nelems":1000000,
       "Group size":2,"Process Group Name":"0","Process Group Ranks":"[0, 1]"}}]})";
  };
  write((folder_ / "a.json").string(), event(1, 300));
  write((folder_ / "b.json").string(), event(0, 100));
  const std::string job = (folder_ / "job").string();
  const std::string traces = (folder_ / "a.json").string() + "," + (folder_ / "b.json").string();
  const Outcome imported = run_foretoken({"import", "profile", traces, "--as-chakra", job});
  ASSERT_EQ(imported.status, 0) << imported.err;
  const Outcome run = run_foretoken({"replay", "--chakra", job, "--topology", small_machine, "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer");
  // A launch, the longer of the two kernels, 195 us that nothing explains, and 4 MB over 100 GB/s with what links add.
  EXPECT_NEAR(json.find("seconds")->number(), 540e-6, 10e-6);
  const std::string twice = (folder_ / "a.json").string() + "," + (folder_ / "a.json").string();
  EXPECT_EQ(run_foretoken({"import", "profile", twice, "--as-chakra", job}).status, 2) << "one rank, two traces";
}

// DualPipe on an H800: 963 kernels and 20 copies on three streams, DeepEP beside the layers; recorded in whole us.
using ReplayNeedsData = ReplayCommand;
TEST_F(ReplayNeedsData, a_training_chunk_of_deepseek_takes_what_was_recorded_and_gives_a_stack) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const std::string trace = (fs::path(data) / "deepseek/train_trace.json.gz").string();
  const std::string job = (folder_ / "chunk").string(), stack = (folder_ / "stack.json").string();
  const Outcome imported = run_foretoken({"import", "profile", trace, "--as-chakra", job});
  ASSERT_EQ(imported.status, 0) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("983 kernels"));
  EXPECT_THAT(imported.out, HasSubstr("3 streams"));
  EXPECT_THAT(imported.out, HasSubstr("the host waited 4 times"));
  const Outcome replayed = run_foretoken({"replay", "--chakra", job, "--node", "hgx_h100", "--json"});
  ASSERT_EQ(replayed.status, 0) << replayed.err;
  constexpr double recorded = 129.012e-3;  // from the start of the first kernel to the end of the last
  EXPECT_NEAR(parse_json(replayed.out, "answer").find("seconds")->number() / recorded, 1, 1e-3);

  const Outcome fitted = run_foretoken(
      {"import", "profile", trace, "--as-stack", "chunk", "--costs-only", "--extends", "hf-eager", "--out", stack});
  ASSERT_EQ(fitted.status, 0) << fitted.err;
  const Json costs = *parse_json(read(stack), stack).find("costs");
  EXPECT_NEAR(costs.find("launch_us")->number(), 9.5, 0.5);
  EXPECT_NEAR(costs.find("host_us")->find("gemm")->number(), 11, 0.5);
  const Outcome step = run_foretoken({"step", "--model", "Llama-3.2-3B", "--device", "h100_sxm", "--batch", "8",
                                      "--context-len", "1k", "--stack", stack, "--json"});
  EXPECT_EQ(step.status, 0) << step.err;
}

TEST_F(ReplayCommand, a_timeline_is_written_on_request) {
  const std::string file = (folder_ / "timeline.json").string();
  ASSERT_EQ(replay({"--trace", file}).status, 0);
  const Json timeline = parse_json(read(file), file);
  EXPECT_GT(timeline.find("traceEvents")->items().size(), 40U);
}

TEST_F(ReplayCommand, missing_files_and_machines_are_named) {
  expect_refused("run.4.et", {"--ranks", "5"});
  fs::remove(trace(2));
  expect_refused("run.2.et");
  EXPECT_THAT(run_foretoken({"replay", "--chakra", "nowhere/run", "--node", "hgx_h100"}).err, HasSubstr("nowhere/run"));
  EXPECT_THAT(run_foretoken({"replay", "--chakra", example}).err, HasSubstr("--cluster, --node, --topology"));
  EXPECT_THAT(run_foretoken({"replay", "--chakra", example, "--topology", "ring:2@1GB/s,1us"}).err,
              HasSubstr("at least 4"));
}

TEST_F(ReplayCommand, every_cut_of_a_trace_is_refused) {
  const std::string whole = read(trace(1));
  for (size_t length = 0; length < whole.size(); length += 7) {
    write(trace(1), whole.substr(0, length));
    const Outcome run = replay();
    EXPECT_EQ(run.status, 2) << length << run.out;
    EXPECT_EQ(run.out, "");
  }
}

TEST_F(ReplayCommand, bytes_that_are_no_trace_are_refused_with_their_place) {
  const std::string metadata = chakra_text({});
  write(trace(1),
        "this is no trace at all, but long enough to look like one to a careless reader of lengths .........");
  expect_refused("run.1.et: byte");
  write(trace(1), metadata + "\xff\xff\xff\xff\x0f");
  expect_refused("a length of 4294967295 bytes");
  write(trace(1), metadata + std::string("\x0c\x08") + std::string(11, '\xff'));
  expect_refused("64 bits");
}

TEST_F(ReplayCommand, graphs_that_cannot_run_are_refused) {
  const std::string before = read(trace(0));
  change(0, [](ChakraTrace& one) { one.nodes[2].data_dependencies = {one.nodes[4].id}; });
  expect_refused("nodes wait for each other");
  write(trace(0), before);
  change(0, [](ChakraTrace& one) { one.nodes[2].data_dependencies = {77}; });
  expect_refused("depends on node 77");
  write(trace(0), before);
  change(0, [](ChakraTrace& one) { one.nodes.back().id = one.nodes.front().id; });
  expect_refused("no other node");
  write(trace(0), before);
  const auto is_message = [](const ChakraNode& node) { return node.type == ChakraNodeType::send; };
  change(0, [&](ChakraTrace& one) { std::erase_if(one.nodes, is_message); });
  expect_refused("a receive without its send");
  write(trace(0), before);
  const auto first_collective = [](ChakraTrace& one) -> ChakraNode& {
    return *std::find_if(one.nodes.begin(), one.nodes.end(),
                         [](const ChakraNode& node) { return node.type == ChakraNodeType::collective; });
  };
  change(0, [&](ChakraTrace& one) { first_collective(one).attributes.back() = chakra_text("pg_name", "12"); });
  expect_refused("pg_name = 12");
  write(trace(0), before);
  change(0, [&](ChakraTrace& one) {
    for (ChakraAttribute& attribute : first_collective(one).attributes) {
      if (attribute.name == "comm_size") attribute.value = int64_t{5};
    }
  });
  expect_refused("as in rank 0");
}

}  // namespace foretoken::end_to_end_replay_test
