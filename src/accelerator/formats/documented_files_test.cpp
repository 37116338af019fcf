// The examples of docs/accelerators are read as they stand there.
#include <gtest/gtest.h>

#include "accelerator/formats/architecture_json.h"
#include "accelerator/formats/problem_json.h"
#include "accelerator/formats/timeloop_files.h"
#include "accelerator/mapping_text.h"
#include "base/file.h"

namespace foretoken::documented_files_test {

std::vector<std::string> documented_blocks(const std::string& language, const std::string& page = "files.md") {
  const std::string text = read_file(FORETOKEN_SOURCE_DIR "/docs/accelerators/" + page, 1 << 20);
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

TEST(DocumentedFiles, designs_of_chiplets_and_memories_are_sound) {
  const std::string page = "chiplets_and_memories.md";
  const std::vector<std::string> blocks = documented_blocks("json", page);
  ASSERT_EQ(blocks.size(), 2);
  const Json package = parse_json(blocks[0], page), array = parse_json(blocks[1], page);
  const AcceleratorDesign chiplets = read_architecture_json(JsonView(package, page));
  EXPECT_EQ(chiplets.architecture.levels[1].mesh.words_per_cycle, 25);
  EXPECT_EQ(chiplets.tensors[1].spread.size(), 2);
  const AcceleratorDesign cells = read_architecture_json(JsonView(array, page));
  EXPECT_EQ(instances(cells.architecture.levels.back()), 4 * 128 * 32);
}

TEST(DocumentedFiles, attention_in_a_window_is_a_problem) {
  const Json document = parse_json(documented_blocks("json", "transformers.md").at(0), "transformers.md");
  const Problem problem = read_problem_json(JsonView(document, "transformers.md"));
  EXPECT_EQ(operations(problem), 4096.0 * 512 * 64);
  EXPECT_EQ(tensor_words(problem.tensors[1], problem), (4096.0 + 511) * 64);
}

}  // namespace foretoken::documented_files_test
