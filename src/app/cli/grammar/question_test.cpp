#include "app/cli/grammar/question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/cli/grammar/command_line.h"
#include "base/error.h"
#include "base/file.h"

namespace foretoken::question_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

Question asked(const std::string& text) {
  return Question(parse_json(text, "q.json"), "q.json");
}

InputProblem problem_of(const std::string& text) {
  try {
    const Question question = asked(text);
    question.check_required();
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << "taken: " << text;
  return {};
}

TEST(Question, fields_become_the_words_of_a_command_line_in_their_order) {
  const Question question = asked(
      R"({"command": "serve", "model": "m", "num_prompts": 20, "tp": 2, "energy": true, "intervals": false,
          "request_rate": 4.5, "goodput": ["ttft:500", "tpot:50"], "explain_request": -1})");
  EXPECT_THAT(question.words(), ElementsAre("serve", "--model", "m", "--num-prompts", "20", "--tensor-parallel-size",
                                            "2", "--energy", "--no-intervals", "--request-rate", "4.5", "--goodput",
                                            "ttft:500", "--goodput", "tpot:50", "--explain-request=-1"));
}

TEST(Question, short_names_of_ranks_are_the_same_for_training) {
  for (const char* command : {"train", "plan train", "rlhf"}) {
    const Question question = asked(std::string(R"({"command": ")") + command +
                                    R"(", "model": "m", "tp": 2, "pp": 4, "cp": 1, "ep": 8, "dp": 16})");
    EXPECT_THAT(question.words(), IsSupersetOf({"--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size",
                                                "4", "--context-parallel-size", "1", "--expert-model-parallel-size",
                                                "8", "--data-parallel-size", "16"}))
        << command;
  }
}

TEST(CommandLine, a_flag_of_the_command_keeps_its_name_also_where_others_have_a_short_one) {
  const Json moe = spec_of_line({"kernel", "moe", "--device", "h100_sxm", "--tp", "4"});
  ASSERT_NE(moe.find("tp"), nullptr);
  EXPECT_EQ(moe.find("tp")->integer(), 4);
  const Json serve = spec_of_line({"serve", "--model", "m", "--device", "d", "--tp", "4"});
  ASSERT_NE(serve.find("tensor_parallel_size"), nullptr);
  EXPECT_EQ(serve.find("tensor_parallel_size")->integer(), 4);
}

TEST(CommandLine, goals_may_be_words_of_their_own) {
  const Json spec = spec_of_line({"serve", "--model", "m", "--goodput", "ttft:500", "tpot:50", "--device", "d"});
  ASSERT_NE(spec.find("goodput"), nullptr);
  EXPECT_EQ(spec.find("goodput")->dump(0), R"(["ttft:500","tpot:50"])");
}

TEST(CommandLine, a_file_with_the_question_names_the_command) {
  const std::string file = testing::TempDir() + "/question_without_command.json";
  write_file(file, R"({"command": "serve", "model": "m", "device": "d"})");
  EXPECT_EQ(spec_of_line({"--spec", file}).find("command")->string(), "serve");
  EXPECT_EQ(spec_of_line({"--spec=" + file, "--seed", "3"}).find("seed")->integer(), 3);
  EXPECT_EQ(spec_of_line({"--json", "--spec", file, "--seed", "3"}).find("seed")->integer(), 3);
  EXPECT_EQ(spec_of_line({"--json", "--spec=" + file, "serve"}).find("model")->string(), "m");
}

TEST(Question, numbers_may_be_written_as_the_flag_takes_them) {
  EXPECT_EQ(asked(R"({"command": "serve", "num_prompts": "2k"})").spec().find("num_prompts")->integer(), 2000);
  EXPECT_EQ(asked(R"({"command": "serve", "num_prompts": 2e3})").spec().find("num_prompts")->integer(), 2000);
}

TEST(Question, settings_and_documents_are_objects) {
  const Question question = asked(
      R"({"command": "serve", "replica": [{"tp": 2, "max_num_seqs": 64, "enforce_eager": true}, "count=2"],
          "prefill_pool": {"count": 1, "enable_prefix_caching": false},
          "speculative_config": {"method": "ngram"}})");
  EXPECT_THAT(question.words(), ElementsAre("serve", "--replica", "tp=2,max-num-seqs=64,enforce-eager", "--replica",
                                            "count=2", "--prefill-pool", "count=1,no-enable-prefix-caching",
                                            "--speculative-config", R"({"method":"ngram"})"));
  EXPECT_THAT(asked(R"({"command": "edge", "bind": {"batch": 8, "sequence": 128}})").words(),
              ElementsAre("edge", "--bind", "batch=8", "--bind", "sequence=128"));
  EXPECT_THAT(asked(R"({"command": "speculate", "batch_sizes": [1, 8]})").words(),
              ElementsAre("speculate", "--batch-sizes", "1,8"));
}

