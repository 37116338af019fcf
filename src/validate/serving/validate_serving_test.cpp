#include "validate/serving/validate_serving.h"

#include <filesystem>
#include <stdexcept>

#include <gtest/gtest.h>

#include "base/file.h"
#include "library/library.h"

namespace foretoken::validate_serving_test {

namespace fs = std::filesystem;

TEST(ValidateServing, what_goes_wrong_in_a_thread_is_told_to_the_caller) {
  const fs::path file = fs::path(testing::TempDir()) / "validate_serving_test.csv";
  std::string rows =
      "tier,gpu,model,engine,engine_version,weight_dtype,tp,mode,isl,osl,concurrency,tpot_ms,tpot_stat\n";
  for (const char* gpu : {"H100-SXM-80GB", "H200-SXM-141GB", "A100-SXM-80GB"}) {
    rows += std::string("B,") + gpu + ",Llama-3.1-8B,vllm,0.19.0,bf16,1,agg,100,10,4,8,mean\n";
  }
  write_file(file, rows);
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  ServingFacts facts = serving_facts(library);
  facts.device_models = [](const Device&, const ParallelPlan&, const PlacementSpec&) -> DeviceModels {
    throw std::logic_error("broken");
  };
  for (const int threads : {1, 3}) {
    EXPECT_THROW(validate_serving({.data = file, .threads = threads}, library, facts), std::logic_error);
  }
  fs::remove(file);
}

}  // namespace foretoken::validate_serving_test
