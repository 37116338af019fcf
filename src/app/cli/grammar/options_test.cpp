#include "app/cli/grammar/options.h"

#include <optional>

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::options_test {

constexpr Range<int64_t> any{.least = 0, .most = 1'000'000'000'000};

TEST(ParseSize, suffixes_count_thousands_or_1024s) {
  EXPECT_EQ(parse_size("--x", "4096", any), 4096);
  EXPECT_EQ(parse_size("--x", "4k", any), 4000);
  EXPECT_EQ(parse_size("--x", "4K", any), 4096);
  EXPECT_EQ(parse_size("--x", "1.5m", any), 1'500'000);
  EXPECT_EQ(parse_size("--x", "2G", any), 2147483648);
}

TEST(ParseSize, anything_else_is_an_input_error_that_names_the_flag) {
  for (const char* text : {"", "k", "4kk", "1e30", "-1", "2.5", "nan", "0x10", " 4", "4 "}) {
    try {
      parse_size("--batch", text, any);
      FAIL() << text;
    } catch (const InputError& error) {
      EXPECT_EQ(error.problem().source, "--batch") << text;
    }
  }
}

TEST(ParseSettings, keys_are_flags_without_their_dashes) {
  int64_t ranks = 1, sequences = 5;
  bool eager = false;
  std::string device;
  const auto declare = [&](Options& options) {
    options.integer("--tensor-parallel-size,-tp", ranks, any, "");
    options.integer("--max-num-seqs", sequences, any, "");
    options.flag("--enforce-eager", eager, "");
    options.text("--device", device, "", true);
  };
  parse_settings("--replica", "tp=2,device=l40s,enforce-eager", declare);
  EXPECT_EQ(ranks, 2);
  EXPECT_EQ(sequences, 5) << "what is not named stays";
  EXPECT_TRUE(eager);
  EXPECT_EQ(device, "l40s");
  for (const auto& [text, suggestion] : {std::pair("max-num-seq=4", "max-num-seqs"), std::pair("zzz", "")}) {
    try {
      parse_settings("--replica", text, declare);
      FAIL() << text;
    } catch (const InputError& error) {
      EXPECT_EQ(error.problem().source, "--replica");
      EXPECT_EQ(error.problem().suggestion, suggestion);
    }
  }
  EXPECT_THROW(parse_settings("--replica", "tp", declare), InputError);
  EXPECT_THROW(parse_settings("--replica", "tp=two", declare), InputError);
}

TEST(Options, a_flag_was_given_by_whichever_of_its_names) {
  std::string schedule;
  bool sharded = false;
  const auto declare = [&](Options& options) {
    options.text("--pipeline-schedule,--schedule", schedule, "");
    options.flag("--sharded", sharded, "");
  };
  for (const char* typed : {"schedule=x", "pipeline-schedule=x"}) {
    parse_settings("--set", typed, declare, [](const Options& options) {
      EXPECT_TRUE(options.was_given("--schedule"));
      EXPECT_TRUE(options.was_given("--pipeline-schedule"));
      EXPECT_FALSE(options.was_given("--sharded"));
      EXPECT_THROW(options.refuse({"--schedule"}, {}, "this"), InputError);
      EXPECT_THROW(options.refuse({"--pipeline-schedule"}, {}, "this"), InputError);
      EXPECT_THROW((void)options.was_given("--never-declared"), InternalError);
    });
  }
}

TEST(Options, a_flag_may_be_left_unsaid) {
  const auto said = [](const std::string& text) {
    std::optional<bool> ahead;
    bool other = false;
    parse_settings("--set", text, [&](Options& options) {
      options.flag("--ahead", ahead, "");
      EXPECT_EQ(options.fields().back().value().kind(), Json::Kind::null);
      EXPECT_EQ(options.fields().back().declaration.usual.kind(), Json::Kind::null);
      options.flag("--other", other, "");
    });
    return ahead;
  };
  EXPECT_EQ(said("other"), std::nullopt);
  EXPECT_EQ(said("ahead"), true);
  EXPECT_EQ(said("no-ahead"), false);
  EXPECT_EQ(said("other,ahead"), true);
}

TEST(Options, a_refusal_says_all_of_why) {
  std::string schedule;
  const std::string why = "a reason that takes rather more than the sixty letters that values are cut to";
  parse_settings(
      "--set", "schedule=x", [&](Options& options) { options.text("--schedule", schedule, ""); },
      [&](const Options& options) {
        try {
          options.refuse({"--schedule"}, {}, why);
          FAIL();
        } catch (const InputError& error) {
          EXPECT_NE(error.problem().value.find(why), std::string::npos) << error.what();
        }
      });
}

TEST(Options, a_flag_that_needs_another_says_which) {
  std::string schedule;
  parse_settings(
      "--set", "schedule=x", [&](Options& options) { options.text("--schedule", schedule, ""); },
      [&](const Options& options) {
        EXPECT_NO_THROW(options.refuse_without("--day", {"--other"}));
        try {
          options.refuse_without("--day", {"--schedule"});
          FAIL();
        } catch (const InputError& error) {
          EXPECT_EQ(std::string(error.what()), "--schedule: needs --day");
        }
      });
}

TEST(ParseSettings, a_list_that_names_a_release_takes_other_releases) {
  std::string engine, color;
  const auto declare = [&](Options& options) {
    options.choice("--engine", engine, {"vllm", "vllm-0.19", "sglang"}, "");
    options.choice("--color", color, {"red", "vllm"}, "");
  };
  parse_settings("--replica", "engine=vLLM-0.12.1", declare);
  EXPECT_EQ(engine, "vllm-0.12.1");
  parse_settings("--replica", "engine=vllm-0.19", declare);
  EXPECT_EQ(engine, "vllm-0.19");
  for (const char* written : {"vllm-v0.12", "vllm==0.12"}) {
    parse_settings("--replica", std::string("engine=") + written, declare);
    EXPECT_EQ(engine, "vllm-0.12") << written;
  }
  try {
    parse_settings("--replica", "engine=vllm-newest", declare);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(error.problem().expected.find("or one with a release, as in vllm-0.12"), std::string::npos);
  }
  EXPECT_THROW(parse_settings("--replica", "engine=trtllm-1.1", declare), InputError);
  EXPECT_THROW(parse_settings("--replica", "color=vllm-0.12", declare), InputError);
}

}  // namespace foretoken::options_test
