#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/parallel.hpp"
#include "tests/check.hpp"

namespace graftboost {
namespace {

TEST_CASE("every task runs exactly once") {
  for (const int n_threads : {0, 1, 2, 5}) {
    for (const std::size_t n_tasks : {0, 1, 2, 3, 1000}) {
      std::vector<std::atomic<int>> runs(n_tasks);
      parallel(n_threads, n_tasks, [&](std::size_t i) { runs[i].fetch_add(1); });
      for (const auto& n : runs) CHECK_EQ(n.load(), 1);
    }
  }
}

TEST_CASE("blocks cover the range without overlap") {
  for (const std::size_t size : {0, 1, 7, 8, 9, 1000}) {
    std::vector<std::atomic<int>> runs(size);
    parallel_blocks(3, size, 8, [&](std::size_t begin, std::size_t end) {
      CHECK(begin < end && end - begin <= 8);
      for (std::size_t i = begin; i < end; ++i) runs[i].fetch_add(1);
    });
    for (const auto& n : runs) CHECK_EQ(n.load(), 1);
  }
}

TEST_CASE("an exception of a task reaches the caller, and the workers stay usable") {
  for (const int n_threads : {1, 3}) {
    for (int repetition = 0; repetition < 20; ++repetition) {
      std::string message;
      try {
        parallel(n_threads, 100, [](std::size_t i) {
          if (i == 17) throw std::runtime_error("task 17");
        });
      } catch (const std::runtime_error& error) {
        message = error.what();
      }
      CHECK_EQ(message, "task 17");
      std::atomic<int> n{0};
      parallel(n_threads, 10, [&](std::size_t) { n.fetch_add(1); });
      CHECK_EQ(n.load(), 10);
    }
  }
}

TEST_CASE(
    "one exception is rethrown when all tasks throw, and tasks that have not begun are skipped") {
  std::atomic<int> n_begun{0};
  CHECK_THROWS_AS(parallel(2, 100000,
                           [&](std::size_t) {
                             n_begun.fetch_add(1);
                             throw std::runtime_error("every task");
                           }),
                  std::runtime_error);
  CHECK(n_begun.load() >= 1 && n_begun.load() < 100000);
}

TEST_CASE("calls from inside a task run on the calling thread") {
  std::atomic<int> n{0};
  std::atomic<bool> moved{false};
  parallel(2, 8, [&](std::size_t) {
    const auto outer = std::this_thread::get_id();
    parallel(2, 50, [&](std::size_t) {
      n.fetch_add(1);
      if (std::this_thread::get_id() != outer) moved = true;
    });
  });
  CHECK_EQ(n.load(), 8 * 50);
  CHECK(!moved.load());
}

TEST_CASE("several threads may call at the same time") {
  std::vector<std::atomic<int>> sums(4);
  std::vector<std::thread> callers;
  for (auto& sum : sums) {
    callers.emplace_back([&sum] {
      for (int repetition = 0; repetition < 50; ++repetition)
        parallel(2, 20, [&](std::size_t i) { sum.fetch_add(static_cast<int>(i)); });
    });
  }
  for (auto& caller : callers) caller.join();
  for (const auto& sum : sums) CHECK_EQ(sum.load(), 50 * 190);
}

}  // namespace
}  // namespace graftboost
