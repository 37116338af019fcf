// Every layer validated at once, and other tools run beside foretoken.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/json.h"
#include "run.h"

namespace foretoken::trust_commands_test {

std::filesystem::path empty_folder(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(ValidateAllCommand, shipped_measurements_are_checked_and_the_next_run_is_compared) {
  const std::filesystem::path folder = empty_folder("validate_all");
  const std::string history = (folder / "history.jsonl").string();
  const std::string command = "validate --all --data " + folder.string() + " --date 2026-11-17 --json --history ";
  const Outcome first = run_foretoken(command + history);
  ASSERT_EQ(first.status, 0) << first.err;
  const Outcome second = run_foretoken(command + history);
  ASSERT_EQ(second.status, 0) << second.err;
  const Json document = parse_json(second.out, "second");
  const JsonView view(document, "second");
  EXPECT_EQ(view.at("past_runs").integer(), 1);
  int done = 0, skipped = 0;
  for (const JsonView& check : view.at("checks").items()) {
    if (check.find("skipped")) {
      ++skipped;
      continue;
    }
    ++done;
    EXPECT_EQ(check.at("mape").number(), check.at("mape_before").number()) << check.at("name").string();
  }
  EXPECT_GE(done, 4);
  EXPECT_GE(skipped, 10);
}

TEST(ValidateAllCommand, wrong_input_is_refused) {
  EXPECT_EQ(run_foretoken("validate").status, 2);
  EXPECT_EQ(run_foretoken("validate --all --data /no/such/folder").status, 2);
}

// Its answers about one peer.
JsonView peer_of(const Json& document, const std::string& name) {
  for (const JsonView& peer : JsonView(document, "peers").at("peers").items()) {
    if (peer.at("peer").string() == name) return peer;
  }
  ADD_FAILURE() << "bench peers does not look for " << name;
  return JsonView(document, "peers");
}

TEST(BenchPeersCommand, every_tool_of_the_suite_is_looked_for_and_a_page_compares_with_it) {
  const Outcome outcome = run_foretoken("bench peers --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json document = parse_json(outcome.out, "peers");
  const std::filesystem::path root = FORETOKEN_SOURCE_DIR;
  for (const auto& entry : std::filesystem::directory_iterator(root / "data" / "suite" / "tools")) {
    const Json tool = parse_json(read_file(entry.path(), size_t{1} << 20), entry.path().string());
    const std::string name = JsonView(tool, "tool").at("name").string();
    if (name == "foretoken" || name == "Roofline (baseline)") continue;
    const JsonView peer = peer_of(document, name);
    peer.at("installed").boolean();
    EXPECT_TRUE(std::filesystem::exists(root / peer.at("compared_in").string())) << name;
  }
  EXPECT_EQ(run_foretoken("bench peers --calculon /no/such/folder").status, 2);
  EXPECT_EQ(run_foretoken("bench peers --timeloop-mapping map.yaml").status, 2);
  EXPECT_EQ(run_foretoken("bench peers --checkouts /no/such/folder").status, 2);
}

TEST(BenchPeersCommand, programs_and_checkouts_are_found_and_what_they_lack_is_said) {
  const std::filesystem::path programs = empty_folder("peer_programs"), checkouts = empty_folder("peer_checkouts");
  for (const char* program : {"simulation_worker", "timeloop-model"}) {
    std::ofstream(programs / program) << "#!/bin/sh\nexit 1\n";
    std::filesystem::permissions(programs / program, std::filesystem::perms::owner_all);
  }
  std::filesystem::create_directories(checkouts / "NeuSight");
  const std::string before = std::getenv("PATH");
  ASSERT_EQ(setenv("PATH", (programs.string() + ":" + before).c_str(), 1), 0);
  const std::string line = "bench peers --checkouts " + checkouts.string();
  const Outcome json = run_foretoken(line + " --json"), text = run_foretoken(line);
  ASSERT_EQ(setenv("PATH", before.c_str(), 1), 0);
  ASSERT_EQ(json.status, 0) << json.err;
  const Json document = parse_json(json.out, "peers");
  for (const auto& [name, lacks] : {std::pair("BLIS", "coefficients"), std::pair("NeuSight", "trained predictors"),
                                    std::pair("Timeloop", "--timeloop-files and --timeloop-mapping")}) {
    const JsonView peer = peer_of(document, name);
    EXPECT_TRUE(peer.at("installed").boolean()) << name;
    EXPECT_NE(peer.at("not_run").string().find(lacks), std::string::npos) << peer.at("not_run").string();
  }
  EXPECT_NE(in_one_line(text.out).find("NeuSight: found (" + (checkouts / "NeuSight").string()), std::string::npos)
      << text.out;
}

TEST(CheckCommand, old_prices_and_fits_are_noted_but_are_no_problem) {
  const auto notes_on = [](const std::string& date) {
    const Outcome run = run_foretoken("check data --json --date " + date);
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    const Json document = parse_json(run.out, date);
    std::string notes;
    for (const JsonView& note : JsonView(document, date).at("notes").items()) notes += note.string() + "\n";
    return notes;
  };
  const std::string early = notes_on("2026-05-01"), late = notes_on("2028-01-01");
  EXPECT_EQ(early.find("months old"), std::string::npos) << early;
  EXPECT_NE(early.find("without a date: a10g"), std::string::npos) << early;
  EXPECT_NE(late.find("rents at least 6 months old: a10, a100_pcie"), std::string::npos) << late;
  EXPECT_NE(late.find("fits at least 12 months old"), std::string::npos) << late;
  EXPECT_EQ(run_foretoken("check data --date soon").status, 2);
}

TEST(CheckCommand, stacks_are_read_and_aged) {
  const std::filesystem::path library = empty_folder("library_of_stacks");
  for (const char* name : {"hardware", "models"}) {
    std::filesystem::create_directory_symlink(std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data" / name,
                                              library / name);
  }
  for (const char* name : {"stacks", "training/stacks"}) {
    std::filesystem::create_directories(library / name);
    std::ofstream(library / name / "mine.json") << "{}";
  }
  const std::string command = "check data --date 2028-01-01 --dir " + library.string();
  const Outcome broken = run_foretoken(command);
  EXPECT_EQ(broken.status, 2);
  EXPECT_NE(broken.out.find("stacks/mine.json"), std::string::npos) << broken.out;
  EXPECT_NE(broken.out.find("2 problems"), std::string::npos) << broken.out;

  std::filesystem::remove_all(library / "training");
  std::filesystem::copy_file(std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data/stacks/sglang.json",
                             library / "stacks" / "mine.json", std::filesystem::copy_options::overwrite_existing);
  const Outcome aged = run_foretoken(command);
  EXPECT_EQ(aged.status, 0) << aged.out << aged.err;
  EXPECT_NE(in_one_line(aged.out).find("fits at least 12 months old: stacks/mine.json"), std::string::npos) << aged.out;
}

}  // namespace foretoken::trust_commands_test
