// --spec, --print-spec and schema: a question as a file asks the same as its command line.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "command_test.h"

namespace foretoken::spec_test {

using testing::HasSubstr;

class Spec : public CommandTest {
 protected:
  Outcome ask(const std::string& command, const std::string& content, const std::string& flags = "") const {
    return run_foretoken(fmt::format("{} --spec {} {}", command, write("q.json", content), flags));
  }
};

// What tests/golden asks, without help pages and what needs measurements that are no part of a clone.
std::vector<std::string> golden_commands() {
  std::vector<std::string> lines;
  std::ifstream in(FORETOKEN_SOURCE_DIR "/tests/golden/commands.txt");
  for (std::string line; std::getline(in, line);) {
    const bool is_left_out =
        line.find("$FORETOKEN_DATA") != std::string::npos || line.find("--help") != std::string::npos;
    if (!line.empty() && !line.starts_with('#') && !is_left_out) lines.push_back(line);
  }
  return lines;
}

// "kernel gemm": the words before the first flag or name.
std::string command_of(const JsonView& spec) {
  return spec.at("command").string();
}

TEST_F(Spec, every_command_line_has_a_spec_that_says_the_same) {
  size_t asked = 0;
  for (const std::string& line : golden_commands()) {
    const Outcome printed = run_foretoken(line + " --print-spec");
    if (printed.status == 2) continue;  // a line that is refused
    ASSERT_EQ(printed.status, 0) << line << printed.err;
    const Json spec = parse_json(printed.out, line);
    const Outcome again = ask(command_of(JsonView(spec, line)), printed.out, "--print-spec");
    EXPECT_EQ(again.out, printed.out) << line << again.err;
    ++asked;
  }
  EXPECT_GT(asked, 200U);
}

TEST_F(Spec, a_spec_gets_the_bytes_that_its_command_line_gets) {
  const std::set<std::string> quick = {"kernel",   "devices",  "models", "stacks", "step",  "collective",
                                       "systolic", "dataflow", "chip",   "pim",    "check", "train"};
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(FORETOKEN_SOURCE_DIR);
  size_t asked = 0;
  for (const std::string& line : golden_commands()) {
    if (!quick.contains(line.substr(0, line.find(' '))) && asked % 5 != 4) continue;
    if (asked == 45) break;
    const Outcome printed = run_foretoken(line + " --print-spec");
    if (printed.status != 0) continue;
    const Json spec = parse_json(printed.out, line);
    const std::string form = asked % 2 == 0 ? "--json" : "";
    const Outcome typed = run_foretoken(line + " " + form);
    const Outcome filed = ask(command_of(JsonView(spec, line)), printed.out, form);
    EXPECT_EQ(filed.out, typed.out) << line;
    if (typed.status != 2) {  // else its complaint names a flag
      EXPECT_EQ(filed.err, typed.err) << line;
    }
    EXPECT_EQ(filed.status, typed.status) << line;
    ++asked;
  }
  std::filesystem::current_path(before);
  EXPECT_GE(asked, 40U);
}

TEST_F(Spec, flags_override_the_file) {
  const std::string gemm = R"({"command": "kernel gemm", "device": "h100_sxm", "m": 128, "n": 4096, "k": 4096})";
  EXPECT_EQ(ask("kernel gemm", gemm, "--m 64 --device a100_sxm").out,
            run_foretoken("kernel gemm --device a100_sxm --m 64 --n 4096 --k 4096").out);
  const Outcome merged = ask("serve", R"({"command": "serve", "model": "m", "device": "d", "goodput": ["ttft:500"],
                                          "energy": true, "tp": 2})",
                             "--goodput tpot:50 --no-energy -tp 4 --print-spec");
  EXPECT_EQ(merged.status, 0) << merged.err;
  const Json spec = parse_json(merged.out, "merged");
  EXPECT_EQ(spec.find("goodput")->items().size(), 1U) << "a list is replaced, not lengthened";
  EXPECT_EQ(spec.find("goodput")->items().front().string(), "tpot:50");
  EXPECT_FALSE(spec.find("energy")->boolean());
  EXPECT_EQ(spec.find("tensor_parallel_size")->integer(), 4);
}

TEST_F(Spec, a_typed_flag_is_named_as_such_and_a_field_by_its_path) {
  const std::string step = "{\"command\": \"step\", \"model\": \"Llama-3.1-8B\",\n \"device\": \"h100_sxm\", ";
  expect_refused(ask("step", step + R"("batch": 0})"), "q.json:2: batch = 0 expected a whole number from 1");
  expect_refused(ask("step", step + R"("batch": 8})", "--batch 0"), "error: --batch: 0");
}

