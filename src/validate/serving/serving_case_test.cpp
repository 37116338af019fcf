#include "validate/serving/serving_case.h"

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "library/library.h"
#include "serving/engine/engine_setup.h"
#include "validate/serving/serving_case_test_support.h"
#include "validate/serving/serving_specs.h"
#include "validate/serving/validate_serving.h"

namespace foretoken::serving_case_test {

const std::string closed_loop_row =
    "a,InferenceX,B,H100-SXM-80GB,Llama-3.1-8B,vllm,0.10.2,fp8,fp8,2,1,1,,agg,1000,100,"
    "\"each length uniform in [0.8,1.0] x nominal\",closed loop,16,,160,\"gpu-mem-util 0.95; max-num-batched-tokens "
    "4096; max-num-seqs = concurrency; prefix caching off\",50,mean (inferred),8,mean (inferred),,,,,\n";

TEST_F(ServingCases, a_closed_loop_is_read_with_its_flags) {
  const auto point = read(closed_loop_row);
  ASSERT_TRUE(point) << why_;
  EXPECT_EQ(point->weight_dtype, "fp8");
  EXPECT_EQ(point->kv_dtype, "fp8");
  EXPECT_EQ(point->pool.plan.tensor, 2);
  EXPECT_EQ(point->load.max_concurrency, 16);
  EXPECT_EQ(point->load.num_prompts, 160);
  EXPECT_TRUE(std::isinf(point->load.arrivals.rate));
  EXPECT_EQ(point->load.input_range->least, 800);
  EXPECT_EQ(point->load.input_range->most, 1000);
  EXPECT_EQ(point->load.output_range->least, 80);
  EXPECT_EQ(point->flags.memory_fraction, 0.95);
  EXPECT_EQ(point->flags.max_num_batched_tokens, 4096);
  EXPECT_EQ(point->flags.max_num_seqs, 16);
  EXPECT_FALSE(point->prefix_caching);
  EXPECT_FALSE(point->async_scheduling) << "off by default in 0.10";
  ASSERT_EQ(point->measured.size(), 2U);
  ServingMetrics metrics;
  metrics.ttft.mean_ms = 5;
  EXPECT_EQ(point->measured[0].metric, "ttft_ms");
  EXPECT_EQ(point->measured[0].predicted(metrics), 5);
}

TEST_F(ServingCases, an_open_loop_has_its_rate_and_statistics_of_their_own) {
  const auto point = read(
      "a,T,B,H100-SXM-80GB,Llama-3.1-8B,trtllm (Triton backend),0.14,bf16,bf16,1,1,,,agg,467,256,mean,open loop "
      "Poisson,,16,500,max batch 64; max_num_tokens 3456; max_util,30,median,9,mean ITL,3,700,900,median,\n");
  ASSERT_TRUE(point) << why_;
  EXPECT_EQ(point->load.arrivals.rate, 16);
  EXPECT_EQ(point->load.max_concurrency, 0);
  EXPECT_EQ(point->scheduler, "trtllm_max_utilization");
  EXPECT_EQ(point->flags.max_num_seqs, 64);
  ServingMetrics metrics;
  metrics.ttft = {.mean_ms = 1, .median_ms = 2};
  metrics.tpot.mean_ms = 3;
  metrics.itl.mean_ms = 4;
  ASSERT_EQ(point->measured.size(), 5U);
  EXPECT_EQ(point->measured[0].predicted(metrics), 2);
  EXPECT_EQ(point->measured[1].predicted(metrics), 4);
}

TEST_F(ServingCases, separate_workers_have_pools_of_their_own) {
  write_file(file_,
             "gpu,model,engine,engine_version,weight_dtype,mode,disagg_layout,isl,osl,concurrency,tpot_ms,tpot_stat\n"
             "G,M,sglang,0.5,fp8,disagg,\"prefill 2x(tp4,dp1,ep4) decode 3x(tp1,dp8,ep8)\",10,10,4,1,mean\n");
  ServingCaseReader reader(file_, hardware_, facts_);
  ASSERT_TRUE(reader.next());
  const auto point = reader.read(why_);
  ASSERT_TRUE(point) << why_;
  ASSERT_TRUE(point->prefill);
  EXPECT_EQ(point->prefill->replicas, 2);
  EXPECT_EQ(point->prefill->plan.tensor, 4);
  EXPECT_EQ(point->prefill->plan.expert, 4);
  EXPECT_EQ(point->pool.replicas, 3);
  EXPECT_EQ(point->pool.plan.tensor, 1);
  EXPECT_EQ(point->pool.plan.data, 8);
  EXPECT_EQ(point->pool.plan.expert, 8);
}

TEST_F(ServingCases, drafts_are_read_from_the_flags) {
  const auto point = read(
      "a,T,C,H200,M,vllm,0.19,bf16,,8,1,1,,agg,10,10,fixed,closed,4,,,\"defaults; MTP speculative decoding, 2 draft "
      "tokens\",1,mean,1,mean,,,,,\n");
  ASSERT_TRUE(point) << why_;
  EXPECT_EQ(point->draft_method, "mtp");
  EXPECT_EQ(point->drafts, 2);
}

TEST_F(ServingCases, ranks_that_share_experts_are_one_engine) {
  const auto plan_of = [&](const std::string& ranks, const std::string& flags) {
    const auto point = read("a,T,B,H100,M,trtllm,1.0,fp8,," + ranks + ",agg,10,10,fixed,closed,4,,,\"" + flags +
                            "\",1,mean,1,mean,,,,,\n");
    EXPECT_TRUE(point) << why_;
    return point->pool;
  };
  const CasePool attention_dp = plan_of("8,1,1,", "attention DP on");
  EXPECT_EQ(attention_dp.replicas, 1);
  EXPECT_EQ(attention_dp.plan.tensor, 1);
  EXPECT_EQ(attention_dp.plan.data, 8);
  EXPECT_EQ(attention_dp.plan.expert, 8);
  EXPECT_EQ(attention_dp.plan.exchange, ExpertExchange::all_gather);
  const CasePool groups = plan_of("2,1,8,4", "");
  EXPECT_EQ(groups.replicas, 4) << "two ranks of two devices share the experts, four times";
  EXPECT_EQ(groups.plan.data, 2);
  EXPECT_EQ(groups.plan.expert, 4);
  EXPECT_EQ(plan_of("4,1,1,1", "expert parallel flag on").plan.expert, 4);
  EXPECT_FALSE(read("a,T,B,H100,M,vllm,1,bf16,,2,1,3,4,agg,10,10,fixed,closed,4,,,,1,mean,1,mean,,,,,\n"));
  EXPECT_NE(why_.find("experts over 4 ranks"), std::string::npos);
}

TEST_F(ServingCases, lengths_come_from_known_data_sets_and_from_traces) {
  const auto known =
      read("a,MLPerf,B,H100,M,trtllm,1,fp8,,1,1,1,,offline,,,\"OpenOrca, 24576 samples\",t=0,,,,,1,mean,1,mean,,,,,\n");
  ASSERT_TRUE(known) << why_;
  ASSERT_TRUE(known->load.output_law);
  EXPECT_GT(known->load.output_law->mean, 294.45) << "the published mean is that of lengths cut at 1,024";
  RandomStream stream(7, "lengths");
  double sum = 0;
  constexpr int draws = 20'000;
  for (int i = 0; i < draws; ++i) sum += static_cast<double>(draw_length(*known->load.output_law, stream));
  EXPECT_NEAR(sum / draws, 294.45, 5);
  EXPECT_EQ(known->scheduler, "trtllm_max_utilization") << "as the public recipe says";
  sum = 0;
  for (int i = 0; i < draws; ++i) sum += static_cast<double>(draw_length(*known->load.input_law, stream));
  EXPECT_NEAR(sum / draws, 222.33, 4) << "of lengths cut at 1,024, too";
  const auto quantized =
      read("a,MLPerf,B,H100,M,trtllm,1,fp4,,1,1,1,,offline,,,\"OpenOrca, 24576 samples\",t=0,,,,,1,mean,1,mean,,,,,\n");
  ASSERT_TRUE(quantized) << why_;
  EXPECT_LT(quantized->load.output_law->mean, known->load.output_law->mean) << "answers in fp4 are shorter";
  const auto replayed = read(
      "a,T,C,H100,M,vllm,0.6,bf16,,2,1,1,,agg,,,\"trace lmsys (llama tokenizer), one of 4 round-robin "
      "shards\",open,,0.0625,,,1,mean,1,mean,,,,,\n");
  ASSERT_TRUE(replayed) << why_;
  ASSERT_TRUE(replayed->trace);
  EXPECT_EQ(replayed->trace->name, "lmsys");
  EXPECT_EQ(replayed->trace->tokenizer, "llama");
  EXPECT_EQ(replayed->trace->shards, 4);
}

TEST_F(ServingCases, what_cannot_be_expressed_is_told_apart) {
  const auto reason = [&](const std::string& row) {
    const auto point = read(row);
    EXPECT_FALSE(point) << row;
    return why_;
  };
  EXPECT_NE(reason("a,T,B,H100,M,vllm,0.19,bf16,,1,1,1,,disagg,10,10,fixed,closed,4,,,,1,mean,1,mean,,,,,\n")
                .find("layout of workers"),
            std::string::npos);
  EXPECT_NE(reason("a,T,B,H100,M,vllm,0.19,bf16,,,,,,agg,10,10,fixed,closed,4,,,,1,mean,1,mean,,,,,\n")
                .find("parallel layout"),
            std::string::npos);
  EXPECT_NE(reason("a,T,B,H100,M,Mango,1,bf16,,1,1,1,,agg,10,10,fixed,closed,4,,,,1,mean,1,mean,,,,,\n").find("Mango"),
            std::string::npos);
  EXPECT_NE(reason("a,T,B,H100,M,vllm,1,UINT4,,1,1,1,,agg,10,10,fixed,closed,4,,,,1,mean,1,mean,,,,,\n").find("UINT4"),
            std::string::npos);
  EXPECT_NE(reason("a,T,B,H100,M,vllm,1,bf16,,1,1,1,,agg,,,data set,closed,4,,,,1,mean,1,mean,,,,,\n").find("lengths"),
            std::string::npos);
  EXPECT_NE(reason("a,T,B,H100,M,vllm,1,bf16,,1,1,1,,agg,10,10,fixed,closed,4,,,,,,,,,,,,\n").find("no measured"),
            std::string::npos);
}

TEST_F(ServingCases, versions_are_numbers_and_what_is_none_is_the_newest) {
  struct Expected {
    const char *version, *scheduler, *stack;
    bool async;
  };
  for (const Expected& expected :
       {Expected{"0.6.0", "vllm_v0", "vllm-0.6", false}, Expected{"0.7.3", "vllm_v0", "vllm-0.6", false},
        Expected{"0.8", "vllm", "vllm-0.10", false}, Expected{"0.10.2", "vllm", "vllm-0.10", false},
        Expected{"0.11.0", "vllm", "vllm-0.11", false}, Expected{"0.13.0rc1", "vllm", "vllm-0.11", false},
        Expected{"0.14.0", "vllm", "vllm-0.14", true}, Expected{"0.17.0", "vllm", "vllm", true},
        Expected{"0.60.0", "vllm", "vllm", true}, Expected{"1.0", "vllm", "vllm", true},
        Expected{"nightly 2026-02", "vllm", "vllm", true}, Expected{"", "vllm", "vllm", true}}) {
    const auto point = read("a,T,B,H100,M,vllm," + std::string(expected.version) +
                            ",bf16,,1,1,1,,agg,10,10,fixed,closed,4,,,defaults,1,mean,1,mean,,,,,\n");
    ASSERT_TRUE(point) << expected.version << why_;
    EXPECT_EQ(point->scheduler, expected.scheduler) << expected.version;
    EXPECT_EQ(point->stack, expected.stack) << expected.version;
    EXPECT_EQ(point->async_scheduling, expected.async) << expected.version;
  }
}

TEST_F(ServingCases, numbers_of_flags_that_make_no_sense_leave_the_row_out_with_the_reason) {
  for (const std::string flags :
       {"gpu-mem-util 95", "max-num-batched-tokens 12345678901234567890123", "max-num-seqs 0", "max-num-seqs 1.5",
        "gpu-mem-util 0.9.5", "MTP speculative decoding, 1000 draft tokens"}) {
    EXPECT_FALSE(
        read("a,T,B,H100,M,vllm,0.19,bf16,,1,1,1,,agg,10,10,fixed,closed,4,,,\"" + flags + "\",1,mean,1,mean,,,,,\n"))
        << flags;
    EXPECT_NE(why_.find("expected"), std::string::npos) << flags << ": " << why_;
  }
  EXPECT_FALSE(read("a,T,B,H100,M,vllm,0.19,bf16,,100000000,1,1,,agg,10,10,fixed,closed,4,,,,1,mean,1,mean,,,,,\n"));
  const auto sentence =
      read("a,T,B,H100,M,vllm,0.19,bf16,,1,1,1,,agg,10,10,fixed,closed,4,,,gpu-mem-util 0.9.,1,mean,1,mean,,,,,\n");
  ASSERT_TRUE(sentence) << why_;
  EXPECT_EQ(sentence->flags.memory_fraction, 0.9);
}

TEST_F(ServingCases, a_single_token_has_no_time_per_token) {
  const auto point = read("a,T,B,H100,M,vllm,0.19,bf16,,1,1,1,,agg,10,1,fixed,closed,4,,,,3,mean,1,mean,,,,,\n");
  ASSERT_TRUE(point) << why_;
  ASSERT_EQ(point->measured.size(), 1U);
  EXPECT_EQ(point->measured[0].metric, "ttft_ms");
}

TEST_F(ServingCases, filters_that_match_no_row_are_refused) {
  write(closed_loop_row);
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  ServingFacts facts = serving_facts(library);
  facts.device_models = [](const Device& device, const ParallelPlan&, const PlacementSpec&) {
    return DeviceModels{KernelPredictor(device), nullptr};
  };
  const auto complaint = [&](ServingValidationRequest request) -> std::string {
    request.data = file_;
    try {
      validate_serving(request, library, facts);
    } catch (const InputError& error) {
      return error.problem().field + " " + error.problem().suggestion;
    }
    return "";
  };
  EXPECT_EQ(complaint({.tiers = {"B", "X"}}), "tiers B");
  EXPECT_EQ(complaint({.models = {"Llama-3.1-8"}}), "models Llama-3.1-8B");
  EXPECT_EQ(complaint({.engines = {"vlm"}}), "engines vllm");
  EXPECT_EQ(complaint({.kinds = {"dens"}}), "kinds dense");
  EXPECT_EQ(complaint({.kinds = {"moe"}}), "kinds ");
}

TEST_F(ServingCases, a_recipe_for_a_gpu_is_one_for_its_siblings) {
  const auto chunk = [&](const std::string& gpu) {
    const auto point = read("a,InferenceX,C," + gpu +
                            ",GLM-5,sglang,0.5.9,fp8,,4,1,1,,agg,10,10,fixed,closed,4,,,,1,mean,1,mean,,,,,\n");
    EXPECT_TRUE(point) << why_;
    return point->flags.max_num_batched_tokens;
  };
  for (const char* gpu : {"B200-SXM-180GB", "B300-SXM-288GB", "GB200-NVL72", "GB300-NVL72"}) {
    EXPECT_EQ(chunk(gpu), 32768) << gpu;
  }
  for (const char* gpu : {"H200-SXM-141GB", "RTXPRO6000-BSE-96GB", "X900"}) EXPECT_EQ(chunk(gpu), 0) << gpu;
}

TEST_F(ServingCases, a_recipe_names_the_gpus_that_it_is_for_from_their_first_letter_on) {
  const std::string row =
      ",Llama-2-70B-chat,trtllm,1,fp4,fp8,1,1,1,,agg,,,\"OpenOrca, 24576 samples\",open loop "
      "Poisson,,2,,,1,mean,1,mean,,,,,\n";
  const auto flags = [&](const std::string& gpu, std::vector<std::string> gpus) {
    write("a,MLPerf," + ("C," + gpu) + row);
    const PublicRecipe recipe{
        .benchmark = "MLPerf", .engine = "trtllm", .flags = "max batch 77", .gpus = std::move(gpus)};
    ServingCaseReader reader(file_, hardware_, {.recipes = {recipe}, .data_sets = facts_.data_sets});
    EXPECT_TRUE(reader.next());
    const auto point = reader.read(why_);
    EXPECT_TRUE(point) << why_;
    return point ? point->flags.max_num_seqs : -1;
  };
  EXPECT_EQ(flags("B200-SXM-180GB", {"B200"}), 77);
  EXPECT_NE(flags("GB200-NVL72", {"B200"}), 77);
  EXPECT_EQ(flags("GB200-NVL72", {"B200", "GB200"}), 77);
  EXPECT_EQ(flags("GB200-NVL72", {}), 77);
}

TEST_F(ServingCases, mlperf_rows_run_the_backend_and_the_scheduling_that_submitters_published) {
  const auto server = [&](const std::string& gpu, const std::string& model, const std::string& engine) {
    auto point = read("a,MLPerf Inference v5.1 (closed),C," + gpu + "," + model + "," + engine +
                      ",1,fp8,fp8,1,1,1,,agg,,,\"OpenOrca, 24576 samples\",open loop Poisson (Server latency "
                      "limits),,2,,,1,mean,1,mean,,,,,\n");
    EXPECT_TRUE(point) << why_;
    return point.value_or(ServingCase());
  };
  EXPECT_EQ(server("H200-SXM-141GB", "Llama-2-70B-chat", "trtllm").stack, "trtllm-engine");
  EXPECT_NE(server("H200-SXM-141GB", "Llama-3.1-8B-Instruct", "trtllm").stack, "trtllm-engine");
  const ServingCase steps = server("MI300X-192GB", "Llama-2-70B-chat", "vLLM 0.9.0");
  EXPECT_EQ(steps.receive_interval, 9) << "decode steps planned at once";
  EXPECT_EQ(steps.flags.max_num_seqs, 650);
  for (const MeasuredValue& value : steps.measured) {
    EXPECT_EQ(value.at_most, value.metric == "ttft_ms" ? 2000 : 200) << value.metric;
  }
}

TEST_F(ServingCases, recipes_have_a_source_and_a_broken_file_of_them_is_an_input_error) {
  for (const PublicRecipe& recipe : facts_.recipes) EXPECT_FALSE(recipe.source.empty() || recipe.flags.empty());
  for (const WorkerLimits& known : facts_.workers) EXPECT_FALSE(known.source.empty() || known.decode_seats.empty());
  for (const DataSetLengths& set : facts_.data_sets) EXPECT_FALSE(set.source.empty()) << set.spec;
  for (const LatencyLimit& limit : facts_.limits) EXPECT_FALSE(limit.source.empty()) << limit.model;
  const fs::path folder = file_.string() + "_library";
  fs::create_directories(folder / "serving");
  const auto complains = [&](const std::string& text) {
    write_file(folder / "serving" / "recipes.json", text);
    EXPECT_THROW(read_public_facts(folder), InputError) << text;
  };
  complains(R"({"format": 2, "recipes": []})");
  complains(R"({"format": 1, "recipes": [{"benchmark": "B", "engine": "vllm", "model": "M", "flags": "f"}]})");
  complains(R"({"format": 1, "recipes": []})");
  complains(R"({"format": 1, "recipes": [], "data_sets": []})");
  complains(
      R"({"format": 1, "recipes": [], "data_sets": [{"spec": "S", "samples": 1, "input": {"mean": 0, "sigma": 1, "most": 9}, "output": {"mean": 2, "sigma": 1, "most": 9}, "source": "s"}]})");
  complains(R"({"format": 1, "recipes": [{"benchmark": "B", "engine": "v", "model": "M", "flags": "f", "gpu": "x"}]})");
  complains(
      R"({"format": 1, "recipes": [], "workers": [{"benchmark": "B", "engine": "v", "model": "M", "source": "s", "layouts": [{"gpu": "H100", "weights": "fp8", "input": 1, "output": 1, "prefill_workers": 1, "decode_workers": 1, "decode_ranks": 1, "attention_dp": false, "decode_seats": {"few": 1}}]}], "data_sets": [], "limits": []})");
  fs::remove_all(folder);
}

TEST_F(ServingCases, a_recipe_is_found_for_an_engine_named_with_its_release) {
  const auto seats = [&](const std::string& source, const std::string& gpu) {
    const auto point = read("a," + source + ",C," + gpu +
                            ",Llama-2-70B-chat,\"vLLM 0.6.5.dev964+mlperf50, Pytorch 2.7.\",1,fp8,,1,1,1,,offline,,,"
                            "\"OpenOrca, 24576 samples\",t=0,,,,,1,mean,1,mean,,,,,\n");
    EXPECT_TRUE(point) << why_;
    return point->flags.max_num_seqs;
  };
  EXPECT_EQ(seats("MLPerf Inference v5.1", "MI300X-192GB"), 1792);
  EXPECT_EQ(seats("MLPerf Inference v5.1", "MI325X-256GB"), 2700) << "a file of its own";
  EXPECT_NE(seats("MLPerf Inference v5.1", "H100-SXM-80GB"), 1792);
  EXPECT_NE(seats("T", "MI300X-192GB"), 1792);
}

TEST_F(ServingCases, drafts_are_known_where_only_runs_with_them_had_such_a_layout_or_release) {
  const auto drafts = [&](const std::string& columns, const std::string& flags, const std::string& date) {
    std::string with_date = header;
    with_date.insert(with_date.size() - 1, ",date");
    write_file(file_, with_date + "a,InferenceX,B,B200-SXM-180GB," + columns +
                          ",agg,1024,1024,,closed loop,256,,2560,\"" + flags + "\",50,mean,8,mean,,,,,," + date + "\n");
    ServingCaseReader reader(file_, hardware_, facts_);
    EXPECT_TRUE(reader.next());
    const auto point = reader.read(why_);
    EXPECT_TRUE(point) << why_;
    return point.value_or(ServingCase()).drafts;
  };
  const std::string qwen = "Qwen/Qwen3.5-397B-A17B,sglang,0.5.9,fp8,,", flags = "max-running-requests 512";
  EXPECT_EQ(drafts(qwen + "4,1,1,1", flags, "2026-03-20"), 3);
  EXPECT_EQ(drafts(qwen + "4,1,1,1", flags, ""), 3);
  EXPECT_EQ(drafts(qwen + "4,1,1,1", flags, "2026-05-01"), 0) << "runs without drafts had it, too, by then";
  EXPECT_EQ(drafts(qwen + "4,1,1,4", flags, "2026-03-20"), 0);
  EXPECT_EQ(drafts(qwen + "8,1,1,1", flags, "2026-03-24"), 0);
  const std::string deepseek = "deepseek-ai/DeepSeek-R1-0528,trtllm,";
  EXPECT_EQ(drafts(deepseek + "1.2.0rc6.post3,fp4,,8,1,1,1", "", "2026-02-06"), 3);
  EXPECT_EQ(drafts(deepseek + "1.2.0rc6.post3,fp4,,1,1,64,8", "", "2026-02-06"), 1);
  EXPECT_EQ(drafts(deepseek + "1.2.0rc6.post2,fp4,,8,1,1,1", "", "2026-02-03"), 0);
  EXPECT_EQ(drafts(deepseek + "1.1.0rc2.post2,fp4,,8,1,1,1", "", "2026-01-14"), 3);
  EXPECT_EQ(drafts(deepseek + "1.1.0rc2.post2,fp4,,8,1,1,1", "", "2025-12-15"), 0);
}

TEST_F(ServingCases, decode_workers_have_as_many_places_as_their_recipe_says) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  const auto specs = [&](const std::string& layout, const std::string& concurrency) {
    write_file(file_,
               "case_id,source,tier,gpu,model,engine,engine_version,weight_dtype,mode,disagg_layout,isl,osl,"
               "length_spec,concurrency,num_requests,tpot_ms,tpot_stat\na,InferenceX,D,H100-SXM-80GB,"
               "deepseek-ai/DeepSeek-R1-0528,trtllm,0.8.1,fp8,disagg,\"" +
                   layout + "\",1024,1024,," + concurrency + ",60,14,mean\n");
    ServingCaseReader reader(file_, hardware_, facts_);
    EXPECT_TRUE(reader.next());
    auto point = reader.read(why_);
    EXPECT_TRUE(point) << why_;
    ServingSpecMaker maker(library, std::nullopt, {});
    maker.open(*point);
    return maker.specs(*point);
  };
  const std::string layout = "prefill 1x(tp1,dp16,ep16) decode 3x(tp16,dp1,ep16)";
  const ServingSpecs few = specs(layout, "6");
  EXPECT_EQ(few.engine.flags.max_num_seqs, 1);
  EXPECT_EQ(few.deployment.prefill->engine.flags.max_num_seqs, 0) << "the engine's default";
  EXPECT_EQ(few.deployment.router, "round_robin");
  EXPECT_EQ(specs(layout, "30").engine.flags.max_num_seqs, 8);
  EXPECT_EQ(specs(layout, "7").engine.flags.max_num_seqs, 0) << "no such run was published";
  EXPECT_EQ(specs("prefill 1x(tp1,dp16,ep16) decode 2x(tp16,dp1,ep16)", "6").engine.flags.max_num_seqs, 0);
}

