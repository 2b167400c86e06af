// From raw rows to the codes that a RowTable stores.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "data/row_table.hpp"

namespace graftboost {
namespace {

// Rows that are encoded together, feature by feature, so that their raw values stay in cache.
constexpr std::size_t rows_together = 256;

// Owns the entries of some rows (see RowTable), row by row, ascending within each row.
struct Entries {
  WipedVector<std::uint32_t> all;

  // Appends the entries of the next row, which may be in any order, and counts them.
  void add(WipedVector<std::uint32_t>& row, std::uint32_t& sparse_count,
           std::uint32_t& rare_count) {
    if (!std::is_sorted(row.begin(), row.end())) std::sort(row.begin(), row.end());
    const auto rare = std::lower_bound(row.begin(), row.end(), RareCell::first);
    sparse_count = static_cast<std::uint32_t>(rare - row.begin());
    rare_count = static_cast<std::uint32_t>(row.end() - rare);
    all.insert(all.end(), row.begin(), row.end());
  }
};

// Stores a code in the cells of a row, or as an entry if it does not belong there.
inline void write(const FeatureLayout& feature, Code code, std::uint8_t* cells,
                  WipedVector<std::uint32_t>& entries) {
  switch (feature.kind) {
    case FeatureLayout::Kind::narrow:
      cells[feature.position] = static_cast<std::uint8_t>(code);
      break;
    case FeatureLayout::Kind::wide:
      reinterpret_cast<std::uint16_t*>(cells)[feature.position] = code;
      break;
    case FeatureLayout::Kind::bundled:
      if (code == feature.common_code) break;
      if (cells[feature.position] == 0 && feature.has_byte(code)) {
        cells[feature.position] =
            static_cast<std::uint8_t>(feature.base + code - feature.first_bundled);
        break;
      }
      [[fallthrough]];
    case FeatureLayout::Kind::sparse:
      if (code != feature.common_code) entries.push_back(feature.offset + code);
      break;
    case FeatureLayout::Kind::rare:
      break;
  }
}

// Encodes blocks of rows of a table. encode() writes the cells of the rows begin to end - 1 from
// `cells` on, and the number of entries of each row.
//
// There are two versions. Most features of a dense table are narrow, and the fastest way to encode
// them is feature by feature, with the edges of one feature in cache and nothing to decide per
// cell. A sparse table can only be read row by row, and most of its features need not be visited
// for a row at all.
template <class Table>
class BlockEncoder;

template <class Value>
class BlockEncoder<DenseTable<Value>> {
 public:
  BlockEncoder(const BinMap& bins, const DenseTable<Value>& x, const CodeLayout& layout)
      : bins_(bins), x_(x), layout_(layout) {
    for (std::uint32_t c = 0; c < x.columns && layout.size() < x.columns; ++c)
      if (layout.number_of(c) == ColumnIndex::none) rare_.push_back(c);
  }

  Entries encode(std::size_t begin, std::size_t end, std::uint8_t* cells,
                 std::uint32_t* sparse_count, std::uint32_t* rare_count) const {
    const std::size_t row_bytes = layout_.row_bytes(), n = end - begin;
    std::fill_n(cells, n * row_bytes, 0);
    std::vector<WipedVector<std::uint32_t>> entries(n);
    for (const std::uint32_t number : layout_.by_offset()) {
      const FeatureLayout& feature_layout = layout_[number];
      const Feature& feature = bins_[feature_layout.column];
      const Value* from = column(begin, feature_layout.column);
      const auto each_code = [&](auto&& use) {
        for (std::size_t i = 0; i < n; ++i)
          use(i, feature.code(from[static_cast<std::ptrdiff_t>(i) * x_.row_stride]));
      };
      // The kind is tested once per block, not in write() for each cell: most features are narrow.
      if (feature_layout.kind == FeatureLayout::Kind::narrow) {
        each_code([&](std::size_t i, Code code) {
          cells[i * row_bytes + feature_layout.position] = static_cast<std::uint8_t>(code);
        });
      } else {
        each_code([&](std::size_t i, Code code) {
          write(feature_layout, code, cells + i * row_bytes, entries[i]);
        });
      }
    }
    for (const std::uint32_t c : rare_) {
      const Value* from = column(begin, c);
      for (std::size_t i = 0; i < n; ++i) {
        const Value value = from[static_cast<std::ptrdiff_t>(i) * x_.row_stride];
        if (value != 0) entries[i].push_back(RareCell::of(c, BinMap::rare_code(value)));
      }
    }
    Entries result;
    for (std::size_t i = 0; i < n; ++i) result.add(entries[i], sparse_count[i], rare_count[i]);
    return result;
  }

