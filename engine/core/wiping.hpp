// Memory that is overwritten before it is freed, so that no freed buffer contains a removed row.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

namespace graftboost {

// Overwrites memory with zeros. The compiler cannot optimise this away.
inline void wipe(void* memory, std::size_t n_bytes) {
  if (n_bytes == 0) return;
  std::memset(memory, 0, n_bytes);
  __asm__ __volatile__("" : : "r"(memory) : "memory");
}

// Owns nothing; memory from it is wiped up to its full capacity before it is freed.
template <class T>
struct WipingAllocator {
  using value_type = T;

  WipingAllocator() = default;
  template <class U>
  WipingAllocator(const WipingAllocator<U>&) {}

  T* allocate(std::size_t n) { return std::allocator<T>().allocate(n); }
  void deallocate(T* memory, std::size_t n) {
    wipe(memory, n * sizeof(T));
    std::allocator<T>().deallocate(memory, n);
  }
  friend bool operator==(const WipingAllocator&, const WipingAllocator&) { return true; }
};

// A vector for values that come from rows.
template <class T>
using WipedVector = std::vector<T, WipingAllocator<T>>;

}  // namespace graftboost
