// Runs the test cases whose file or name contains one of the arguments; all of them without
// arguments.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string_view>

#include "tests/check.hpp"

namespace graftboost::testing {
namespace {

constexpr int most_failures_printed = 10;  // per test case

std::mutex failure_lock;  // checks may fail on any thread
int n_failures = 0;       // of the current test case

bool is_selected(const TestCase& test, int argc, char** argv) {
  return argc < 2 ||
         std::any_of(
             argv + 1, argv + argc,
             [&](std::string_view part) {
               return std::string_view(test.file).find(part) != std::string_view::npos ||
                      std::string_view(test.name).find(part) != std::string_view::npos;
             });
}

// Returns the number of failures.
int run(const TestCase& test) {
  n_failures = 0;
  try {
    test.run();
  } catch (const Abandoned&) {
  } catch (const std::exception& error) {
    report_failure(test.file, 0, std::string("uncaught exception: ") + error.what());
  }
  if (n_failures != 0) std::printf("FAILED  %s: %s\n", test.file, test.name);
  return n_failures;
}

}  // namespace

std::vector<TestCase>& test_cases() {
  static std::vector<TestCase> all;
  return all;
}

void report_failure(const char* file, int line, const std::string& message) {
  const std::lock_guard lock(failure_lock);
  ++n_failures;
  if (n_failures > most_failures_printed) return;
  std::printf("%s:%d: %s\n", file, line, message.c_str());
  if (n_failures == most_failures_printed) std::printf("further failures are not printed\n");
}

}  // namespace graftboost::testing

int main(int argc, char** argv) {
  using namespace graftboost::testing;
  using Clock = std::chrono::steady_clock;
  int n_run = 0, n_failed = 0;
  const auto start = Clock::now();
  for (const TestCase& test : test_cases()) {
    if (!is_selected(test, argc, argv)) continue;
    const auto test_start = Clock::now();
    n_failed += run(test) != 0;
    ++n_run;
    const std::chrono::duration<double> seconds = Clock::now() - test_start;
    if (seconds.count() > 0.5)
      std::printf("slow    %s: %s (%.2f s)\n", test.file, test.name, seconds.count());
  }
  const std::chrono::duration<double> seconds = Clock::now() - start;
  std::printf("%d test cases, %d failed, %.2f s\n", n_run, n_failed, seconds.count());
  return n_failed != 0 || n_run == 0;
}
