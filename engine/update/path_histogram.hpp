// Histograms of the nodes on a path from the root, made feature by feature as they are asked for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "train/histogram.hpp"
#include "model/node_histogram.hpp"
#include "data/row_table.hpp"

namespace graftboost {

// A node's sums are known as they are kept, or can be counted, or are its parent's less its sibling's. A check asks for few features of most nodes, so only those are subtracted.
template <class Sums>
class PathSums {
 public:
  using Count = std::function<Histogram<Sums>()>;

  explicit PathSums(const CodeLayout& layout) : layout_(layout) {}

  // The node at a depth of the path, which has these totals, has these sums ...
  void set_kept(std::size_t depth, const Totals& totals, const NodeSums<Sums>& sums) {
    enter(depth, totals).source = Source{&sums, {}, {}, false};
  }
  void set_counted(std::size_t depth, const Totals& totals, Count count) {
    enter(depth, totals).source = Source{nullptr, {}, std::move(count), false};
  }
  // ... or its parent's, one level up, less its sibling's, which are these.
  void set_less_kept(std::size_t depth, const Totals& totals, const NodeSums<Sums>& sibling) {
    enter(depth, totals).source = Source{&sibling, {}, {}, true};
  }
  void set_less_counted(std::size_t depth, const Totals& totals, Count sibling) {
    enter(depth, totals).source = Source{nullptr, {}, std::move(sibling), true};
  }

  // The node's cells of a place.
  const Sums* with(std::size_t depth, std::uint32_t number) {
    Level& at = levels_[depth];
    const FeatureLayout& place = layout_[number];
    if (!at.source.is_sibling && !place.counts_only_differing())
      return at.source.plain() + place.offset;
    if (at.made_in[number] != at.turn && at.all_made_in != at.turn) {
      at.made_in[number] = at.turn;
      Sums* own = at.own.data() + place.offset;
      if (at.source.is_sibling) {
        std::copy_n(with(depth - 1, number), place.n_codes, own);
        at.source.each(place, [&](std::uint32_t code, const Sums& sums) { own[code] -= sums; });
      } else {
        std::fill_n(own, place.n_codes, Sums(Totals{}));
        at.source.each(place, [&](std::uint32_t code, const Sums& sums) { own[code] = sums; });
      }
      if (place.counts_only_differing()) complete(place, at.totals, own);
    }
    return at.own.data() + place.offset;
  }

  // The node's histogram with the cells of all places.
  const Sums* with_all(std::size_t depth) {
    Level& at = levels_[depth];
    if (at.all_made_in == at.turn) return at.own.data();
    // From the nearest node above whose sums are known, down.
    std::size_t from = depth;
    while (levels_[from].source.is_sibling && levels_[from].all_made_in != levels_[from].turn)
      --from;
    Level& known = levels_[from];
    if (known.all_made_in == known.turn) {
      std::copy(known.own.begin(), known.own.end(), at.own.begin());
    } else {
      at.own.fill(Sums(Totals{}));
      known.source.add_to(at.own.data());
    }
    for (std::size_t d = from + 1; d <= depth; ++d) levels_[d].source.take_from(at.own.data());
    for (std::size_t p = 0; p < layout_.size(); ++p) {
      if (layout_[p].counts_only_differing())
        complete(layout_[p], at.totals, at.own.data() + layout_[p].offset);
    }
    at.all_made_in = at.turn;
    return at.own.data();
  }

 private:
  // The sums of a node, or of its sibling.
  struct Source {
    const NodeSums<Sums>* kept = nullptr;
    Histogram<Sums> counted;  // if not kept, once somebody asked
    Count count;
    bool is_sibling = false;

    const Array<Sums>& first_cells() {
      if (kept != nullptr) return kept->plain;
      if (count) counted = std::exchange(count, {})();
      return counted;
    }
    const Sums* plain() { return first_cells().data(); }

    // Calls with the codes of a place that are there.
    template <class Use>
    void each(const FeatureLayout& place, Use&& use) {
      if (kept == nullptr || place.kind != FeatureLayout::Kind::sparse) {
        const Sums* cells = plain() + place.offset;
        for (std::uint32_t c = 0; c < place.n_codes; ++c) use(c, cells[c]);
        return;
      }
      const auto& cells = kept->cells;
      const auto* found = std::lower_bound(cells.begin(), cells.end(), place.offset);
      for (; found != cells.end() && *found - place.offset < place.n_codes; ++found)
        use(*found - place.offset, kept->sums[static_cast<std::size_t>(found - cells.begin())]);
    }

    void add_to(Sums* histogram) {
      all([&](std::size_t cell, const Sums& sums) { histogram[cell] += sums; });
    }
    void take_from(Sums* histogram) {
      all([&](std::size_t cell, const Sums& sums) { histogram[cell] -= sums; });
    }

   private:
    template <class Use>
    void all(Use&& use) {
      const Array<Sums>& first = first_cells();
      for (std::size_t c = 0; c < first.size(); ++c) use(c, first[c]);
      if (kept == nullptr) return;
      for (std::size_t i = 0; i < kept->cells.size(); ++i) use(kept->cells[i], kept->sums[i]);
    }
  };
  struct Level {
    Totals totals;
    Source source;
    Histogram<Sums> own;
    std::vector<std::uint32_t> made_in;  // per place, the turn in which `own` was filled
    std::uint32_t turn = 0;
    std::uint32_t all_made_in = 0;  // the turn in which it was filled for all
  };

  Level& enter(std::size_t depth, const Totals& totals) {
    while (levels_.size() <= depth) {
      levels_.emplace_back();
      levels_.back().own.resize(layout_.histogram_size());
      levels_.back().made_in.resize(layout_.size());
    }
    Level& at = levels_[depth];
    at.totals = totals;
    ++at.turn;
    return at;
  }

  const CodeLayout& layout_;
  std::deque<Level> levels_;  // references stay valid as it grows
};

}  // namespace graftboost
