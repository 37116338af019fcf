#include "app/cli/grammar/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/cli/grammar/command_line.h"

namespace foretoken::manual_test {

using testing::HasSubstr;

TEST(Manual, lists_every_command_and_every_flag_of_it) {
  std::vector<CommandDeclaration> commands;
  for (const CommandKind& kind : all_commands()) commands.push_back(declaration_of(kind));
  const std::string page = manual_page(commands, "1.2.3");
  EXPECT_TRUE(page.starts_with(".TH FORETOKEN 1 \"\" \"foretoken 1.2.3\""));
  for (const CommandDeclaration& command : commands) {
    std::string name = command.name;
    for (size_t at = name.find('-'); at != std::string::npos; at = name.find('-', at + 2)) name.insert(at, 1, '\\');
    EXPECT_THAT(page, HasSubstr(".SS \"foretoken " + name));
  }
  EXPECT_THAT(page, HasSubstr(".SS \"foretoken kernel gemm\""));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-request\\-rate\\fR \\fIVALUE\\fR"));
}

TEST(Manual, sets_text_as_it_is) {
  const CommandDeclaration command{
      .name = "odd", .summary = "Dots", .footer = ".hidden\n'quoted' a\\b", .flags = {}, .subcommands = {}};
  EXPECT_THAT(manual_page({&command, 1}, "1"), HasSubstr("\\&.hidden\n\\&'quoted' a\\eb\n"));
}

}  // namespace foretoken::manual_test