TEST_F(ServingCases, workers_of_sglang_send_pieces_of_as_many_tokens_as_their_recipe_says) {
  const auto point = [&](const std::string& layout, const std::string& flags) {
    write_file(file_,
               "case_id,source,tier,gpu,model,engine,engine_version,weight_dtype,mode,tp,disagg_layout,isl,osl,"
               "length_spec,concurrency,num_requests,engine_flags,tpot_ms,tpot_stat\na,InferenceX,D,GB200-NVL72,"
               "deepseek-ai/DeepSeek-R1-0528,sglang,0.5.8.post1,fp8," +
                   std::string(layout.empty() ? "agg,8," : "disagg,,\"" + layout + "\"") + ",1024,1024,,4096,8192,\"" +
                   flags + "\",61,mean\n");
    ServingCaseReader reader(file_, hardware_, facts_);
    EXPECT_TRUE(reader.next());
    auto found = reader.read(why_);
    EXPECT_TRUE(found) << why_;
    return *found;
  };
  const ServingCase known = point("prefill 1x(tp1,dp8,ep8) decode 1x(tp1,dp8,ep8)", "");
  EXPECT_EQ(known.stream_interval, 50);
  EXPECT_EQ(known.decode_graphs, 640);
  EXPECT_EQ(known.decode_seats, 5120);
  EXPECT_EQ(known.decode_memory, 0.82);
  EXPECT_EQ(known.prefill_tokens, 131072);
  EXPECT_EQ(point("prefill 1x(tp1,dp8,ep8) decode 2x(tp1,dp8,ep8)", "").stream_interval, 1) << "not published";
  EXPECT_EQ(point("", "sglang; stream-interval 30 [recipe of 2026-03-25]").stream_interval, 30);
}

