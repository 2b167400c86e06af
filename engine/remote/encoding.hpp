// How rows, trees and parameters are written into messages.
#pragma once

#include <span>
#include <vector>

#include "data/row_table.hpp"
#include "model/loss.hpp"
#include "model/node_histogram.hpp"
#include "model/params.hpp"
#include "model/row_shard.hpp"
#include "model/tree.hpp"
#include "remote/message.hpp"

namespace graftboost {

void write_rows(Writer& to, const RowTable& rows);
// Throws std::invalid_argument unless these are rows of this layout.
RowTable read_rows(Reader& from, const CodeLayout& layout);

// Rows with what they recorded in trees.
struct FetchedRows {
  RowTable rows;
  GradientArray recorded;       // by tree, then row
  Array<std::uint16_t> leaves;  // likewise

  std::size_t n_trees() const { return rows.size() == 0 ? 0 : leaves.size() / rows.size(); }
};
// Copies rows of a shard.
FetchedRows copy_rows(const RowShard& shard, bool wide, std::span<const Slot> slots);
void append_rows(RowShard& to, const FetchedRows& rows, std::span<const Slot> chosen);
void write_fetched(Writer& to, const FetchedRows& fetched);
FetchedRows read_fetched(Reader& from, const CodeLayout& layout);

// The columns with cuts and their features.
void write_features(Writer& to, std::span<const std::uint32_t> columns,
                    std::span<const Feature> features);
void read_features(Reader& from, std::vector<std::uint32_t>& columns,
                   std::vector<Feature>& features);
void write_bins(Writer& to, const BinMap& bins);
BinMap read_bins(Reader& from);

// The structure of a tree and the values of its leaves. Sums and gains are not written: shards do
// not need them.
void write_tree(Writer& to, const Tree& tree);
Tree read_tree(Reader& from);
// Whether two trees have the same nodes and splits.
bool have_same_structure(const Tree& a, const Tree& b);

void write_loss(Writer& to, const Loss& loss);
Loss read_loss(Reader& from);
void write_params(Writer& to, const TrainingParams& params);
TrainingParams read_params(Reader& from);

// Lists of lists of leaf ids.
void write_leaves(Writer& to, std::span<const std::vector<std::int32_t>> lists);
std::vector<std::vector<std::int32_t>> read_leaves(Reader& from);

// The cells of a histogram as numbers that can be added up one by one.
template <class Sums>
inline constexpr std::size_t words_per_cell = sizeof(Sums) / sizeof(std::uint64_t);
template <class Sums>
void put_histogram(WipedVector<std::uint64_t>& sums, const Histogram<Sums>& histogram) {
  const std::size_t at = sums.size();
  sums.resize(at + histogram.size() * words_per_cell<Sums>);
  if (!histogram.empty())
    std::memcpy(sums.data() + at, histogram.data(), histogram.size() * sizeof(Sums));
}
template <class Sums>
void add_histogram(std::span<const std::uint64_t> sums, Histogram<Sums>& histogram) {
  for (std::size_t i = 0; i < histogram.size(); ++i) {
    Sums cell;
    std::memcpy(static_cast<void*>(&cell), sums.data() + i * words_per_cell<Sums>, sizeof(Sums));
    histogram[i] += cell;
  }
}
inline void put_totals(WipedVector<std::uint64_t>& sums, const Totals& totals) {
  for (const std::int64_t number : {totals.g, totals.h, totals.n})
    sums.push_back(static_cast<std::uint64_t>(number));
}
inline Totals get_totals(const std::uint64_t* three) {
  return {static_cast<std::int64_t>(three[0]), static_cast<std::int64_t>(three[1]),
          static_cast<std::int64_t>(three[2])};
}

}  // namespace graftboost
