// What every layer of `validate` answers: rows that were scored, and an honest word where none was.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "command_test.h"

namespace foretoken::validate_answers_test {

using testing::HasSubstr;

constexpr const char* training_header =
    "id,source,model,task,layers,hidden,heads,kv_heads,head_dim,ffn,gated,vocab,seq,experts,topk,shared_experts,moe_"
    "ffn,dense_layers,attn,gpu,gpus_per_node,n_gpus,tp,sp,cp,pp,vpp,dp,ep,zero,micro_batch,global_batch,dtype,"
    "recompute,iter_time_s,tflops_per_gpu,tflops_def,mfu_pct,tokens_per_s_per_gpu,primary,steps_n,step_cv,"
    "config_grade,notes\n";

class ValidateAnswers : public CommandTest {
 protected:
  static std::string training_row(const std::string& gpu) {
    return "mine-1,mine,Tiny-GPT,pretrain,8,2048,16,16,128,8192,0,32000,2048,0,0,0,0,8,mha," + gpu +
           ",8,8,1,0,1,1,1,8,1,0,1,8,bf16,none,0.2,,,,,iter_time_s,,,A,\n";
  }
  std::string kernels(const std::string& device) const {
    write("rows/" + device + "/gemm.csv", "kernel,dtype,m,n,k,latency_us\ncublas,bf16,128,4096,4096,12\n");
    return "validate kernels --data " + path("rows");
  }
  std::string steps(const std::string& model, int context = 0) const {
    return "validate steps --data " +
           write("steps.csv", "device,model,stack,phase,batch,input_len,context_len,dtype,measured_ms\nh100_sxm," +
                                  model + ",hf-eager,prefill,1,128," + std::to_string(context) + ",bf16,20\n");
  }
  std::string collectives(const std::string& system) const {
    return "validate collectives --data " +
           write("nccl.csv", "system,ccl,version,collective,dtype,gpus,bytes,latency_us\n" + system +
                                 ",nccl,2.27.3,all_reduce,half,8,1024,16\n");
  }
  std::string astra() const {
    return "validate collectives --data " +
           write("astra.csv",
                 "topology,dims,npus,bandwidth,latency,collective,algorithm,bytes,chunking,cycles,wall_s,rss,backend,"
                 "queues_per_dim,endpoint_delay,local_mem_bw,cycles_min,cpu_s\n"
                 "FullyConnected,4,4,50,500,A2A,direct,1048576,splits=4;active=1,6960,0.014,15.2,aware,1,10,1600,6960,"
                 "0.006\n");
  }
  std::string training(const std::string& gpu) const {
    return "validate training --stack megatron-core-2024 --data " +
           write("runs.csv", training_header + training_row(gpu));
  }
  std::string serving(const std::string& gpu) const {
    return "validate serving --data " +
           write("cases.csv",
                 "case_id,tier,gpu,model,engine,weight_dtype,tp,mode,isl,osl,concurrency,ttft_ms,ttft_stat\n"
                 "\"a, b\",B," +
                     gpu + ",Llama-3.1-8B,vllm,bf16,1,agg,128,16,4,20,mean\n");
  }
  std::string edge_kernel() const {
    return "validate edge --data " + write("kernels.csv",
                                           "kernel_id,kind,params,cpu_ms_min\n"
                                           "0,conv,ic=24;oc=192;h=112;oh=112;k=1;s=1;act=none,2.923\n");
  }
  std::string edge_model_without_a_graph() const {
    return "validate edge --data " + write("host_ort_models.csv", "model,cpu_ms_median,cpu_ms_min\nnobody,9,8.9\n");
  }

