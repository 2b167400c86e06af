#include "rows.hpp"

#include <algorithm>
#include <utility>

#include "bundling.hpp"
#include "parallel.hpp"

namespace graftboost {
namespace {

constexpr std::uint32_t most_narrow_codes = 256;

// What looking for a row's sparse cells costs, in plain cells: below this nothing is stored sparsely.
constexpr double sparse_row_cost = 8;

// Rows encoded together: their raw values stay in cache while feature after feature is looked up.
constexpr std::size_t rows_together = 256;

// The features worth storing sparsely: those that save something, if together they save enough.
std::vector<bool> choose_sparse(const BinMap& bins) {
  std::vector<bool> chosen(bins.n_features());
  double saved = 0;
  for (std::size_t f = 0; f < bins.n_features(); ++f) {
    const double saving = bins[f].bundle < 0 ? sparse_saving(bins[f]) : 0;
    chosen[f] = saving > 0;
    saved += std::max(saving, 0.0);
  }
  if (saved < sparse_row_cost) chosen.assign(bins.n_features(), false);
  return chosen;
}

// Encodes some rows of a table into Rows; entries that go into no cell are collected row by row.
template <class Value>
class BlockEncoder {
 public:
  BlockEncoder(const BinMap& bins, const Matrix<Value>& x, const CodeLayout& layout)
      : bins_(bins), x_(x), layout_(layout) {}

  // `cells` is where the first of the rows goes; count[i] becomes the entries of row begin + i.
  std::vector<std::uint32_t> encode(std::size_t begin, std::size_t end, std::uint8_t* cells,
                                    std::uint32_t* count) const {
    std::vector<std::pair<std::size_t, std::uint32_t>> entries;  // (row, offset + code)
    const std::size_t row_bytes = layout_.row_bytes();
    for (std::size_t r = begin; r < end; ++r)
      std::fill_n(cells + (r - begin) * row_bytes, row_bytes, 0);
    for (const std::uint32_t f : layout_.by_offset()) {
      const CodeLayout::Place& place = layout_[f];
      const Feature& feature = bins_[f];
      const Value* from = x_.row(begin) + static_cast<std::ptrdiff_t>(f) * x_.column_stride;
      const auto each_code = [&](auto&& use) {
        for (std::size_t i = 0; i < end - begin; ++i) {
          use(i, feature.code(from[static_cast<std::ptrdiff_t>(i) * x_.row_stride]));
        }
      };
      switch (place.kind) {
        case CodeLayout::Kind::narrow:
          each_code([&](std::size_t i, Code code) {
            cells[i * row_bytes + place.position] = static_cast<std::uint8_t>(code);
          });
          break;
        case CodeLayout::Kind::wide:
          each_code([&](std::size_t i, Code code) {
            reinterpret_cast<std::uint16_t*>(cells + i * row_bytes)[place.position] = code;
          });
          break;
        case CodeLayout::Kind::bundled:
          each_code([&](std::size_t i, Code code) {
            if (code == place.common_code) return;
            std::uint8_t& byte = cells[i * row_bytes + place.position];
            if (byte == 0) {
              byte = static_cast<std::uint8_t>(place.base + code);
            } else {
              entries.emplace_back(i, place.offset + code);
            }
          });
          break;
        case CodeLayout::Kind::sparse:
          each_code([&](std::size_t i, Code code) {
            if (code != place.common_code) entries.emplace_back(i, place.offset + code);
          });
          break;
      }
    }
    return sorted_by_row(std::move(entries), end - begin, count);
  }

 private:
  static std::vector<std::uint32_t> sorted_by_row(
      std::vector<std::pair<std::size_t, std::uint32_t>> entries, std::size_t n_rows,
      std::uint32_t* count) {
    std::sort(entries.begin(), entries.end());
    std::fill_n(count, n_rows, 0);
    std::vector<std::uint32_t> sorted;
    for (const auto& [row, entry] : entries) {
      ++count[row];
      sorted.push_back(entry);
    }
    return sorted;
  }

