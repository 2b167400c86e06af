#include "train/row_partition.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/parallel.hpp"
#include "model/leaf_ids.hpp"

namespace graftboost {
namespace {

// With fewer rows one thread is done before a second has started.
constexpr std::size_t least_rows_to_share = 4'000;

}  // namespace

Slot* RowPartition::start(std::size_t n_rows) {
  // Never made smaller: that would overwrite what is dropped, in every tree.
  if (slots_.size() < n_rows + slots_read_ahead) {
    slots_.resize(n_rows + slots_read_ahead);
    left_scratch_.resize(n_rows);
    right_scratch_.resize(n_rows);
  }
  std::fill_n(slots_.begin() + n_rows, slots_read_ahead, Slot{0});
  ranges_.assign(1, {0, n_rows});
  return slots_.data();
}

void RowPartition::split(NodeIndex parent, const Split& split, NodeIndex left, NodeIndex right) {
  const auto [begin, end] = ranges_[static_cast<std::size_t>(parent)];
  const std::size_t middle = partition(begin, end, split);
  ranges_.resize(static_cast<std::size_t>(std::max(left, right)) + 1);
  ranges_[static_cast<std::size_t>(left)] = {begin, middle};
  ranges_[static_cast<std::size_t>(right)] = {middle, end};
}

std::size_t RowPartition::partition(std::size_t begin, std::size_t end, const Split& split) {
  const std::uint32_t number = rows_.layout.number_of(split.feature);
  any_listed_ = entries_.lists_rows() && entries_.any_row_in(number);
  if (!any_listed_) return partition_slots(begin, end, split);
  if (listed_codes_.size() != rows_.size()) {
    listed_codes_.resize(rows_.size());
    listed_codes_.fill(0);
  }
  entries_.for_each_row(
      number, [&](Slot row, Code code) { listed_codes_[row] = static_cast<Code>(code + 1); });
  const std::size_t middle = partition_slots(begin, end, split);
  entries_.for_each_row(number, [&](Slot row, Code) { listed_codes_[row] = 0; });
  return middle;
}

// Stable: rows that go left are written to `lefts` (which may be where they come from), the others
// to `rights`. Returns how many went left.
std::size_t RowPartition::partition_block(const Split& split, std::size_t begin, std::size_t end,
                                          Slot* lefts, Slot* rights) const {
  const FeatureLayout& feature = rows_.layout.of(split.feature);
  const Slot* slots = slots_.data();
  const auto run = [&](auto&& goes_left) {
    std::size_t n_left = 0, n_right = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const Slot row = slots[i];
      const bool left = goes_left(row, slots[i + slots_read_ahead]);
      lefts[n_left] = row;
      rights[n_right] = row;
      n_left += left;
      n_right += !left;
    }
    return n_left;
  };
  // A table of what goes left does not pay for few rows, and is not made for two-byte codes or for
  // features with separate entries that are not listed.
  const bool narrow = feature.kind == FeatureLayout::Kind::narrow;
  const bool bundled = feature.kind == FeatureLayout::Kind::bundled;
  const bool listed = narrow || entries_.lists_rows() || !rows_.has_sparse();
  const bool few = end - begin < 256 && (narrow || bundled);
  if (feature.kind == FeatureLayout::Kind::wide || few || !listed)
    return run(
        [&](Slot row, Slot) { return split.goes_left(rows_.code(row, feature, split.feature)); });

  const auto listed_left = [&](Slot row, bool otherwise) {
    const Code code = listed_codes_[row];
    return code == 0 ? otherwise : split.goes_left(static_cast<Code>(code - 1));
  };
  if (!narrow && !bundled) {
    const bool commonly = split.goes_left(feature.common_code);
    if (!any_listed_) return run([&](Slot, Slot) { return commonly; });
    return run([&](Slot row, Slot) { return listed_left(row, commonly); });
  }
  std::array<bool, 256> byte_left;
  for (std::size_t byte = 0; byte < byte_left.size(); ++byte) {
    const auto value = static_cast<std::uint8_t>(byte);
    byte_left[byte] = split.goes_left(bundled ? feature.bundled_code(value) : Code{value});
  }
  const std::size_t row_bytes = rows_.layout.row_bytes();
  const std::uint8_t* cells = rows_.cells.data() + feature.position;
  const auto cell_left = [&, cells](Slot row, Slot ahead) {
    __builtin_prefetch(cells + ahead * row_bytes);
    return byte_left[cells[row * row_bytes]];
  };
  if (!bundled || !any_listed_) return run(cell_left);
  return run([&](Slot row, Slot ahead) {
    __builtin_prefetch(listed_codes_.data() + ahead);
    return listed_left(row, cell_left(row, ahead));
  });
}

//     slots      begin .......... middle ............. end
//     before     l r r l l r r r l r l r l l r r l r r r l
//     after      l l l l l l l l | r r r r r r r r r r r r      stable
//
// Returns the middle.
std::size_t RowPartition::partition_slots(std::size_t begin, std::size_t end, const Split& split) {
  const std::size_t size = end - begin;
  if (n_threads_ <= 1 || size < least_rows_to_share) {
    Slot* lefts = slots_.data() + begin;
    const std::size_t n_left = partition_block(split, begin, end, lefts, right_scratch_.data());
    std::copy_n(right_scratch_.data(), size - n_left, lefts + n_left);
    return begin + n_left;
  }
  const auto shares = static_cast<std::size_t>(n_threads_);
  const auto bound = [&](std::size_t share) { return begin + size * share / shares; };
  std::vector<std::size_t> n_left(shares), left_to(shares), right_to(shares);
  parallel(n_threads_, shares, [&](std::size_t share) {
    const std::size_t from = bound(share);
    n_left[share] = partition_block(split, from, bound(share + 1), left_scratch_.data() + from,
                                    right_scratch_.data() + from);
  });
  std::exclusive_scan(n_left.begin(), n_left.end(), left_to.begin(), begin);
  const std::size_t middle = left_to.back() + n_left.back();
  for (std::size_t share = 0; share < shares; ++share) {
    right_to[share] = middle + bound(share) - left_to[share];
  }
  parallel(n_threads_, shares, [&](std::size_t share) {
    const std::size_t from = bound(share), n_right = bound(share + 1) - from - n_left[share];
    std::copy_n(left_scratch_.data() + from, n_left[share], slots_.data() + left_to[share]);
    std::copy_n(right_scratch_.data() + from, n_right, slots_.data() + right_to[share]);
  });
  return middle;
}

}  // namespace graftboost
