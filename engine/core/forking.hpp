// Protection against fork(): a child has all of its parent's memory, but only the thread that
// forked.
#pragma once

#include <atomic>

namespace graftboost {

// The number of forks between the first process that loaded the engine and this one.
unsigned fork_generation();

// A fork waits until no thread is at work on a model, so that the child finds every model
// consistent and unlocked. A thread at work must not wait for the lock of the Python interpreter,
// because the thread that forks holds it.
class ForkBarrier {
 public:
  class AtWork {
   public:
    AtWork() { enter(); }
    AtWork(const AtWork&) = delete;
    ~AtWork() { leave(); }
  };

 private:
  static void enter();
  static void leave();
};

// A lock for work that may need the lock of the interpreter and that may be done twice. If a fork
// lost the thread that held it, the child takes it over.
class ForkSafeLock {
 public:
  void lock();
  void unlock() { holder_.store(0); }

 private:
  // 1 + the fork generation of the process that holds the lock; 0 if it is free.
  std::atomic<unsigned> holder_{0};
};

}  // namespace graftboost
