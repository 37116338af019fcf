#include "training/import/config_entries.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::config_entries_test {

std::string value_of(const ConfigEntries& config, std::string_view key) {
  const ConfigEntry* entry = config.find(key);
  return entry == nullptr ? "(none)" : entry->value;
}

TEST(ConfigEntries, trees_become_dotted_keys_with_lines) {
  const ConfigEntries yaml = yaml_entries("a: 1\nb:\n  c: text\n  d: [1, 2]\n  e: null\n", "f");
  EXPECT_EQ(value_of(yaml, "a"), "1");
  EXPECT_EQ(value_of(yaml, "b.c"), "text");
  EXPECT_EQ(yaml.find("b.c")->line, 3);
  EXPECT_EQ(value_of(yaml, "b.d"), "[1, 2]");
  EXPECT_EQ(value_of(yaml, "b.e"), "(none)");
  const ConfigEntries json = json_entries("{\"a\": 1,\n \"b\": {\"c\": \"text\", \"d\": true}}", "f");
  EXPECT_EQ(value_of(json, "a"), "1");
  EXPECT_EQ(value_of(json, "b.c"), "text");
  EXPECT_EQ(value_of(json, "b.d"), "true");
  EXPECT_EQ(json.find("b.c")->line, 2);
}

TEST(ConfigEntries, references_are_followed_and_what_cannot_be_is_marked) {
  const ConfigEntries config = yaml_entries(
      "variables:\n  length: 2048\nlength: ${variables.length}\nagain: ${length}\nloop: ${loop}\nwidth: "
      "${multiply:4, 2}\n",
      "f");
  EXPECT_EQ(value_of(config, "length"), "2048");
  EXPECT_EQ(value_of(config, "again"), "2048");
  EXPECT_FALSE(config.find("again")->computed);
  const ConfigEntries relative = yaml_entries("a:\n  b: 1\n  c: ${.b}\n  d:\n    e: ${..b}\n", "f");
  EXPECT_EQ(value_of(relative, "a.c"), "1");
  EXPECT_EQ(value_of(relative, "a.d.e"), "1");
  EXPECT_TRUE(config.find("loop")->computed);
  EXPECT_TRUE(config.find("width")->computed);
}

TEST(ConfigEntries, flags_are_found_in_strings_and_arrays_of_a_script) {
  const ConfigEntries config = argument_entries(
      "#!/bin/bash\n"
      "TP=8\n"
      "NODES=${SLURM_NNODES:-\"4\"}\n"
      "# --hidden-size 1\n"
      "GPT_ARGS=\"\n"
      "    --num-layers 24 \\\n"
      "    --tensor-model-parallel-size $TP \\\n"
      "    --bf16\n"
      "\"\n"
      "MORE=(\n"
      "    --micro_batch_size=4\n"
      "    --swiglu\n"
      ")\n"
      "torchrun --nnodes $NODES --global-batch-size $((TP * 4)) train.py ${GPT_ARGS[@]} --fp8-recipe ${RECIPE}\n",
      "train.sh");
  EXPECT_EQ(value_of(config, "num-layers"), "24");
  EXPECT_EQ(config.find("num-layers")->line, 6);
  EXPECT_EQ(value_of(config, "tensor-model-parallel-size"), "8");
  EXPECT_EQ(value_of(config, "bf16"), "");
  EXPECT_EQ(value_of(config, "micro-batch-size"), "4");
  EXPECT_EQ(value_of(config, "swiglu"), "");
  EXPECT_EQ(value_of(config, "nnodes"), "4");
  EXPECT_EQ(value_of(config, "hidden-size"), "(none)");
  EXPECT_TRUE(config.find("global-batch-size")->computed);
  EXPECT_TRUE(config.find("fp8-recipe")->computed);
}

TEST(ConfigEntries, a_file_of_words_on_lines_of_their_own_is_read_too) {
  const ConfigEntries config = argument_entries("--num-layers\n24\n--bf16\n--seq-length\n4096\n", "args.txt");
  EXPECT_EQ(value_of(config, "num-layers"), "24");
  EXPECT_EQ(value_of(config, "bf16"), "");
  EXPECT_EQ(value_of(config, "seq-length"), "4096");
}

TEST(ConfigEntries, words_of_a_switch) {
  for (const char* on : {"", "true", "True", "yes", "ON", "1"}) EXPECT_EQ(flag_from_text(on), true) << on;
  for (const char* off : {"false", "False", "no", "OFF", "0"}) EXPECT_EQ(flag_from_text(off), false) << off;
  for (const char* other : {"auto", "none", "2", "${x}"}) EXPECT_EQ(flag_from_text(other), std::nullopt) << other;
}

TEST(ConfigEntries, values_are_checked_with_file_line_and_key) {
  const ConfigEntries config = yaml_entries("a: many\nb: maybe\nc: 1_024\nd: off\n", "f.yaml");
  EXPECT_EQ(ConfigValue("f.yaml", *config.find("c")).count(), 1024);
  EXPECT_FALSE(ConfigValue("f.yaml", *config.find("d")).flag());
  try {
    ConfigValue("f.yaml", *config.find("a")).count();
    FAIL() << "many is no number";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().source, "f.yaml");
    EXPECT_EQ(error.problem().line, 1);
    EXPECT_EQ(error.problem().path, "a");
    EXPECT_EQ(error.problem().value, "many");
  }
  EXPECT_THROW(ConfigValue("f.yaml", *config.find("b")).flag(), InputError);
}

}  // namespace foretoken::config_entries_test
