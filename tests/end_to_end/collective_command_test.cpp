// What `foretoken collective` says, and what it refuses.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/json.h"
#include "run.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

Json json_of(const std::string& line) {
  const Outcome run = run_foretoken("collective " + line + " --json");
  EXPECT_EQ(run.status, 0) << line << "\n" << run.err;
  return parse_json(run.out, line);
}

double number_at(const Json& row, std::initializer_list<const char*> path) {
  JsonView view(row, "row");
  for (const char* key : path) view = view.at(key);
  return view.number();
}

std::vector<JsonView> rows_of(const Json& answer) {
  return JsonView(answer, "answer").at("rows").items();
}

void expect_refused(const std::string& line, const std::string& mentions) {
  const Outcome run = run_foretoken("collective " + line);
  EXPECT_EQ(run.status, 2) << line << "\n" << run.out << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find(mentions), std::string::npos) << line << " should mention: " << mentions << "\n" << run.err;
}

TEST(CollectiveCommand, a_range_of_sizes_gives_a_row_each_with_the_choice_and_its_reason) {
  const Json answer = json_of("--cluster h100_ib_rail --op all_reduce --sizes 1K:1M --ranks 64");
  const std::vector<JsonView> rows = rows_of(answer);
  ASSERT_EQ(rows.size(), 11u);
  double before = 0;
  for (const JsonView& row : rows) {
    const double seconds = number_at(row.value(), {"seconds", "value"});
    EXPECT_GE(seconds, before);
    before = seconds;
    EXPECT_LE(number_at(row.value(), {"seconds", "low"}), seconds);
    EXPECT_GE(number_at(row.value(), {"seconds", "high"}), seconds);
    EXPECT_FALSE(row.at("algorithm").string().empty());
    EXPECT_FALSE(row.at("why").string().empty());
  }
}

TEST(CollectiveCommand, a_ring_meets_the_formula_of_the_textbook) {
  const Json answer =
      json_of("--topology ring:8@100GB/s,1us --op all_reduce --bytes 8000000 --algorithm ring --fidelity flow");
  const double seconds = number_at(rows_of(answer).front().value(), {"seconds", "value"});
  EXPECT_NEAR(seconds, 14 * (1e-6 + 1e6 / 100e9), 1e-12);
}

TEST(CollectiveCommand, a_listed_group_equals_the_strided_one) {
  const std::string rest = " --cluster h100_ib_rail --op all_gather --bytes 64M";
  EXPECT_EQ(number_at(rows_of(json_of("--group 0,8,16,24" + rest)).front().value(), {"seconds", "value"}),
            number_at(rows_of(json_of("--ranks 4 --stride 8" + rest)).front().value(), {"seconds", "value"}));
}

TEST(CollectiveCommand, a_node_that_was_measured_answers_with_its_measurements_unless_an_algorithm_is_forced) {
  const std::string call = "--node hgx_h100 --op all_reduce --bytes 1M";
  EXPECT_EQ(rows_of(json_of(call)).front().at("source").string(), "measured");
  EXPECT_EQ(rows_of(json_of(call + " --algorithm ring")).front().at("source").string(), "formula");
  EXPECT_EQ(rows_of(json_of(call + " --fidelity flow")).front().at("source").string(), "flow");
  const Json between = json_of("--cluster h100_ib_rail --op all_reduce --bytes 1M --ranks 16");
  EXPECT_EQ(rows_of(between).front().at("source").string(), "formula");
}

TEST(CollectiveCommand, links_are_listed_with_what_they_carried) {
  const Json answer = json_of("--node hgx_h100 --op all_to_all --bytes 64M --links --fidelity flow");
  const JsonView row = rows_of(answer).front();
  const std::vector<JsonView> links = row.at("links").items();
  ASSERT_EQ(links.size(), 16u);  // each device up and down
  for (const JsonView& link : links) EXPECT_LE(link.at("use").number(), 1);
}

TEST(CollectiveCommand, an_uneven_all_to_all_takes_as_long_as_its_busiest_link) {
  const fs::path file = fs::temp_directory_path() / ("foretoken_pairs_" + std::to_string(getpid()) + ".csv");
  std::ofstream(file) << "from,to,bytes\n0,1,1e9\n0,2,1e9\n3,2,5e8\n1,1,7e9\n";
  for (const std::string fidelity : {"closed", "flow"}) {
    const Json answer = json_of("--topology switch:4@100GB/s,0ns --op all_to_all --fidelity " + fidelity +
                                " --pair-bytes " + file.string());
    EXPECT_NEAR(number_at(rows_of(answer).front().value(), {"seconds", "value"}), 2e9 / 100e9, 1e-9);
  }
  expect_refused("--node hgx_h100 --op all_gather --pair-bytes " + file.string(), "all_to_all");
  expect_refused("--node hgx_h100 --op all_to_all --ranks 2 --pair-bytes " + file.string(), "between 0 and 1");
  expect_refused("--node hgx_h100 --op all_to_all --algorithm hierarchical --pair-bytes " + file.string(), "direct");
  fs::remove(file);
}

