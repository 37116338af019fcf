// What tests of commands share: a folder of their own, and what a refusal looks like.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <gtest/gtest.h>
#include <unistd.h>

#include "run.h"

namespace foretoken {

class CommandTest : public testing::Test {
 protected:
  CommandTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("foretoken_" + test_name() + "_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~CommandTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // The file's path.
  std::string write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return path(name);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;

 private:
  static std::string test_name() { return testing::UnitTest::GetInstance()->current_test_info()->name(); }
};

inline void expect_refused(const Outcome& run, const std::string& mentions) {
  EXPECT_EQ(run.status, 2) << run.err << run.out;
  EXPECT_EQ(run.out, "");
  EXPECT_NE(in_one_line(run.err).find(mentions), std::string::npos) << "should mention: " << mentions << "\n"
                                                                    << run.err;
}

}  // namespace foretoken
