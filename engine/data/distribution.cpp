#include "data/distribution.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace graftboost {
namespace {

// The inverse of ordered_key().
inline double value_of(std::uint32_t key) {
  return std::bit_cast<float>(key ^ ((key >> 31) ? 0x80000000u : 0xffffffffu));
}
inline double value_of(std::uint64_t key) {
  return std::bit_cast<double>(key ^ ((key >> 63) ? std::uint64_t{1} << 63 : ~std::uint64_t{0}));
}

// Radix sort with eleven bits per pass. Passes in which all keys agree are skipped. Clearing the
// counters takes longer than sorting a few keys by comparison.
template <class Key>
void sort_keys(Array<Key>& keys, Array<Key>& scratch) {
  constexpr std::size_t few = 1024;
  if (keys.size() <= few) {
    std::sort(keys.begin(), keys.end());
    return;
  }
  constexpr int digit_bits = 11;
  constexpr int n_digits = (8 * sizeof(Key) + digit_bits - 1) / digit_bits;
  constexpr std::size_t radix = std::size_t{1} << digit_bits;
  std::vector<std::array<std::uint32_t, radix>> counts(n_digits);
  for (auto& c : counts) c.fill(0);
  for (const Key key : keys) {
    for (int d = 0; d < n_digits; ++d) ++counts[d][(key >> (d * digit_bits)) & (radix - 1)];
  }
  scratch.resize(keys.size());
  for (int d = 0; d < n_digits; ++d) {
    auto& count = counts[d];
    const auto digit = [d](Key key) { return (key >> (d * digit_bits)) & (radix - 1); };
    if (count[digit(keys[0])] == keys.size()) continue;
    std::uint32_t start = 0;
    for (auto& c : count) start += std::exchange(c, start);
    for (const Key key : keys) scratch[count[digit(key)]++] = key;
    keys.swap(scratch);
  }
}

// Appends a value above all others.
inline void append(Distribution& to, double value, std::size_t count) {
  if (value == 0) to.n_zeros = count;
  to.values.push_back(value);
  to.first.push_back(to.size);
  to.size += count;
}

template <class Key>
Distribution from_keys(Array<Key>& keys, std::size_t n_zeros, std::size_t n_missing,
                       Array<Key>& scratch) {
  sort_keys(keys, scratch);
  std::size_t n_distinct = 2;  // the first key and zero
  for (std::size_t i = 1; i < keys.size(); ++i) n_distinct += keys[i] != keys[i - 1];
  Distribution result;
  result.n_missing = n_missing;
  result.values.reserve(n_distinct);
  result.first.reserve(n_distinct);
  std::size_t i = 0;
  while (i < keys.size() || n_zeros != 0) {
    if (n_zeros != 0 && (i == keys.size() || value_of(keys[i]) >= 0)) {
      append(result, 0.0, std::exchange(n_zeros, 0));
      continue;
    }
    const std::size_t begin = i;
    while (i < keys.size() && keys[i] == keys[begin]) ++i;
    append(result, value_of(keys[begin]), i - begin);
  }
  return result;
}

}  // namespace

Distribution distribution_of(Array<std::uint32_t>& keys, std::size_t n_zeros, std::size_t n_missing,
                             Array<std::uint32_t>& scratch) {
  return from_keys(keys, n_zeros, n_missing, scratch);
}
Distribution distribution_of(Array<std::uint64_t>& keys, std::size_t n_zeros, std::size_t n_missing,
                             Array<std::uint64_t>& scratch) {
  return from_keys(keys, n_zeros, n_missing, scratch);
}

Distribution merge(const Distribution& a, const Distribution& b) {
  Distribution merged;
  merged.n_missing = a.n_missing + b.n_missing;
  std::size_t i = 0, j = 0;
  while (i < a.values.size() || j < b.values.size()) {
    const bool from_a = j == b.values.size() || (i < a.values.size() && a.values[i] <= b.values[j]);
    const bool from_b = i == a.values.size() || (j < b.values.size() && b.values[j] <= a.values[i]);
    const double value = from_a ? a.values[i] : b.values[j];
    std::size_t count = 0;
    if (from_a) count += a.count(i++);
    if (from_b) count += b.count(j++);
    append(merged, value, count);
  }
  return merged;
}

}  // namespace graftboost
