#include "tests/freed_memory.hpp"

#include <algorithm>
#include <array>
#include <atomic>

namespace graftboost::testing {
namespace {

struct Piece {
  const void* memory;
  std::size_t n_bytes;
};

// No container of its own memory: this code runs inside free().
std::array<Piece, 16> pieces{};
std::atomic<int> n_watched{0};
int n_freed_pieces = 0;
int n_pieces_with_content = 0;

}  // namespace

void FreedMemory::watch(const void* memory, std::size_t n_bytes) {
  pieces.at(static_cast<std::size_t>(n_watched.load())) = {memory, n_bytes};
  n_watched.fetch_add(1);
}
int FreedMemory::n_freed() { return n_freed_pieces; }
int FreedMemory::n_freed_with_content() { return n_pieces_with_content; }
void FreedMemory::reset() {
  n_watched = 0;
  n_freed_pieces = n_pieces_with_content = 0;
}

static void inspect(const void* memory) {
  const int n = n_watched.load();
  for (int i = 0; i < n; ++i) {
    Piece& piece = pieces[static_cast<std::size_t>(i)];
    if (piece.memory == nullptr || piece.memory != memory) continue;
    const auto* bytes = static_cast<const unsigned char*>(memory);
    ++n_freed_pieces;
    n_pieces_with_content +=
        std::any_of(bytes, bytes + piece.n_bytes, [](unsigned char byte) { return byte != 0; });
    piece.memory = nullptr;
  }
}

}  // namespace graftboost::testing

extern "C" {
void __real_free(void* memory);
void __real__ZdlPv(void* memory);
void __real__ZdlPvm(void* memory, std::size_t n_bytes);

void __wrap_free(void* memory) {
  graftboost::testing::inspect(memory);
  __real_free(memory);
}
void __wrap__ZdlPv(void* memory) {
  graftboost::testing::inspect(memory);
  __real__ZdlPv(memory);
}
void __wrap__ZdlPvm(void* memory, std::size_t n_bytes) {
  graftboost::testing::inspect(memory);
  __real__ZdlPvm(memory, n_bytes);
}
}