  const BinMap& bins_;
  const Matrix<Value>& x_;
  const CodeLayout& layout_;
};

}  // namespace

CodeLayout::CodeLayout(const BinMap& bins) : places_(bins.n_features()) {
  const std::vector<bool> sparse = choose_sparse(bins);
  std::int32_t n_bundles = 0;
  std::vector<std::uint32_t> narrow, wide, rest;
  for (std::uint32_t f = 0; f < places_.size(); ++f) {
    const Feature& feature = bins[f];
    places_[f].n_codes = feature.n_codes();
    places_[f].categorical = feature.categorical();
    places_[f].common_code = feature.common_code;
    n_bundles = std::max(n_bundles, feature.bundle + 1);
    if (feature.bundle >= 0) continue;
    (sparse[f] ? rest : feature.n_codes() <= most_narrow_codes ? narrow : wide).push_back(f);
  }
  for (const std::uint32_t f : narrow) {
    byte_offsets_.push_back(static_cast<std::uint32_t>(histogram_size_));
    place(f, Kind::narrow, n_bytes() - 1);
  }
  first_bundle_ = n_bytes();
  for (std::int32_t b = 0; b < n_bundles; ++b) {
    const std::size_t offset = histogram_size_++;
    byte_offsets_.push_back(static_cast<std::uint32_t>(offset));
    implied_cells_.push_back(static_cast<std::uint32_t>(offset));
    for (std::uint32_t f = 0; f < places_.size(); ++f) {
      if (bins[f].bundle == b) place(f, Kind::bundled, n_bytes() - 1, histogram_size_ - offset);
    }
  }
  for (const std::uint32_t f : wide) {
    word_offsets_.push_back(static_cast<std::uint32_t>(histogram_size_));
    place(f, Kind::wide, first_word() + n_words() - 1);
  }
  for (const std::uint32_t f : rest) place(f, Kind::sparse, 0);
  row_bytes_ = wide.empty() ? n_bytes() : 2 * (first_word() + n_words());
}

void CodeLayout::place(std::uint32_t feature, Kind kind, std::size_t position, std::size_t base) {
  Place& p = places_[feature];
  p.kind = kind;
  p.offset = static_cast<std::uint32_t>(histogram_size_);
  p.position = static_cast<std::uint32_t>(position);
  p.base = static_cast<std::uint32_t>(base);
  histogram_size_ += p.n_codes;
  by_offset_.push_back(feature);
  if (p.counts_only_differing()) implied_cells_.push_back(p.offset + p.common_code);
}

template <class Value>
void Rows::append_codes(const BinMap& bins, const Matrix<Value>& x, int n_threads) {
  const std::size_t first = n_, n_blocks = (x.rows + rows_together - 1) / rows_together;
  cells.resize((first + x.rows) * layout.row_bytes());
  Array<std::uint32_t> counts(x.rows);
  std::vector<std::vector<std::uint32_t>> entries(n_blocks);
  const BlockEncoder<Value> encoder(bins, x, layout);
  parallel_blocks(n_threads, x.rows, rows_together, [&](std::size_t begin, std::size_t end) {
    std::uint8_t* to = cells.data() + (first + begin) * layout.row_bytes();
    entries[begin / rows_together] = encoder.encode(begin, end, to, counts.data() + begin);
  });
  n_ = first + x.rows;

  std::size_t n_entries = 0;
  for (const auto& block : entries) n_entries += block.size();
  if (n_entries == 0 && !has_sparse()) return;
  if (!has_sparse()) {
    sparse_begin.resize(first);
    sparse_begin.fill(0);
    sparse_count.resize(first);
    sparse_count.fill(0);
  }
  std::uint64_t at = sparse_entries.size();
  sparse_begin.resize(n_);
  sparse_count.resize(n_);
  for (std::size_t r = 0; r < x.rows; ++r) {
    sparse_begin[first + r] = at;
    sparse_count[first + r] = counts[r];
    at += counts[r];
  }
  std::uint64_t to = sparse_entries.size();
  sparse_entries.resize(at);
  for (const auto& block : entries) {
    std::copy(block.begin(), block.end(), sparse_entries.begin() + to);
    to += block.size();
  }
}

std::vector<Rows::Move> Rows::vacate(const std::vector<Slot>& removed) {
  const std::size_t left = n_ - removed.size();
  std::vector<Move> moves;
  for (const Slot slot : removed) {
    if (has_sparse())
      std::ranges::fill_n(sparse_entries.begin() + sparse_begin[slot], sparse_count[slot], 0);
    if (slot < left) moves.push_back({0, slot});
  }
  auto move = moves.begin();
  auto gone = std::lower_bound(removed.begin(), removed.end(), left);
  for (std::size_t from = left; from < n_; ++from) {
    if (gone != removed.end() && *gone == from) {
      ++gone;
    } else {
      (move++)->from = static_cast<Slot>(from);
    }
  }
  const std::size_t row_bytes = layout.row_bytes();
  for (const Move& m : moves) {
    std::copy_n(cells.begin() + m.from * row_bytes, row_bytes, cells.begin() + m.to * row_bytes);
  }
  std::fill(cells.begin() + left * row_bytes, cells.end(), 0);
  cells.resize(left * row_bytes);
  move_and_shrink(sparse_begin, moves, left);
  move_and_shrink(sparse_count, moves, left);
  move_and_shrink(target, moves, left);
  move_and_shrink(weight, moves, left);
  move_and_shrink(raw_target, moves, left);
  move_and_shrink(raw_weight, moves, left);
  move_and_shrink(ids, moves, left);
  n_ = left;
  if (has_sparse()) gather_sparse_entries();
  return moves;
}

// Entries of removed rows leave gaps; when these are half of all, the rest moves together.
void Rows::gather_sparse_entries() {
  std::size_t used = 0;
  for (std::size_t r = 0; r < n_; ++r) used += sparse_count[r];
  if (sparse_entries.size() < 2 * used + 1024) return;
  Array<std::uint32_t> together(used);
  std::uint64_t at = 0;
  for (std::size_t r = 0; r < n_; ++r) {
    std::copy_n(sparse_entries.begin() + sparse_begin[r], sparse_count[r], together.begin() + at);
    sparse_begin[r] = at;
    at += sparse_count[r];
  }
  sparse_entries.swap(together);
}

template void Rows::append_codes(const BinMap&, const Matrix<float>&, int);
template void Rows::append_codes(const BinMap&, const Matrix<double>&, int);

}  // namespace graftboost
