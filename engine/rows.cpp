#include "rows.hpp"

#include <algorithm>

#include "parallel.hpp"

namespace graftboost {
namespace {

// What a histogram pays, in plain cells, for a cell that is stored because it differs, and for
// looking at all whether a row has such cells.
constexpr double sparse_cell_cost = 2.5;
constexpr double sparse_row_cost = 8;

// The features worth storing sparsely: those that save something, if together they save enough.
std::vector<bool> choose_sparse(const BinMap& bins) {
  std::vector<bool> chosen(bins.n_features());
  double saved = 0;
  for (std::size_t f = 0; f < bins.n_features(); ++f) {
    const double saving = 1 - sparse_cell_cost * (1 - bins[f].common_share);
    chosen[f] = saving > 0;
    saved += std::max(saving, 0.0);
  }
  if (saved < sparse_row_cost) chosen.assign(bins.n_features(), false);
  return chosen;
}

constexpr std::uint32_t most_narrow_codes = 256;

// Rows encoded together: their raw values stay in cache while feature after feature is looked up.
constexpr std::size_t rows_together = 256;

}  // namespace

CodeLayout::CodeLayout(const BinMap& bins) : places_(bins.n_features()) {
  const std::vector<bool> sparse = choose_sparse(bins);
  for (std::uint32_t f = 0; f < places_.size(); ++f) {
    const Feature& feature = bins[f];
    places_[f].n_codes = feature.n_codes();
    places_[f].categorical = feature.categorical();
    places_[f].common_code = feature.common_code;
    if (sparse[f]) {
      sparse_.push_back(f);
    } else if (feature.n_codes() <= most_narrow_codes) {
      narrow_.push_back(f);
    } else {
      wide_.push_back(f);
    }
  }
  const auto place = [&](const std::vector<std::uint32_t>& features, Kind kind, std::size_t first) {
    for (std::uint32_t i = 0; i < features.size(); ++i) {
      Place& p = places_[features[i]];
      p.kind = kind;
      p.offset = static_cast<std::uint32_t>(histogram_size_);
      p.position = static_cast<std::uint32_t>(first) + i;
      histogram_size_ += p.n_codes;
      if (kind == Kind::narrow) narrow_offsets_.push_back(p.offset);
      if (kind == Kind::wide) wide_offsets_.push_back(p.offset);
    }
  };
  const std::size_t narrow_words = (narrow_.size() + 1) / 2;  // wide codes start on an even byte
  place(narrow_, Kind::narrow, 0);
  place(wide_, Kind::wide, narrow_words);
  place(sparse_, Kind::sparse, 0);
  row_bytes_ = wide_.empty() ? narrow_.size() : 2 * (narrow_words + wide_.size());
}

template <class Value>
void Rows::append_codes(const BinMap& bins, const Matrix<Value>& x, int n_threads) {
  const std::size_t first = n_;
  const std::size_t row_bytes = layout.row_bytes();
  cells.resize((first + x.rows) * row_bytes);
  const bool has_sparse = !layout.sparse().empty();
  if (has_sparse) {
    sparse_begin.resize(first + x.rows);
    sparse_count.resize(first + x.rows);
  }
  const std::size_t n_blocks = (x.rows + rows_together - 1) / rows_together;
  std::vector<std::vector<std::uint32_t>> block_entries(has_sparse ? n_blocks : 0);

  parallel_blocks(n_threads, x.rows, rows_together, [&](std::size_t begin, std::size_t end) {
    const auto cell = [&](std::size_t r, std::uint32_t f) {
      return x.row(r)[static_cast<std::ptrdiff_t>(f) * x.column_stride];
    };
    for (const std::uint32_t f : layout.narrow()) {
      const Feature& feature = bins[f];
      std::uint8_t* to = cells.data() + (first + begin) * row_bytes + layout[f].position;
      for (std::size_t r = begin; r < end; ++r, to += row_bytes) {
        *to = static_cast<std::uint8_t>(feature.code(cell(r, f)));
      }
    }
    for (const std::uint32_t f : layout.wide()) {
      const Feature& feature = bins[f];
      auto* to = reinterpret_cast<std::uint16_t*>(cells.data() + (first + begin) * row_bytes) +
                 layout[f].position;
      for (std::size_t r = begin; r < end; ++r, to += row_bytes / 2) *to = feature.code(cell(r, f));
    }
    if (!has_sparse) return;
    auto& entries = block_entries[begin / rows_together];
    for (std::size_t r = begin; r < end; ++r) {
      const std::size_t before = entries.size();
      for (const std::uint32_t f : layout.sparse()) {
        const Code code = bins[f].code(cell(r, f));
        if (code != layout[f].common_code) entries.push_back(layout[f].offset + code);
      }
      sparse_count[first + r] = static_cast<std::uint32_t>(entries.size() - before);
    }
  });

  std::uint64_t at = sparse_entries.size();
  for (const auto& entries : block_entries) {
    const std::size_t old_size = sparse_entries.size();
    sparse_entries.resize(old_size + entries.size());
    std::copy(entries.begin(), entries.end(), sparse_entries.begin() + old_size);
  }
  for (std::size_t r = 0; has_sparse && r < x.rows; ++r) {
    sparse_begin[first + r] = at;
    at += sparse_count[first + r];
  }
  n_ = first + x.rows;
}

template void Rows::append_codes(const BinMap&, const Matrix<float>&, int);
template void Rows::append_codes(const BinMap&, const Matrix<double>&, int);

}  // namespace graftboost
