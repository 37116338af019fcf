// The examples of docs/accelerators/files.md are read as they stand there.
#include <gtest/gtest.h>

#include "accelerator/formats/architecture_json.h"
#include "accelerator/formats/problem_json.h"
#include "accelerator/formats/timeloop_files.h"
#include "accelerator/mapping_text.h"
#include "base/file.h"

namespace foretoken::documented_files_test {

std::vector<std::string> documented_blocks(const std::string& language) {
  const std::string text = read_file(FORETOKEN_SOURCE_DIR "/docs/accelerators/files.md", 1 << 20);
  const std::string opening = "```" + language + "\n";
  std::vector<std::string> blocks;
  for (size_t at = text.find(opening); at != std::string::npos; at = text.find(opening, at + 1)) {
    const size_t first = at + opening.size();
    blocks.push_back(text.substr(first, text.find("```", first) - first));
  }
  return blocks;
}

TEST(DocumentedFiles, the_timeloop_example_is_a_sound_mapping) {
  std::vector<TimeloopText> texts;
  for (const std::string& block : documented_blocks("yaml")) texts.push_back({.source = "files.md", .text = block});
  ASSERT_FALSE(texts.empty());
  const AcceleratorInputs inputs = read_timeloop_texts(texts);
  ASSERT_TRUE(inputs.mapping);
  EXPECT_EQ(mapping_faults(*inputs.mapping, *inputs.architecture, *inputs.problem), std::vector<std::string>{});
}

TEST(DocumentedFiles, the_json_examples_are_a_sound_mapping) {
  const std::vector<std::string> blocks = documented_blocks("json");
  ASSERT_EQ(blocks.size(), 3);
  std::vector<Json> documents;
  for (const std::string& block : blocks) documents.push_back(parse_json(block, "files.md"));
  const AcceleratorDesign design = read_architecture_json(JsonView(documents[0], "design"));
  const Problem problem = read_problem_json(JsonView(documents[1], "problem"));
  const Mapping mapping = read_mapping_json(JsonView(documents[2], "mapping"), design.architecture, problem);
  EXPECT_EQ(mapping_faults(mapping, design.architecture, problem), std::vector<std::string>{});
}

}  // namespace foretoken::documented_files_test