  // Every row has a cell for each column of the header; errors are percentages of what was measured.
  void expect_table(const std::string& command, const std::string& measured, const std::string& predicted) const {
    SCOPED_TRACE(command);
    const Outcome run = run_foretoken(command + " --out " + path("out.csv"));
    ASSERT_EQ(run.status, 0) << run.err << run.out;
    CsvReader table{std::filesystem::path(path("out.csv"))};  // refuses a row with other cells than the header has
    int rows = 0;
    for (; table.next(); ++rows) {
      if (table.cell(table.column("error_percent")).empty()) continue;
      const double error = 100 * (table.number(table.column(predicted)) / table.number(table.column(measured)) - 1);
      EXPECT_NEAR(table.number(table.column("error_percent")), error, 1e-3 * (1 + std::abs(error)));
      for (const std::string low : {"low", "low_us", "low_ms", "low_ns"}) {
        const auto column = table.find_column(low);
        if (column) {
          EXPECT_LE(table.number(*column), table.number(table.column(predicted)));
        }
      }
    }
    EXPECT_GT(rows, 0);
  }
};

TEST_F(ValidateAnswers, without_a_scored_row_say_so_and_have_no_figures) {
  for (const std::string& command : {kernels("unheard_of"), steps("Unheard-Of"), collectives("unheard_of"),
                                     training("unheard-of"), serving("unheard-of"), edge_model_without_a_graph()}) {
    SCOPED_TRACE(command);
    const Outcome people = run_foretoken(command);
    EXPECT_EQ(people.status, 3) << people.err << people.out;
    EXPECT_THAT(people.out, HasSubstr("No row was scored: 1 was skipped"));
    EXPECT_THAT(people.out, HasSubstr("1 x "));
    const Outcome programs = run_foretoken(command + " --json");
    EXPECT_EQ(programs.status, 3);
    const Json json = parse_json(programs.out, "answer");
    const Json& overall = *json.find("overall");
    EXPECT_EQ(overall.find("n")->integer(), 0);
    for (const char* figure : {"mape", "median_ape", "p90_ape", "bias", "spearman", "coverage90"}) {
      EXPECT_EQ(overall.find(figure)->kind(), Json::Kind::null) << figure;
    }
    EXPECT_EQ(json.find("skipped")->items().size(), 1U);
  }
}

TEST_F(ValidateAnswers, of_accelerators_without_a_scored_figure_say_so) {
  write("cases/readme.json", "{}");
  const Outcome run = run_foretoken("validate accel --data " + path("cases"));
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_THAT(run.out, HasSubstr("No row was scored"));
}

TEST_F(ValidateAnswers, are_written_with_a_cell_for_every_column) {
  expect_table(kernels("h100_sxm"), "measured_us", "predicted_us");
  expect_table(steps("Llama-3.1-8B"), "measured_ms", "predicted_ms");
  expect_table(collectives("h100_sxm"), "measured_us", "predicted_us");
  expect_table(astra(), "measured_ns", "predicted_ns");
  expect_table(training("H100"), "measured_s", "predicted_s");
  expect_table(serving("h100_sxm"), "measured", "predicted");
  expect_table(edge_kernel(), "measured_ms", "predicted_ms");
  expect_table("validate accel", "expected", "predicted");
}

TEST_F(ValidateAnswers, of_a_training_run_give_memory_and_parts_under_their_names) {
  ASSERT_EQ(run_foretoken(training("H100") + " --out " + path("out.csv")).status, 0);
  CsvReader table{std::filesystem::path(path("out.csv"))};
  ASSERT_TRUE(table.next());
  EXPECT_GT(table.number(table.column("memory_bytes")), 1e9);
  EXPECT_EQ(table.cell(table.column("fits")), "1");
  double parts = 0;
  bool after = false;
  std::ifstream file(path("out.csv"));
  std::string header;
  std::getline(file, header);
  for (const std::string_view name : split(header, ",")) {
    if (after) parts += table.number(table.column(name));
    if (name == "measured_allocated_bytes") after = true;
  }
  EXPECT_NEAR(parts / table.number(table.column("predicted_s")), 1, 1e-3);
}

// Three devices of about one speed for each of the operators 0 to 4.
TEST_F(ValidateAnswers, of_a_space_of_architectures_have_its_rows_and_figures_in_json) {
  std::string table = "arch_id,ops,mine_a,mine_b,mine_c\n";
  for (int i = 0; i < 160; ++i) {
    std::string operators;
    double work = 1;
    for (int place = 0, rest = i * 7919 % 15625; place < 6; ++place, rest /= 5) {
      operators += static_cast<char>('0' + rest % 5);
      work += rest % 5;
    }
    table += std::to_string(i < 80 ? i : 820 + i) + "," + operators;
    for (const double speed : {1.0, 1.5, 2.5}) table += "," + std::to_string(speed * work * (1 + 0.01 * (i % 3)));
    table += "\n";
  }
  const Outcome run = run_foretoken("validate edge --draws 1 --json --data " + write("nasbench201_latency.csv", table));
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer");
  const JsonView answer(json, "answer");
  EXPECT_EQ(answer.at("overall").at("n").integer(), 3 * 80);
  EXPECT_EQ(answer.at("groups").items().size(), 3U);
  const JsonView device = answer.at("fewshot").items().at(0).at("devices").items().at(0);
  const JsonView group = answer.at("groups").items().at(0);
  EXPECT_EQ(group.at("name").string(), "nasbench201/" + device.at("device").string());
  EXPECT_EQ(group.at("n").integer(), device.at("queries").integer());
  EXPECT_EQ(group.at("mape").number(), device.at("untrimmed").at("mape").number());
  EXPECT_GT(answer.at("overall").at("mape").number(), 0);
}

TEST_F(ValidateAnswers, refuse_to_write_rows_of_a_table_that_has_none_to_write) {
  const std::string layer = write("layer.csv", "device,phase,op,latency_ms\na100_sxm,prefill,qkv_proj,1\n");
  expect_refused(run_foretoken("validate steps --data " + layer + " --out " + path("out.csv")), "--out");
}

TEST_F(ValidateAnswers, refuse_a_grouping_of_other_tables) {
  const std::string between =
      "validate collectives --data " FORETOKEN_SOURCE_DIR "/data/networks/published/between_nodes.csv";
  for (const char* group : {"source", "cluster", "role"}) {
    expect_refused(run_foretoken(collectives("h100_sxm") + " --group-by " + group), "--group-by");
  }
  expect_refused(run_foretoken(between + " --group-by tier"), "--group-by");
  expect_refused(run_foretoken(astra() + " --group-by size"), "--group-by");
}

TEST_F(ValidateAnswers, say_that_a_context_as_long_as_the_prompt_counts_cached_tokens) {
  EXPECT_THAT(in_one_line(run_foretoken(steps("Llama-3.1-8B", 128)).out),
              HasSubstr("1 prefill rows have context_len = input_len"));
  EXPECT_THAT(run_foretoken(steps("Llama-3.1-8B")).out, testing::Not(HasSubstr("context_len")));
}

// A file that is no table is said with its check, and the command that repeats the check.
TEST_F(ValidateAnswers, each_command_that_all_of_them_print_runs_as_it_is) {
  write("it's all/training/memory.csv", "no table\n");
  const std::string folder = path("it's all"), page = path("report.html");
  const Outcome all =
      run_foretoken(std::vector<std::string>{"validate", "--all", "--data", folder, "--html", page, "--json"});
  ASSERT_EQ(all.status, 0) << all.err;
  const std::string html = read_file(page, size_t{1} << 20);
  const Json document = parse_json(all.out, "all");
  int commands = 0, paths = 0;
  for (const JsonView& check : JsonView(document, "all").at("checks").items()) {
    const std::string name = check.at("name").string();
    EXPECT_TRUE(check.has("n") || check.has("skipped")) << name;
    const auto command = check.find("command");
    EXPECT_TRUE(command || check.has("skipped")) << name;
    if (!command) continue;
    ++commands;
    std::vector<std::string> words = shell_words(command->string()).value();
    EXPECT_EQ(words.front(), "foretoken") << name;
    for (const std::string& word : words) {
      EXPECT_EQ(word.find_first_of("{}"), std::string::npos) << command->string();
      if (word.find('/') == std::string::npos) continue;
      ++paths;
      EXPECT_TRUE(std::filesystem::exists(word)) << command->string();
    }
    words.erase(words.begin());
    const Outcome again = run_foretoken(words);
    EXPECT_TRUE(again.status == 0 || check.has("skipped")) << command->string() << "\n" << again.err;
    const bool is_quoted = command->string().find('\'') != std::string::npos;  // the page escapes quotes
    EXPECT_TRUE(is_quoted || html.find(command->string()) != std::string::npos) << command->string();
  }
  EXPECT_GE(commands, 8);
  EXPECT_GE(paths, 6);
}

}  // namespace foretoken::validate_answers_test
