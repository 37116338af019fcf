#include "app/cli/grammar/declarations.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/cli/grammar/command_line.h"

namespace foretoken::declarations_test {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class TwoKinds : public Command {
 public:
  void declare(Options& options) override {
    Options& first = options.subcommand("first", "One kind");
    first.heading("Sizes");
    first.integer("--tensor-parallel-size,-tp", ranks_, {.least = 1, .most = 8}, "Devices");
    first.choice("--dtype", dtype_, {"bf16", "fp8"}, "Number format", true);
    first.flag("--energy", energy_, "Also energy");
    options.subcommand("second", "Another").texts("--replica", replicas_, "Each kind");
    options.footer("Examples");
  }
  Answer run(const Library&) const override { return {}; }

 private:
  int64_t ranks_ = 2;
  std::string dtype_;
  bool energy_ = false;
  std::vector<std::string> replicas_;
};

TEST(Declarations, hold_what_a_command_declared) {
  const CommandDeclaration command = declaration_of(
      {"either", "Two kinds", []() -> std::unique_ptr<Command> { return std::make_unique<TwoKinds>(); }});
  EXPECT_EQ(command.name, "either");
  EXPECT_EQ(command.summary, "Two kinds");
  EXPECT_EQ(command.footer, "Examples");
  ASSERT_EQ(command.subcommands.size(), 2U);
  const CommandDeclaration& first = command.subcommands[0];
  const FlagDeclaration* ranks = find_flag(first, "-tp");
  ASSERT_NE(ranks, nullptr);
  EXPECT_THAT(ranks->names, ElementsAre("--tensor-parallel-size", "-tp"));
  EXPECT_EQ(ranks->kind, FlagKind::integer);
  EXPECT_EQ(ranks->fallback, "2");
  EXPECT_EQ(ranks->heading, "Sizes");
  const FlagDeclaration* dtype = find_flag(first, "--dtype");
  ASSERT_NE(dtype, nullptr);
  EXPECT_THAT(dtype->choices, ElementsAre("bf16", "fp8"));
  EXPECT_TRUE(dtype->required);
  EXPECT_EQ(dtype->help, "Number format");
  ASSERT_NE(find_flag(first, "--energy"), nullptr);
  EXPECT_EQ(find_flag(first, "--energy")->kind, FlagKind::flag);
  EXPECT_EQ(find_flag(first, "--replica"), nullptr);
  ASSERT_NE(find_command(command.subcommands, "second"), nullptr);
  EXPECT_NE(find_flag(*find_command(command.subcommands, "second"), "--replica"), nullptr);
}

void check_each(const CommandDeclaration& command) {
  std::set<std::string> names;
  EXPECT_THAT(command.summary, Not(IsEmpty())) << command.name;
  for (const FlagDeclaration& flag : command.flags) {
    EXPECT_THAT(flag.help, Not(IsEmpty())) << command.name << " " << flag.names.front();
    EXPECT_EQ(flag.kind == FlagKind::choice, !flag.choices.empty()) << command.name << " " << flag.names.front();
    for (const std::string& name : flag.names) {
      EXPECT_TRUE(names.insert(name).second) << command.name << " " << name;
      // The parser does not know short names of several letters.
      const bool is_rewritten = name.size() > 2 && name[0] == '-' && name[1] != '-';
      if (is_rewritten) {
        EXPECT_NE(find_flag(command, with_library_flags({name}).front()), nullptr) << name;
        EXPECT_NE(with_library_flags({name}).front(), name) << command.name;
      }
    }
  }
  for (const CommandDeclaration& subcommand : command.subcommands) check_each(subcommand);
}

TEST(Declarations, of_all_commands_explain_each_flag_and_use_no_name_twice) {
  for (const CommandKind& kind : all_commands()) check_each(declaration_of(kind));
}

}  // namespace foretoken::declarations_test