TEST_F(ServingCases, submissions_to_mlperf_run_published_layouts) {
  const auto case_of = [&](const std::string& gpu, const std::string& model, const std::string& lengths,
                           const std::string& arrival) {
    write_file(file_,
               "case_id,source,tier,gpu,num_gpus,model,engine,weight_dtype,mode,isl,osl,length_spec,arrival,rate_rps,"
               "tp,req_s\na,MLPerf Inference v5.1 (closed),C," +
                   gpu + ",8," + model + ",trtllm,fp8,agg,,,\"" + lengths + "\"," + arrival + ",2,,2\n");
    ServingCaseReader reader(file_, hardware_, facts_);
    EXPECT_TRUE(reader.next());
    const auto point = reader.read(why_);
    EXPECT_TRUE(point) << why_;
    return *point;
  };
  const std::string long_mix = "long-context mix, in<=20000", server = "open loop (Server latency limits)";
  const ServingCase online = case_of("B200-SXM-180GB", "Llama-3.1-405B-Instruct", long_mix, server);
  EXPECT_EQ(online.devices, 0) << "no layout has to be chosen";
  EXPECT_EQ(online.pool.plan.tensor, 4);
  EXPECT_EQ(online.pool.replicas, 2);
  EXPECT_EQ(online.flags.max_num_batched_tokens, 2048);
  const ServingCase offline = case_of("B200-SXM-180GB", "Llama-3.1-405B-Instruct", long_mix, "all at t=0");
  EXPECT_EQ(offline.pool.plan.tensor, 2);
  EXPECT_EQ(offline.pool.plan.pipeline, 2);
  EXPECT_EQ(offline.pool.replicas, 2);
  EXPECT_EQ(case_of("H200-SXM-141GB", "Llama-2-70B-chat", "OpenOrca, 24576 samples", server).pool.replicas, 8);
  EXPECT_EQ(case_of("H100-SXM-80GB", "Llama-2-70B-chat", "OpenOrca, 24576 samples", server).devices, 8)
      << "its sibling's layout would not fit";
  const ServingCase experts = case_of("B200-SXM-180GB", "DeepSeek-R1", "math/QA/code reasoning mix", server);
  EXPECT_EQ(experts.pool.plan.data, 8) << "attention DP";
  EXPECT_EQ(experts.pool.plan.expert, 8);
  EXPECT_EQ(experts.pool.replicas, 1);
  EXPECT_EQ(experts.batch_wait_timeout_iters, 9);
}