TEST_F(Spec, wrong_specs_are_refused_with_the_place) {
  const std::string start = R"({"command": "step", "model": "Llama-3.1-8B", "device": "h100_sxm")";
  expect_refused(ask("step", start + R"(, "batch": [8]})"), "q.json:1: batch");
  expect_refused(ask("step", start + R"(, "memory": "yes"})"), "memory = \"yes\" expected true or false");
  expect_refused(ask("step", start + R"(, "bacth": 8})"), "bacth = 8 expected a field of step");
  expect_refused(ask("step", start + R"(, "bacth": 8})"), "did you mean batch?");
  expect_refused(ask("step", start + R"(, "batch": 1e12})"), "batch = 1000000000000 expected a whole number from 1 to");
  expect_refused(ask("step", start + R"(, "phase": "decoed"})"), "did you mean decode?");
  expect_refused(ask("step", R"({"command": "step", "model": "Llama-3.1-8B"})"), "device = not given");
  expect_refused(ask("step", R"({"model": "Llama-3.1-8B"})"), "device = not given");
  expect_refused(ask("serve", start + "}"), "command = \"step\" expected serve, as on the command line");
  expect_refused(ask("plan train", R"({"command": "plan serve"})"), "expected plan train");
  expect_refused(ask("step", ""), "q.json");
  expect_refused(ask("step", "[1]"), "an object");
  expect_refused(ask("step", start), "q.json:1");
  expect_refused(ask("step", start + R"(, "batch": 1, "batch": 2})"), "batch");
  expect_refused(run_foretoken("step --spec " + path("missing.json")), "missing.json");
  expect_refused(run_foretoken("step --spec " + folder_.string()), folder_.string());
}

TEST_F(Spec, a_file_that_is_too_large_is_refused_before_it_is_read) {
  const std::string file = write("huge.json", "{");
  std::filesystem::resize_file(file, (size_t{64} << 20) + 1);
  expect_refused(run_foretoken("step --spec " + file), "huge.json");
  expect_refused(ask("step", std::string(100, '[') + std::string(100, ']')), "q.json");
}

TEST_F(Spec, settings_and_documents_may_be_objects) {
  const std::string serve = "serve --model Llama-3.1-8B --device h100_sxm --num-prompts 10 --json ";
  EXPECT_EQ(ask("serve", R"({"command": "serve", "prefill_pool": {"count": 1, "max_num_seqs": 32},
                             "decode_pool": {"count": 1}, "model": "Llama-3.1-8B", "device": "h100_sxm",
                             "num_prompts": 10})",
                "--json")
                .out,
            run_foretoken(serve + "--prefill-pool count=1,max-num-seqs=32 --decode-pool count=1").out);
  expect_refused(ask("serve", R"({"command": "serve", "prefill_pool": {"count": "x"}, "decode_pool": "count=1",
                                  "model": "Llama-3.1-8B", "device": "h100_sxm"})"),
                 "prefill_pool.count = x");
}

TEST_F(Spec, a_dash_reads_standard_input) {
  std::istringstream typed(R"({"command": "devices", "name": "h100_sxm"})");
  std::streambuf* const before = std::cin.rdbuf(typed.rdbuf());
  const Outcome run = run_foretoken("devices --spec -");
  std::cin.rdbuf(before);
  std::cin.clear();
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, run_foretoken("devices h100_sxm").out);
}

TEST_F(Spec, questions_in_files_are_compared_like_command_lines) {
  const std::string step = "step --model Llama-3.1-8B --device h100_sxm --batch 32 --context-len 2048";
  const std::string first = write("first.json", run_foretoken(step + " --print-spec").out);
  const Outcome lines = run_foretoken("compare --first '" + step + "' --second '--device a100_sxm --batch 16'");
  ASSERT_EQ(lines.status, 0) << lines.err;
  const std::string second =
      write("second.json", run_foretoken("step --spec " + first + " --device a100_sxm --batch 16 --print-spec").out);
  const std::string compared = "compare --json --first " + first + " --second ";
  EXPECT_EQ(run_foretoken("compare --first " + first + " --second '--device a100_sxm --batch 16'").out, lines.out);
  const Json by_files = parse_json(run_foretoken(compared + second).out, "compare");
  EXPECT_EQ(by_files.find("settings")->items().size(), 2U);
  expect_refused(run_foretoken(compared + write("other.json", R"({"command": "devices"})")), "a command: step");
  expect_refused(run_foretoken(compared + write("wrong.json", R"({"command": "step", "bacth": 1})")), "bacth");
}

TEST_F(Spec, flags_alone_are_not_compared_with_a_saved_answer) {
  const std::string step = "step --model Llama-3.1-8B --device h100_sxm --batch 8";
  const std::string monday = write("monday.json", run_foretoken(step + " --json").out);
  const Outcome flags = run_foretoken("compare --first " + monday + " --second '--device a100_sxm'");
  expect_refused(flags, "a whole command or another saved answer");
  expect_refused(flags, "monday.json is a saved answer, and a saved answer does not contain its flags");
  EXPECT_EQ(run_foretoken("compare --first " + monday + " --second '" + step + " --device a100_sxm'").status, 0);
}

