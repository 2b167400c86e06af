// Sums as bytes: most of them are zero or small.
#pragma once

#include <cstdint>
#include <span>

#include "remote/message.hpp"

namespace graftboost {

// Two numbers at a time: how many bytes each one takes (four bits each), then these bytes. Numbers
// below zero are folded between those above, so that they take few bytes as well.
Bytes pack_sums(std::span<const std::uint64_t> sums);
// The same, in memory that is used again. Returns the bytes of it that are used.
std::span<std::uint8_t> pack_sums(std::span<const std::uint64_t> sums, Bytes& memory);
// Adds sums to others, of which there are as many, or none. Throws std::invalid_argument if the bytes
// are not those of sums, or if there are more or fewer.
void add_packed_sums(WipedVector<std::uint64_t>& to, std::span<const std::uint8_t> packed);

}  // namespace graftboost
