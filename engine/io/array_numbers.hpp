// What writing and reading a model's arrays share.
#pragma once

#include <concepts>
#include <cstdint>

#include "core/array.hpp"
#include "core/sums.hpp"
#include "io/model_arrays.hpp"

namespace graftboost {

template <class T>
constexpr Number number_of() {
  if constexpr (std::same_as<T, std::uint8_t>) return Number::u8;
  if constexpr (std::same_as<T, std::uint16_t>) return Number::u16;
  if constexpr (std::same_as<T, std::uint32_t>) return Number::u32;
  if constexpr (std::same_as<T, std::uint64_t>) return Number::u64;
  if constexpr (std::same_as<T, std::int16_t>) return Number::i16;
  if constexpr (std::same_as<T, std::int32_t>) return Number::i32;
  if constexpr (std::same_as<T, std::int64_t>) return Number::i64;
  if constexpr (std::same_as<T, double>) return Number::f64;
}

static_assert(sizeof(Totals) == 3 * sizeof(std::int64_t) && sizeof(PackedSums) == 16, "no padding");
template <class Sums>
constexpr std::size_t numbers_in = sizeof(Sums) / sizeof(std::int64_t);

inline std::size_t with_room(std::size_t n, bool room) { return n + (room ? room_to_grow(n) : 0); }

}  // namespace graftboost