TEST_F(Spec, what_is_missing_is_said_before_a_spec_is_printed) {
  expect_refused(run_foretoken("step --model Llama-3.1-8B --print-spec"), "--device");
}

// As far as these tests need it: names, types, bounds and choices.
void expect_valid(const JsonView& schema, const Json& spec, const std::string& line) {
  const JsonView fields = schema.at("properties");
  for (const auto& [name, value] : spec.members()) {
    ASSERT_TRUE(fields.has(name)) << line << " " << name;
    const JsonView field = fields.at(name);
    if (const auto allowed = field.find("enum")) {
      bool found = false;
      for (const JsonView& one : allowed->items()) found = found || one.value().dump(0) == value.dump(0);
      EXPECT_TRUE(found) << line << " " << name;
    }
    if (const auto either = field.find("anyOf")) {  // a choice of engines: these, or a release
      bool found = false;
      for (const JsonView& one : either->items().front().at("enum").items())
        found = found || one.value().dump(0) == value.dump(0);
      const std::regex release(either->items().back().at("pattern").string());
      EXPECT_TRUE(found || std::regex_search(value.string(), release)) << line << " " << name;
    }
    const bool is_number = value.kind() == Json::Kind::integer || value.kind() == Json::Kind::number;
    if (is_number && field.has("minimum")) {
      EXPECT_GE(value.number(), field.at("minimum").number()) << line << name;
    }
    if (is_number && field.has("maximum")) {
      EXPECT_LE(value.number(), field.at("maximum").number()) << line << name;
    }
    if (!field.has("type")) continue;
    constexpr const char* type_names[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    const std::string type = type_names[static_cast<size_t>(value.kind())];
    bool is_allowed = field.at("type").is(Json::Kind::string) && field.at("type").string() == type;
    if (field.at("type").is(Json::Kind::array)) {
      for (const JsonView& one : field.at("type").items()) {
        is_allowed = is_allowed || one.string() == type || (one.string() == "number" && type == "integer");
      }
    }
    EXPECT_TRUE(is_allowed) << line << " " << name << " is " << type;
  }
  for (const JsonView& name : schema.at("required").items()) {
    EXPECT_NE(spec.find(name.string()), nullptr) << line << " " << name.string();
  }
}

TEST_F(Spec, every_printed_spec_keeps_to_the_schema_of_its_command) {
  const Outcome all = run_foretoken("schema");
  ASSERT_EQ(all.status, 0) << all.err;
  const Json schema = parse_json(all.out, "schema");
  const JsonView definitions = JsonView(schema, "schema").at("$defs");
  for (const std::string& line : golden_commands()) {
    const Outcome printed = run_foretoken(line + " --print-spec");
    if (printed.status != 0) continue;
    const Json spec = parse_json(printed.out, line);
    std::string name = spec.find("command")->string();
    std::replace(name.begin(), name.end(), ' ', '_');
    expect_valid(definitions.at(name), spec, line);
  }
}

TEST_F(Spec, schema_takes_a_command_and_a_subcommand) {
  EXPECT_THAT(run_foretoken("schema plan serve").out, HasSubstr("\"const\": \"plan serve\""));
  EXPECT_THAT(run_foretoken("schema plan").out, HasSubstr("#/$defs/plan_train"));
  EXPECT_EQ(run_foretoken("schema serve --json").out, run_foretoken("schema serve").out);
  expect_refused(run_foretoken("schema serv"), "did you mean serve?");
  expect_refused(run_foretoken("schema plan serv"), "did you mean serve?");
}

TEST(SpecWithoutCommand, takes_the_command_of_the_line) {
  const std::string file = testing::TempDir() + "spec_without_command.json";
  std::ofstream(file) << R"({"model": "Llama-3.1-8B", "device": "h100_sxm", "context_len": 100})";
  const Outcome run = run_foretoken("step --spec " + file);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run_foretoken("--spec " + file).status, 2);
}

TEST(SpecWithCommand, takes_a_commands_name_behind_a_flag_for_its_value) {
  const std::string file = testing::TempDir() + "spec_with_command.json";
  std::ofstream(file) << R"({"command": "step", "model": "Llama-3.2-1B", "device": "h100_sxm", "batch": 2})";
  const Outcome train = run_foretoken("--spec " + file + " --phase train");
  EXPECT_EQ(train.status, 0) << train.err;
  EXPECT_EQ(train.out, run_foretoken("step --spec " + file + " --phase train").out);
  EXPECT_EQ(run_foretoken("--json --spec=" + file + " --phase train").status, 0);
  EXPECT_EQ(run_foretoken("--spec " + file + " step").status, 0) << "a command may follow the file";
  EXPECT_EQ(run_foretoken("--spec " + file + " serve").status, 2) << "the file asks another";
}

}  // namespace foretoken::spec_test