// Clients that start together and ask for the same lengths stay in step, and each waits for the prompts of all others;
// where the row does not say that lengths were all alike, the interval of TTFT reaches to clients that drifted apart.
TEST_F(ServingCases, lengths_that_are_assumed_widen_the_interval_of_ttft) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  const ServingFacts facts = serving_facts(library);
  const auto ttft = [&](const std::string& lengths) {
    auto point = read("a,T,C,H100-SXM-80GB,Llama-3.1-8B,sglang,0.5.9,bf16,,1,1,1,,agg,4000,50," + lengths +
                      ",closed loop,32,,64,,5000,mean,60,mean,,,,,\n");
    EXPECT_TRUE(point) << why_;
    ServingSpecMaker maker(library, std::nullopt, {});
    maker.open(*point);
    EngineBuilder builder(facts);
    const ServingSpecs specs = maker.specs(*point);
    return predicted_values(*point, specs, simulate_point(builder, specs)).front();
  };
  const Headline known = ttft("fixed length"), assumed = ttft("fixed length (assumed)");
  EXPECT_EQ(assumed.value, known.value);
  EXPECT_EQ(assumed.high, known.high);
  EXPECT_LT(assumed.low, 0.7 * known.low);
}

TEST_F(ServingCases, a_data_set_is_sent_for_ten_minutes_however_often_that_repeats_it) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  ServingSpecMaker maker(library, std::nullopt, {});
  const auto specs = [&](const std::string& mode, const std::string& arrival) {
    auto point = read("a,T,C,H200-SXM-141GB,Llama-3.1-8B,trtllm,1.2,fp8,fp8,1,1,4,," + mode +
                      ",,,\"OpenOrca, 24576 samples\"," + arrival + ",,1,mean,1,mean,1,,,,\n");
    EXPECT_TRUE(point) << why_;
    maker.open(*point);
    return maker.specs(*point);
  };
  const ServingSpecs open = specs("agg", "open loop Poisson,,160,");
  EXPECT_EQ(open.stands_for, 4);
  EXPECT_EQ(open.load.num_prompts, 600 * 40 + 1) << "more than its part of the data set";
  EXPECT_TRUE(open.shortened && !open.repeats_data_set);
  const ServingSpecs slow = specs("agg", "open loop Poisson,,8,");
  EXPECT_EQ(slow.stands_for, 1) << "one simulation holds all four engines";
  EXPECT_EQ(slow.engine.replicas, 4);
  EXPECT_EQ(slow.load.num_prompts, 24'576) << "the whole data set";
  EXPECT_EQ(slow.deployment.router, "least_outstanding");
  ServingSpecs offline = specs("offline", "all at t=0,,,");
  EXPECT_EQ(offline.load.num_prompts, 24'576 / 4);
  EXPECT_TRUE(!offline.shortened && offline.repeats_data_set);
  // The end of a run, where ever fewer requests are left, weighs less in a long one.
  offline.load.num_prompts = 100;
  offline.engine.flags.max_num_seqs = 4;
  offline.deployment.step_bounds = false;
  EngineBuilder builder(serving_facts(library));
  EXPECT_NEAR(simulate_point(builder, offline).run.metrics.duration_s, 600, 60);
  offline.repeats_data_set = false;
  EXPECT_LT(simulate_point(builder, offline).run.metrics.duration_s, 60);
}

TEST_F(ServingCases, drawn_lengths_alone_make_no_data_set) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  ServingSpecMaker maker(library, std::nullopt, {});
  auto point = read(
      "a,T,C,H200-SXM-141GB,Llama-3.1-8B,vllm,0.11,fp8,fp8,1,1,4,,agg,200,300,ShareGPT conversations,open loop "
      "Poisson,,8,,,1,mean,1,mean,1,,,,\n");
  ASSERT_TRUE(point) << why_;
  ASSERT_EQ(point->load.dataset, Dataset::lognormal);
  maker.open(*point);
  const ServingSpecs specs = maker.specs(*point);
  EXPECT_EQ(specs.load.num_prompts, 1000) << "no ten minutes";
  EXPECT_FALSE(specs.shortened || specs.repeats_data_set);
  EXPECT_EQ(specs.engine.replicas, 4);
  EXPECT_EQ(specs.deployment.router, usual_router(point->flags.engine, 4));
}

