#include "core/forking.hpp"

#include <pthread.h>

#include <chrono>
#include <thread>

namespace graftboost {
namespace {

std::atomic<unsigned> generation{0};
std::atomic<int> n_at_work{0}, n_forking{0};

void pause() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

void before_fork() {
  n_forking.fetch_add(1);
  while (n_at_work.load() != 0) pause();
}
void after_fork_in_parent() { n_forking.fetch_sub(1); }
void after_fork_in_child() {
  generation.fetch_add(1);
  n_forking.store(0);  // threads that forked at the same time do not exist in the child
}

[[maybe_unused]] const int registered =
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);

}  // namespace

unsigned fork_generation() { return generation.load(); }

// Like before_fork(), this first announces itself and then checks the other counter. Of a fork and
// a thread that start at the same time, at least one therefore sees the other.
void ForkBarrier::enter() {
  for (;;) {
    n_at_work.fetch_add(1);
    if (n_forking.load() == 0) return;
    n_at_work.fetch_sub(1);
    while (n_forking.load() != 0) pause();
  }
}
void ForkBarrier::leave() { n_at_work.fetch_sub(1); }

void ForkSafeLock::lock() {
  const unsigned mine = fork_generation() + 1;
  for (;;) {
    unsigned holder = 0;
    if (holder_.compare_exchange_strong(holder, mine)) return;
    if (holder != mine && holder_.compare_exchange_strong(holder, mine)) return;
    pause();
  }
}

}  // namespace graftboost
