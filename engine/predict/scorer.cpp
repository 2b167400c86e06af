#include "predict/scorer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "core/parallel.hpp"
#include "core/vectorise.hpp"

namespace graftboost {
namespace {

constexpr std::size_t rows_in_block = 128;
constexpr std::size_t most_planes = 8;

using Bytes = std::array<std::uint8_t, rows_in_block>;

// 0xff where the row goes right.
template <class Stored>
inline void goes_right(const Stored* codes, Stored low, Stored span, std::uint8_t* right) {
  for (std::size_t r = 0; r < rows_in_block; ++r) {
    right[r] = static_cast<Stored>(codes[r] - low) > span ? 0xff : 0;
  }
}

inline void strike(const std::uint8_t* right, std::uint8_t mask, std::uint8_t* reachable) {
  for (std::size_t r = 0; r < rows_in_block; ++r)
    reachable[r] &= static_cast<std::uint8_t>(~(right[r] & mask));
}

// The lowest set bit of the planes, looking from the last to the first.
inline void leftmost(const Bytes* reachable, std::size_t n_planes, std::uint32_t* leaf) {
  Bytes found{};
  for (std::size_t p = n_planes; p-- > 0;) {
    const auto first = static_cast<std::uint8_t>(8 * p);
    for (std::size_t r = 0; r < rows_in_block; ++r) {
      const std::uint8_t x = reachable[p][r];
      const auto bit = static_cast<std::uint8_t>(x & -x);
      const auto index =
          static_cast<std::uint8_t>(first + ((bit & 0xaa) != 0 ? 1 : 0) +
                                    ((bit & 0xcc) != 0 ? 2 : 0) + ((bit & 0xf0) != 0 ? 4 : 0));
      found[r] = x != 0 ? index : found[r];
    }
  }
  for (std::size_t r = 0; r < rows_in_block; ++r) leaf[r] = found[r];
}

}  // namespace

// A block of rows: their codes by column, and their leaves in the present tree.
struct Scorer::Block {
  std::vector<std::array<std::uint8_t, block_rows>> narrow;
  std::vector<std::array<std::uint16_t, block_rows>> wide;
  alignas(64) std::array<std::uint32_t, block_rows> leaf;

  explicit Block(std::size_t n_columns) : narrow(n_columns), wide(n_columns) {}
};

Scorer::Scorer(const BinMap& bins, const NodeTable& nodes, int trees_per_iteration)
    : trees_per_iteration_(trees_per_iteration) {
  std::vector<std::uint32_t> asked_for;
  for (const TreeNodes& of_tree : nodes) {
    const Tree& tree = of_tree.tree;
    for (const Node& node : tree.nodes) {
      if (!node.is_leaf()) asked_for.push_back(node.split.feature);
    }
  }
  std::sort(asked_for.begin(), asked_for.end());
  asked_for.erase(std::unique(asked_for.begin(), asked_for.end()), asked_for.end());
  columns_ = ColumnIndex(std::move(asked_for));
  for (const std::uint32_t f : columns_.columns()) {
    bins_of_.push_back(&bins[f]);
    zero_codes_.push_back(bins[f].code(0.0));
    narrow_.push_back(bins[f].n_codes() <= 256);
  }
  for (const TreeNodes& of_tree : nodes) {
    const Tree& tree = of_tree.tree;
    CompiledTree compiled{};
    compiled.values = values_.size();
    if (tree.n_leaves() <= most_masked_leaves) {
      compile_masked(tree, compiled);
    } else {
      compile_walked(tree, compiled);
      walks_ = true;
    }
    trees_.push_back(compiled);
  }
}

void Scorer::compile_masked(const Tree& tree, CompiledTree& compiled) {
  compiled.begin = tests_.size();
  compiled.n_planes = static_cast<std::uint32_t>((tree.n_leaves() + 7) / 8);
  std::int32_t n_leaves = 0;
  const std::function<void(NodeIndex)> visit = [&](NodeIndex i) {
    const Node& node = tree.nodes[static_cast<std::size_t>(i)];
    if (node.is_leaf()) {
      values_.push_back(node.value);
      ids_.push_back(node.leaf);
      ++n_leaves;
      return;
    }
    const std::int32_t first = n_leaves;
    visit(node.left);
    const std::int32_t end = n_leaves;
    visit(node.right);
    MaskedSplit masked{node.split, static_cast<std::uint8_t>(first / 8),
                       static_cast<std::uint8_t>((end - 1) / 8 + 1),
                       static_cast<std::uint8_t>(0xff << (first % 8)),
                       static_cast<std::uint8_t>(0xff >> (7 - (end - 1) % 8))};
    masked.split.feature = columns_.find(node.split.feature);
    if (masked.plane_end - masked.plane_begin == 1) masked.first_mask &= masked.last_mask;
    tests_.push_back(masked);
  };
  visit(0);
  compiled.end = tests_.size();
}

void Scorer::compile_walked(const Tree& tree, CompiledTree& compiled) {
  compiled.begin = steps_.size();
  std::vector<std::uint32_t> depth(tree.nodes.size());
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const Node& node = tree.nodes[i];
    if (i != 0) depth[i] = depth[static_cast<std::size_t>(node.parent)] + 1;
    compiled.depth = std::max(compiled.depth, depth[i]);
    Step step{{0, 0, 0}, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i)};
    if (!node.is_leaf()) {
      step = {node.split, static_cast<std::uint32_t>(node.left),
              static_cast<std::uint32_t>(node.right)};
      step.split.feature = columns_.find(node.split.feature);
    }
    steps_.push_back(step);
    values_.push_back(node.value);
    ids_.push_back(node.leaf);
  }
  compiled.end = steps_.size();
}

