// The stack, in which calls that have returned leave values of rows behind.
#pragma once

#include <array>
#include <cstddef>

#include "core/wiping.hpp"

namespace graftboost {

// Overwrites the part of the stack that was used by calls which returned to the caller. Registers
// that held the id or the gradient of a row were saved there, and which of them later calls
// overwrite is up to the compiler.
[[gnu::noinline]] inline void wipe_stack() {
  std::array<std::byte, std::size_t{32} << 10> used;  // more than the calls of an update take
  wipe(used.data(), used.size());
}

// Does so at the end of a scope, also if that throws.
struct StackWiper {
  StackWiper() = default;
  StackWiper(const StackWiper&) = delete;
  StackWiper& operator=(const StackWiper&) = delete;
  ~StackWiper() { wipe_stack(); }
};

}  // namespace graftboost