TEST_F(ServingCases, the_recipes_of_gpt_oss_say_which_kernels_its_experts_run) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  ServingSpecMaker maker(library, std::nullopt, {});
  const auto experts = [&](const std::string& source, const std::string& gpu, const std::string& engine) {
    auto point = read("a," + source + ",B," + gpu + ",openai/gpt-oss-120b," + engine +
                      ",0.11,fp4,,8,1,1,,agg,10,10,fixed,closed,4,,,,1,mean,1,mean,,,,,\n");
    EXPECT_TRUE(point) << why_;
    maker.open(*point);
    return maker.specs(*point).engine.model.expert_scheme;
  };
  EXPECT_EQ(experts("InferenceX", "H100-SXM-80GB", "vllm"), Scheme::int4_wo) << "VLLM_MXFP4_USE_MARLIN";
  EXPECT_EQ(experts("InferenceX", "B200-SXM-180GB", "vllm"), Scheme::mxfp4_mxfp8) << "..._MOE_MXFP4_MXFP8";
  EXPECT_EQ(experts("InferenceX", "B200-SXM-180GB", "trtllm"), Scheme::mxfp4_mxfp8);
  EXPECT_EQ(experts("T", "B200-SXM-180GB", "trtllm"), Scheme::mxfp4_mxfp8);
  EXPECT_EQ(experts("InferenceX", "H200-SXM-141GB", "trtllm"), Scheme::mxfp4_wo) << "moe_config: TRITON";
  EXPECT_EQ(experts("T", "H100-SXM-80GB", "vllm"), Scheme::mxfp4_wo);
}