inline void Scorer::write(Block& block, std::size_t column, std::size_t row, Code code) const {
  const bool narrow = narrow_[column] != 0;
  if (narrow) block.narrow[column][row] = static_cast<std::uint8_t>(code);
  if (!narrow || walks_) block.wide[column][row] = code;
}

template <class Value>
void Scorer::encode(const SparseTable<Value>& x, std::size_t begin, std::size_t end,
                    Block& block) const {
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (narrow_[c]) block.narrow[c].fill(static_cast<std::uint8_t>(zero_codes_[c]));
    if (!narrow_[c] || walks_) block.wide[c].fill(zero_codes_[c]);
  }
  for (std::size_t r = begin; r < end; ++r) {
    x.for_each(r, [&](std::uint32_t f, Value value) {
      const std::uint32_t c = columns_.find(f);
      if (c != ColumnIndex::none) write(block, c, r - begin, bins_of_[c]->code(value));
    });
  }
}

template <class Value>
void Scorer::encode(const DenseTable<Value>& x, std::size_t begin, std::size_t end,
                    Block& block) const {
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const Feature& feature = *bins_of_[c];
    const Value* from = x.row(begin) + static_cast<std::ptrdiff_t>(columns_[c]) * x.column_stride;
    for (std::size_t r = 0; r < end - begin; ++r, from += x.row_stride)
      write(block, c, r, feature.code(*from));
  }
}

GRAFTBOOST_ALSO_AVX2
void Scorer::find_leaves(const CompiledTree& tree, Block& block) const {
  if (tree.n_planes == 0) {
    const Step* steps = steps_.data() + tree.begin;
    block.leaf.fill(0);
    for (std::uint32_t d = 0; d < tree.depth; ++d) {
      for (std::size_t r = 0; r < block_rows; ++r) {
        const Step& step = steps[block.leaf[r]];
        const bool left = step.split.goes_left(block.wide[step.split.feature][r]);
        block.leaf[r] = left ? step.left : step.right;
      }
    }
    return;
  }
  alignas(64) Bytes reachable[most_planes];
  std::memset(reachable, 0xff, tree.n_planes * sizeof(Bytes));
  alignas(64) Bytes right;
  for (std::size_t t = tree.begin; t < tree.end; ++t) {
    const MaskedSplit& masked = tests_[t];
    const std::uint32_t column = masked.split.feature;
    if (narrow_[column]) {
      goes_right<std::uint8_t>(block.narrow[column].data(),
                               static_cast<std::uint8_t>(masked.split.low),
                               static_cast<std::uint8_t>(masked.split.span), right.data());
    } else {
      goes_right<std::uint16_t>(block.wide[column].data(), masked.split.low, masked.split.span,
                                right.data());
    }
    std::uint8_t mask = masked.first_mask;
    for (std::size_t p = masked.plane_begin; p < masked.plane_end; ++p) {
      strike(right.data(), mask, reachable[p].data());
      mask = p + 2 == masked.plane_end ? masked.last_mask : 0xff;
    }
  }
  leftmost(reachable, tree.n_planes, block.leaf.data());
}

template <class Table>
void Scorer::add_scores(const Table& x, std::size_t first, std::size_t last, double* scores,
                        int n_threads) const {
  static_assert(block_rows == rows_in_block);
  const auto k_trees = static_cast<std::size_t>(trees_per_iteration_);
  constexpr std::size_t blocks_together = 8;
  parallel_blocks(n_threads, x.rows, blocks_together * block_rows,
                  [&](std::size_t from, std::size_t to) {
                    Block block(columns_.size());
                    std::vector<double> sums(k_trees * block_rows);
                    for (std::size_t begin = from; begin < to; begin += block_rows) {
                      const std::size_t end = std::min(to, begin + block_rows);
                      encode(x, begin, end, block);
                      std::fill(sums.begin(), sums.end(), 0.0);
                      for (std::size_t t = first; t < last; ++t) {
                        find_leaves(trees_[t], block);
                        const double* values = values_.data() + trees_[t].values;
                        double* sum = sums.data() + t % k_trees * block_rows;
                        for (std::size_t r = 0; r < block_rows; ++r)
                          sum[r] += values[block.leaf[r]];
                      }
                      for (std::size_t r = begin; r < end; ++r) {
                        for (std::size_t k = 0; k < k_trees; ++k) {
                          scores[r * k_trees + k] += sums[k * block_rows + r - begin];
                        }
                      }
                    }
                  });
}

template <class Table>
void Scorer::leaf_ids(const Table& x, std::int32_t* ids, int n_threads) const {
  parallel_blocks(n_threads, x.rows, block_rows, [&](std::size_t begin, std::size_t end) {
    Block block(columns_.size());
    encode(x, begin, end, block);
    for (std::size_t t = 0; t < trees_.size(); ++t) {
      find_leaves(trees_[t], block);
      const std::int32_t* id = ids_.data() + trees_[t].values;
      for (std::size_t r = begin; r < end; ++r)
        ids[r * trees_.size() + t] = id[block.leaf[r - begin]];
    }
  });
}

#define GRAFTBOOST_FOR_TABLE(Table)                                                             \
  template void Scorer::add_scores(const Table&, std::size_t, std::size_t, double*, int) const; \
  template void Scorer::leaf_ids(const Table&, std::int32_t*, int) const;
GRAFTBOOST_FOR_TABLE(DenseTable<float>)
GRAFTBOOST_FOR_TABLE(DenseTable<double>)
GRAFTBOOST_FOR_TABLE(SparseTable<float>)
GRAFTBOOST_FOR_TABLE(SparseTable<double>)

}  // namespace graftboost
