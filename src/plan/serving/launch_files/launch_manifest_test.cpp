// What a file says is read back as what was simulated: serving/engine/launch_line.h is the other end.
#include "plan/serving/launch_files/launch_manifest.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "compose/engine_release.h"
#include "compose/serving_engine.h"
#include "plan/serving/launch_command.h"
#include "plan/serving/search_test_support.h"
#include "serving/engine/engine_setup.h"
#include "serving/engine/launch_line.h"

namespace foretoken::launch_manifest_test {

using testing::HasSubstr;
using testing::Not;

ServingQuestion asked() {
  ServingQuestion question = small_question();
  question.model.name = "org/model";
  question.memory_fraction = 0.85;
  question.hardware[0].node_devices = 8;
  return question;
}

// As number or text, whichever way it was written.
std::string shown(const Json* value) {
  if (value == nullptr) return "";
  return value->kind() == Json::Kind::string ? value->string() : value->dump(0);
}

// All that the command line says, and nothing that changes the answer besides.
void expect_says_the_same(const Json& file, const Json& line, const std::string& manifest) {
  for (const auto& [key, value] : line.members()) {
    if (key == "engine") {
      // An image may name the release that the plain engine is.
      const std::string release = shown(file.find(key)), engine = shown(&value);
      EXPECT_EQ(engine_kind(release).name, engine) << manifest;
      EXPECT_EQ(usual_stack(release), usual_stack(engine)) << manifest;
      EXPECT_EQ(unfitted_release_note(release), "") << manifest;
      continue;
    }
    EXPECT_EQ(shown(file.find(key)), shown(&value)) << key << manifest;
  }
  for (const auto& [key, value] : file.members()) {
    if (line.find(key) != nullptr || key == "replicas" || key == "device") continue;
    EXPECT_EQ(key, "data_parallel_size") << manifest;
    EXPECT_EQ(shown(&value), "1") << manifest;
  }
}

Json fields_of_lines(const PoolLaunch& pool) {
  return read_launch_line(pool.lines.front().line, "line",
                          [&](const std::string&) { return std::optional(pool.lines.front().options); })
      .fields;
}

TEST(LaunchManifest, every_file_is_read_back_as_the_layout) {
  const ServingQuestion question = asked();
  int files = 0;
  for (const char* name : {"vllm", "sglang", "trtllm"}) {
    for (const int64_t tensor : {1, 4}) {
      for (const int64_t ranks : {1, 2}) {
        for (const int64_t servers : {1, 2}) {
          if (name == std::string("trtllm") && tensor > 1 && ranks > 1) continue;  // it attends in whole ranks
          if (tensor * ranks * servers > 8) continue;
          EngineChoice engine{.device = "l4", .engine = name, .tensor = tensor};
          engine.attention_ranks = ranks;
          engine.expert_parallel = ranks > 1;
          engine.kv_dtype = DType::fp8;
          const ServingLayout layout{.pool = {.engine = engine, .replicas = servers, .max_num_seqs = 64}, .decode = {}};
          const Json line = fields_of_lines(pool_launches(question, layout, 4096).front());
          for (const std::string& kind : manifest_names()) {
            if (kind == "llm-d" && name != std::string("vllm")) continue;
            if (kind == "dynamo" && name == std::string("trtllm")) continue;
            const std::string manifest = launch_manifest(kind, question, layout, 4096);
            const LaunchLine read = read_launch_line(manifest, "file");
            expect_says_the_same(read.fields, line, manifest);
            EXPECT_EQ(shown(read.fields.find("replicas")), servers == 1 ? "" : std::to_string(servers)) << manifest;
            EXPECT_EQ(shown(read.fields.find("device")), "l4") << manifest;
            EXPECT_TRUE(read.remarks.unknown.empty()) << manifest << read.remarks.unknown.front();
            ++files;
          }
        }
      }
    }
  }
  EXPECT_EQ(files, 7 * 5 + 7 * 4 + 6 * 3);
}

TEST(LaunchManifest, images_have_the_release_that_was_simulated) {
  const ServingQuestion question = asked();
  const std::map<std::string, std::string> images = {
      {"vllm", "vllm/vllm-openai:latest\n"},         {"vllm-0.19", "vllm/vllm-openai:v0.19.0\n"},
      {"vllm-0.12.1", "vllm/vllm-openai:v0.12.1\n"}, {"sglang", "lmsysorg/sglang:latest\n"},
      {"sglang-0.5.9", "lmsysorg/sglang:v0.5.9\n"},  {"trtllm-1.1", "nvcr.io/nvidia/tensorrt-llm/release:1.1.0\n"}};
  for (const auto& [engine, image] : images) {
    const ServingLayout layout{.pool = {.engine = {.device = "l4", .engine = engine}}, .decode = {}};
    for (const char* kind : {"kubernetes", "compose"}) {
      const std::string manifest = launch_manifest(kind, question, layout, 4096);
      EXPECT_THAT(manifest, HasSubstr("image: " + image)) << kind;
      const std::string read = read_launch_line(manifest, "file").fields.find("engine")->string();
      EXPECT_EQ(read.substr(0, engine.size()), engine) << manifest;
      EXPECT_EQ(usual_stack(read), usual_stack(engine)) << manifest;
    }
  }
}

TEST(LaunchManifest, images_of_what_no_tag_is_called_keep_their_tag_and_say_the_release) {
  const ServingQuestion question = asked();
  const std::map<std::string, std::string> tags = {{"0.12", "v0.12.0"},
                                                   {"0.12.1", "v0.12.1"},
                                                   {"0.10.1.1", "v0.10.1.1"},
                                                   {"0.13.0rc1", "v0.13.0rc1"},
                                                   {"0.8.5.post1", "v0.8.5.post1"},
                                                   {"0.12.0rc6.post3", "v0.12.0rc6.post3"},
                                                   {"0.12rc1", "latest"},
                                                   {"0.12.x", "latest"},
                                                   {"0.12.1-dev", "latest"}};
  for (const auto& [version, tag] : tags) {
    const std::string engine = "vllm-" + version;
    const ServingLayout layout{.pool = {.engine = {.device = "l4", .engine = engine}}, .decode = {}};
    const std::string manifest = launch_manifest("compose", question, layout, 4096);
    EXPECT_THAT(manifest, HasSubstr("image: vllm/vllm-openai:" + tag + "\n"));
    EXPECT_THAT(manifest, HasSubstr("# This plan was simulated for vLLM " + version + ".\n"));
  }
}

TEST(LaunchManifest, a_file_whose_images_count_otherwise_says_which_release_was_simulated) {
  const ServingQuestion question = asked();
  for (const char* kind : {"dynamo", "llm-d"}) {
    ServingLayout layout{.pool = {.engine = {.device = "l4", .engine = "vllm-0.12.1"}}, .decode = {}};
    const std::string manifest = launch_manifest(kind, question, layout, 4096);
    EXPECT_THAT(manifest, HasSubstr("# This plan was simulated for vLLM 0.12.1.\n"));
    EXPECT_EQ(read_launch_line(manifest, "file").fields.find("engine")->string(), "vllm") << manifest;
    layout.pool.engine.engine = "vllm";
    EXPECT_THAT(launch_manifest(kind, question, layout, 4096), Not(HasSubstr("was simulated for")));
  }
}

TEST(LaunchManifest, servers_on_several_nodes_are_read_back_as_the_layout) {
  const ServingQuestion question = asked();
  struct Wide {
    const char* engine;
    int64_t tensor, pipeline, ranks;
    std::vector<std::string> kinds;
  };
  const std::map<std::string, std::string> says_nodes = {
      {"kubernetes", "size: 2"}, {"dynamo", "nodeCount: 2"}, {"llm-d", "workers: 2"}, {"kserve", "dataLocal: 8"}};
  for (const Wide& wide :
       {Wide{"vllm", 8, 2, 1, {"kubernetes", "dynamo", "llm-d"}},
        Wide{"vllm", 16, 1, 1, {"kubernetes", "dynamo", "llm-d"}},
        Wide{"vllm", 1, 1, 16, {"kubernetes", "dynamo", "llm-d", "kserve"}},
        Wide{"sglang", 8, 2, 1, {"kubernetes", "dynamo"}}, Wide{"sglang", 1, 1, 16, {"kubernetes", "dynamo"}}}) {
    EngineChoice engine{.device = "l4", .engine = wide.engine, .tensor = wide.tensor, .pipeline = wide.pipeline};
    engine.attention_ranks = wide.ranks;
    engine.expert_parallel = wide.ranks > 1;
    const ServingLayout layout{.pool = {.engine = engine, .replicas = 2}, .decode = {}};
    const Json line = fields_of_lines(pool_launches(question, layout, 4096).front());
    for (const std::string& kind : wide.kinds) {
      const std::string manifest = launch_manifest(kind, question, layout, 4096);
      const LaunchLine read = read_launch_line(manifest, "file");
      expect_says_the_same(read.fields, line, manifest);
      EXPECT_EQ(shown(read.fields.find("replicas")), "2") << manifest;
      EXPECT_THAT(manifest, HasSubstr(says_nodes.at(kind)));
      EXPECT_THAT(manifest, Not(HasSubstr("FIRST-HOST"))) << kind;
      EXPECT_TRUE(read.remarks.unknown.empty()) << manifest << read.remarks.unknown.front();
    }
  }
}

TEST(LaunchManifest, a_host_of_a_rack_has_four_gpus) {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  ServingQuestion question = asked();
  question.hardware[0].device = hardware.device("gb200");
  question.hardware[0].node = hardware.node("gb200_nvl72");
  question.hardware[0].node_devices = 72;
  const ServingLayout layout{.pool = {.engine = {.device = "gb200", .tensor = 8}}, .decode = {}};
  const std::string manifest = launch_manifest("kubernetes", question, layout, 4096);
  EXPECT_THAT(manifest, HasSubstr("nvidia.com/gpu: 4"));
  EXPECT_THAT(manifest, HasSubstr("size: 2"));
  EXPECT_THAT(manifest, HasSubstr("kind: ComputeDomain\nmetadata: {name: llm}\nspec: {numNodes: 2, "));
  EXPECT_THAT(manifest, HasSubstr("claims: [{name: nvlink}]"));
  EXPECT_THAT(manifest, HasSubstr("resourceClaims: [{name: nvlink, resourceClaimTemplateName: llm-nvlink}]"));
  EXPECT_EQ(shown(read_launch_line(manifest, "file").fields.find("tensor_parallel_size")), "8") << manifest;
  EXPECT_THAT(launch_manifest("dynamo", question, layout, 4096), HasSubstr("ComputeDomain"));
  EXPECT_THROW(launch_manifest("compose", question, layout, 4096), InputError);
}

TEST(LaunchManifest, pools_are_read_back_with_their_numbers) {
  const ServingQuestion question = asked();
  for (const char* name : {"vllm", "sglang"}) {
    const ServingLayout layout{
        .pool = {.engine = {.device = "l4", .engine = name, .tensor = 2}, .replicas = 2},
        .decode = EnginePool{.engine = {.device = "l4", .engine = name, .tensor = 4}, .max_num_seqs = 32}};
    for (const std::string& kind : manifest_names()) {
      if ((kind == "llm-d" || kind == "kserve") && name != std::string("vllm")) continue;
      const std::string manifest = launch_manifest(kind, question, layout, 4096);
      const Json fields = read_launch_line(manifest, "file").fields;
      const Json *prefill = fields.find("prefill_pool"), *decode = fields.find("decode_pool");
      ASSERT_NE(prefill, nullptr) << manifest;
      ASSERT_NE(decode, nullptr) << manifest;
      EXPECT_EQ(shown(prefill->find("count")), "2") << manifest;
      EXPECT_EQ(shown(decode->find("count")), "1") << manifest;
      EXPECT_EQ(shown(prefill->find("tensor_parallel_size")), "2") << manifest;
      EXPECT_EQ(shown(decode->find("tensor_parallel_size")), "4") << manifest;
      EXPECT_EQ(shown(decode->find("max_num_seqs")), "32") << manifest;
      EXPECT_EQ(shown(fields.find("model")), "org/model") << manifest;
    }
  }
}

TEST(LaunchManifest, other_vendors_have_their_own_images_or_no_file) {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  const auto written = [&](const char* kind, const char* device, const char* engine) {
    ServingQuestion question = asked();
    question.hardware[0].device = hardware.device(device);
    const EnginePool pool{.engine = {.device = device, .engine = engine}};
    return launch_manifest(kind, question, {.pool = pool, .decode = {}}, 4096);
  };
  EXPECT_THAT(written("kubernetes", "mi300x", "vllm"), HasSubstr("image: rocm/vllm:latest"));
  EXPECT_THAT(written("kubernetes", "mi300x", "vllm"), HasSubstr("amd.com/gpu: 1"));
  EXPECT_THAT(written("kubernetes", "h100_sxm", "vllm"), HasSubstr("image: vllm/vllm-openai:latest"));
  EXPECT_THROW(written("kubernetes", "gaudi3", "vllm"), InputError);
  for (const char* kind : {"compose", "dynamo", "llm-d"}) {
    EXPECT_THROW(written(kind, "gaudi3", "vllm"), InputError) << kind;
    EXPECT_THROW(written(kind, "mi300x", "vllm"), InputError) << kind;
    EXPECT_NO_THROW(written(kind, "h100_sxm", "vllm")) << kind;
  }
}

// Found missing in files of before: each is in the examples of the project that reads the file.
TEST(LaunchManifest, files_have_what_their_readers_need) {
  const ServingQuestion question = asked();
  const EnginePool pool{.engine = {.device = "l4", .tensor = 2}};
  const auto written = [&](const char* kind) {
    return launch_manifest(kind, question, {.pool = pool, .decode = pool}, 4096);
  };
  const std::string dynamo = written("dynamo");
  EXPECT_THAT(dynamo, HasSubstr("{name: main, image: \"nvcr.io/nvidia/ai-dynamo/vllm-runtime:"));
  EXPECT_THAT(dynamo, HasSubstr(R"("--disaggregation-mode", "prefill")"));
  EXPECT_THAT(dynamo, HasSubstr(R"("--disaggregation-mode", "decode")"));
  EXPECT_THAT(dynamo, Not(HasSubstr("latest")));
  EXPECT_THAT(dynamo, HasSubstr("name: hf-token, key: HF_TOKEN"));
  const std::string llm_d = written("llm-d");
  EXPECT_THAT(llm_d, HasSubstr(R"(modelArtifacts: {name: "org/model", uri: "hf://org/model")"));
  EXPECT_THAT(llm_d, HasSubstr("VLLM_NIXL_SIDE_CHANNEL_HOST"));
  EXPECT_THAT(llm_d, HasSubstr("HF_TOKEN=YOUR_TOKEN"));
  EXPECT_THAT(written("kserve"), HasSubstr("  prefill:\n    replicas: 1\n"));
}

// The set makes a headless service of its own name.
TEST(LaunchManifest, no_service_has_the_name_of_a_leader_worker_set) {
  const ServingQuestion question = asked();
  const EnginePool wide{.engine = {.device = "l4", .tensor = 16}};
  for (const std::optional<EnginePool>& decode : {std::optional<EnginePool>(), std::optional(wide)}) {
    const std::string manifest = launch_manifest("kubernetes", question, {.pool = wide, .decode = decode}, 4096);
    const std::string set = decode ? "llm-prefill-nodes" : "llm-nodes";
    EXPECT_THAT(manifest, HasSubstr("kind: LeaderWorkerSet\nmetadata: {name: " + set + "}"));
    EXPECT_THAT(manifest, Not(HasSubstr("kind: Service\nmetadata: {name: " + set + "}")));
    const std::string told = decode ? "http://llm-prefill-nodes-0.llm-prefill-nodes:8000" : "port: 8000";
    EXPECT_THAT(manifest, HasSubstr(told));
  }
}

TEST(LaunchManifest, what_a_file_cannot_say_is_refused) {
  const ServingQuestion question = asked();
  const EnginePool wide{.engine = {.device = "l4", .engine = "trtllm", .tensor = 8, .pipeline = 2}};
  const EnginePool narrow{.engine = {.device = "l4", .engine = "sglang", .tensor = 2}};
  const EnginePool compiled{.engine = {.device = "l4", .engine = "trtllm", .tensor = 2}};
  EXPECT_THROW(launch_manifest("kubernetes", question, {.pool = wide, .decode = {}}, 4096), InputError);
  EXPECT_THROW(launch_manifest("compose", question, {.pool = wide, .decode = {}}, 4096), InputError);
  EXPECT_THROW(launch_manifest("dynamo", question, {.pool = compiled, .decode = {}}, 4096), InputError);
  EXPECT_THROW(launch_manifest("llm-d", question, {.pool = narrow, .decode = {}}, 4096), InputError);
  EXPECT_THROW(launch_manifest("kserve", question, {.pool = narrow, .decode = narrow}, 4096), InputError);
  try {
    launch_manifest("kubernetes", question, {.pool = compiled, .decode = compiled}, 4096);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.problem().value, HasSubstr("cannot describe separate prefill and decode pools"));
    EXPECT_THAT(error.problem().expected, HasSubstr("Add {no_disaggregate}"));
  }
}

}  // namespace foretoken::launch_manifest_test