TEST(Question, a_subcommand_stands_in_the_command_and_takes_the_fields_of_both) {
  EXPECT_THAT(asked(R"({"command": "kernel gemm", "m": 1})").words(), ElementsAre("kernel", "gemm", "--m", "1"));
  EXPECT_EQ(problem_of(R"({"command": "kernel", "m": 1})").path, "command");
  EXPECT_EQ(problem_of(R"({"command": "kernel gem"})").suggestion, "gemm");
  EXPECT_EQ(problem_of(R"({"command": "serv"})").suggestion, "serve");
  EXPECT_EQ(problem_of(R"({"command": "devices h100_sxm"})").path, "command") << "a name is a field of its own";
  EXPECT_THAT(asked(R"({"command": "devices", "name": "h100_sxm"})").words(), ElementsAre("devices", "h100_sxm"));
}

TEST(Question, null_and_an_empty_list_give_nothing) {
  EXPECT_THAT(asked(R"({"command": "serve", "trace": null, "goodput": []})").words(), ElementsAre("serve"));
  EXPECT_EQ(asked(R"({"command": "serve", "goodput": ""})").spec().members().size(), 1U);
}

TEST(Question, a_wrong_field_is_named_with_its_line_and_the_nearest_one) {
  const InputProblem unknown = problem_of("{\"command\": \"serve\",\n\"max_num_seq\": 4}");
  EXPECT_EQ(unknown.source, "q.json");
  EXPECT_EQ(unknown.line, 2);
  EXPECT_EQ(unknown.path, "max_num_seq");
  EXPECT_EQ(unknown.suggestion, "max_num_seqs");
  for (const char* value : {"true", "[1]", "{}", "\"many\"", "1.5", "0"}) {
    const InputProblem wrong = problem_of(std::string(R"({"command": "serve", "tp": )") + value + "}");
    EXPECT_EQ(wrong.path, "tp") << value;
    EXPECT_THAT(wrong.expected, HasSubstr("whole number")) << value;
  }
  EXPECT_EQ(problem_of(R"({"command": "serve", "energy": 1})").expected, "true or false");
  EXPECT_EQ(problem_of(R"({"command": "serve", "model": true})").path, "model");
  EXPECT_EQ(problem_of(R"({"command": "serve", "model": "m\u0000"})").path, "model");
  EXPECT_EQ(problem_of(R"({"command": "step", "phase": "prefil"})").suggestion, "prefill");
  EXPECT_EQ(problem_of(R"({"command": "serve", "prefill_pool": {"tp": "1,2"}})").path, "prefill_pool.tp");
  EXPECT_THAT(problem_of(R"({"command": "serve", "tp": 1, "tensor_parallel_size": 2})").expected, HasSubstr("once"));
  EXPECT_EQ(problem_of(R"({"command": "step", "model": "m"})").path, "device") << "it is required";
  EXPECT_THAT(problem_of(R"({"model": "m"})").expected, HasSubstr("command"));
  EXPECT_THROW(asked("[]"), InputError);
}

TEST(Question, what_a_command_complains_about_is_named_by_its_field) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  const Question question = asked(
      "{\"command\": \"serve\", \"model\": \"Llama-3.1-8B\", \"device\": \"h100_sxm\",\n\"prefill_pool\": {\"count\": "
      "1, \"max_num_seq\": 1}, \"decode_pool\": {\"count\": 1}}");
  try {
    question.answer(library);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().source, "q.json");
    EXPECT_EQ(error.problem().line, 2);
    EXPECT_EQ(error.problem().path, "prefill_pool");
    EXPECT_EQ(error.problem().suggestion, "max-num-seqs");
  }
}

TEST(Question, a_library_names_fields_and_a_command_line_flags) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  const Json small = Json::object({{"model", "Llama-3.1-8B"},
                                   {"device", "h100_sxm"},
                                   {"max_num_seqs", 64},
                                   {"max_num_batched_tokens", 32},
                                   {"num_prompts", 2}});
  const auto problem = [&](const Question& question) {
    try {
      question.answer(library);
    } catch (const InputError& error) {
      return error.problem();
    }
    ADD_FAILURE() << "taken";
    return InputProblem();
  };
  const InputProblem by_flag = problem(Question({"serve"}, small));
  EXPECT_EQ(by_flag.source, "--max-num-seqs");
  EXPECT_EQ(by_flag.expected, "at most --max-num-batched-tokens, 32");
  Json spec = Json::object({{"command", "serve"}});
  for (const auto& [name, value] : small.members()) spec.set(name, value);
  const InputProblem by_field = problem(Question(spec, "q.json"));
  EXPECT_EQ(by_field.source, "q.json");
  EXPECT_EQ(by_field.path, "max_num_seqs");
  EXPECT_EQ(by_field.expected, "at most max_num_batched_tokens, 32");
  for (const InputProblem& shown : {by_flag, by_field}) EXPECT_EQ(shown.field, "");
}

