// Histograms of the nodes on a path from the root, made feature by feature as they are asked for.
#pragma once

#include <algorithm>
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

  // The node at a depth of the path, which has these sums, has this histogram ...
  void set_kept(std::size_t depth, const Totals& sums, const Histogram<Sums>& histogram) {
    enter(depth, sums).kept = histogram.data();
  }
  // ... or its parent's, one level up, less this ...
  void set_difference(std::size_t depth, const Totals& sums, const Histogram<Sums>& sibling) {
    enter(depth, sums).sibling = sibling.data();
  }
  // ... or this one, which nobody keeps.
  void set_counted(std::size_t depth, const Totals& sums, Histogram<Sums> histogram) {
    Level& at = enter(depth, sums);
    at.counted = std::move(histogram);
    at.kept = at.counted.data();
  }

  // The node's histogram, in which (at least) the cells of this feature are filled in.
  const Sums* with(std::size_t depth, std::uint32_t feature) {
    Level& at = levels_[depth];
    const CodeLayout::Place& place = layout_[feature];
    if (at.kept != nullptr && !place.counts_only_differing()) return at.kept;
    if (at.made_in[feature] != at.turn) {
      at.made_in[feature] = at.turn;
      Sums* own = at.own.data();
      if (at.kept != nullptr) {
        std::copy_n(at.kept + place.offset, place.n_codes, own + place.offset);
      } else {
        const Sums* parent = with(depth - 1, feature);
        for (std::size_t c = place.offset; c < place.offset + place.n_codes; ++c) {
          own[c] = parent[c] - at.sibling[c];
        }
      }
      if (place.counts_only_differing()) complete(place, at.sums, own);
    }
    return at.own.data();
  }

 private:
  struct Level {
    Totals sums;
    const Sums* kept = nullptr;
    const Sums* sibling = nullptr;
    Histogram<Sums> own, counted;
    std::vector<std::uint32_t> made_in;  // per feature, the turn in which `own` was filled
    std::uint32_t turn = 0;
  };
  Level& enter(std::size_t depth, const Totals& sums) {
    while (levels_.size() <= depth) {
      levels_.emplace_back();
      levels_.back().own.resize(layout_.histogram_size());
      levels_.back().made_in.resize(layout_.n_features());
    }
    Level& at = levels_[depth];
    at.sums = sums;
    at.kept = at.sibling = nullptr;
    ++at.turn;
    return at;
  }

  const CodeLayout& layout_;
  std::deque<Level> levels_;  // references stay valid as it grows
};

}  // namespace graftboost