TEST_F(ServingCases, a_recipe_holds_from_the_day_of_its_change_on) {
  const auto point_of = [&](const std::string& date) {
    write_file(file_,
               "source,tier,gpu,model,engine,engine_version,weight_dtype,tp,ep,mode,isl,osl,concurrency,engine_flags,"
               "ttft_ms,ttft_stat,date\nInferenceX,B,B200-SXM-180GB,MiniMax-M2.5,vllm,0.19.0,fp8,4,1,agg,1024,1024,4,"
               "\"gpu-mem-util 0.95; expert parallel flag on\",61,mean," +
                   date + "\n");
    ServingCaseReader reader(file_, hardware_, facts_);
    EXPECT_TRUE(reader.next());
    return reader.read(why_).value();
  };
  const ServingCase before = point_of("2026-03-28"), after = point_of("2026-04-03");
  EXPECT_EQ(before.flags.memory_fraction, 0.95);
  EXPECT_EQ(before.flags.max_cudagraph_capture_size, 0);
  EXPECT_EQ(before.pool.plan.expert, 4);
  EXPECT_EQ(after.flags.memory_fraction, 0.90);
  EXPECT_EQ(after.flags.max_cudagraph_capture_size, 2048);
  EXPECT_EQ(after.flags.max_num_batched_tokens, 2048) << "twice the prompt";
  EXPECT_EQ(after.kv_dtype, "fp8");
  EXPECT_EQ(after.pool.plan.expert, 1);
  EXPECT_EQ(point_of("").flags.memory_fraction, 0.95) << "a row of no day";
}