TEST(Question, a_name_that_no_catalogue_has_is_named_by_its_flag) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  const auto complaint = [&](const std::vector<std::string>& line) {
    try {
      answer_command(line, library);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_THAT(complaint({"step", "--model", "nope", "--device", "h100_sxm"}), testing::StartsWith("--model: nope"));
  EXPECT_THAT(complaint({"step", "--model", "Llama-3.1-8B", "--device", "nope"}),
              testing::StartsWith("--device: nope"));
  // Typed in another flag, or as a word without one.
  EXPECT_THAT(complaint({"serve", "--model", "Llama-3.1-8B", "--device", "h100_sxm", "--replica", "device=nope"}),
              testing::StartsWith("device: nope"));
  EXPECT_THAT(complaint({"devices", "nope"}), testing::StartsWith("device: nope"));
}

TEST(Question, an_answer_names_flags_however_it_was_asked) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  const Answer answer = asked(R"({"command": "serve", "model": "Llama-3.1-8B", "device": "h100_sxm", "num_prompts": 2,
                "max_model_len": 512, "random_input_len": 600, "intervals": false})")
                            .answer(library);
  EXPECT_THAT(answer.text, HasSubstr("prompt of --max-model-len or more"));
  EXPECT_THAT(answer.json.dump(0), HasSubstr("\"prompt of --max-model-len or more\":2"));
}

TEST(Question, words_of_a_command_are_checked_without_its_fields) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"serve"}, {"kernel"}, {"kernel", "gemm"}})
    EXPECT_NO_THROW(Question::check_command(words));
  const auto complaint = [](const std::vector<std::string>& words) {
    try {
      Question::check_command(words);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_THAT(complaint({"serv"}), HasSubstr("foretoken: serv\n  expected one of "));
  EXPECT_THAT(complaint({"serv"}), HasSubstr("did you mean serve?"));
  EXPECT_THAT(complaint({"kernel", "gemmm"}), HasSubstr("did you mean gemm?"));
  EXPECT_THAT(complaint({"serve", "gemm"}), HasSubstr("foretoken serve: gemm\n  expected no further argument"));
}

TEST(Question, words_and_keywords_name_flags_in_complaints) {
  const auto complaint = [](const std::vector<std::string>& words, const Json& fields) {
    try {
      const Question question(words, fields);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_THAT(complaint({"serve"}, Json::object({{"request_rat", 4}})), HasSubstr("did you mean --request-rate"));
  EXPECT_THAT(complaint({"serve"}, Json::object({{"tp", 0}})), HasSubstr("--tensor-parallel-size: 0"));
  EXPECT_THAT(complaint({"serve"}, Json::object({{"energy", 1}})), HasSubstr("--energy: 1"));
  EXPECT_THAT(complaint({"serv"}, Json::object()), HasSubstr("did you mean serve"));
  EXPECT_THAT(complaint({"kernel", "gem"}, Json::object()), HasSubstr("did you mean gemm"));
  EXPECT_THAT(complaint({"devices", "a", "b"}, Json::object()), HasSubstr("no further argument"));
  EXPECT_THAT(complaint({"devices", "a", ""}, Json::object()),
              HasSubstr("devices: \"\"\n  expected no further argument"));
  const Question question({"import", "profile", "a.json", "b.json"}, Json::object({{"out", "x"}}));
  EXPECT_THAT(question.words(), ElementsAre("import", "profile", "a.json", "b.json", "--out", "x"));
}

TEST(Question, a_command_line_and_its_spec_ask_the_same) {
  const std::vector<std::string> words = {"plan",       "serve", "--model",       "Llama-3.1-8B", "--hardware",
                                          "h100_sxm:2", "--slo", "ttft:500",      "-tp",          "1,2",
                                          "--seed",     "7",     "--disaggregate"};
  const Json spec = spec_of_line(words);
  EXPECT_EQ(spec.find("command")->string(), "plan serve");
  const Question again(spec, "spec");
  EXPECT_EQ(again.spec().dump(), spec.dump());
  EXPECT_EQ(spec_of_line(again.words()).dump(), spec.dump());
}

}  // namespace foretoken::question_test
