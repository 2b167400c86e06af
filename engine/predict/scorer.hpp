// Scores of raw rows.
#pragma once

#include <cstdint>
#include <vector>

#include "core/types.hpp"
#include "data/bins.hpp"
#include "data/table.hpp"
#include "model/node_table.hpp"

namespace graftboost {

// The trees of a model, compiled for scoring many rows at once. Immutable.
//
// A tree of up to 64 leaves is scored without following paths. Number its leaves from left to right
// and give every row a set of leaves that it may still reach, all at first. A row that goes right
// at a node cannot reach the leaves under the node's left child; after all nodes, in any order, the
// leftmost leaf that remains is the row's:
//
//             a                  row goes  right at a, left at b, right at c
//           /   \                    all    0 1 2 3
//          b     c                   at a   - - 2 3
//         / \   / \                  at c   - - - 3
//        0   1 2   3                 leaf         3
//
// Each step is one comparison and one mask for a whole block of rows, a byte a row, which compilers
// turn into vector instructions. Larger trees are walked level by level.
class Scorer {
 public:
  Scorer(const BinMap& bins, const NodeTable& nodes, int trees_per_iteration);

  std::size_t n_trees() const { return trees_.size(); }

  // Adds trees [first, last) to scores[row * trees_per_iteration + tree % trees_per_iteration].
  template <class Table>
  void add_scores(const Table& x, std::size_t first, std::size_t last, double* scores,
                  int n_threads) const;

  // The leaf id per row and tree.
  template <class Table>
  void leaf_ids(const Table& x, std::int32_t* ids, int n_threads) const;

 private:
  static constexpr std::size_t block_rows = 128;
  static constexpr std::int32_t most_masked_leaves = 64;

  struct MaskedSplit {
    Split split;               // feature is a column of the block
    std::uint8_t plane_begin;  // leaves 8p .. 8p+7 are bits of plane p
    std::uint8_t plane_end;
    std::uint8_t first_mask;  // leaves under the left child, in the first, the last ...
    std::uint8_t last_mask;   // ... and all of those between
  };
  struct Step {
    Split split;
    std::uint32_t left, right;  // a leaf leads to itself
  };
  struct CompiledTree {
    std::size_t begin, end;  // of its tests, or of its steps
    std::uint32_t n_planes;  // 0: walked
    std::uint32_t depth;
    std::size_t values;  // of its leaves' values and ids
  };
  struct Block;

  void compile_masked(const Tree& tree, CompiledTree& compiled);
  void compile_walked(const Tree& tree, CompiledTree& compiled);
  void find_leaves(const CompiledTree& tree, Block& block) const;
  template <class Value>
  void encode(const DenseTable<Value>& x, std::size_t begin, std::size_t end, Block& block) const;
  template <class Value>
  void encode(const SparseTable<Value>& x, std::size_t begin, std::size_t end, Block& block) const;
  void write(Block& block, std::size_t column, std::size_t row, Code code) const;

  int trees_per_iteration_;
  ColumnIndex columns_;  // features that some tree asks for: columns of a block
  std::vector<const Feature*> bins_of_;
  std::vector<Code> zero_codes_;      // of the value 0
  std::vector<std::uint8_t> narrow_;  // whether a byte holds the column's codes
  bool walks_ = false;
  std::vector<CompiledTree> trees_;
  std::vector<MaskedSplit> tests_;
  std::vector<Step> steps_;
  std::vector<double> values_;
  std::vector<std::int32_t> ids_;
};

}  // namespace graftboost
