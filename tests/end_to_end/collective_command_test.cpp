// What `foretoken collective` says, and what it refuses.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/json.h"
#include "run.h"

namespace foretoken::collective_command_test {

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
  EXPECT_NE(in_one_line(run.err).find(mentions), std::string::npos) << line << " should mention: " << mentions << "\n"
                                                                    << run.err;
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

// vLLM's all-reduce on eight MI355X: github.com/vllm-project/vllm, pull request 39080, "before". The law was learned on
// NVIDIA's systems and has not seen it.
TEST(CollectiveCommand, infinity_fabric_is_within_30_percent_of_published_times) {
  const std::pair<const char*, double> published_us[] = {{"24K", 6.3},   {"48K", 6.7},   {"96K", 7.6},   {"192K", 10.0},
                                                         {"384K", 13.1}, {"768K", 16.0}, {"1536K", 24.2}};
  for (const auto& [size, us] : published_us) {
    const Json answer =
        json_of(std::string("--node mi355x_platform --op all_reduce --ranks 8 --kernel vllm --bytes ") + size);
    const Json& row = rows_of(answer).at(0).value();
    EXPECT_NEAR(number_at(row, {"seconds", "value"}) * 1e6 / us, 1, 0.3) << size;
    EXPECT_LE(number_at(row, {"seconds", "low"}) * 1e6, us) << size;
    EXPECT_GE(number_at(row, {"seconds", "high"}) * 1e6, us) << size;
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

TEST(CollectiveCommand, a_cluster_has_enough_nodes_for_the_ranks) {
  const auto seconds = [](const std::string& size) {
    const Json answer = json_of("--cluster h100_ib_rail --op all_reduce --bytes 1M --ranks 1024" + size);
    return number_at(rows_of(answer).front().value(), {"seconds", "value"});
  };
  EXPECT_EQ(seconds(""), seconds(" --nodes 128"));
}

TEST(CollectiveCommand, sizes_may_have_a_unit) {
  const auto bytes = [](const std::string& size) {
    const Json answer = json_of("--node hgx_h100 --op all_reduce --bytes " + size);
    return number_at(rows_of(answer).front().value(), {"bytes"});
  };
  EXPECT_EQ(bytes("64M"), 67108864);
  EXPECT_EQ(bytes("64MiB"), 67108864);
  EXPECT_EQ(bytes("64MB"), 64000000);
  EXPECT_EQ(bytes("1.5GB"), 1500000000);
  expect_refused("--node hgx_h100 --op all_reduce --bytes 1Gb", "1GB = 10^9");
}

TEST(CollectiveCommand, wrong_input_is_refused_with_what_was_expected) {
  expect_refused("--node dgx_spark --op all_reduce --bytes 1M --ranks 2", "dgx_spark has 1 device, counted from 0");
  expect_refused("--op all_reduce --bytes 1M", "one machine");
  expect_refused("--node hgx_h100 --cluster h100_ib_rail --bytes 1M", "one machine");
  expect_refused("--node hgx_h100", "--sizes 1K:1G");
  expect_refused("--node hgx_h100 --bytes 1M --sizes 1K:1M", "--bytes 64M");
  expect_refused("--node hgx_h100 --bytes 1M --ranks 9", "has 8 devices");
  expect_refused("--cluster h100_ib_rail --nodes 1 --bytes 1M --ranks 9", "has 8 devices");
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
  expect_refused(ring + "--algorithm doubleBinaryTree --op all_reduce", "order of events");
  expect_refused(ring + "--algorithm direct --congestion-aware --op all_reduce", "share the links of a ring");
  expect_refused(ring + "--algorithm ring --queues 2 --op all_reduce", "queues");
  expect_refused(ring + "--algorithm halvingDoubling --op broadcast", "all_reduce");
  expect_refused("--astra-compatible --topology Ring --dims 6 --algorithm halvingDoubling --bytes 1M", "power of two");
  expect_refused("--astra-compatible --topology Ring_Switch --dims 6 --algorithm ring_ring --bytes 1M", "dims");
}

TEST(CollectiveCommand, flags_that_a_mode_does_not_use_are_refused) {
  const std::string ring = "--astra-compatible --topology Ring --dims 4 --algorithm ring --op all_reduce --bytes 1M ";
  for (const std::string flag : {"--cluster h100_ib_rail", "--node hgx_h100", "--ranks 4", "--stride 2", "--group 0,1",
                                 "--plot a.svg", "--links", "--fidelity flow", "--known 1K=9us", "--kernel vllm"}) {
    expect_refused(ring + flag, flag.substr(0, flag.find(' ')));
  }
  expect_refused("--astra-compatible --topology Ring --dims 4 --op dispatch --bytes 1M", "--op");
  expect_refused("--node hgx_h100 --bytes 1M --queues 2", "--queues");
  expect_refused("--node hgx_h100 --bytes 1M --tokens 4", "--tokens");
  expect_refused("--node hgx_h100 --bytes 1M --eager", "--eager");
  expect_refused("--node hgx_h100 --bytes 1M --kernel vllm --algorithm ring", "--algorithm");
  expect_refused("--node hgx_h100 --op dispatch --kernel deepep-normal --tokens 128 --bytes 1M", "--bytes");
  expect_refused("--node hgx_h100 --op dispatch --kernel deepep-low-latency --tokens 128 --sms 24", "--sms");
  expect_refused("--node hgx_h100 --op combine --kernel trtllm --tokens 128 --dtype fp8", "--dtype");
}

double seconds_of(const std::string& line) {
  return number_at(rows_of(json_of(line)).front().value(), {"seconds", "value"});
}

TEST(CollectiveCommand,
     an_engines_all_reduce_beats_nccl_for_small_messages_and_launched_one_by_one_waits_for_the_host) {
  const std::string small = "--node hgx_h100 --op all_reduce --bytes 64K";
  for (const std::string kernel : {"vllm", "sglang", "trtllm"}) {
    EXPECT_LT(seconds_of(small + " --kernel " + kernel), seconds_of(small)) << kernel;
    EXPECT_EQ(rows_of(json_of(small + " --kernel " + kernel)).front().at("source").string(), "measured");
  }
  EXPECT_EQ(seconds_of(small + " --kernel nccl"), seconds_of(small));
  EXPECT_GT(seconds_of(small + " --kernel vllm --eager"), seconds_of(small + " --kernel vllm"));
  EXPECT_EQ(rows_of(json_of("--node hgx_h100 --op all_reduce --sizes 1K:1M --kernel vllm")).size(), 11u);
  expect_refused(small + " --kernel trtllm --eager", "--eager");
  expect_refused(small + " --kernel deepep-normal", "dispatch");
  expect_refused("--node hgx_h100 --op all_gather --bytes 64K --kernel vllm", "all_reduce");
  expect_refused("--cluster h100_ib_rail --ranks 16 --op all_reduce --bytes 64K --kernel vllm", "one node");
  expect_refused("--topology ring:8@50GB/s,1us --op all_reduce --bytes 64K --kernel vllm", "--topology");
}

TEST(CollectiveCommand, tokens_travel_to_experts_and_back_by_each_kernel) {
  const std::string layer = " --hidden 7168 --top-k 8 --experts 256";
  for (const std::string operation : {"dispatch", "combine"}) {
    const std::string op = "--op " + operation + layer;
    for (const std::string kernel : {"deepep-low-latency", "deepep-normal"}) {
      const std::string call = op + " --node hgx_h100 --kernel " + kernel;
      const Json answer = json_of(call + " --tokens 1:128");
      ASSERT_EQ(rows_of(answer).size(), 8u);
      EXPECT_EQ(rows_of(answer).front().at("source").string(), "measured") << call;
      EXPECT_GT(seconds_of(call + " --tokens 4096"), seconds_of(call + " --tokens 64"));
      // Network cards are slower than NVLink.
      EXPECT_GT(seconds_of(op + " --cluster h100_ib_rail --ranks 16 --tokens 4096 --kernel " + kernel),
                seconds_of(call + " --tokens 4096"));
      expect_refused(op + " --node l40s_pcie --tokens 128 --kernel " + kernel, "NVLink");
    }
    const std::string rack = op + " --node gb200_nvl72 --kernel trtllm --ranks 8 --tokens ";
    EXPECT_EQ(rows_of(json_of(rack + "128")).front().at("source").string(), "measured");
    EXPECT_GT(seconds_of(rack + "4096"), seconds_of(rack + "64"));
  }
  const std::string normal = "--op dispatch --node hgx_h100 --kernel deepep-normal --tokens 4096" + layer;
  EXPECT_LT(seconds_of(normal + " --sms 24"), seconds_of(normal + " --sms 8"));
  EXPECT_EQ(seconds_of(normal + " --sms 20"), seconds_of(normal));
  const std::string rack = "--op dispatch --node gb200_nvl72 --kernel trtllm --ranks 8 --tokens 16384" + layer;
  EXPECT_LT(seconds_of(rack + " --dtype nvfp4"), seconds_of(rack + " --dtype bf16"));
  const Outcome text = run_foretoken("collective " + normal);
  EXPECT_NE(text.out.find("tokens a rank"), std::string::npos) << text.out;
  expect_refused("--op dispatch --node hgx_h100 --tokens 128", "deepep-normal");
  expect_refused("--op dispatch --node hgx_h100 --kernel vllm --tokens 128", "deepep-normal");
  expect_refused("--op dispatch --node hgx_h100 --kernel deepep-normal", "--tokens");
  expect_refused(normal + " --dtype nvfp4", "fp8");
  expect_refused("--op dispatch --node hgx_h100 --kernel deepep-normal --tokens 1 --top-k 9 --experts 8", "--top-k");
  expect_refused("--op dispatch --node hgx_h100 --kernel trtllm --ranks 9 --tokens 128", "--ranks");
}

TEST(CollectiveCommand, boxes_on_pcie_run_at_what_most_hosts_reach) {
  for (const std::string node :
       {"l40s_pcie", "l40_pcie", "rtx_4090_server", "rtx_pro_6000_pcie", "g5_48xlarge", "g6_48xlarge"}) {
    const Json answer = json_of("--node " + node + " --ranks 8 --bytes 1G");
    const JsonView row = rows_of(answer).front();
    EXPECT_GT(row.at("bus_bandwidth_bytes_per_second").number(), 12e9) << node;
    EXPECT_LT(row.at("bus_bandwidth_bytes_per_second").number(), 37e9) << node;
    EXPECT_GT(number_at(row.value(), {"seconds", "high"}), 4 * number_at(row.value(), {"seconds", "low"})) << node;
    // Of the algorithms named, the one chosen is the fastest.
    EXPECT_NE(row.at("why").string().find("fastest by its formula ("), std::string::npos);
  }
}

TEST(CollectiveCommand, a_known_time_is_met_and_sets_other_sizes_right) {
  const fs::path file = fs::temp_directory_path() / ("foretoken_pcie_node_" + std::to_string(getpid()) + ".json");
  std::ofstream(file) << R"({
    "name": "8xa10", "title": "a host that nobody swept", "device": "a10", "device_count": 8,
    "fabric": {"kind": "pcie", "bandwidth_gb_per_s": {"value": 32, "source": "PCIe 4.0 x16"}}})";
  for (const std::string& node : {std::string("l40s_pcie"), file.string()}) {
    const std::string call = "--node " + node + " --op all_reduce --bytes ";
    const double usual = seconds_of(call + "256M");
    const std::string known = " --known 256M=" + std::to_string(3 * usual) + "s";
    EXPECT_NEAR(seconds_of(call + "256M" + known), 3 * usual, 0.02 * usual) << node;
    EXPECT_GT(seconds_of(call + "64M" + known), 2 * seconds_of(call + "64M")) << node;
    const Json told = json_of(call + "256M" + known);
    EXPECT_NE(rows_of(told).front().at("basis").string().find("--known"), std::string::npos);
  }
  const std::string pcie = "--node " + file.string() + " --op all_reduce --bytes 256M";
  const Json guess = json_of(pcie), small = json_of(pcie + " --known 4K=90us"),
             large = json_of(pcie + " --known 256M=90ms");
  const auto width = [](const Json& answer) {
    const JsonView row = rows_of(answer).front();
    return number_at(row.value(), {"seconds", "high"}) / number_at(row.value(), {"seconds", "low"});
  };
  EXPECT_NE(rows_of(guess).front().at("basis").string().find("give it (--known"), std::string::npos);
  EXPECT_GT(width(small), 10) << "a small message says nothing of the bridges";
  EXPECT_LT(width(large), 10);
  EXPECT_GT(seconds_of("--node hgx_h100 --op all_reduce --bytes 8K --known 4K=90us"),
            2 * seconds_of("--node hgx_h100 --op all_reduce --bytes 8K"));
  fs::remove(file);
}

TEST(CollectiveCommand, a_known_time_that_would_not_be_used_is_refused) {
  expect_refused("--node hgx_h100 --op all_reduce --bytes 1M --known 256M=12ms", "adds no information");
  expect_refused("--node l40s_pcie --op all_reduce --bytes 1M --known 256M=1ns",
                 "agrees with the other measured times");
  expect_refused("--node l40s_pcie --op broadcast --bytes 1M --known 256M=12ms", "--known");
  expect_refused("--node l40s_pcie --op all_reduce --algorithm ring --bytes 1M --known 256M=12ms", "auto");
  expect_refused("--cluster h100_ib_rail --ranks 16 --op all_reduce --bytes 1M --known 4K=12us", "inside one node");
  expect_refused("--topology ring:8@50GB/s,1us --op all_reduce --bytes 1M --known 4K=12us", "inside one node");
  for (const std::string wrong : {"256M", "256M=", "=12ms", "256M=12", "256M=-1ms", "x=1ms", "256M=0ms"})
    expect_refused("--node l40s_pcie --op all_reduce --bytes 1M --known " + wrong, "--known");
}

// The bytes of each link, from what it carried until its next row.
std::map<std::string, double> bytes_in(const fs::path& csv) {
  std::ifstream in(csv);
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "time_s,link,from,to,bytes_per_s,share");
  std::map<std::string, double> bytes, rate, since;
  while (std::getline(in, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    EXPECT_EQ(cells.size(), 6u) << line;
    const std::string link = cells[2] + " to " + cells[3];
    const double time = std::stod(cells[0]);
    bytes[link] += rate[link] * (time - since[link]);
    rate[link] = std::stod(cells[4]);
    since[link] = time;
    EXPECT_LE(std::stod(cells[5]), 1 + 1e-9);
  }
  for (const auto& [link, last] : rate) EXPECT_EQ(last, 0) << link << " is idle in the end";
  return bytes;
}

TEST(CollectiveCommand, what_links_carried_over_time_adds_up_to_what_they_carried_in_all_of_all_groups) {
  const fs::path file = fs::temp_directory_path() / ("foretoken_link_use_" + std::to_string(getpid()) + ".csv");
  for (const std::string concurrent : {"1", "8"}) {
    const Json answer = json_of(
        "--cluster h100_ib_rail --nodes 4 --op all_reduce --bytes 64M --ranks 4 --stride 8 "
        "--links --fidelity flow --concurrent " +
        concurrent + " --link-use " + file.string());
    std::map<std::string, double> series = bytes_in(file);
    const JsonView row = rows_of(answer).front();
    const std::vector<JsonView> links = row.at("links").items();
    EXPECT_EQ(series.size(), links.size());
    for (const JsonView& link : links) {
      const std::string name = link.at("from").string() + " to " + link.at("to").string();
      const double bytes = link.at("bytes").number();
      EXPECT_NEAR(series[name], bytes, 1e-4 * bytes) << name << " with " << concurrent << " groups";
    }
  }
  fs::remove(file);
  expect_refused("--node hgx_h100 --bytes 1M --link-use a.csv", "flow");
  expect_refused("--node hgx_h100 --sizes 1M:2M --fidelity flow --link-use a.csv", "one size");
}

TEST(CollectiveCommandNeedsData, validate_meets_astra_sims_own_table) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const Outcome run =
      run_foretoken("validate collectives --json --data " + (fs::path(data) / "astra" / "conformance.csv").string());
  ASSERT_EQ(run.status, 0) << run.err;
  const Json answer = parse_json(run.out, "validate");
  EXPECT_EQ(JsonView(answer, "answer").at("overall").at("mape").number(), 0);
}

}  // namespace foretoken::collective_command_test