TEST_F(ServingCases, ranks_that_a_dump_counts_twice_are_counted_once) {
  const auto pool_of = [&](const std::string& source, const std::string& ranks) {
    const auto point =
        read("a," + source + ",B,H100,M,vllm,0.19,fp8,," + ranks + ",agg,10,10,fixed,closed,4,,,,1,mean,1,mean,,,,,\n");
    EXPECT_TRUE(point) << why_;
    return point->pool;
  };
  const CasePool tensor = pool_of("InferenceX", "4,1,4,16");
  EXPECT_EQ(tensor.replicas * tensor.plan.data, 1);
  EXPECT_EQ(tensor.plan.tensor, 4);
  EXPECT_EQ(tensor.plan.expert, 4);
  const CasePool data = pool_of("InferenceX", "1,1,64,8");
  EXPECT_EQ(data.replicas, 1);
  EXPECT_EQ(data.plan.data, 8);
  EXPECT_EQ(data.plan.expert, 8);
  EXPECT_EQ(pool_of("InferenceX", "1,1,8,8").plan.data, 8) << "counted once";
  EXPECT_EQ(pool_of("another", "4,1,4,16").plan.data, 4);
}

TEST_F(ServingCases, tensorrt_llm_prepares_steps_ahead_from_one_release_on) {
  const auto stack = [&](const std::string& version) {
    return read("a,T,B,H100,M,trtllm," + version + ",fp8,,1,1,1,,agg,10,10,fixed,closed,4,,,,1,mean,1,mean,,,,,\n")
        .value()
        .stack;
  };
  for (const char* old : {"1.1.0rc2", "0.17 (TensorRT engine)", "1.0", "0.8.1.post2", ""}) {
    EXPECT_EQ(stack(old), "trtllm-1.1") << old;
  }
  for (const char* late : {"1.2.0rc6.post2", "1.3.0rc1"}) EXPECT_EQ(stack(late), "trtllm") << late;
}

