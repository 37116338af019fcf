#include "app/page/run_request.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "app/cli/grammar/command_line.h"
#include "app/cli/grammar/declarations.h"
#include "app/page/page_examples.h"
#include "app/page/page_flags.h"
#include "base/base64.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace foretoken::run_request_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Library& shipped() {
  static const Library library(FORETOKEN_SOURCE_DIR "/data");
  return library;
}

std::string complaint_about(const std::string& body) {
  try {
    read_run_request(body, shipped());
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

CommandDeclaration declared(const PageCommand& command) {
  const std::vector<std::string_view> words = split_words(command.name, " ");
  for (const CommandKind& kind : all_commands()) {
    if (kind.name != words.front()) continue;
    CommandDeclaration found = declaration_of(kind);
    if (words.size() == 1) return found;
    return *find_command(found.subcommands, words.back());
  }
  throw std::logic_error("the page names a command that is not there");
}

const PageFlag* listed(const PageCommand& command, const std::string& name) {
  const auto found =
      std::find_if(command.flags.begin(), command.flags.end(), [&](const PageFlag& flag) { return flag.name == name; });
  return found == command.flags.end() ? nullptr : &*found;
}

bool speaks_of_files(const std::string& help) {
  const std::string_view words[] = {"file", "folder", "directory", "path", ".json", "csv", "write", "tables"};
  const std::string lower = lower_case(help);
  return std::any_of(std::begin(words), std::end(words),
                     [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

TEST(RunRequest, a_question_becomes_a_command_line) {
  const RunRequest request = read_run_request(
      R"({"command": "step", "model": "Llama-3.1-8B", "device": "h100_sxm", "batch": 64, "memory": true,
          "sequence_parallel": false})",
      shipped());
  EXPECT_THAT(request.words, ElementsAre("step"));
  EXPECT_EQ(request.fields.find("batch")->integer(), 64);
  EXPECT_EQ(request.command_line(),
            "foretoken step --model Llama-3.1-8B --device h100_sxm --batch 64 --memory --no-sequence-parallel");
}

TEST(RunRequest, equal_questions_have_one_text_whatever_the_order_of_their_fields) {
  const auto text = [](const std::string& fields) {
    return read_run_request(R"({"command": "step", "model": "Llama-3.1-8B", )" + fields + "}", shipped()).text();
  };
  EXPECT_EQ(text(R"("device": "h100_sxm", "batch": 1)"), text(R"("batch": 1, "device": "h100_sxm")"));
  EXPECT_EQ(text(R"("device": "h100_sxm")"), text(R"("device": "H100")"));
  EXPECT_NE(text(R"("device": "h100_sxm", "batch": 1)"), text(R"("device": "h100_sxm", "batch": 2)"));
}

TEST(RunRequest, every_example_has_an_answer) {
  for (const PageExample& example : page_examples()) {
    const RunRequest request = read_run_request(example.question, shipped());
    if (request.words.front() == "plan") continue;  // takes long; the page's own tests ask it
    EXPECT_TRUE(request.question().answer(shipped()).has_results) << example.title;
  }
}

TEST(RunRequest, every_flag_of_the_page_is_one_of_its_command) {
  for (const PageCommand& command : page_commands()) {
    const CommandDeclaration declaration = declared(command);
    for (const PageFlag& flag : command.flags) {
      const bool is_declared = find_flag(declaration, flag_name(flag.name)) != nullptr ||
                               find_flag(declaration, flag.name) != nullptr;  // without dashes
      EXPECT_TRUE(is_declared) << command.name << " " << flag.name;
    }
  }
}

TEST(RunRequest, no_flag_whose_help_speaks_of_files_takes_free_text) {
  for (const PageCommand& command : page_commands()) {
    for (const FlagDeclaration& declaration : declared(command).flags) {
      if (!speaks_of_files(declaration.help)) continue;
      for (const std::string& name : declaration.names) {
        const PageFlag* flag = listed(command, field_name(name));
        EXPECT_TRUE(flag == nullptr || flag->kind != PageFlagKind::value) << command.name << " " << name;
      }
    }
  }
}

TEST(RunRequest, every_flag_that_is_not_listed_is_refused) {
  size_t refused = 0;
  for (const PageCommand& command : page_commands()) {
    for (const FlagDeclaration& declaration : declared(command).flags) {
      for (const std::string& name : declaration.names) {
        if (listed(command, field_name(name)) != nullptr) continue;
        const Json body = Json::object({{"command", command.name}, {field_name(name), "1"}});
        EXPECT_THAT(complaint_about(body.dump()), HasSubstr("that the page may use")) << name;
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100U);
}

TEST(RunRequest, names_of_the_library_cannot_be_files) {
  for (const PageCommand& command : page_commands()) {
    for (const PageFlag& flag : command.flags) {
      if (flag.kind == PageFlagKind::value) continue;
      for (const char* value : {"/etc/passwd", "../data/x.json", "own.json", ".", "", "{\"name\": \"x\"}",
                                "h100_sxm:8,/etc/passwd.json:1", "/etc/passwd.json:1"}) {
        const Json body = Json::object({{"command", command.name}, {std::string(flag.name), value}});
        EXPECT_NE(complaint_about(body.dump()), "") << flag.name << " " << value;
      }
    }
  }
}

TEST(RunRequest, values_cannot_become_flags_or_lines) {
  const RunRequest request = read_run_request(
      R"({"command": "serve", "model": "Llama-3.1-8B", "scheduler": "--out-trace=/tmp/x"})", shipped());
  EXPECT_EQ(request.fields.members().size(), 2U);
  EXPECT_THROW(request.question().answer(shipped()), InputError);
  EXPECT_NE(complaint_about(R"({"command": "serve", "engine": "vllm\nsglang"})"), "");
}

TEST(RunRequest, what_would_keep_the_server_busy_for_hours_is_refused) {
  EXPECT_THAT(complaint_about(R"({"command": "serve", "num_prompts": 1000000})"), HasSubstr("500000"));
}

TEST(RunRequest, other_commands_and_broken_bodies_are_refused) {
  EXPECT_THAT(complaint_about(R"({"command": "fit"})"), HasSubstr("one of step, serve"));
  EXPECT_THAT(complaint_about(R"({"command": "step", "file": "x"})"), HasSubstr("file"));
  EXPECT_NE(complaint_about("{"), "");
  EXPECT_NE(complaint_about("[]"), "");
  EXPECT_NE(complaint_about(R"({"command": 3})"), "");
  EXPECT_NE(complaint_about(std::string(300'000, ' ') + "{}"), "");
}

TEST(RunRequest, a_device_of_the_pages_own_needs_no_file) {
  const std::string device = read_file(FORETOKEN_SOURCE_DIR "/data/hardware/devices/h100_sxm.json", 1 << 20);
  const std::string asked = R"({"command": "step", "model": "Llama-3.1-8B", "device": )";
  const RunRequest request = read_run_request(asked + device + "}", shipped());
  EXPECT_EQ(request.command_line(), "foretoken step --model Llama-3.1-8B --device h100_sxm_changed.json");
  EXPECT_EQ(request.question().answer(shipped()).json.find("device")->string(), "h100_sxm_changed");

  EXPECT_THAT(complaint_about(R"({"command": "collective", "device": {"name": "x"}})"),
              HasSubstr("that the page may use"));
  EXPECT_THAT(complaint_about(asked + R"({"name": "x", "accelerator": "tpu_v1"}})"),
              HasSubstr("does not accept designs"));
  EXPECT_THAT(complaint_about(asked + R"({"name": "x", "computing_memory": {"design": "/etc/passwd"}}})"),
              HasSubstr("does not accept designs"));
  EXPECT_THAT(complaint_about(asked + R"({"name": "x"}})"), testing::Not(IsEmpty()));
}

TEST(RunRequest, two_questions_become_one_comparison) {
  const RunRequest request = read_run_request(
      R"({"command": "compare",
          "first": {"command": "plan serve", "model": "Llama-3.1-8B", "hardware": "h100_sxm:2",
                    "slo": ["ttft<500ms@p99", "tpot<50ms@p99"]},
          "second": {"command": "plan serve", "model": "Llama-3.1-8B", "engines": "-x' 'y"}})",
      shipped());
  EXPECT_THAT(request.words, ElementsAre("compare"));
  EXPECT_EQ(request.fields.find("first")->find("slo")->items().size(), 2U);
  const std::vector<std::string> line = *shell_words(request.command_line());
  ASSERT_EQ(line.size(), 6U);
  EXPECT_THAT(*shell_words(line[3]), ElementsAre("plan", "serve", "--model", "Llama-3.1-8B", "--hardware", "h100_sxm:2",
                                                 "--slo", "ttft<500ms@p99", "--slo", "tpot<50ms@p99"));
  EXPECT_THAT(*shell_words(line[5]), ElementsAre("plan", "serve", "--model", "Llama-3.1-8B", "--engines=-x' 'y"));
}

TEST(RunRequest, hardware_is_written_as_on_the_command_line) {
  const auto hardware = [](const std::string& text) {
    return read_run_request(R"({"command": "plan serve", "model": "Llama-3.1-8B", "hardware": ")" + text + R"("})",
                            shipped())
        .fields.find("hardware")
        ->string();
  };
  for (const char* text : {"h100_sxm:8", "8xH100", "h100x8", "H100:8"}) EXPECT_EQ(hardware(text), "h100_sxm:8") << text;
  EXPECT_THAT(complaint_about(R"({"command": "plan serve", "hardware": "H100:"})"), HasSubstr("COUNTxDEVICE"));
  EXPECT_THAT(complaint_about(R"({"command": "plan serve", "hardware": "/etc/passwd:8"})"),
              HasSubstr("a name of the library"));
}

TEST(RunRequest, each_side_of_a_comparison_passes_the_same_gate) {
  const auto side = [](const std::string& first) {
    return complaint_about(R"({"command": "compare", "first": )" + first +
                           R"(, "second": {"command": "step", "batch": 1}})");
  };
  EXPECT_EQ(side(R"({"command": "step", "batch": 8})"), "");
  EXPECT_THAT(side(R"({"command": "step", "trace": "x"})"), HasSubstr("that the page may use"));
  EXPECT_THAT(side(R"({"command": "step", "model": "/etc/passwd"})"), HasSubstr("a name of the library"));
  EXPECT_THAT(side(R"({"command": "serve", "num_prompts": 1000000})"), HasSubstr("500000"));
  EXPECT_THAT(side(R"({"command": "compare"})"), HasSubstr("one of step"));
  EXPECT_THAT(side(R"({"command": "step", "device": {}})"), HasSubstr("device"));
  EXPECT_NE(complaint_about(R"({"command": "compare", "first": {"command": "step"}})"), "");
}

TEST(RunRequest, a_list_has_a_limit_and_something_in_it) {
  const auto with = [](size_t count) {
    Json list = Json::array();
    for (size_t i = 0; i < count; ++i) list.push("B");
    return complaint_about(Json::object({{"command", "suite"}, {"only", std::move(list)}}).dump());
  };
  EXPECT_EQ(with(most_flag_values), "");
  EXPECT_THAT(with(most_flag_values + 1), HasSubstr("1 to 64 values"));
  EXPECT_THAT(with(0), HasSubstr("1 to 64 values"));
}

TEST(RunRequest, more_memory_bandwidth_never_slows_a_step_down) {
  const Json base = read_json_file(FORETOKEN_SOURCE_DIR "/data/hardware/devices/h100_sxm.json");
  double before = 1e9;
  for (const double bandwidth : {2000.0, 3350.0, 5000.0, 8000.0}) {
    Json device = base;
    device.set("memory_bandwidth_gb_per_s", Json::object({{"value", bandwidth}, {"source", "a test of what-if"}}));
    const Json body = Json::object({{"command", "step"}, {"model", "Llama-3.1-8B"}, {"batch", 32}, {"device", device}});
    const Answer answer = read_run_request(body.dump(), shipped()).question().answer(shipped());
    const double seconds = answer.json.find("seconds")->find("value")->number();
    EXPECT_LT(seconds, before) << bandwidth;
    before = seconds;
  }
}

std::string files(const std::string& name, const std::string& content) {
  const std::string encoded = base64(std::vector<uint8_t>(content.begin(), content.end()));
  return Json::object({{"files", Json::array({Json::object({{"name", name}, {"content", encoded}})})}}).dump();
}

TEST(RunRequest, files_are_read_from_the_body_and_named_by_no_path) {
  const std::string question = R"({"command": "edge", "device": "neoverse_v1_ort", "onnx": )";
  const RunRequest request = read_run_request(question + files("net.onnx", "abc") + "}", shipped());
  ASSERT_TRUE(request.upload);
  EXPECT_EQ(request.upload->files.front().content, "abc");
  EXPECT_EQ(request.command_line(), "foretoken edge --device neoverse_v1_ort --onnx net.onnx");
  for (const char* name : {"../net.onnx", "/net.onnx", ".onnx", "-x.onnx", "a/b.onnx", "net.txt", "", "n t.onnx"}) {
    EXPECT_NE(complaint_about(question + files(name, "abc") + "}"), "") << name;
  }
  EXPECT_THAT(complaint_about(question + files("net.onnx", "\x1f\x8b\x08rest") + "}"), HasSubstr("not compressed"));
  EXPECT_NE(complaint_about(question + R"("data/edge/networks/encoder.onnx"})"), "");
  EXPECT_NE(complaint_about(question + R"(["data/edge/networks/encoder.onnx"]})"), "");
  EXPECT_NE(complaint_about(question + R"({"files": [{"name": "net.onnx", "content": "not base64!"}]}})"), "");
  EXPECT_NE(complaint_about(question + files("net.onnx", std::string(most_upload_bytes + 1, 'x')) + "}"), "");
}

TEST(RunRequest, a_run_of_the_page_is_told_its_model_and_device) {
  const std::string run = R"("run": )" + files("run.json", "{}");
  EXPECT_EQ(complaint_about(R"({"command": "replay-run", "model": "Llama-3.1-8B", "device": "h100_sxm", )" + run + "}"),
            "");
  EXPECT_THAT(complaint_about(R"({"command": "replay-run", "device": "h100_sxm", )" + run + "}"), HasSubstr("model"));
  EXPECT_THAT(complaint_about(R"({"command": "replay-run", "model": "Llama-3.1-8B", )" + run + "}"),
              HasSubstr("device"));
}

TEST(RunRequest, what_a_run_says_of_its_server_cannot_name_files) {
  const auto check = [](const std::string& text) { check_deployment(parse_json(text, "deployment"), shipped()); };
  EXPECT_NO_THROW(check(R"({"model": "/x", "device": "h100_sxm", "max_model_len": 8192, "stack": "vllm-0.11"})"));
  for (const char* wrong : {R"({"stack": "/etc/passwd"})", R"({"deployment": "a.json"})", R"({"calibration": "/"})",
                            R"({"step_times": "/etc/passwd"})", R"({"quantization": {"a": 1}})"}) {
    EXPECT_THROW(check(wrong), InputError) << wrong;
  }
}

TEST(RunRequest, long_runs_have_no_trace) {
  const std::string serve = R"({"command": "serve", "model": "Llama-3.1-8B", "device": "h100_sxm", "num_prompts": )";
  EXPECT_EQ(complaint_about(serve + "500000}"), "");
  EXPECT_NE(complaint_about(serve + "500001}"), "");
  EXPECT_NE(complaint_about(serve + "30000, \"trace_in_json\": true}"), "");
}

TEST(RunRequest, a_search_of_mappings_is_bounded) {
  const RunRequest request =
      read_run_request(R"({"command": "accel", "arch": "tpu_v4", "network": "resnet50"})", shipped());
  EXPECT_EQ(request.fields.find("time_limit")->integer(), 60);
}

}  // namespace foretoken::run_request_test