TEST(CollectiveCommand, a_plot_is_written_where_asked) {
  const fs::path file = fs::temp_directory_path() / ("foretoken_collective_" + std::to_string(getpid()) + ".svg");
  const Outcome run = run_foretoken("collective --node hgx_h100 --op all_gather --sizes 1K:1G --plot " + file.string());
  EXPECT_EQ(run.status, 0) << run.err;
  std::ifstream in(file);
  std::string first;
  std::getline(in, first);
  EXPECT_TRUE(first.starts_with("<svg")) << first;
  fs::remove(file);
}

TEST(CollectiveCommand, every_collective_runs_on_a_cluster_and_on_a_topology_at_both_fidelities) {
  for (const std::string op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce",
                               "gather", "scatter", "barrier", "send_recv"}) {
    for (const std::string machine : {"--cluster h100_ib_rail --ranks ", "--topology torus:4x4@50GB/s,1us --ranks "}) {
      for (const std::string fidelity : {"closed", "flow"}) {
        const std::string ranks = op == "send_recv" ? "2" : "13";
        const std::string bytes = op == "barrier" ? "" : " --bytes 1M";
        const Json answer = json_of(machine + ranks + " --op " + op + bytes + " --fidelity " + fidelity);
        EXPECT_GT(number_at(rows_of(answer).front().value(), {"seconds", "value"}), 0) << op << machine << fidelity;
      }
    }
  }
}

TEST(CollectiveCommand, wrong_input_is_refused_with_what_was_expected) {
  expect_refused("--op all_reduce --bytes 1M", "one machine");
  expect_refused("--node hgx_h100 --cluster h100_ib_rail --bytes 1M", "one machine");
  expect_refused("--node hgx_h100", "--sizes 1K:1G");
  expect_refused("--node hgx_h100 --bytes 1M --sizes 1K:1M", "--bytes 64M");
  expect_refused("--node hgx_h100 --bytes 1M --ranks 9", "has 8 devices");
  expect_refused("--node hgx_h100 --bytes 1M --group 0,1,1", "every device once");
  expect_refused("--node hgx_h100 --bytes 1M --group 0,1 --ranks 2", "--group");
  expect_refused("--node hgx_h100 --bytes 1M --algorithm rnig", "did you mean ring");
  expect_refused("--node hgx_h100 --bytes 1M --algorithm hierarchical", "several nodes");
  expect_refused("--node hgx_h100 --bytes 1M --op all_to_all --algorithm ring", "ring has no all_to_all");
  expect_refused("--node l40s_pcie --bytes 1M --algorithm ring --protocol ll128", "NVLink");
  expect_refused("--node hgx_h100 --bytes 1M --concurrent 2", "flow");
  expect_refused("--cluster h100_ib_rail --ranks 12 --bytes 1M --algorithm hierarchical",
                 "as many ranks in every node");
  expect_refused("--node hgx_h100 --bytes 1M --op send_recv --ranks 3", "two ranks");
  expect_refused("--node hgx_h100 --bytes 1M --plot a.svg", "at least two sizes");
  expect_refused("--node hgx_h100 --sizes 1M:1K", "--sizes");
}

TEST(CollectiveCommand, devices_without_a_path_between_them_are_refused) {
  const fs::path file = fs::temp_directory_path() / ("foretoken_islands_" + std::to_string(getpid()) + ".json");
  std::ofstream(file) << R"({
    "nodes": [{"name": "a", "kind": "device"}, {"name": "b", "kind": "device"}, {"name": "c", "kind": "device"}],
    "links": [{"from": "a", "to": "b", "bandwidth_gb_per_s": 50}]})";
  const Outcome run = run_foretoken("collective --op all_reduce --bytes 1M --topology " + file.string());
  EXPECT_EQ(run.status, 2) << run.out << run.err;
  EXPECT_NE(run.err.find("c to a"), std::string::npos) << run.err;
  fs::remove(file);
}

TEST(CollectiveCommand, astra_sims_arithmetic_answers_in_nanoseconds_or_says_why_not) {
  const std::string ring = "--astra-compatible --topology Ring --dims 4 --bandwidth 50 --latency 500 --bytes 1M ";
  const Json answer = json_of(ring + "--algorithm ring --op all_reduce");
  EXPECT_EQ(rows_of(answer).front().at("nanoseconds").integer(), 43000);
  const Json none = json_of(ring + "--algorithm doubleBinaryTree --op all_reduce");
  EXPECT_FALSE(rows_of(none).front().at("no_closed_form").string().empty());
  expect_refused(ring + "--algorithm halvingDoubling --op broadcast", "all_reduce");
  expect_refused("--astra-compatible --topology Ring --dims 6 --algorithm halvingDoubling --bytes 1M", "power of two");
  expect_refused("--astra-compatible --topology Ring_Switch --dims 6 --algorithm ring_ring --bytes 1M", "dims");
}

TEST(CollectiveCommand, validate_meets_astra_sims_own_table) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "set FORETOKEN_DATA to the folder that holds astra/conformance.csv";
  const Outcome run =
      run_foretoken("validate collectives --json --data " + (fs::path(data) / "astra" / "conformance.csv").string());
  ASSERT_EQ(run.status, 0) << run.err;
  const Json answer = parse_json(run.out, "validate");
  EXPECT_EQ(JsonView(answer, "answer").at("overall").at("mape").number(), 0);
}

}  // namespace
}  // namespace foretoken
