// A file of one operating point, and the reader that reads it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/file.h"
#include "hardware/catalogue.h"
#include "validate/serving/public_facts.h"
#include "validate/serving/serving_case.h"

namespace foretoken::serving_case_test {

namespace fs = std::filesystem;

inline constexpr const char* header =
    "case_id,source,tier,gpu,model,engine,engine_version,weight_dtype,kv_dtype,tp,pp,dp,ep,mode,isl,osl,length_spec,"
    "arrival,concurrency,rate_rps,num_requests,engine_flags,ttft_ms,ttft_stat,tpot_ms,tpot_stat,req_s,out_tok_s,e2e_ms,"
    "e2e_stat,extra\n";

class ServingCases : public testing::Test {
 protected:
  ~ServingCases() override { fs::remove(file_); }

  void write(const std::string& rows) const { write_file(file_, header + rows); }

  // The only row; nothing and the reason.
  std::optional<ServingCase> read(const std::string& row) {
    write(row);
    ServingCaseReader reader(file_, hardware_, facts_);
    EXPECT_TRUE(reader.next());
    return reader.read(why_);
  }

  const HardwareCatalogue hardware_{fs::path(FORETOKEN_SOURCE_DIR "/data/hardware")};
  const PublicFacts facts_ = read_public_facts(FORETOKEN_SOURCE_DIR "/data");
  fs::path file_ = fs::path(testing::TempDir()) /
                   (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + "_cases.csv");
  std::string why_;
};

}  // namespace foretoken::serving_case_test
