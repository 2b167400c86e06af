#include "growing.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "parallel.hpp"

namespace graftboost {
namespace {

// Below these sizes one thread is done before a second has started.
constexpr std::size_t least_cells_to_share = 8'000;
constexpr std::size_t least_rows_to_share = 4'000;
constexpr std::size_t least_sums_to_share = 500;

}  // namespace

template <class Sums>
Grower<Sums>::Grower(const Rows& rows, const Loss& loss, const GrowingParams& params, int n_threads)
    : rows_(rows),
      loss_(loss),
      params_(params),
      n_threads_(n_threads),
      cells_per_row_(rows.layout.cells_per_row() + 1) {
  const CodeLayout& layout = rows.layout;
  // Two shares a thread, of about as many cells each.
  const bool share = n_threads > 1 && layout.histogram_size() >= least_sums_to_share;
  const std::size_t n_groups = share ? 2 * static_cast<std::size_t>(n_threads) : 1;
  std::size_t begin = 0, cells = 0;
  for (std::size_t i = 0; i < layout.by_offset().size(); ++i) {
    cells += layout[layout.by_offset()[i]].n_codes;
    if (cells * n_groups >= layout.histogram_size() || i + 1 == layout.by_offset().size()) {
      feature_groups_.emplace_back(begin, i + 1);
      begin = i + 1, cells = 0;
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
  return node.sums.n >= 2 * params_.split.min_samples_leaf;
}

template <class Sums>
Histogram<Sums> Grower<Sums>::new_histogram() {
  if (spare_.empty()) return Histogram<Sums>(rows_.layout.histogram_size());
  Histogram<Sums> histogram = std::move(spare_.back());
  spare_.pop_back();
  return histogram;
}

// Sums are integers, so the threads may each count a share of the rows and add up.
template <class Sums>
void Grower<Sums>::count(const Contributions& contributions, Growth& growth) {
  growth.histogram = new_histogram();
  growth.histogram.fill(Sums(Totals{}));
  const std::span<const Slot> slots(slots_.data() + growth.begin, growth.size());
  const auto shares = static_cast<std::size_t>(n_threads_);
  if (shares <= 1 || growth.size() * cells_per_row_ < least_cells_to_share) {
    accumulate(rows_, contributions, slots, growth.histogram.data());
    clear_implied_cells(rows_.layout, growth.histogram.data());
    return;
  }
  partial_.resize(shares - 1);
  parallel(n_threads_, shares, [&](std::size_t share) {
    const std::size_t begin = slots.size() * share / shares;
    const std::size_t end = slots.size() * (share + 1) / shares;
    Histogram<Sums>& target = share == 0 ? growth.histogram : partial_[share - 1];
    if (share != 0) {
      target.resize(growth.histogram.size());
      target.fill(Sums(Totals{}));
    }
    accumulate(rows_, contributions, slots.subspan(begin, end - begin), target.data());
  });
  for (const auto& part : partial_) {
    for (std::size_t i = 0; i < part.size(); ++i) growth.histogram[i] += part[i];
  }
  clear_implied_cells(rows_.layout, growth.histogram.data());
}

// Stable: lefts go to `lefts` (which may be where they come from), rights to `rights`. Returns how
// many went left.
template <class Sums>
std::size_t Grower<Sums>::partition_block(const Test& test, std::size_t begin, std::size_t end,
                                          Slot* lefts, Slot* rights) const {
  const CodeLayout::Place& place = rows_.layout[test.feature];
  std::size_t n_left = 0, n_right = 0;
  const auto run = [&](auto&& code_of) {
    for (std::size_t i = begin; i < end; ++i) {
      const Slot row = slots_[i];
      const bool left = test.left(code_of(row, i));
      lefts[n_left] = row;
      rights[n_right] = row;
      n_left += left;
      n_right += !left;
    }
  };
  const std::size_t row_bytes = rows_.layout.row_bytes();
  const std::uint8_t* cells = rows_.cells.data();
  switch (place.kind) {
    case CodeLayout::Kind::narrow:
      run([&, cells = cells + place.position](Slot row, std::size_t i) {
        __builtin_prefetch(cells + slots_.data()[i + slots_read_ahead] * row_bytes);
        return Code{cells[row * row_bytes]};
      });
      break;
    case CodeLayout::Kind::wide:
      run([&](Slot row, std::size_t) { return rows_.wide_codes(row)[place.position]; });
      break;
    case CodeLayout::Kind::bundled:
      if (!rows_.has_sparse()) {
        run([&, cells = cells + place.position](Slot row, std::size_t i) {
          __builtin_prefetch(cells + slots_.data()[i + slots_read_ahead] * row_bytes);
          return place.bundled_code(cells[row * row_bytes]);
        });
        break;
      }
      [[fallthrough]];
    case CodeLayout::Kind::sparse:
      run([&](Slot row, std::size_t) { return rows_.code(row, test.feature); });
      break;
  }
  return n_left;
}

//     slots      begin .......... middle ............. end
//     before     l r r l l r r r l r l r l l r r l r r r l
//     after      l l l l l l l l | r r r r r r r r r r r r      each side in its old order
//
// Returns the middle.
template <class Sums>
std::size_t Grower<Sums>::partition(std::size_t begin, std::size_t end, const Test& test) {
  const std::size_t size = end - begin;
  if (n_threads_ <= 1 || size < least_rows_to_share) {
    Slot* lefts = slots_.data() + begin;
    const std::size_t n_left = partition_block(test, begin, end, lefts, right_scratch_.data());
    std::copy_n(right_scratch_.data(), size - n_left, lefts + n_left);
    return begin + n_left;
  }
  const auto shares = static_cast<std::size_t>(n_threads_);
  const auto bound = [&](std::size_t share) { return begin + size * share / shares; };
  std::vector<std::size_t> n_left(shares), left_to(shares), right_to(shares);
  parallel(n_threads_, shares, [&](std::size_t share) {
    const std::size_t from = bound(share);
    n_left[share] = partition_block(test, from, bound(share + 1), left_scratch_.data() + from,
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

// The histogram of `smaller` has been counted and lacks its common codes. That of `larger`, if there
// is one, becomes the parent's less the smaller's, feature by feature, just before each is searched
// and while its cells are in cache; it may be the parent's own memory.
template <class Sums>
void Grower<Sums>::find_best(Tree& tree, NodeIndex smaller, NodeIndex larger,
                             const Sums* parent_sums) {
  const std::size_t n_groups = feature_groups_.size();
  std::vector<Split> best_small(n_groups), best_large(n_groups);
  const auto at = [](NodeIndex i) { return static_cast<std::size_t>(i); };
  const auto enter = [&](NodeIndex i, std::uint32_t feature, Split& best) {
    const Node& node = tree.nodes[at(i)];
    if (!may_split(node)) return;
    Watch& watch = growths_[at(i)].watch;
    Standing standing;
    const Split split = best_split_of_feature(params_.split, rows_.layout[feature], feature,
                                              node.sums, growths_[at(i)].histogram.data(),
                                              watch.knows() ? &standing : nullptr);
    if (watch.knows()) watch.judged(params_.split, node.sums, feature, split.gain, standing);
    if (split.better_than(best)) best = split;
  };
  for (const NodeIndex i : {smaller, larger}) {
    if (!params_.keep_sums || i == no_node || !may_split(tree.nodes[at(i)])) continue;
    growths_[at(i)].watch.start(params_.split, tree.nodes[at(i)].sums, rows_.layout.n_features());
  }
  parallel(n_threads_, n_groups, [&](std::size_t group) {
    Sums* small_sums = growths_[at(smaller)].histogram.data();
    for (std::size_t i = feature_groups_[group].first; i < feature_groups_[group].second; ++i) {
      const std::uint32_t feature = rows_.layout.by_offset()[i];
      const CodeLayout::Place& place = rows_.layout[feature];
      if (place.counts_only_differing()) {
        complete(place, tree.nodes[at(smaller)].sums, small_sums);
      }
      enter(smaller, feature, best_small[group]);
      if (larger == no_node) continue;
      Sums* large_sums = growths_[at(larger)].histogram.data();
      for (std::size_t c = place.offset; c < place.offset + place.n_codes; ++c) {
        large_sums[c] = parent_sums[c] - small_sums[c];
      }
      enter(larger, feature, best_large[group]);
    }
  });
  const auto settle = [&](NodeIndex i, const std::vector<Split>& found) {
    Split best;
    for (const Split& split : found) {
      if (split.better_than(best)) best = split;
    }
    tree.nodes[at(i)].gain = best.gain;
    tree.nodes[at(i)].test = best.test;
    growths_[at(i)].left = best.left;
    growths_[at(i)].watch.sum_up();
  };
  settle(smaller, best_small);
  if (larger != no_node) settle(larger, best_large);
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

  const std::size_t middle = partition(grown.begin, grown.end, above.test);
  growths_[left_at].begin = grown.begin, growths_[left_at].end = middle;
  growths_[right_at].begin = middle, growths_[right_at].end = grown.end;
  above.left = static_cast<NodeIndex>(left_at), above.right = static_cast<NodeIndex>(right_at);
  left.parent = right.parent = parent;
  left.leaf = std::exchange(above.leaf, -1);
  right.leaf = new_leaf;
  left.sums = grown.left;
  right.sums = above.sums - grown.left;
  left.gain = right.gain = Split{}.gain;

  if (grown.watch.knows()) {
    grown.watch.set_margin(
        margin_of(rows_.layout[above.test.feature], above.test, grown.histogram.data()));
  }

  // The children of the last split are searched only so that updates know their best candidates.
  const bool last = tree.n_leaves() == max_leaf_nodes_;
  if ((!may_split(left) && !may_split(right)) || (last && !params_.keep_sums)) return;
  const bool left_smaller = left.sums.n <= right.sums.n;
  Growth& small = growths_[left_smaller ? left_at : right_at];
  Growth& large = growths_[left_smaller ? right_at : left_at];
  small.keep = params_.keep_sums;
  count(contributions, small);
  const Sums* parent_sums = grown.histogram.data();
  large.histogram = grown.keep ? new_histogram() : std::move(grown.histogram);
  find_best(tree, left_smaller ? above.left : above.right, left_smaller ? above.right : above.left,
            parent_sums);
}

// Every row is in one cell of each dense feature.
template <class Sums>
Totals Grower<Sums>::total_at_root(const Contributions& contributions) const {
  const CodeLayout::Place& place = rows_.layout[rows_.layout.by_offset()[0]];
  if (place.counts_only_differing()) return total_of(contributions, slots_of(0), n_threads_);
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
  root.gain = Split{}.gain;
  count(contributions, growths_[0]);
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
    node.value = loss_.leaf_value(node.sums, params_.learning_rate, params_.split.l2);
  }
  tree.index_leaves();
  return tree;
}

template <class Sums>
KeptSums<Sums> Grower<Sums>::take_kept_sums() {
  KeptSums<Sums> kept(growths_.size());
  for (std::size_t i = 0; i < growths_.size(); ++i) {
    if (!growths_[i].keep) continue;
    kept[i] = std::move(growths_[i].histogram);
    clear_implied_cells(rows_.layout, kept[i].data());
  }
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
