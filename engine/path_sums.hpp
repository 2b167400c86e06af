// Histograms of the nodes on a path from the root, made feature by feature as they are asked for.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "histogram.hpp"
#include "rows.hpp"
#include "tree.hpp"

namespace graftboost {

// Of two siblings one has its histogram kept; the other's is its parent's less its sibling's. A check
// asks for few features of most nodes, so only those are subtracted.
template <class Sums>
class PathSums {
 public:
  explicit PathSums(const CodeLayout& layout) : layout_(layout) {}

  // The node at a depth of the path has this histogram ...
  void set_kept(std::size_t depth, const Histogram<Sums>& histogram) {
    level(depth).kept = histogram.data();
  }
  // ... or its parent's, one level up, less this.
  void set_difference(std::size_t depth, const Histogram<Sums>& sibling) {
    Level& at = level(depth);
    at.kept = nullptr;
    at.sibling = sibling.data();
    at.own.resize(layout_.histogram_size());
    if (at.made_in.empty()) at.made_in.resize(layout_.n_features());
    clear_none_cells(layout_, at.own.data());
    ++at.turn;
  }
  // ... or this one, which nobody keeps.
  void set_own(std::size_t depth, Histogram<Sums> histogram) {
    Level& at = level(depth);
    at.own = std::move(histogram);
    at.kept = at.own.data();
  }

  // The node's histogram, in which (at least) the cells of this feature are filled in.
  const Sums* with(std::size_t depth, std::uint32_t feature) {
    Level& at = levels_[depth];
    if (at.kept != nullptr) return at.kept;
    if (at.made_in[feature] != at.turn) {
      at.made_in[feature] = at.turn;
      const Sums* parent = with(depth - 1, feature);
      const CodeLayout::Place& place = layout_[feature];
      for (std::size_t c = place.offset; c < place.offset + place.n_codes; ++c) {
        at.own[c] = parent[c] - at.sibling[c];
      }
    }
    return at.own.data();
  }
  const Sums* whole(std::size_t depth) {
    const Sums* histogram = nullptr;
    for (const std::uint32_t f : layout_.by_offset()) histogram = with(depth, f);
    return histogram;
  }

 private:
  struct Level {
    const Sums* kept = nullptr;
    const Sums* sibling = nullptr;
    Histogram<Sums> own;
    std::vector<std::uint32_t> made_in;  // per feature, the turn in which `own` was filled
    std::uint32_t turn = 0;
  };
  Level& level(std::size_t depth) {
    if (levels_.size() <= depth) levels_.resize(depth + 1);
    return levels_[depth];
  }

  const CodeLayout& layout_;
  std::deque<Level> levels_;  // references stay valid as it grows
};

}  // namespace graftboost
