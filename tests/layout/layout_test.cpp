#include "layout.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace foretoken::layout {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
namespace fs = std::filesystem;

TEST(Layout, the_source_tree_keeps_its_rules) {
  EXPECT_THAT(breaches(FORETOKEN_SOURCE_DIR), IsEmpty());
}

// A small tree that keeps every rule, for a test to break one.
class PlantedTree : public testing::Test {
 protected:
  PlantedTree() {
    std::string name = (fs::temp_directory_path() / "foretoken-layout-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw fs::filesystem_error("mkdtemp", std::error_code(errno, std::generic_category()));
    root_ = name;
    write("CMakeLists.txt",
          "foretoken_folder(base     LINKS ZLIB::ZLIB)\n"
          "foretoken_folder(hardware USES base)\n"
          "foretoken_folder(model    USES hardware LINKS fmt::fmt)\n"
          "foretoken_folder(network  USES hardware)\n");
    for (const char* folder : {"base", "hardware", "model", "network", "app"}) {
      write(fs::path("src") / folder / "README.md", "# What comes in, what goes out\n");
    }
    write("src/base/json.h", "#include <string>\n");
    write("src/hardware/device.h", "#include \"base/json.h\"\n");
    write("src/model/model.h", "#include \"base/json.h\"\n#include \"hardware/device.h\"\n");
    write("src/model/families/llama.cpp", "#include \"model/model.h\"\n\n#include <nlohmann/json.hpp>\n");
    write("src/app/cli/main.cpp", "#include <CLI/CLI.hpp>\n\n#include \"model/model.h\"\n");
  }
  ~PlantedTree() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  fs::path root_;
};

TEST_F(PlantedTree, that_keeps_the_rules_has_no_breach) {
  EXPECT_THAT(breaches(root_), IsEmpty());
}

TEST_F(PlantedTree, an_instruction_set_outside_its_table_is_found) {
  const std::string reads = "bool is_new(const Device& d) {\n  return d.instruction_set.starts_with(\"sm_1\");\n}\n";
  write("src/hardware/generation.cpp", reads);
  write("src/model/model_test.cpp", reads);
  write("src/model/model.cpp", reads + "// as on \"sm_90\"\n");
  EXPECT_THAT(breaches(root_), ElementsAre("src/model/model.cpp:2: \"sm_1\": only hardware/generation.cpp reads "
                                           "instruction sets"));
}

TEST_F(PlantedTree, an_engine_that_is_told_by_its_name_is_found) {
  const std::string tells =
      "bool a = spec.engine == \"vllm\";\nbool b = engine_family(name) != \"sglang\";\n"
      "bool d = release && release->family == \"vllm\";\n";
  write("src/app/cli/flags/run_flags.cpp", tells);
  write("src/model/model_test.cpp", tells);
  write("src/model/model.cpp", tells + "bool c = engine_kind(name).family == other.family;\n");
  EXPECT_THAT(breaches(root_),
              ElementsAre("src/model/model.cpp:1: \"vllm\": ask the engine's kind what it does, not for its name",
                          "src/model/model.cpp:2: \"sglang\": ask the engine's kind what it does, not for its name",
                          "src/model/model.cpp:3: \"vllm\": ask the engine's kind what it does, not for its name"));
}

TEST_F(PlantedTree, a_function_whose_last_bit_differs_between_machines_is_found) {
  const std::string computes =
      "double a = std::sqrt(2) + std::exp(1.0);\ndouble b = std::log10(x), c = portable_pow(x, 2);\n";
  write("src/model/model_test.cpp", computes);
  write("src/model/model.cpp", computes);
  EXPECT_THAT(breaches(root_),
              ElementsAre("src/model/model.cpp:1: std::exp differs between machines; use base/portable_math.h",
                          "src/model/model.cpp:2: std::log10 differs between machines; use base/portable_math.h"));
}

TEST_F(PlantedTree, a_flag_in_a_text_outside_app_is_found) {
  const std::string names = "// as --help has it\nconst char* why = \"less: \\\"--max-model-len 5\\\"\";\n";
  write("src/app/cli/flags.cpp", names);
  write("src/model/model_test.cpp", names);
  write("src/model/weights.cpp", "const char* id = \"a--b\"; f(\"c\", --i, \"d\");\n");
  write("src/model/model.cpp", names);
  EXPECT_THAT(breaches(root_),
              ElementsAre("src/model/model.cpp:2: --max-model-len: only app/ names flags; name the field"));
}

TEST_F(PlantedTree, an_include_down_the_pipeline_is_found) {
  write("src/base/json.cpp", "#include \"base/json.h\"\n#include \"model/model.h\"\n");
  EXPECT_THAT(breaches(root_),
              ElementsAre("src/base/json.cpp:2: \"model/model.h\" points down the pipeline: base may not use model"));
}

TEST_F(PlantedTree, an_include_down_the_pipeline_is_found_in_a_test_and_in_odd_spacing) {
  write("src/hardware/device_test.cpp", "  #  include  \"app/cli/main.cpp\"  // why not\n");
  EXPECT_THAT(breaches(root_), ElementsAre("src/hardware/device_test.cpp:1: \"app/cli/main.cpp\" points down the "
                                           "pipeline: hardware may not use app"));
}

TEST_F(PlantedTree, an_include_of_a_folder_the_target_does_not_use_is_found) {
  write("src/network/ring.cpp", "#include \"base/json.h\"\n#include \"model/model.h\"\n");
  EXPECT_THAT(breaches(root_),
              ElementsAre("src/network/ring.cpp:2: \"model/model.h\": the CMake target of network does not use model"));
}

TEST_F(PlantedTree, an_include_that_is_not_from_src_on_is_found) {
  write("src/model/model.cpp", "#include \"model.h\"\n#include \"../base/json.h\"\n#include \"base/gone.h\"\n");
  EXPECT_THAT(breaches(root_),
              ElementsAre("src/model/model.cpp:1: \"model.h\" does not name a file from src/ on",
                          "src/model/model.cpp:2: \"../base/json.h\" does not name a file from src/ on",
                          "src/model/model.cpp:3: \"base/gone.h\" does not exist"));
}

TEST_F(PlantedTree, files_that_include_each_other_are_found) {
  write("src/model/weights.h", "#include \"model/model.h\"\n");
  write("src/model/layers.h", "#include \"model/weights.h\"\n");
  write("src/model/model.cpp", "#include \"model/model.h\"\n#include \"model/layers.h\"\n");
  EXPECT_THAT(breaches(root_),
              ElementsAre("src/model: files that include each other: model/layers, model/model, model/weights"));
}

TEST_F(PlantedTree, a_private_header_belongs_to_its_file_and_tests_may_look_anywhere) {
  write("src/model/model_internal.h", "#include \"model/model.h\"\n");
  write("src/model/model.cpp", "#include \"model/model.h\"\n#include \"model/model_internal.h\"\n");
  write("src/model/families/list.h", "#include \"model/model.h\"\n");
  write("src/model/model_test.cpp", "#include \"model/families/list.h\"\n");
  EXPECT_THAT(breaches(root_), IsEmpty());
}

TEST_F(PlantedTree, subfolders_that_include_each_other_are_found) {
  write("src/model/families/list.h", "\n");
  write("src/model/weights.cpp", "#include \"model/families/list.h\"\n");
  EXPECT_THAT(breaches(root_), ElementsAre("src/model: folders that include each other: model, model/families"));
}

TEST_F(PlantedTree, a_heavy_header_in_a_header_is_found) {
  write("src/base/json.h", "#include <nlohmann/json_fwd.hpp>\n");
  write("src/app/cli/grammar/options.h", "#include \"CLI/CLI.hpp\"\n");
  EXPECT_THAT(breaches(root_), testing::Contains("src/base/json.h:1: <nlohmann/json_fwd.hpp> belongs in a .cpp file"));
  EXPECT_THAT(breaches(root_),
              testing::Contains("src/app/cli/grammar/options.h:1: <CLI/CLI.hpp> belongs in a .cpp file"));
}

TEST_F(PlantedTree, a_name_in_two_unnamed_namespaces_of_a_folder_is_found) {
  const auto file = [](const std::string& lines) { return "namespace {\n" + lines + "}  // namespace\n"; };
  write("src/model/a.cpp", file("constexpr int width = 3;\nint twice(int n) {\n  return 2 * n;\n}\n"));
  write("src/model/b.cpp", file("constexpr double width = 4;\nint twice(double n) {\n  return 2;\n}\n"));
  write("src/network/a.cpp", file("constexpr int width = 3;\n"));
  write("src/network/b.cpp", "namespace b {\n" + file("constexpr int width = 3;\n") + "}  // namespace b\n");
  EXPECT_THAT(breaches(root_), ElementsAre("src/model/b.cpp: width is in src/model/a.cpp too"));
}

TEST_F(PlantedTree, a_type_that_two_headers_define_is_found) {
  const auto header = [](const std::string& space, const std::string& types) {
    return "namespace " + space + " {\n\n" + types + "\n}  // namespace " + space + "\n";
  };
  write("src/model/model.h",
        header("foretoken", "struct Part {\n  int a;\n};\nclass Device;\nenum class Kind { one };\n"));
  write("src/model/parts.h", header("foretoken::parts", "struct Part {\n};\n"));
  write("src/model/use.h", header("foretoken", "void use(struct Part part);\nclass Device : public Base {\n};\n"));
  write("src/network/kinds.h", header("foretoken", "using Kind = int;\nclass Part final {\n};\n"));
  EXPECT_THAT(breaches(root_), ElementsAre("src/network/kinds.h: foretoken::Kind is in src/model/model.h too",
                                           "src/network/kinds.h: foretoken::Part is in src/model/model.h too"));
}

TEST_F(PlantedTree, a_readme_that_is_missing_or_long_is_found) {
  fs::remove(root_ / "src/model/README.md");
  write("src/base/README.md", std::string(16, '\n'));
  EXPECT_THAT(breaches(root_), ElementsAre("src/base/README.md: 16 lines; at most 15", "src/model: no README.md"));
}

TEST_F(PlantedTree, a_folder_outside_the_pipeline_is_found) {
  write("src/utilities/README.md", "\n");
  EXPECT_THAT(breaches(root_), ElementsAre("src/utilities: not a folder of the pipeline"));
}

}  // namespace
}  // namespace foretoken::layout
