#include "update/path_histogram.hpp"

#include <algorithm>

#include "train/histogram.hpp"

namespace graftboost {

// Writes `from` less the cells of a feature to `to`. Cells of sparse features that are not present
// are 0.
template <class Sums>
void PathHistogram<Sums>::Source::subtract(const FeatureLayout& feature, const Sums* from,
                                           Sums* to) const {
  if (cached != nullptr && feature.kind == FeatureLayout::Kind::sparse) {
    std::copy_n(from, feature.n_codes, to);
    cached->for_each(feature, [&](std::uint32_t c, const Sums& sums) { to[c] -= sums; });
    return;
  }
  const Sums* part = first_cells().data() + feature.offset;
  const std::uint32_t n = feature.n_codes;
  for (std::uint32_t c = 0; c < n; ++c) to[c] = from[c] - part[c];
}

template <class Sums>
void PathHistogram<Sums>::Source::copy(const FeatureLayout& feature, Sums* to) const {
  if (cached != nullptr && feature.kind == FeatureLayout::Kind::sparse) {
    std::fill_n(to, feature.n_codes, Sums(Totals{}));
    cached->for_each(feature, [&](std::uint32_t c, const Sums& sums) { to[c] = sums; });
    return;
  }
  std::copy_n(first_cells().data() + feature.offset, feature.n_codes, to);
}

// Calls use(cell, sums) for the cells of sparse features that are apart from the others.
template <class Sums>
template <class Use>
void PathHistogram<Sums>::Source::for_each_sparse(Use&& use) const {
  if (cached == nullptr) return;
  for (std::size_t i = 0; i < cached->cells.size(); ++i) use(cached->cells[i], cached->sums[i]);
}

template <class Sums>
typename PathHistogram<Sums>::Level& PathHistogram<Sums>::enter(std::size_t depth,
                                                                const Totals& totals) {
  while (levels_.size() <= depth) {
    levels_.emplace_back();
    levels_.back().own.resize(layout_.histogram_size());
    levels_.back().made_in.resize(layout_.size());
  }
  Level& level = levels_[depth];
  level.totals = totals;
  ++level.turn;
  return level;
}

template <class Sums>
void PathHistogram<Sums>::set_cached(std::size_t depth, const Totals& totals,
                                     const NodeHistogram<Sums>& cached, bool is_sibling) {
  enter(depth, totals).source = {&cached, nullptr, no_node, is_sibling};
}

template <class Sums>
void PathHistogram<Sums>::set_counted(std::size_t depth, const Totals& totals,
                                      const Histogram<Sums>& counted, bool is_sibling) {
  enter(depth, totals).source = {nullptr, &counted, no_node, is_sibling};
}

template <class Sums>
void PathHistogram<Sums>::set_missing(std::size_t depth, const Totals& totals, NodeIndex node,
                                      bool is_sibling) {
  enter(depth, totals).source = {nullptr, nullptr, node, is_sibling};
}

template <class Sums>
void PathHistogram<Sums>::find_missing(std::size_t depth, std::vector<NodeIndex>& nodes) const {
  for (std::size_t d = depth;; --d) {
    const Source& source = levels_[d].source;
    if (source.missing != no_node) nodes.push_back(source.missing);
    if (!source.is_sibling) return;
  }
}

template <class Sums>
bool PathHistogram<Sums>::is_available(std::size_t depth) const {
  for (std::size_t d = depth;; --d) {
    if (levels_[d].source.missing != no_node) return false;
    if (!levels_[d].source.is_sibling) return true;
  }
}

template <class Sums>
const Sums* PathHistogram<Sums>::cells(std::size_t depth, std::uint32_t number) {
  Level& level = levels_[depth];
  const FeatureLayout& feature = layout_[number];
  if (!level.source.is_sibling && !feature.counts_only_differing())
    return level.source.first_cells().data() + feature.offset;
  if (level.made_in[number] != level.turn && level.all_made_in != level.turn) {
    level.made_in[number] = level.turn;
    Sums* own = level.own.data() + feature.offset;
    if (level.source.is_sibling) {
      level.source.subtract(feature, cells(depth - 1, number), own);
    } else {
      level.source.copy(feature, own);
    }
    if (feature.counts_only_differing()) complete(feature, level.totals, own);
  }
  return level.own.data() + feature.offset;
}

template <class Sums>
const Sums* PathHistogram<Sums>::all_cells(std::size_t depth) {
  Level& level = levels_[depth];
  if (level.all_made_in == level.turn) return level.own.data();
  // From the nearest node above whose histogram is known, down.
  std::size_t from = depth;
  while (levels_[from].source.is_sibling && levels_[from].all_made_in != levels_[from].turn) --from;
  const Level& known = levels_[from];
  if (known.all_made_in == known.turn) {
    std::copy(known.own.begin(), known.own.end(), level.own.begin());
  } else {
    const Array<Sums>& first = known.source.first_cells();
    std::copy(first.begin(), first.end(), level.own.begin());
    std::fill(level.own.begin() + first.size(), level.own.end(), Sums(Totals{}));
    known.source.for_each_sparse(
        [&](std::size_t cell, const Sums& sums) { level.own[cell] = sums; });
  }
  for (std::size_t d = from + 1; d <= depth; ++d) {
    const Array<Sums>& first = levels_[d].source.first_cells();
    for (std::size_t c = 0; c < first.size(); ++c) level.own[c] -= first[c];
    levels_[d].source.for_each_sparse(
        [&](std::size_t cell, const Sums& sums) { level.own[cell] -= sums; });
  }
  for (std::size_t f = 0; f < layout_.size(); ++f) {
    if (layout_[f].counts_only_differing())
      complete(layout_[f], level.totals, level.own.data() + layout_[f].offset);
  }
  level.all_made_in = level.turn;
  return level.own.data();
}

template class PathHistogram<PackedSums>;
template class PathHistogram<WideSums>;

}  // namespace graftboost
