// Sums over rows of gradients, hessians and row counts.
#pragma once

#include <cstdint>
#include <cstring>

namespace graftboost {

// The sums of a set of rows, wide enough for any model.
struct Totals {
  std::int64_t g = 0;
  std::int64_t h = 0;
  std::int64_t n = 0;

  Totals& operator+=(const Totals& other) {
    g += other.g, h += other.h, n += other.n;
    return *this;
  }
  Totals& operator-=(const Totals& other) {
    g -= other.g, h -= other.h, n -= other.n;
    return *this;
  }
  friend Totals operator+(Totals a, const Totals& b) { return a += b; }
  friend Totals operator-(Totals a, const Totals& b) { return a -= b; }
  friend bool operator==(const Totals&, const Totals&) = default;
};

// The same sums in sixteen bytes, for a cell of a histogram. One lane holds g; h and n share the
// other:
//
//     lane 0    g
//     lane 1    h (41 bits) | n (23 bits)
//
// Adding a row to a cell is one 128-bit addition. The hessian of a row is at most 2^18, so that the
// sum of 2^23 - 1 unweighted rows fits into 41 bits of an unsigned lane. Lanes wrap around. A sum
// of rows within these limits is exact even if intermediate results, such as the difference of two
// partial sums, were not representable.
class PackedSums {
  using Lanes [[gnu::vector_size(16)]] = std::uint64_t;

 public:
  static constexpr int count_bits = 23;
  static constexpr std::int64_t most_rows = (std::int64_t{1} << count_bits) - 1;
  static constexpr std::int64_t most_hessian_of_row = std::int64_t{1} << (64 - 2 * count_bits);

  PackedSums() = default;
  explicit PackedSums(const Totals& t)
      : lanes_{static_cast<std::uint64_t>(t.g),
               (static_cast<std::uint64_t>(t.h) << count_bits) + static_cast<std::uint64_t>(t.n)} {}
  explicit operator Totals() const {
    return {static_cast<std::int64_t>(lanes_[0]), hessian_in(lanes_[1]), rows_in(lanes_[1])};
  }

  // Writes two integers: g, and the lane that h and n share.
  void store(std::uint64_t* two) const { std::memcpy(two, &lanes_, sizeof(lanes_)); }
  static std::int64_t hessian_in(std::uint64_t lane) {
    return static_cast<std::int64_t>(lane >> count_bits);
  }
  static std::int64_t rows_in(std::uint64_t lane) {
    return static_cast<std::int64_t>(lane & std::uint64_t{most_rows});
  }

  PackedSums& operator+=(const PackedSums& other) {
    lanes_ += other.lanes_;
    return *this;
  }
  PackedSums& operator-=(const PackedSums& other) {
    lanes_ -= other.lanes_;
    return *this;
  }
  friend PackedSums operator-(PackedSums a, const PackedSums& b) { return a -= b; }
  friend bool operator==(const PackedSums& a, const PackedSums& b) {
    return ((a.lanes_[0] ^ b.lanes_[0]) | (a.lanes_[1] ^ b.lanes_[1])) == 0;
  }

 private:
  Lanes lanes_{0, 0};
};

// The cells of a histogram if rows have weights, or are more than PackedSums can count.
using WideSums = Totals;

}  // namespace graftboost
