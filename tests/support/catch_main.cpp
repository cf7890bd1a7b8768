#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include <cstdio>

#include "support/skip.hpp"

namespace roce::test {
namespace {

std::string& skip_reason() {
  static std::string reason;
  return reason;
}

/// Counts test cases (not assertions) and prints the line that scripts/test adds up.
class CaseCounter : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo&) override { skip_reason().clear(); }
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (!stats.totals.assertions.allOk()) {
      ++failed_;
    } else if (!skip_reason().empty()) {
      ++skipped_;
      std::printf("skipped: %s: %s\n", stats.testInfo.name.c_str(), skip_reason().c_str());
    } else {
      ++passed_;
    }
  }
  void testRunEnded(const Catch::TestRunStats&) override {
    std::printf("test cases: %d passed, %d failed, %d skipped\n", passed_, failed_, skipped_);
  }

 private:
  int passed_ = 0;
  int failed_ = 0;
  int skipped_ = 0;
};
CATCH_REGISTER_LISTENER(CaseCounter)

}  // namespace

void skip(const std::string& reason) {
  skip_reason() = reason;
}

}  // namespace roce::test
