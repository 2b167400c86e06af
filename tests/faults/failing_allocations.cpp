// Preloaded into Python, this makes the Nth allocation of the engine fail.
//
// An allocation is the engine's if the caller's address lies in the engine's shared object, or if it
// lies in the C++ library and the engine is further up the stack (exceptions, strings, threads). The
// start of a thread counts as an allocation, of its stack. Nothing is counted until it is armed.

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

constexpr int most_frames = 40;

struct Range {
  std::uintptr_t begin = 0, end = 0;
  bool contains(const void* address) const {
    const auto a = reinterpret_cast<std::uintptr_t>(address);
    return a >= begin && a < end;
  }
};

// Shared with forked processes, so that the parent can read it after they have died.
struct Report {
  std::atomic<long> seen{0}, failed{0};
  int depth = 0;
  void* stack[most_frames];
};

Range engine, library;
Report* report = nullptr;
std::atomic<bool> armed{false};
long fails_at = 0;
bool fails_for_good = false;
thread_local bool looking = false;  // backtrace may allocate

bool engine_is_on_the_stack() {
  void* frames[most_frames];
  const int depth = backtrace(frames, most_frames);
  for (int i = 0; i < depth; ++i) {
    if (engine.contains(frames[i])) return true;
  }
  return false;
}

bool fails(const void* caller) {
  if (!armed.load(std::memory_order_relaxed) || looking) return false;
  if (!engine.contains(caller)) {
    if (!library.contains(caller)) return false;
    looking = true;
    const bool found = engine_is_on_the_stack();
    looking = false;
    if (!found) return false;
  }
  const long number = report->seen.fetch_add(1) + 1;
  if (number != fails_at && !(fails_for_good && number > fails_at)) return false;
  if (report->failed.fetch_add(1) == 0) {
    looking = true;
    report->depth = backtrace(report->stack, most_frames);
    looking = false;
  }
  return true;
}

void* allocate(std::size_t size, std::size_t alignment, const void* caller) {
  if (fails(caller)) return nullptr;
  if (size == 0) size = 1;
  return alignment == 0 ? __libc_malloc(size) : __libc_memalign(alignment, size);
}

void* allocate_or_throw(std::size_t size, std::size_t alignment, const void* caller) {
  void* memory = allocate(size, alignment, caller);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

#define CALLER __builtin_return_address(0)

extern "C" {

// Sets the addresses of the engine and the C++ library. Returns whether all is ready.
int faults_prepare(std::uintptr_t engine_begin, std::uintptr_t engine_end,
                   std::uintptr_t library_begin, std::uintptr_t library_end) {
  engine = {engine_begin, engine_end};
  library = {library_begin, library_end};
  void* frame;
  backtrace(&frame, 1);  // loads its libraries now, not during an allocation
  void* memory =
      mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  report = new (memory) Report;
  return 1;
}

// The allocation with this number fails, counted from 1, and with `for_good` all after it too.
void faults_arm(long number, int for_good) {
  report->seen = report->failed = 0;
  report->depth = 0;
  fails_at = number;
  fails_for_good = for_good != 0;
  armed = true;
}

void faults_disarm() { armed = false; }

long faults_seen() { return report->seen; }

long faults_failed() { return report->failed; }

// Writes the engine's part of the stack at the first failure, as offsets; returns how many.
int faults_stack(std::uintptr_t* offsets, int most) {
  int n = 0;
  for (int i = 0; i < report->depth && n < most; ++i) {
    if (engine.contains(report->stack[i])) {
      offsets[n++] = reinterpret_cast<std::uintptr_t>(report->stack[i]) - engine.begin;
    }
  }
  return n;
}

void* malloc(std::size_t size) { return fails(CALLER) ? nullptr : __libc_malloc(size); }

void* calloc(std::size_t n, std::size_t size) {
  return fails(CALLER) ? nullptr : __libc_calloc(n, size);
}

void* realloc(void* memory, std::size_t size) {
  return fails(CALLER) ? nullptr : __libc_realloc(memory, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return fails(CALLER) ? nullptr : __libc_memalign(alignment, size);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  if (fails(CALLER)) return ENOMEM;
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  static const auto real =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return fails(CALLER) ? EAGAIN : real(thread, attributes, run, argument);
}

}  // extern "C"

// The library's own forms of delete end in free(), which suits memory from any of these.
void* operator new(std::size_t size) { return allocate_or_throw(size, 0, CALLER); }
void* operator new[](std::size_t size) { return allocate_or_throw(size, 0, CALLER); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment), CALLER);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment), CALLER);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 0, CALLER);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 0, CALLER);
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<std::size_t>(alignment), CALLER);
}
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<std::size_t>(alignment), CALLER);
}
