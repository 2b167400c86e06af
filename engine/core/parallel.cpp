#include "core/parallel.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace graftboost {
namespace {

inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Many tasks take microseconds, and waking a sleeping thread takes tens of them. A worker therefore
// checks this many times for the next job before it goes to sleep.
constexpr int spins_before_sleep = 8000;

// One call of parallel(). Threads take the next task from a shared counter.
struct Job {
  const std::function<void(std::size_t)>* task = nullptr;
  std::size_t n_tasks = 0;
  int helpers_wanted = 0;
  std::atomic<int> helpers_joined{0};
  std::atomic<std::size_t> next{0};
  std::mutex failure_lock;
  std::exception_ptr failure;

  void work() {
    for (;;) {
      const std::size_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= n_tasks) return;
      try {
        (*task)(i);
      } catch (...) {
        std::lock_guard lock(failure_lock);
        if (!failure) failure = std::current_exception();
        next.store(n_tasks, std::memory_order_relaxed);
      }
    }
  }
};

thread_local bool inside_task = false;

// Owns the worker threads, which live as long as the process. At most one Job is current at a time;
// its caller holds `busy_`. A worker increments `visitors_` before it reads the pointer to the Job
// and decrements it after it last used the Job. The caller withdraws the Job and waits until
// `visitors_` is zero before it destroys the Job.
class Workers {
 public:
  void run(int n_threads, Job& job) {
    std::unique_lock busy(busy_, std::try_to_lock);
    if (!busy.owns_lock()) {
      work_inside(job);
      return;
    }
    job.helpers_wanted = n_threads - 1;
    start(job.helpers_wanted);
    {
      std::lock_guard lock(sleep_lock_);
      job_.store(&job);
      generation_.fetch_add(1);
    }
    if (sleeping_.load() > 0) wake_.notify_all();
    work_inside(job);
    job_.store(nullptr);
    while (visitors_.load() != 0) relax();
  }

 private:
  static void work_inside(Job& job) {
    const bool outer = inside_task;
    inside_task = true;
    job.work();
    inside_task = outer;
  }

  // If the system cannot start another thread, those that were started do the work.
  //
  // A thread allocates memory of its own when it first throws, and the C library ends the process
  // if there is none. A thread is therefore started only if there is memory for that, and the
  // caller allocates nothing until the thread has taken it.
  void start(int wanted) noexcept {
    try {
      for (; n_started_ < wanted; ++n_started_) {
        if (!is_available(memory_to_start)) return;
        std::thread([this] { serve(); }).detach();
        while (n_ready_.load() <= n_started_) std::this_thread::yield();
      }
    } catch (const std::exception&) {
    }
  }

  static constexpr std::size_t memory_to_start = 32 << 10;
  static bool is_available(std::size_t n_bytes) noexcept {
    void* memory = std::malloc(n_bytes);
    // Without this the compiler may leave out both calls.
    asm volatile("" : : "r"(memory) : "memory");
    std::free(memory);
    return memory != nullptr;
  }

  void serve() {
    // Allocates the memory for throwing. The result is used, because the call would be optimised
    // away otherwise.
    [[maybe_unused]] const volatile int n_uncaught = std::uncaught_exceptions();
    n_ready_.fetch_add(1);
    inside_task = true;
    unsigned seen = 0;
    for (;;) {
      for (int spin = 0; generation_.load() == seen && spin < spins_before_sleep; ++spin) relax();
      if (generation_.load() == seen) {
        std::unique_lock lock(sleep_lock_);
        sleeping_.fetch_add(1);
        wake_.wait(lock, [&] { return generation_.load() != seen; });
        sleeping_.fetch_sub(1);
      }
      seen = generation_.load();
      visitors_.fetch_add(1);
      if (Job* job = job_.load()) {
        if (job->helpers_joined.fetch_add(1) < job->helpers_wanted) job->work();
      }
      visitors_.fetch_sub(1);
    }
  }

  std::mutex busy_;
  int n_started_ = 0;
  std::atomic<int> n_ready_{0};
  std::atomic<Job*> job_{nullptr};
  std::atomic<int> visitors_{0};
  std::atomic<unsigned> generation_{0};
  std::atomic<int> sleeping_{0};
  std::mutex sleep_lock_;
  std::condition_variable wake_;
};

// A forked child has none of its parent's threads and gets workers of its own. The old object is
// leaked, because destroying a lock that a lost thread holds is undefined.
Workers* workers = new Workers;

[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { workers = new Workers; });

}  // namespace

void parallel(int n_threads, std::size_t n_tasks, const std::function<void(std::size_t)>& task) {
  const auto useful = static_cast<int>(std::min<std::size_t>(n_tasks, std::max(n_threads, 1)));
  if (useful <= 1 || inside_task) {
    for (std::size_t i = 0; i < n_tasks; ++i) task(i);
    return;
  }
  Job job;
  job.task = &task;
  job.n_tasks = n_tasks;
  workers->run(useful, job);
  if (job.failure) std::rethrow_exception(job.failure);
}

void parallel_blocks(int n_threads, std::size_t size, std::size_t block_size,
                     const std::function<void(std::size_t, std::size_t)>& block) {
  const std::size_t n_blocks = (size + block_size - 1) / block_size;
  parallel(n_threads, n_blocks,
           [&](std::size_t i) { block(i * block_size, std::min(size, (i + 1) * block_size)); });
}

}  // namespace graftboost
