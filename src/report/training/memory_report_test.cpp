#include "report/training/memory_report.h"

#include <sstream>

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "model/catalogue.h"

namespace foretoken::memory_report_test {

ServingMemory memory_of(const char* model, const char* device, const EngineFlags& flags) {
  return serving_memory(ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model(model),
                        HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device(device), {}, flags);
}

TEST(MemoryReport, text_fits_a_hundred_columns_and_names_every_part) {
  for (const EngineKind& kind : engine_kinds()) {
    for (const char* model : {"Llama-3.1-8B", "gemma-3-27b-it", "Qwen3.5-27B"}) {
      const EngineFlags flags{.engine = std::string(kind.name)};
      std::istringstream text(serving_memory_text(memory_of(model, "rtx_4090", flags), {}));
      for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 100u) << line;
    }
  }
  const std::string text = serving_memory_text(memory_of("Llama-3.1-8B", "h100_sxm", {}), {});
  for (const char* part : {"weights", "peak activations", "CUDA graphs", "CUDA context", "KV cache", "unused"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

TEST(MemoryReport, speaks_of_cuda_on_its_devices_alone) {
  const auto text = [](const char* device) { return serving_memory_text(memory_of("Llama-3.1-8B", device, {}), {}); };
  for (const char* device : {"m4_max", "tpu_v6e", "mi300x"}) {
    EXPECT_EQ(text(device).find("CUDA"), std::string::npos) << device;
  }
  EXPECT_NE(text("mi300x").find("HIP context"), std::string::npos);
}

TEST(MemoryReport, a_cache_without_room_is_empty_and_not_negative) {
  const ServingMemory memory = memory_of("Llama-3.1-70B", "h100_sxm", {});
  EXPECT_NE(serving_memory_text(memory, {}).find("nothing is left"), std::string::npos);
  const Json json = serving_memory_json(memory, {});
  const Json& cache = *json.find("bytes")->find("kv_cache");
  EXPECT_EQ(cache.find("value")->number(), 0);
  EXPECT_EQ(cache.find("low")->number(), 0);
}

TEST(MemoryReport, a_demand_larger_than_the_cache_does_not_fit) {
  const ServingMemory memory = memory_of("Llama-3.1-8B", "h100_sxm", {.max_model_len = 8192});
  const int64_t most = memory.sequences_of(4096, 1);
  const auto fits = [&](int64_t sequences) {
    return serving_memory_json(memory, {.sequences = sequences, .tokens_each = 4096})
        .find("demand")
        ->find("fits")
        ->boolean();
  };
  EXPECT_TRUE(fits(most));
  EXPECT_FALSE(fits(most + 1));
}

TEST(MemoryReport, an_engine_that_will_not_start_says_what_would_help) {
  const ServingMemory memory = memory_of("Llama-3.1-70B", "h100_sxm", {});
  const std::string text = serving_memory_text(memory, {});
  EXPECT_NE(text.find("WILL NOT START"), std::string::npos);
  EXPECT_NE(text.find("-tp 4"), std::string::npos);
  EXPECT_EQ(serving_memory_json(memory, {}).find("remedies")->items().size(), memory.remedies.size());
}

}  // namespace foretoken::memory_report_test
