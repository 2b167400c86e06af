// Inspects memory at the moment it is freed.
#pragma once

#include <cstddef>

#include "tests/check.hpp"

namespace graftboost::testing {

// The test program is linked with --wrap for free() and operator delete, so that every call from
// the engine's headers and the tests passes through here first. The memory is still allocated when
// it is inspected, so that this is sound under AddressSanitizer too. Not thread-safe.
class FreedMemory {
 public:
  // Remembers whether these bytes are all zero when `memory` is freed. Up to 16 pieces.
  static void watch(const void* memory, std::size_t n_bytes);
  template <class Elements>
  static void watch(const Elements& elements) {
    watch(elements.data(), elements.size() * sizeof(*elements.data()));
  }

  // Of the pieces watched since the last reset().
  static int n_freed();
  static int n_freed_with_content();
  static void reset();
};

// Checks how many pieces were freed, all of them overwritten, and watches no piece any longer.
inline void check_freed(int n_freed) {
  CHECK_EQ(FreedMemory::n_freed(), n_freed);
  CHECK_EQ(FreedMemory::n_freed_with_content(), 0);
  FreedMemory::reset();
}

}  // namespace graftboost::testing