TEST_F(ServingCases, formats_are_those_of_the_checkpoints_that_users_load) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  ServingSpecMaker maker(library, std::nullopt, {});
  const auto engine = [&](const std::string& model, const std::string& dtype, const std::string& cache = "") {
    auto point = read("a,T,C,B200-SXM-180GB," + model + ",vllm,0.19," + dtype + "," + cache +
                      ",8,1,1,,agg,10,10,fixed,closed,4,,,,1,mean,1,mean,,,,,\n");
    EXPECT_TRUE(point) << why_;
    maker.open(*point);
    return maker.specs(*point).engine;
  };
  const Device device = library.hardware().device("b200_sxm");
  struct Expected {
    const char *model, *dtype, *checkpoint;
  };
  for (const Expected& one :
       {Expected{"Llama-3.3-70B", "fp4", "nvidia/Llama-3.3-70B-Instruct-NVFP4"},
        Expected{"DeepSeek-R1", "fp4", "nvidia/DeepSeek-R1-NVFP4"},
        Expected{"DeepSeek-R1", "fp8", "deepseek-ai/DeepSeek-R1"},
        Expected{"gpt-oss-120b", "fp4", "openai/gpt-oss-120b"}, Expected{"Qwen3-32B", "fp8", "Qwen/Qwen3-32B-FP8"},
        Expected{"Llama-3.1-8B", "fp8", "meta-llama/Llama-3.1-8B-FP8"},
        Expected{"nvidia/Llama-3.1-8B-Instruct-FP8", "fp8", "nvidia/Llama-3.1-8B-Instruct-FP8"}}) {
    const ModelSpec as_users_ask{.model = one.checkpoint};
    const Model product = open_model(library, as_users_ask, device);
    const EngineSpec validated = engine(one.model, one.dtype);
    EXPECT_EQ(validated.model.scheme, product.scheme) << one.checkpoint;
    EXPECT_EQ(validated.model.mixer_scheme(), product.mixer_scheme()) << one.checkpoint;
    EXPECT_EQ(validated.model.expert_scheme, product.expert_scheme) << one.checkpoint;
    EXPECT_EQ(validated.flags.kv_dtype, kv_cache_dtype(as_users_ask, product)) << one.checkpoint;
  }
  EXPECT_EQ(engine("Llama-3.3-70B", "fp4").flags.kv_dtype, DType::fp8) << "as NVIDIA's checkpoint asks";
  EXPECT_EQ(engine("Llama-3.3-70B", "fp4", "bf16").flags.kv_dtype, DType::bf16) << "as the row says";
  EXPECT_EQ(engine("gpt-oss-120b", "fp4").model.mixer_scheme(), Scheme::bf16);
}

TEST_F(ServingCases, a_cold_start_leaves_ttft_out) {
  const auto point = read(
      "a,T,C,H100,M,trtllm,1,bf16,,1,1,1,,agg,10,10,fixed,closed,4,,,,1,mean,2,mean,,,,,\"falls: score TPOT only\"\n");
  ASSERT_TRUE(point);
  ASSERT_EQ(point->measured.size(), 1U);
  EXPECT_EQ(point->measured[0].metric, "tpot_ms");
}

TEST_F(ServingCases, answers_do_not_depend_on_the_number_of_threads) {
  std::string other = closed_loop_row, unknown = closed_loop_row;
  other.replace(other.find("H100-SXM-80GB"), 13, "H200-SXM-141GB");
  unknown.replace(unknown.find("H100-SXM-80GB"), 13, "H900-SXM");
  write(closed_loop_row + other + unknown + closed_loop_row);
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  ServingFacts facts = serving_facts(library);
  facts.device_models = [](const Device& device, const ParallelPlan&, const PlacementSpec&) {
    return DeviceModels{KernelPredictor(device), nullptr};
  };
  const auto run = [&](int threads) {
    std::vector<double> values;
    const Validation validation =
        validate_serving({.data = file_, .threads = threads}, library, facts, [&](const ScoredServing& scored) {
          EXPECT_LE(scored.predicted.low, scored.predicted.value);
          EXPECT_GE(scored.predicted.high, scored.predicted.value);
          values.push_back(scored.predicted.value);
        });
    EXPECT_EQ(validation.overall.n, 6U);
    EXPECT_EQ(validation.skipped.size(), 1U);
    EXPECT_EQ(validation.skipped[0].row, 3U);
    EXPECT_EQ(validation.groups.size(), 2U);
    return values;
  };
  const std::vector<double> one = run(1);
  ASSERT_EQ(one.size(), 6U);
  EXPECT_EQ(one, run(3));
  EXPECT_EQ(one[0], one[4]) << "equal rows have equal answers";
  EXPECT_NE(one[0], one[2]) << "the other device is another answer";
}

TEST_F(ServingCases, latencies_that_need_more_seats_or_more_than_the_peak_contradict_the_row) {
  const auto row = [](int seats, int ttft_ms, int tpot_ms, int concurrency = 256) {
    return "a,T,B,H100-SXM-80GB,Llama-3.1-8B,sglang,0.5.9,bf16,,1,1,1,,agg,1000,1000,fixed,closed," +
           std::to_string(concurrency) + ",,,\"max-running-requests " + std::to_string(seats) + "\"," +
           std::to_string(ttft_ms) + ",mean," + std::to_string(tpot_ms) + ",mean,,,,,\n";
  };
  EXPECT_FALSE(read(row(128, 2500, 48))) << "half of the clients would wait for 48 s";
  EXPECT_NE(why_.find("128 of 256"), std::string::npos) << why_;
  EXPECT_TRUE(read(row(128, 48'000, 48))) << why_;
  EXPECT_TRUE(read(row(256, 2500, 48))) << why_;
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  ServingSpecMaker maker(library, std::nullopt, {});
  ServingCase possible = read(row(256, 2500, 48)).value();
  EXPECT_NO_THROW(maker.open(possible));
  ServingCase impossible = read(row(256, 50, 4)).value();
  EXPECT_THROW(maker.open(impossible), InputError) << "63 prompts of 1,000 tokens a second and more";
}

}  // namespace foretoken::serving_case_test
