// What a fork must not meet: a child has all of its parent's memory, but only the thread that forked.
#pragma once

#include <atomic>

namespace graftboost {

// How often this process, or one that it was forked from, was forked.
unsigned fork_generation();

// A fork waits until nobody is at work on a model, so that a child finds every model whole and unlocked.
// Whoever is at work must not wait for the interpreter's lock: the thread that forks has it.
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

// A lock for work that may need the interpreter's lock and can be done twice. If the thread that held it
// was lost in a fork, the child takes it over.
class ForkSafeLock {
 public:
  void lock();
  void unlock() { holder_.store(0); }

 private:
  std::atomic<unsigned> holder_{
      0};  // 1 + the generation of the process that holds it; 0: nobody does
};

}  // namespace graftboost
