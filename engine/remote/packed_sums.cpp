#include "remote/packed_sums.hpp"

#include <bit>
#include <cstring>
#include <stdexcept>

namespace graftboost {
namespace {

static_assert(std::endian::native == std::endian::little);

// Numbers are written and read eight bytes at a time, so the last one needs room after it.
constexpr std::size_t padding = sizeof(std::uint64_t);

std::uint64_t fold(std::uint64_t number) {
  const auto is_negative = static_cast<std::uint64_t>(static_cast<std::int64_t>(number) >> 63);
  return (number << 1) ^ is_negative;
}
std::uint64_t unfold(std::uint64_t folded) { return (folded >> 1) ^ (~(folded & 1) + 1); }

unsigned n_bytes_of(std::uint64_t folded) {
  return static_cast<unsigned>(std::bit_width(folded) + 7) / 8;
}

[[noreturn]] void throw_invalid() {
  throw std::invalid_argument("the sums of a shard are cut off, or not of the expected number");
}

}  // namespace

Bytes pack_sums(std::span<const std::uint64_t> sums) {
  Bytes memory;
  memory.resize(pack_sums(sums, memory).size());
  return memory;
}

std::span<std::uint8_t> pack_sums(std::span<const std::uint64_t> sums, Bytes& memory) {
  const auto n = static_cast<std::uint64_t>(sums.size());
  const std::size_t most =
      sizeof(n) + sums.size() * sizeof(std::uint64_t) + (sums.size() + 1) / 2 + padding;
  if (memory.size() < most) memory.resize(most);
  std::memcpy(memory.data(), &n, sizeof(n));
  std::uint8_t* at = memory.data() + sizeof(n);
  for (std::size_t i = 0; i < sums.size(); i += 2) {
    const std::uint64_t first = fold(sums[i]);
    const std::uint64_t second = i + 1 < sums.size() ? fold(sums[i + 1]) : 0;
    const unsigned n_first = n_bytes_of(first), n_second = n_bytes_of(second);
    *at++ = static_cast<std::uint8_t>(n_first | n_second << 4);
    std::memcpy(at, &first, sizeof(first));
    at += n_first;
    std::memcpy(at, &second, sizeof(second));
    at += n_second;
  }
  std::memset(at, 0, padding);  // what is left of the last number
  return std::span(memory).first(static_cast<std::size_t>(at - memory.data()) + padding);
}

void add_packed_sums(WipedVector<std::uint64_t>& to, std::span<const std::uint8_t> packed) {
  std::uint64_t n = 0;
  if (packed.size() < sizeof(n) + padding) throw_invalid();
  std::memcpy(&n, packed.data(), sizeof(n));
  // Two numbers take a byte at least.
  if (n > 2 * packed.size() || (!to.empty() && to.size() != n)) throw_invalid();
  if (to.empty()) to.resize(static_cast<std::size_t>(n));
  const std::uint8_t* at = packed.data() + sizeof(n);
  const std::uint8_t* const end = packed.data() + packed.size() - padding;
  const auto read = [&](unsigned n_bytes) {
    if (n_bytes == 0) return std::uint64_t{0};
    if (n_bytes > sizeof(std::uint64_t) || at + n_bytes > end) throw_invalid();
    std::uint64_t folded;
    std::memcpy(&folded, at, sizeof(folded));
    at += n_bytes;
    return unfold(folded & ~std::uint64_t{0} >> (64 - 8 * n_bytes));
  };
  for (std::size_t i = 0; i < to.size(); i += 2) {
    if (at >= end) throw_invalid();
    const unsigned sizes = *at++;
    if (sizes == 0) continue;
    to[i] += read(sizes & 15);
    const std::uint64_t second = read(sizes >> 4);
    if (i + 1 < to.size()) to[i + 1] += second;
  }
  if (at != end) throw_invalid();
}

}  // namespace graftboost
