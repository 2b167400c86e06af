// What the node half asks of shards in other processes.
#pragma once

#include <cstdint>

#include "core/types.hpp"

namespace graftboost {

// A message consists of requests, which a shard fulfils in this order. Those marked with an arrow
// are answered: with sums, which are added up over all shards, or with bytes about single rows.
// A growth is the row side of a tree, or of the part of a tree below a node, that is grown. The node
// half numbers growths, and the nodes of each from 0 on.
enum class RequestKind : std::uint32_t {
  // Finding bins; see data/bin_finder.hpp.
  draw,            // a sample of rows, from which the rest is found
  nonzero_counts,  // -> rows with a value other than 0, by column
  select,          // the columns that are read
  distributions,   // columns -> their distributions
  least_above,     // values below edges -> the least values above them
  conflicts,       // features, a sample of rows -> pairs of features that cannot share a byte
  // About all rows.
  facts,          // -> RowFacts
  weight_facts,   // -> largest weight; sums of weights; counts of weights: see model/weights.hpp
  target_range,   // -> the least and the greatest target
  put_on_grids,   // loss -> sums of targets
  count_columns,  // -> rows with each column that has no cuts
  set_layout,     // columns that are laid out besides those with cuts
  count_cells,    // -> rows in each cell of sparse features
  // Training.
  begin_training,  // parameters, base scores, and the cells that histograms have
  record,          // the first tree of an iteration: rows record gradients in its trees
  start_tree,      // a growth with the rows of a tree's subsample
  split,           // a node of a growth
  count,           // nodes of a growth -> their histograms
  count_root,      // -> histogram of the root, its totals, squares of gradients, number of rows
  end_tree,        // the tree as it has grown: rows are placed in its leaves
  end_training,    // the number of trees that are kept
  // Updates.
  find,              // ids to remove and to add -> which are held, and the rows to remove
  add,               // rows as values; each shard takes those that a hash of the id assigns to it
  base_scores,       // as they are after the update
  rare_columns,      // columns -> rows that have each of them
  lay_out,           // rare columns that become features -> the rows that have them
  used_columns,      // -> rows that have each column that was laid out so
  place,             // leaves and gradients of added rows in trees
  count_nodes,       // nodes of a tree, as lists of leaf ids -> their histograms
  recount,           // the same, of the rows before the update
  shift,             // a split whose threshold moves -> the rows that move
  merge_leaves,      // the rows of one leaf go to another
  set_trees,         // trees with other nodes or splits
  set_values,        // leaves with other values
  begin_regrowing,   // an iteration whose nodes are regrown
  start_node,        // a growth with the rows of a node, which record fresh gradients
  end_node,          // rows are placed in the leaves of the growth
  refresh,           // an iteration: rows record gradients -> sums by leaf
  refit,             // of all trees, on the rows without the removed and with the added ones
  layout_at_commit,  // columns that are laid out from then on
  commit,            // what was begun is done, and removed rows are wiped
  undo,              // what was begun is undone
  // Reading.
  target_sums,  // -> sums of targets
  check_tree,   // -> totals of leaves, squares, rows in a wrong leaf
  ids,          // -> the ids of all rows
  held_codes,   // a feature -> rows with each of its codes
  fetch,        // a range of rows -> these rows, with what they recorded
  take,         // the same as values; each shard takes its own
};

// What the node half has to know about the rows of a shard.
struct RowFacts {
  std::uint64_t n_rows = 0;
  std::uint64_t n_in_histograms = 0;  // entries of sparse features that are counted in histograms
  std::int64_t largest_weight = 0;
  std::uint32_t is_weighted = 0, has_sparse = 0;
};

// A leaf has another value.
struct LeafValue {
  std::uint32_t tree;
  NodeIndex node;
  double value;
};

// A node of a growth is split.
struct NodeSplit {
  NodeIndex parent, left, right;
  Split split;
};

}  // namespace graftboost
