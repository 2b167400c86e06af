#include "train/tree_grower.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "core/parallel.hpp"

namespace graftboost {
namespace {

// Below these sizes one thread is done before a second has started.
constexpr double least_cells_to_share = 8'000, least_cells_per_sparse_cell = 2;
constexpr std::size_t least_rows_to_share = 4'000;
constexpr std::size_t least_sums_to_share = 500;
// Sums of so many rows are found quickly wherever they are.
constexpr std::size_t most_rows_in_cache = std::size_t{1} << 15;
constexpr double least_entries_per_row = 4;

}  // namespace

template <class Sums>
Grower<Sums>::Grower(const RowTable& rows, const Loss& loss, const GrowingParams& params,
                     const WorkingCells& cells, int n_threads)
    : rows_(rows),
      loss_(loss),
      cells_(cells),
      params_(params),
      n_threads_(n_threads),
      cells_per_row_(rows.cells_per_row() + 1) {
  const CodeLayout& layout = rows.layout;
  // Two shares a thread, of about as many cells each.
  const bool share = n_threads > 1 && layout.histogram_size() >= least_sums_to_share;
  const std::size_t n_groups = share ? 2 * static_cast<std::size_t>(n_threads) : 1;
  std::size_t begin = 0, n_cells = 0;
  for (std::size_t i = 0; i < layout.by_offset().size(); ++i) {
    n_cells += layout[layout.by_offset()[i]].n_codes;
    if (n_cells * n_groups >= layout.histogram_size() || i + 1 == layout.by_offset().size()) {
      feature_groups_.emplace_back(begin, i + 1);
      begin = i + 1, n_cells = 0;
    }
  }
}

template <class Sums>
Slot* Grower<Sums>::start(std::size_t n_slots) {
  n_slots_ = n_slots;
  slots_.resize(n_slots + slots_read_ahead);
  std::fill(slots_.begin() + n_slots, slots_.end(), Slot{0});
  left_scratch_.resize(n_slots);
  right_scratch_.resize(n_slots);
  return slots_.data();
}

template <class Sums>
bool Grower<Sums>::may_split(const Node& node) const {
  return node.sums.n >= 2 * params_.gain.min_samples_leaf;
}

template <class Sums>
Histogram<Sums> Grower<Sums>::new_histogram() {
  if (spare_.empty()) return Histogram<Sums>(cells_.size());
  Histogram<Sums> histogram = std::move(spare_.back());
  spare_.pop_back();
  return histogram;
}

// Every row counts at the root, so sparse cells can be added up one by one, by the rows that are in
// them: what a row adds need only be read, and many rows have fewer bytes than many cells.
template <class Sums>
void Grower<Sums>::count_root(const Contributions& contributions) {
  const std::size_t n_plain = cells_.plain_size(), n_sparse = cells_.size() - n_plain;
  const double entries_per_row =
      cells_per_row_ - 1 - static_cast<double>(rows_.layout.n_bytes() + rows_.layout.n_words());
  if (!cells_.lists_rows() || rows_.size() > std::max(n_sparse, most_rows_in_cache) ||
      entries_per_row < least_entries_per_row)
    return count(contributions, growths_[0]);
  const std::span<const Slot> slots(slots_.data(), n_slots_);
  of_rows_.resize(rows_.size());
  if (n_slots_ < rows_.size()) of_rows_.fill(Sums(Totals{}));
  for (const Slot row : slots) of_rows_[row] = Sums(contributions.of(row));
  const auto sum_of = [&](std::size_t cell) {
    Sums sum(Totals{});
    for (const Slot row : cells_.rows_in(cell)) sum += of_rows_[row];
    return sum;
  };
  Histogram<Sums>& histogram = growths_[0].histogram = new_histogram();
  const auto n_threads = static_cast<std::size_t>(std::max(n_threads_, 1));
  const std::size_t n_shares = 4 * n_threads;  // of sparse cells, so that all are done at one time
  partial_.resize(n_threads);
  parallel(n_threads_, n_threads + n_shares, [&](std::size_t task) {
    if (task < n_threads) {
      const std::size_t begin = slots.size() * task / n_threads;
      const std::size_t end = slots.size() * (task + 1) / n_threads;
      partial_[task].resize(cells_.size());
      std::fill_n(partial_[task].data(), n_plain, Sums(Totals{}));
      accumulate(rows_, contributions, slots.subspan(begin, end - begin), partial_[task].data(),
                 SparseEntries{});
      return;
    }
    const std::size_t share = task - n_threads;
    const std::size_t end = n_plain + n_sparse * (share + 1) / n_shares;
    for (std::size_t cell = n_plain + n_sparse * share / n_shares; cell < end; ++cell)
      histogram[cell] = sum_of(cell);
  });
  for (std::size_t cell = 0; cell < n_plain; ++cell) {
    histogram[cell] = sum_of(cell);
    for (const auto& part : partial_) histogram[cell] += part[cell];
  }
}

// Sums are integers, so the threads may each count a share of the rows and add up. What else is to be
// done meanwhile keeps those busy that have no share.
template <class Sums>
void Grower<Sums>::count(const Contributions& contributions, Growth& growth,
                         const std::function<void()>& meanwhile) {
  growth.histogram = new_histogram();
  const std::span<const Slot> slots(slots_.data() + growth.begin, growth.size());
  // What the others count has to be added up.
  const auto n_sparse = static_cast<double>(cells_.size() - cells_.plain_size());
  const double least = std::max(least_cells_to_share, least_cells_per_sparse_cell * n_sparse);
  const bool shared = static_cast<double>(growth.size()) * cells_per_row_ >= least;
  const std::size_t n_shares = shared ? static_cast<std::size_t>(std::max(n_threads_, 1)) : 1;
  if (partial_.size() + 1 < n_shares) partial_.resize(n_shares - 1);
  for (std::size_t share = 1; share < n_shares; ++share) partial_[share - 1].resize(cells_.size());
  parallel(n_threads_, n_shares + (meanwhile ? 1 : 0), [&](std::size_t share) {
    if (share == n_shares) return meanwhile();
    const std::size_t begin = slots.size() * share / n_shares;
    const std::size_t end = slots.size() * (share + 1) / n_shares;
    Histogram<Sums>& target = share == 0 ? growth.histogram : partial_[share - 1];
    target.fill(Sums(Totals{}));
    accumulate(rows_, contributions, slots.subspan(begin, end - begin), target.data(),
               cells_.entries());
  });
  for (std::size_t share = 1; share < n_shares; ++share) {
    const Histogram<Sums>& part = partial_[share - 1];
    for (std::size_t i = 0; i < part.size(); ++i) growth.histogram[i] += part[i];
  }
}

// Stable: lefts go to `lefts` (which may be where they come from), rights to `rights`. Returns how
// many went left.
template <class Sums>
std::size_t Grower<Sums>::partition_block(const Split& split, std::size_t begin, std::size_t end,
                                          Slot* lefts, Slot* rights) const {
  const FeatureLayout& place = rows_.layout.of(split.feature);
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
  // Few rows are not worth a table of what goes left; nor is there one of two-byte codes, nor of a
  // feature with cells kept apart of which there is no list.
  const bool narrow = place.kind == FeatureLayout::Kind::narrow;
  const bool bundled = place.kind == FeatureLayout::Kind::bundled;
  const bool listed = narrow || cells_.lists_rows() || !rows_.has_sparse();
  const bool few = end - begin < 256 && (narrow || bundled);
  if (place.kind == FeatureLayout::Kind::wide || few || !listed)
    return run([&](Slot row, Slot) { return split.goes_left(rows_.code(row, place, split.feature)); });

  const auto marked_left = [&](Slot row, bool otherwise) {
    return codes_[row] == 0 ? otherwise : split.goes_left(static_cast<Code>(codes_[row] - 1));
  };
  if (!narrow && !bundled) {
    const bool commonly = split.goes_left(place.common_code);
    if (!marked_) return run([&](Slot, Slot) { return commonly; });
    return run([&](Slot row, Slot) { return marked_left(row, commonly); });
  }
  std::array<bool, 256> byte_left;
  for (std::size_t byte = 0; byte < byte_left.size(); ++byte) {
    const auto value = static_cast<std::uint8_t>(byte);
    byte_left[byte] = split.goes_left(bundled ? place.bundled_code(value) : Code{value});
  }
  const std::size_t row_bytes = rows_.layout.row_bytes();
  const std::uint8_t* cells = rows_.cells.data() + place.position;
  const auto cell_left = [&, cells](Slot row, Slot ahead) {
    __builtin_prefetch(cells + ahead * row_bytes);
    return byte_left[cells[row * row_bytes]];
  };
  if (!bundled || !marked_) return run(cell_left);
  return run([&](Slot row, Slot ahead) {
    __builtin_prefetch(codes_.data() + ahead);
    return marked_left(row, cell_left(row, ahead));
  });
}

template <class Sums>
std::size_t Grower<Sums>::partition(std::size_t begin, std::size_t end, const Split& split) {
  const std::uint32_t number = rows_.layout.number_of(split.feature);
  marked_ = cells_.lists_rows() && cells_.any_row_in(number);
  if (!marked_) return partition_slots(begin, end, split);
  if (codes_.size() != rows_.size()) {
    codes_.resize(rows_.size());
    codes_.fill(0);
  }
  cells_.for_each_row(number,
                      [&](Slot row, Code code) { codes_[row] = static_cast<Code>(code + 1); });
  const std::size_t middle = partition_slots(begin, end, split);
  cells_.for_each_row(number, [&](Slot row, Code) { codes_[row] = 0; });
  return middle;
}

//     slots      begin .......... middle ............. end
//     before     l r r l l r r r l r l r l l r r l r r r l
//     after      l l l l l l l l | r r r r r r r r r r r r      each side in its old order
//
// Returns the middle.
template <class Sums>
std::size_t Grower<Sums>::partition_slots(std::size_t begin, std::size_t end, const Split& split) {
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

// The histogram of `smaller` has been counted. That of `larger`, if there is one, becomes the parent's
// less the smaller's, feature by feature, just before each is searched and while its cells are in cache;
// it may be the parent's own memory.
template <class Sums>
void Grower<Sums>::find_best(Tree& tree, NodeIndex smaller, NodeIndex larger,
                             const Sums* parent_sums) {
  for (const NodeIndex i : {smaller, larger}) {
    if (!params_.keep_sums || i == no_node || !may_split(tree.nodes[at(i)])) continue;
    growths_[at(i)].watch.start(params_.gain, tree.nodes[at(i)].sums, rows_.layout);
  }
  watches_groups(rows_.layout) ? search_together(tree, smaller, larger, parent_sums)
                               : search_each(tree, smaller, larger, parent_sums);
  for (const NodeIndex i : {smaller, larger})
    if (i != no_node) growths_[at(i)].watch.sum_up();
}

template <class Sums>
void Grower<Sums>::take_smaller(std::uint32_t number, const Sums* parent_sums,
                                const Sums* small_sums, Sums* large_sums) const {
  const auto [first, last] = cells_.of(number);
  for (std::size_t c = first; c < last; ++c) large_sums[c] = parent_sums[c] - small_sums[c];
}

template <class Sums>
void Grower<Sums>::settle(Tree& tree, NodeIndex i, const std::vector<BestSplit>& found) {
  BestSplit best;
  for (const BestSplit& split : found) {
    if (split.better_than(best)) best = split;
  }
  tree.nodes[at(i)].gain = best.gain;
  tree.nodes[at(i)].split = best.split;
  growths_[at(i)].left = best.left;
}

template <class Sums>
void Grower<Sums>::search_each(Tree& tree, NodeIndex smaller, NodeIndex larger,
                               const Sums* parent_sums) {
  const CodeLayout& layout = rows_.layout;
  const std::size_t n_groups = feature_groups_.size();
  std::vector<BestSplit> best_small(n_groups), best_large(n_groups);
  const auto enter = [&](NodeIndex i, std::uint32_t number, BestSplit& best,
                         std::vector<Sums>& scratch) {
    const Node& node = tree.nodes[at(i)];
    if (!may_split(node)) return;
    Watch& watch = growths_[at(i)].watch;
    Standing standing;
    const Sums* cells =
        cells_.complete_cells(number, growths_[at(i)].histogram.data(), node.sums, scratch);
    const BestSplit split = best_split_of_feature(params_.gain, layout[number], node.sums, cells,
                                              watch.knows() ? &standing : nullptr);
    if (watch.knows()) watch.judged(params_.gain, node.sums, number, split.gain, standing);
    if (split.better_than(best)) best = split;
  };
  parallel(n_threads_, n_groups, [&](std::size_t group) {
    std::vector<Sums> scratch;
    const Sums* small_sums = growths_[at(smaller)].histogram.data();
    for (std::size_t i = feature_groups_[group].first; i < feature_groups_[group].second; ++i) {
      const std::uint32_t number = layout.by_offset()[i];
      enter(smaller, number, best_small[group], scratch);
      if (larger == no_node) continue;
      take_smaller(number, parent_sums, small_sums, growths_[at(larger)].histogram.data());
      enter(larger, number, best_large[group], scratch);
    }
  });
  settle(tree, smaller, best_small);
  if (larger != no_node) settle(tree, larger, best_large);
}

// Only features that enough rows of the parent have: the others' cells are left as they are, and nobody
// looks at them any more.
template <class Sums>
void Grower<Sums>::search_together(Tree& tree, NodeIndex smaller, NodeIndex larger,
                                   const Sums* parent_sums) {
  struct Share {
    Search<Sums> search;
    std::vector<std::uint32_t> present;
  };
  const CodeLayout& layout = rows_.layout;
  const NodeIndex parent = tree.nodes[at(smaller)].parent;
  const std::vector<std::uint32_t>& present =
      parent == no_node ? layout.by_offset() : growths_[at(parent)].present;
  const bool shared = n_threads_ > 1 && present.size() >= least_sums_to_share;
  const std::size_t n_shares = shared ? 2 * static_cast<std::size_t>(n_threads_) : 1;
  const auto shares_of = [&](NodeIndex i) {
    if (i == no_node) return std::vector<Share>();
    const Search<Sums> search(params_.gain, tree.nodes[at(i)].sums, growths_[at(i)].watch.knows());
    return std::vector<Share>(n_shares, Share{search, {}});
  };
  std::vector<Share> small = shares_of(smaller), large = shares_of(larger);
  const bool small_splits = may_split(tree.nodes[at(smaller)]);
  const bool large_splits = larger != no_node && may_split(tree.nodes[at(larger)]);
  parallel(n_threads_, n_shares, [&](std::size_t s) {
    std::vector<Sums> scratch;
    const Sums* small_sums = growths_[at(smaller)].histogram.data();
    Sums* large_sums = larger == no_node ? nullptr : growths_[at(larger)].histogram.data();
    const auto see = [&](NodeIndex i, std::uint32_t number, const Sums* histogram, Share& share) {
      const FeatureLayout& place = layout[number];
      const bool some = cells_.lists_rows() && place.kind == FeatureLayout::Kind::sparse;
      const bool may_split =
          some ? share.search.see_sparse(place, cells_.sparse_cells(number),
                                         histogram + cells_.of(number).first)
               : share.search.see(place, cells_.complete_cells(number, histogram,
                                                               tree.nodes[at(i)].sums, scratch));
      if (may_split) share.present.push_back(number);
    };
    const std::size_t end = present.size() * (s + 1) / n_shares;
    for (std::size_t i = present.size() * s / n_shares; i < end; ++i) {
      if (small_splits) see(smaller, present[i], small_sums, small[s]);
      if (large_sums == nullptr) continue;
      take_smaller(present[i], parent_sums, small_sums, large_sums);
      if (large_splits) see(larger, present[i], large_sums, large[s]);
    }
  });
  const auto finish = [&](NodeIndex i, const std::vector<Share>& shares) {
    if (i == no_node) return;
    std::vector<BestSplit> found;
    std::vector<std::uint32_t> left;
    Standings seen;
    for (const Share& share : shares) {
      found.push_back(share.search.best());
      left.insert(left.end(), share.present.begin(), share.present.end());
      seen.add(share.search.standings());
    }
    settle(tree, i, found);
    growths_[at(i)].present = std::move(left);
    Watch& watch = growths_[at(i)].watch;
    const Node& node = tree.nodes[at(i)];
    if (watch.knows())
      watch.judged_all(params_.gain, node.sums, seen, node.split.feature, layout.size());
  };
  finish(smaller, small);
  finish(larger, large);
}

template <class Sums>
void Grower<Sums>::split_leaf(Tree& tree, NodeIndex parent, const Contributions& contributions) {
  const auto parent_at = static_cast<std::size_t>(parent);
  const std::size_t left_at = tree.nodes.size(), right_at = left_at + 1;
  const std::int32_t new_leaf = tree.n_leaves();
  tree.nodes.resize(right_at + 1);
  growths_.resize(right_at + 1);
  Node& above = tree.nodes[parent_at];
  Node& left = tree.nodes[left_at];
  Node& right = tree.nodes[right_at];
  Growth& grown = growths_[parent_at];

  const std::size_t middle = partition(grown.begin, grown.end, above.split);
  growths_[left_at].begin = grown.begin, growths_[left_at].end = middle;
  growths_[right_at].begin = middle, growths_[right_at].end = grown.end;
  above.left = static_cast<NodeIndex>(left_at), above.right = static_cast<NodeIndex>(right_at);
  left.parent = right.parent = parent;
  left.leaf = std::exchange(above.leaf, -1);
  right.leaf = new_leaf;
  left.sums = grown.left;
  right.sums = above.sums - grown.left;
  left.gain = right.gain = BestSplit{}.gain;

  if (grown.watch.knows()) {
    const std::uint32_t number = rows_.layout.number_of(above.split.feature);
    std::vector<Sums> scratch;
    grown.watch.set_margin(
        margin_of(rows_.layout[number], above.split,
                  cells_.complete_cells(number, grown.histogram.data(), above.sums, scratch)));
  }

  // The children of the last split are searched only so that updates know their best candidates.
  const bool last = tree.n_leaves() == max_leaf_nodes_;
  if ((!may_split(left) && !may_split(right)) || (last && !params_.keep_sums)) return;
  const bool left_smaller = left.sums.n <= right.sums.n;
  Growth& small = growths_[left_smaller ? left_at : right_at];
  Growth& large = growths_[left_smaller ? right_at : left_at];
  small.keep = params_.keep_sums;
  // Of sparse features only what is there is kept: the histogram's memory goes on to a child.
  const CodeLayout& layout = rows_.layout;
  const bool is_sparse = layout.histogram_size() != layout.plain_size();
  const auto keep_parent = [&] {
    grown.kept = NodeSums<Sums>(layout, grown.histogram, cells_.sparse_cells());
  };
  count(contributions, small, grown.keep && is_sparse ? keep_parent : std::function<void()>());
  const Sums* parent_sums = grown.histogram.data();
  const bool memory_stays = grown.keep && !is_sparse;
  large.histogram = memory_stays ? new_histogram() : std::move(grown.histogram);
  find_best(tree, left_smaller ? above.left : above.right, left_smaller ? above.right : above.left,
            parent_sums);
}

// Every row is in one cell of each dense feature.
template <class Sums>
Totals Grower<Sums>::total_at_root(const Contributions& contributions) const {
  const CodeLayout& layout = rows_.layout;
  const bool any_dense =
      layout.size() != 0 && !layout[layout.by_offset()[0]].counts_only_differing();
  if (!any_dense) return total_of(contributions, slots_of(0), n_threads_);
  const FeatureLayout& place = layout[layout.by_offset()[0]];
  Totals sum;
  for (std::uint32_t c = 0; c < place.n_codes; ++c) {
    sum += Totals(growths_[0].histogram[place.offset + c]);
  }
  return sum;
}

template <class Sums>
Tree Grower<Sums>::grow(const Contributions& contributions, int max_leaf_nodes) {
  max_leaf_nodes_ = max_leaf_nodes;
  Tree tree;
  tree.nodes.reserve(2 * static_cast<std::size_t>(max_leaf_nodes));
  for (Growth& growth : growths_) {
    if (!growth.histogram.empty()) spare_.push_back(std::move(growth.histogram));
  }
  growths_.clear();
  growths_.resize(1);
  growths_[0].end = n_slots_;
  Node& root = tree.nodes.emplace_back();
  root.leaf = 0;
  root.gain = BestSplit{}.gain;
  count_root(contributions);
  root.sums = total_at_root(contributions);
  growths_[0].keep = params_.keep_sums;
  find_best(tree, 0, no_node, nullptr);
  while (tree.n_leaves() < max_leaf_nodes_) {
    NodeIndex next = no_node;
    double best = least_gain;
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      if (!tree.nodes[i].is_leaf() || !(tree.nodes[i].gain > best)) continue;
      best = tree.nodes[i].gain;
      next = static_cast<NodeIndex>(i);
    }
    if (next == no_node) break;
    split_leaf(tree, next, contributions);
  }
  for (Node& node : tree.nodes) {
    node.value = loss_.leaf_value(node.sums, params_.learning_rate, params_.gain.l2);
  }
  tree.index_leaves();
  return tree;
}

template <class Sums>
KeptSums<Sums> Grower<Sums>::take_kept_sums() {
  KeptSums<Sums> kept(growths_.size());
  parallel(n_threads_, growths_.size(), [&](std::size_t i) {
    if (!growths_[i].keep) return;
    kept[i] = growths_[i].kept.kept
                  ? std::move(growths_[i].kept)
                  : NodeSums<Sums>(rows_.layout, growths_[i].histogram, cells_.sparse_cells());
  });
  return kept;
}

template <class Sums>
std::vector<Watch> Grower<Sums>::take_watches() {
  std::vector<Watch> watches;
  for (Growth& growth : growths_) watches.push_back(std::move(growth.watch));
  return watches;
}

template class Grower<PackedSums>;
template class Grower<WideSums>;

}  // namespace graftboost
