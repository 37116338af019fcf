// Every foretoken command that the README and docs show is run as it stands there.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "kernel/family.h"
#include "run.h"

namespace foretoken::documented_commands_test {

namespace fs = std::filesystem;

struct Shown {
  std::string file;
  int line = 0;
  std::string command;  // without the program's name
};

// Lines of ```sh blocks that start with `foretoken` or `./build/foretoken`, also after `&&`. A trailing backslash joins
// lines; what follows ` #` or ` >` is for the shell.
std::vector<Shown> shown_commands(const fs::path& file) {
  std::vector<Shown> shown;
  std::ifstream in(file);
  bool in_shell_block = false;
  int number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    if (text.starts_with("```")) {
      in_shell_block = text == "```sh";
      continue;
    }
    if (!in_shell_block) continue;
    const int first = number;
    while (text.ends_with("\\")) {
      std::string more;
      std::getline(in, more);
      ++number;
      text.pop_back();
      text += more;
    }
    for (const std::string stop : {" #", " > ", " | "}) text = text.substr(0, text.find(stop));
    if (const size_t last = text.rfind("&& "); last != std::string::npos) text = text.substr(last + 3);
    for (const std::string program : {"foretoken ", "./build/foretoken "}) {
      if (text.starts_with(program)) shown.push_back({file.filename().string(), first, text.substr(program.size())});
    }
  }
  return shown;
}

// Each once, where it is shown first.
std::vector<Shown> all_shown_commands() {
  const fs::path root = FORETOKEN_SOURCE_DIR;
  std::vector<fs::path> pages = {root / "README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  std::vector<Shown> shown;
  std::set<std::string> known;
  for (const fs::path& page : pages) {
    for (Shown& command : shown_commands(page)) {
      if (known.insert(command.command).second) shown.push_back(std::move(command));
    }
  }
  return shown;
}

// $FORETOKEN_DATA in a shown command stands for the folder of measurements.
const std::string data_folder = "$FORETOKEN_DATA";

void expect_success(const std::string& command, const Shown& entry) {
  const fs::path before = fs::current_path();
  fs::current_path(FORETOKEN_SOURCE_DIR);
  const Outcome run = run_foretoken(command);
  fs::current_path(before);
  EXPECT_EQ(run.status, 0) << entry.file << ":" << entry.line << ": foretoken " << command << "\n" << run.err;
  EXPECT_FALSE(run.out.empty()) << entry.file << ":" << entry.line << ": " << command;
}

// Those of a page of their own, whose answers another test reads.
bool asks_planner(const Shown& entry) {
  return entry.file == "questions.md" && entry.command.starts_with("plan serve ");
}

TEST(DocumentedCommands, each_one_succeeds) {
  const std::vector<Shown> shown = all_shown_commands();
  EXPECT_GE(shown.size(), 10u) << "the documentation shows commands";
  for (const Shown& entry : shown) {
    if (entry.command.find(data_folder) != std::string::npos || asks_planner(entry)) continue;
    expect_success(entry.command, entry);
  }
}

// "8xH100" and "h100:4,l40s:4": the names, in lower case.
std::vector<std::string> offered_devices(const std::string& command) {
  const std::string flag = "--hardware ";
  const size_t begin = command.find(flag) + flag.size();
  const std::string offered = command.substr(begin, command.find(' ', begin) - begin);
  std::vector<std::string> names;
  for (const std::string_view item : split(offered, ",")) {
    const std::string name = lower_case(item.substr(0, item.find(':')));
    const size_t count = name.find_first_not_of("0123456789");
    names.push_back(count > 0 && name[count] == 'x' ? name.substr(count + 1) : name);
  }
  return names;
}

TEST(DocumentedCommands, questions_to_the_planner_are_answered_for_each_device_with_lines_that_start) {
  const std::string page = FORETOKEN_SOURCE_DIR "/docs/questions.md";
  size_t questions = 0, lines = 0;
  for (const Shown& entry : shown_commands(page)) {
    if (!asks_planner(entry)) continue;
    ++questions;
    SCOPED_TRACE(entry.command);
    const Outcome run = run_foretoken(entry.command + " --json");
    ASSERT_EQ(run.status, 0) << run.err;
    const Json json = parse_json(run.out, "answer");
    const JsonView answer(json, "answer");
    for (const std::string& device : offered_devices(entry.command)) {
      bool is_answered = false;
      for (const JsonView& row : answer.at("by_device_and_engine").items()) {
        if (!row.at("device").string().starts_with(device)) continue;
        is_answered = row.has("best") || row.has("reason");
      }
      EXPECT_TRUE(is_answered) << device;
    }
    for (const JsonView& command : answer.at("commands").items()) {
      const std::string line = command.at("line").string();
      if (line.empty() || command.at("role").string() == "router") continue;
      ++lines;
      const std::string device = answer.at("winner").at("device").string();
      std::vector<std::string> words = {"serve", "--from", line, "--device", device, "--print-spec"};
      if (line.find(" MODEL") != std::string::npos) {
        EXPECT_NE(command.at("note").string().find("replace MODEL"), std::string::npos) << line;
        words.insert(words.end(), {"--model", answer.at("model").string()});
      }
      const Outcome read = run_foretoken(words);
      EXPECT_EQ(read.status, 0) << line << "\n" << read.err;
    }
  }
  EXPECT_GE(questions, 15u);
  EXPECT_GE(lines, questions);
}

TEST(DocumentedCommandsNeedsData, each_one_that_reads_measurements_succeeds) {
  const char* folder = std::getenv("FORETOKEN_DATA");
  if (folder == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  for (const Shown& entry : all_shown_commands()) {
    std::string command = entry.command;
    bool reads_data = false;
    for (size_t at = command.find(data_folder); at != std::string::npos; at = command.find(data_folder, at)) {
      command.replace(at, data_folder.size(), folder);
      reads_data = true;
    }
    if (reads_data) expect_success(command, entry);
  }
}

// Examples in --help: indented lines that start with the program's name. Those that name a file of the reader's are
// left out.
std::vector<std::string> help_examples(const std::string& command) {
  const std::string start = "  foretoken ";
  std::vector<std::string> examples;
  bool goes_on = false;
  std::istringstream lines(run_foretoken(command + " --help").out);
  for (std::string text; std::getline(lines, text);) {
    const bool more_of_it = goes_on;
    goes_on = text.ends_with(" \\");
    if (goes_on) text.resize(text.size() - 2);
    if (text.starts_with(start)) {
      examples.push_back(text.substr(start.size()));
    } else if (more_of_it) {
      examples.back() += text.substr(text.find_first_not_of(' ') - 1);
    }
  }
  std::erase_if(examples, [](const std::string& example) {
    for (const char* word : {"measurements/", "shapes.csv", "path/to", "my-library"}) {
      if (example.find(word) != std::string::npos) return true;
    }
    return false;
  });
  return examples;
}

TEST(DocumentedCommands, the_examples_in_help_succeed) {
  std::vector<std::string> commands = {
      "devices",        "models", "stacks", "kernel", "step",     "validate kernels", "check data",
      "import profile", "replay", "train",  "rlhf",   "systolic", "dataflow",         "chip"};
  for (const std::string& family : kernel_family_names()) commands.push_back("kernel " + family);
  size_t examples = 0;
  for (const std::string& command : commands) {
    for (const std::string& example : help_examples(command)) {
      const Outcome run = run_foretoken(example);
      EXPECT_EQ(run.status, 0) << "foretoken " << example << "\n" << run.err;
      ++examples;
    }
  }
  EXPECT_GE(examples, kernel_family_names().size());
}

}  // namespace foretoken::documented_commands_test