 private:
  const Value* column(std::size_t row, std::uint32_t c) const {
    return x_.row(row) + static_cast<std::ptrdiff_t>(c) * x_.column_stride;
  }

  const BinMap& bins_;
  const DenseTable<Value>& x_;
  const CodeLayout& layout_;
  std::vector<std::uint32_t> rare_;  // columns
};

template <class Value>
class BlockEncoder<SparseTable<Value>> {
 public:
  BlockEncoder(const BinMap& bins, const SparseTable<Value>& x, const CodeLayout& layout)
      : bins_(bins), x_(x), layout_(layout), of_zeros_(layout.row_bytes()) {
    WipedVector<std::uint32_t> none;
    for (std::size_t i = 0; i < layout.first_sparse(); ++i) {
      const FeatureLayout& feature = layout[layout.by_offset()[i]];
      if (feature.kind != FeatureLayout::Kind::bundled)
        write(feature, feature.zero_code, of_zeros_.data(), none);
    }
  }

  Entries encode(std::size_t begin, std::size_t end, std::uint8_t* cells,
                 std::uint32_t* sparse_count, std::uint32_t* rare_count) const {
    Entries result;
    WipedVector<std::uint32_t> entries;
    for (std::size_t r = begin; r < end; ++r, cells += layout_.row_bytes()) {
      entries.clear();
      std::copy(of_zeros_.begin(), of_zeros_.end(), cells);
      x_.for_each(r, [&](std::uint32_t column, Value value) {
        const std::uint32_t number = layout_.number_of(column);
        if (number == ColumnIndex::none) {
          entries.push_back(RareCell::of(column, BinMap::rare_code(value)));
        } else if (number < bins_.features().size()) {
          write(layout_[number], bins_.features()[number].code(value), cells, entries);
        } else {
          write(layout_[number], BinMap::rare_code(value), cells, entries);
        }
      });
      for (const std::uint32_t number : layout_.zero_differs()) {
        const FeatureLayout& feature = layout_[number];
        if (x_.at(r, feature.column) == 0) write(feature, feature.zero_code, cells, entries);
      }
      result.add(entries, sparse_count[r - begin], rare_count[r - begin]);
    }
    return result;
  }

 private:
  const BinMap& bins_;
  const SparseTable<Value>& x_;
  const CodeLayout& layout_;
  std::vector<std::uint8_t> of_zeros_;  // the cells of a row of zeros
};

}  // namespace

template <class Table>
void RowTable::append_codes(const BinMap& bins, const Table& x, int n_threads) {
  const std::size_t first = n_, n_blocks = (x.rows + rows_together - 1) / rows_together;
  cells.resize((first + x.rows) * layout.row_bytes());
  Array<std::uint32_t> sparse(x.rows), rare(x.rows);
  std::vector<Entries> entries(n_blocks);
  const BlockEncoder<Table> encoder(bins, x, layout);
  parallel_blocks(n_threads, x.rows, rows_together, [&](std::size_t begin, std::size_t end) {
    std::uint8_t* to = cells.data() + (first + begin) * layout.row_bytes();
    entries[begin / rows_together] =
        encoder.encode(begin, end, to, sparse.data() + begin, rare.data() + begin);
  });
  n_ = first + x.rows;

  std::size_t n_entries = 0;
  for (const Entries& block : entries) n_entries += block.all.size();
  if (n_entries == 0 && !has_sparse()) return;
  if (!has_sparse()) start_entries(first);
  std::uint64_t at = sparse_entries.size();
  sparse_begin.resize(n_);
  sparse_count.resize(n_);
  rare_count.resize(n_);
  for (std::size_t r = 0; r < x.rows; ++r) {
    sparse_begin[first + r] = at;
    sparse_count[first + r] = sparse[r];
    rare_count[first + r] = rare[r];
    at += sparse[r] + rare[r];
    if (n_in_histograms_) *n_in_histograms_ += sparse[r];
  }
  std::uint64_t to = sparse_entries.size();
  sparse_entries.resize(at);
  for (const Entries& block : entries) {
    std::copy(block.all.begin(), block.all.end(), sparse_entries.begin() + to);
    to += block.all.size();
  }
  count_rare(first, n_, 1);
}

template void RowTable::append_codes(const BinMap&, const DenseTable<float>&, int);
template void RowTable::append_codes(const BinMap&, const DenseTable<double>&, int);
template void RowTable::append_codes(const BinMap&, const SparseTable<float>&, int);
template void RowTable::append_codes(const BinMap&, const SparseTable<double>&, int);

}  // namespace graftboost
