// main() of every test program. GoogleTest counts a skipped test as passed; here it is told apart:
//  - a suite whose tests may be skipped says what they need (KernelRowsNeedsData) and has a ctest entry of its own;
//    any other test that is skipped fails the program;
//  - a program whose tests were all skipped returns 77, which ctest reports as Skipped.
#include <cstdio>
#include <map>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

constexpr int skipped_status = 77;

class SkipReport : public testing::EmptyTestEventListener {
 public:
  // The program's exit status, given that of its tests.
  int status(int status_of_tests) const {
    if (status_of_tests != 0) return status_of_tests;
    if (unnamed_ > 0) return 1;
    return ran_ == 0 && skipped_ > 0 ? skipped_status : 0;
  }

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.skipped()) reason_ = result.message();
  }

  void OnTestEnd(const testing::TestInfo& info) override {
    if (!info.result()->Skipped()) {
      ++ran_;
      return;
    }
    ++skipped_;
    ++reasons_[reason_];
    if (std::string_view(info.test_suite_name()).find("Needs") != std::string_view::npos) return;
    ++unnamed_;
    std::printf("%s.%s was skipped: name its suite after what it needs, as in %sNeedsData\n", info.test_suite_name(),
                info.name(), info.test_suite_name());
  }

  void OnTestProgramEnd(const testing::UnitTest& /*program*/) override {
    for (const auto& [reason, tests] : reasons_) {
      std::printf("%d %s skipped: %s\n", tests, tests == 1 ? "test" : "tests", reason.c_str());
    }
    std::fflush(stdout);
  }

 private:
  std::string reason_;
  std::map<std::string, int> reasons_;
  int ran_ = 0, skipped_ = 0, unnamed_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  auto* const report = new SkipReport;  // GoogleTest owns its listeners.
  testing::UnitTest::GetInstance()->listeners().Append(report);
  return report->status(RUN_ALL_TESTS());
}
