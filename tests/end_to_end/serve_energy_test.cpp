// What a simulated serving run draws and costs, and what caps on power and clocks change.
#include <gtest/gtest.h>

#include "base/json.h"
#include "command_test.h"

namespace foretoken::serve_energy_test {

// Eight billion parameters on one H100.
Outcome serve(const std::string& flags) {
  return run_foretoken("serve --model Llama-3.1-8B --device h100_sxm --no-intervals " + flags);
}

TEST(ServeEnergy, energy_is_told_in_text_and_json_and_changes_nothing_else_of_a_board_held_busy) {
  const std::string load = "--num-prompts 20 --request-rate 5 --random-output-len 20 ";
  const Outcome text = serve(load + "--energy");
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("Energy and cost (1 board"), std::string::npos) << text.out;
  const Outcome plain = serve(load + "--sustained --json"), metered = serve(load + "--energy --json");
  ASSERT_EQ(metered.status, 0) << metered.err;
  const Json answer = parse_json(metered.out, "answer");
  const Json& energy = *answer.find("energy");
  double steps = 0;
  for (const char* kind : {"prefill", "decode", "mixed"}) {
    steps += energy.find("steps_joules_above_idle")->find(kind)->find("value")->number();
  }
  const double boards = energy.find("board_joules")->find("value")->number();
  EXPECT_NEAR(steps + energy.find("idle_joules")->find("value")->number(), boards, 1e-6 * boards);
  EXPECT_NEAR(boards, energy.find("mean_board_watts")->find("value")->number() * answer.find("duration")->number(),
              1e-6 * boards);
  Json rest = Json::object();
  for (const auto& [key, value] : answer.members()) {
    if (key != "energy") rest.set(key, value);
  }
  EXPECT_EQ(rest.dump(), parse_json(plain.out, "answer").dump());
}

TEST(ServeEnergy, caps_cost_time_and_save_energy_and_loose_ones_change_nothing) {
  const std::string load = "--num-prompts 20 --random-input-len 2000 --random-output-len 20 --json ";
  const std::string plain = serve(load + "--energy").out;
  EXPECT_EQ(serve(load + "--power-limit 700").out, plain);
  EXPECT_EQ(serve(load + "--gpu-clock 1980").out, plain);
  const Json top = parse_json(plain, "answer");
  for (const char* cap : {"--power-limit 400", "--gpu-clock 1200"}) {
    const Json capped = parse_json(serve(load + cap).out, "answer");
    EXPECT_GT(capped.find("mean_ttft_ms")->number(), 1.05 * top.find("mean_ttft_ms")->number()) << cap;
    EXPECT_LT(capped.find("energy")->find("mean_board_watts")->find("value")->number(),
              top.find("energy")->find("mean_board_watts")->find("value")->number())
        << cap;
  }
}

TEST(ServeEnergy, a_power_limit_says_that_it_keeps_boards_busy) {
  const std::string load = "--num-prompts 5 --random-output-len 5 --json ";
  const auto notes = [&](const std::string& flags) {
    const Json answer = parse_json(serve(load + flags).out, "answer");
    const Json* const list = answer.find("notes");
    return list == nullptr ? std::string() : list->dump(0);
  };
  EXPECT_NE(notes("--power-limit 700").find("assumed continuously busy (--sustained"), std::string::npos);
  EXPECT_EQ(notes("").find("continuously busy"), std::string::npos);
}

TEST(ServeEnergy, a_pool_may_have_caps_of_its_own) {
  const std::string pools =
      "--num-prompts 20 --request-rate 5 --random-output-len 20 --energy --json --prefill-pool count=1 --decode-pool "
      "count=1";
  const Json plain = parse_json(serve(pools).out, "answer");
  const Json capped = parse_json(serve(pools + ",gpu-clock=1000").out, "answer");
  const auto replica_joules = [](const Json& answer, size_t replica) {
    return answer.find("energy")->find("replica_joules")->items()[replica].number();
  };
  // The other pool only idles until the longer run ends: more energy, but less than in proportion.
  const double longer = capped.find("duration")->number() / plain.find("duration")->number();
  EXPECT_GE(replica_joules(capped, 0), replica_joules(plain, 0));
  EXPECT_LE(replica_joules(capped, 0), longer * replica_joules(plain, 0));
  EXPECT_LT(replica_joules(capped, 1), replica_joules(plain, 1));
}

// The rating of the usual node is known, that of the other is not.
TEST(ServeEnergy, the_rest_of_the_node_that_was_named_draws_its_share) {
  const auto joules = [](const std::string& node) {
    const Outcome run = run_foretoken(
        "serve --model Llama-3.1-8B --device a100_sxm --num-prompts 20 --request-rate 5 --random-output-len 20 "
        "--no-intervals --energy --json" +
        node);
    EXPECT_EQ(run.status, 0) << run.err;
    const Json answer = parse_json(run.out, "answer");
    return answer.find("energy")->find("facility_joules_per_output_token")->find("value")->number();
  };
  EXPECT_LT(joules(" --node hgx_a100_4nic"), joules(""));
  EXPECT_EQ(joules(" --node hgx_a100"), joules(""));
}

TEST(ServeEnergy, the_clock_that_saves_most_energy_within_goals_is_found) {
  const std::string load =
      "--num-prompts 20 --request-rate 2 --random-input-len 500 --random-output-len 20 --gpu-clock auto ";
  const Outcome run = serve(load + "--goodput tpot:50 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json answer = parse_json(run.out, "answer");
  const Json& search = *answer.find("clock_search");
  const double best = search.find("best_mhz")->number();
  EXPECT_LT(best, 1980);
  const double chosen = answer.find("energy")->find("facility_joules_per_output_token")->find("value")->number();
  for (const Json& trial : search.find("trials")->items()) {
    EXPECT_LE(chosen, trial.find("facility_joules_per_output_token")->number() * (1 + 1e-9));
  }
  expect_refused(serve(load), "--goodput");
}

TEST(ServeEnergy, boards_of_ranks_in_lock_step_all_count) {
  const Outcome run = run_foretoken(
      "serve --model Qwen3-30B-A3B --device h100_sxm -dp 4 --enable-expert-parallel --no-intervals --num-prompts 40 "
      "--max-concurrency 16 --random-output-len 20 --energy --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json answer = parse_json(run.out, "answer");
  const Json& energy = *answer.find("energy");
  EXPECT_EQ(energy.find("boards")->integer(), 4);
  const double watts = energy.find("mean_board_watts")->find("value")->number();
  EXPECT_GT(watts, 4 * 1.5 * energy.find("board_groups")->items().front().find("idle_watts")->number());
  EXPECT_LT(watts, 4 * 700);
}

TEST(ServeEnergy, a_run_of_requests_that_all_fail_draws_nothing) {
  const Outcome run = serve("--num-prompts 3 --random-input-len 9000 --max-model-len 8192 --energy");
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_NE(run.out.find("no request ran"), std::string::npos) << run.out;
}

TEST(ServeEnergy, caps_that_no_board_takes_are_refused) {
  expect_refused(serve("--num-prompts 5 --power-limit 100"), "at least 175 W");
  expect_refused(serve("--num-prompts 5 --gpu-clock 20"), "at least 198 MHz");
  expect_refused(serve("--num-prompts 5 --gpu-clock fast"), "MHz");
  expect_refused(serve("--num-prompts 5 --pue 0.5"), "--pue");
  expect_refused(
      run_foretoken("serve --model Llama-3.1-8B --device tpu_v5e -tp 2 --max-model-len 8192 --num-prompts 5 --energy"),
      "power_limit_w");
}

}  // namespace foretoken::serve_energy_test
