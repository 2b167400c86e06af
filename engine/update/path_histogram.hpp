// Histograms of the nodes on a path from the root, obtained feature by feature as they are needed.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "model/node_histogram.hpp"
#include "train/split_evaluation.hpp"

namespace graftboost {

// The histogram of a node is cached, or was counted, or is its parent's less its sibling's. A check
// needs few features of most nodes, so only those are subtracted.
template <class Sums>
class PathHistogram {
 public:
  explicit PathHistogram(const CodeLayout& layout) : layout_(layout) {}

  // Where the histogram of the node at a depth comes from: `is_sibling` says that it is the
  // parent's, one level up, less this one. The source must outlive its use.
  void set_cached(std::size_t depth, const Totals& totals, const NodeHistogram<Sums>& cached,
                  bool is_sibling);
  void set_counted(std::size_t depth, const Totals& totals, const Histogram<Sums>& counted,
                   bool is_sibling);
  // The histogram of `node` has to be counted first: the one at this depth, or its sibling.
  void set_missing(std::size_t depth, const Totals& totals, NodeIndex node, bool is_sibling);

  // The nodes that have to be counted before the histogram at a depth is available.
  void find_missing(std::size_t depth, std::vector<NodeIndex>& nodes) const;
  bool is_available(std::size_t depth) const;

  // The cells of a feature, by its number in the layout; and all cells.
  FeatureCells<Sums> of_feature(std::size_t depth, std::uint32_t number) {
    return {cells(depth, number), {}, false, true};
  }
  FeatureCells<Sums> of_all(std::size_t depth, std::uint32_t number) {
    return {all_cells(depth) + layout_[number].offset, {}, false, true};
  }

 private:
  // The histogram of a node or of its sibling.
  struct Source {
    const NodeHistogram<Sums>* cached = nullptr;
    const Histogram<Sums>* counted = nullptr;  // all cells; common ones not filled in
    NodeIndex missing = no_node;
    bool is_sibling = false;

    const Array<Sums>& first_cells() const { return cached != nullptr ? cached->plain : *counted; }
    void subtract(const FeatureLayout& feature, const Sums* from, Sums* to) const;
    void copy(const FeatureLayout& feature, Sums* to) const;
    template <class Use>
    void for_each_sparse(Use&& use) const;
  };
  struct Level {
    Totals totals;
    Source source;
    Histogram<Sums> own;
    std::vector<std::uint32_t> made_in;  // per feature, the turn in which `own` was filled
    std::uint32_t turn = 0;
    std::uint32_t all_made_in = 0;  // the turn in which it was filled for all
  };

  Level& enter(std::size_t depth, const Totals& totals);
  const Sums* cells(std::size_t depth, std::uint32_t number);
  const Sums* all_cells(std::size_t depth);

  const CodeLayout& layout_;
  std::deque<Level> levels_;  // references stay valid as it grows
};

}  // namespace graftboost
