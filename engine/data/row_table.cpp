#include "data/row_table.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace graftboost {

std::vector<RowTable::Move> RowTable::moves_to_vacate(const std::vector<Slot>& removed) const {
  const std::size_t n_left = n_ - removed.size();
  std::vector<Move> moves;
  for (const Slot slot : removed)
    if (slot < n_left) moves.push_back({0, slot});
  auto move = moves.begin();
  auto gone = std::lower_bound(removed.begin(), removed.end(), n_left);
  for (std::size_t from = n_left; from < n_; ++from) {
    if (gone != removed.end() && *gone == from) {
      ++gone;
    } else {
      (move++)->from = static_cast<Slot>(from);
    }
  }
  return moves;
}

void RowTable::vacate(const std::vector<Slot>& removed, const std::vector<Move>& moves) noexcept {
  const std::size_t n_left = n_ - removed.size(), row_bytes = layout.row_bytes();
  for (const Slot slot : removed) {
    if (!has_sparse()) break;
    count_rare(slot, slot + 1, -1);
    if (n_in_histograms_) *n_in_histograms_ -= sparse_count[slot];
    std::ranges::fill_n(sparse_entries.begin() + sparse_begin[slot],
                        sparse_count[slot] + rare_count[slot], 0);
  }
  for (const Move& m : moves) {
    std::copy_n(cells.begin() + m.from * row_bytes, row_bytes, cells.begin() + m.to * row_bytes);
  }
  cells.resize(n_left * row_bytes);
  move_and_shrink(sparse_begin, moves, n_left);
  move_and_shrink(sparse_count, moves, n_left);
  move_and_shrink(rare_count, moves, n_left);
  move_and_shrink(target, moves, n_left);
  move_and_shrink(weight, moves, n_left);
  move_and_shrink(raw_target, moves, n_left);
  move_and_shrink(raw_weight, moves, n_left);
  move_and_shrink(ids, moves, n_left);
  n_ = n_left;
  if (has_sparse()) close_gaps();
}

void RowTable::truncate(const Extent& before) noexcept {
  cells.resize(before.n * layout.row_bytes());
  for (Array<std::uint32_t>* counts : {&sparse_count, &rare_count})
    counts->resize(before.sparse ? before.n : 0);
  sparse_begin.resize(before.sparse ? before.n : 0);
  sparse_entries.resize(before.n_entries);
  target.resize(before.n);
  raw_target.resize(std::min(raw_target.size(), before.n));
  weight.resize(before.weighted ? before.n : 0);
  raw_weight.resize(before.weighted ? before.n : 0);
  ids.resize(before.n);
  n_ = before.n;
  n_in_histograms_.reset();
  n_rows_with_.clear();
  is_rare_counted_ = false;
}

// The entries of removed rows leave gaps. Once half of sparse_entries is gaps, the entries are
// copied to an array without gaps. Nothing happens if there is no memory for it: the gaps were
// overwritten, and the next removal tries again.
void RowTable::close_gaps() noexcept {
  std::size_t used = 0;
  for (std::size_t r = 0; r < n_; ++r) used += sparse_count[r] + rare_count[r];
  if (sparse_entries.size() < 2 * used + 1024) return;
  Array<std::uint32_t> packed;
  try {
    packed.resize(used);
  } catch (const std::bad_alloc&) {
    return;
  }
  std::uint64_t at = 0;
  for (std::size_t r = 0; r < n_; ++r) {
    const std::size_t n = sparse_count[r] + rare_count[r];
    std::copy_n(sparse_entries.begin() + sparse_begin[r], n, packed.begin() + at);
    sparse_begin[r] = at;
    at += n;
  }
  sparse_entries.swap(packed);
}

WipedVector<std::uint32_t> RowTable::present(Slot row) const {
  WipedVector<std::uint32_t> numbers;
  const auto& order = layout.by_offset();
  for (std::size_t i = 0; i < layout.first_sparse(); ++i) {
    const FeatureLayout& feature = layout[order[i]];
    if (feature.counts_only_differing() &&
        code(row, feature, feature.column) != feature.common_code)
      numbers.push_back(order[i]);
  }
  if (!has_sparse()) return numbers;
  for (const std::uint32_t entry : sparse_codes(row)) {
    const auto after = std::partition_point(order.begin(), order.end(), [&](std::uint32_t number) {
      return layout[number].offset <= entry;
    });
    numbers.push_back(*std::prev(after));
  }
  return numbers;
}

std::uint64_t RowTable::n_in_histograms() const {
  if (!has_sparse()) return 0;
  if (!n_in_histograms_) {
    n_in_histograms_ = 0;
    for (std::size_t r = 0; r < n_; ++r) *n_in_histograms_ += sparse_count[r];
  }
  return *n_in_histograms_;
}

void RowTable::start_entries(std::size_t n_rows) {
  sparse_begin.resize(n_rows);
  sparse_begin.fill(0);
  sparse_count.resize(n_rows);
  sparse_count.fill(0);
  rare_count.resize(n_rows);
  rare_count.fill(0);
}

void RowTable::append_rows(const RowTable& from, std::span<const Slot> chosen) {
  const std::size_t first = n_, n = first + chosen.size(), row_bytes = layout.row_bytes();
  const auto append = [&]<class T>(Array<T>& to, const Array<T>& values) {
    if (values.empty()) return;
    to.resize(n);
    for (std::size_t i = 0; i < chosen.size(); ++i) to[first + i] = values[chosen[i]];
  };
  cells.resize(n * row_bytes);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    std::copy_n(from.cells.begin() + chosen[i] * row_bytes, row_bytes,
                cells.begin() + (first + i) * row_bytes);
  }
  append(target, from.target);
  append(weight, from.weight);
  append(raw_target, from.raw_target);
  append(raw_weight, from.raw_weight);
  append(ids, from.ids);
  const auto n_entries = [&](Slot row) {
    return from.has_sparse() ? from.sparse_count[row] + from.rare_count[row] : 0;
  };
  const bool any = std::ranges::any_of(chosen, [&](Slot row) { return n_entries(row) != 0; });
  if (any && !has_sparse()) start_entries(first);
  n_ = n;
  if (!any && !has_sparse()) return;
  sparse_begin.resize(n);
  sparse_count.resize(n);
  rare_count.resize(n);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const Slot row = chosen[i];
    const std::uint64_t at = sparse_entries.size();
    sparse_begin[first + i] = at;
    sparse_count[first + i] = from.has_sparse() ? from.sparse_count[row] : 0;
    rare_count[first + i] = from.has_sparse() ? from.rare_count[row] : 0;
    sparse_entries.resize(at + n_entries(row));
    if (n_entries(row) != 0)
      std::copy_n(from.sparse_entries.begin() + from.sparse_begin[row], n_entries(row),
                  sparse_entries.begin() + at);
    if (n_in_histograms_) *n_in_histograms_ += sparse_count[first + i];
  }
  count_rare(first, n, 1);
}

}  // namespace graftboost
