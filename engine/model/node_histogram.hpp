// The histogram of a node, as it is cached between updates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "core/array.hpp"
#include "core/sums.hpp"
#include "data/code_layout.hpp"

namespace graftboost {

// All cells of a node side by side, as CodeLayout places them. Both kinds of sums hold the same
// integers; a model uses one of them.
template <class Sums>
using Histogram = Array<Sums>;

// Owns a histogram without the cells that follow from others: implied cells are 0. Of sparse
// features it holds only the cells that a row of the node falls into, so its size depends on the
// node's rows and not on all rows.
template <class Sums>
class NodeHistogram {
 public:
  bool cached =
      false;  // if not, the histogram is recomputed from the node's rows when it is needed
  Array<Sums> plain;
  Array<std::uint32_t> cells;  // of sparse features, ascending ...
  Array<Sums> sums;            // ... and their sums

  NodeHistogram() = default;
  // From a histogram whose common cells are not filled in. Takes over its memory if possible. If
  // `sparse_cells` is given, the histogram holds only these cells of the layout behind the plain
  // ones.
  NodeHistogram(const CodeLayout& layout, Histogram<Sums>& histogram,
                const std::uint32_t* sparse_cells = nullptr);

  std::size_t bytes() const {
    return plain.size() * sizeof(Sums) + cells.size() * (sizeof(Sums) + sizeof(std::uint32_t));
  }

  // A row enters or leaves the node. `row` lists the cells it falls into; those of sparse features
  // are in ascending order.
  void book(std::span<const std::uint32_t> row, const Sums& by, bool enters);

  // Rows of the node changed their recorded gradients: replaces the sums `before` of these rows by
  // `after`. Both have the same cells.
  void exchange(const NodeHistogram& before, const NodeHistogram& after);

  // Subtracts the histogram of some of the node's rows.
  NodeHistogram& operator-=(const NodeHistogram& part);
  // Adds the histogram of rows that enter the node. Not for layouts with sparse features.
  NodeHistogram& operator+=(const NodeHistogram& rows);

  // Renumbers cells after columns without rows were removed from the layout.
  void move_cells(const CodeLayout& before, const CodeLayout& after) noexcept;

  // Calls use(code, sums) for the cells of a feature that are present.
  template <class Use>
  void for_each(const FeatureLayout& feature, Use&& use) const {
    if (feature.kind != FeatureLayout::Kind::sparse) {
      for (std::uint32_t c = 0; c < feature.n_codes; ++c) use(c, plain[feature.offset + c]);
      return;
    }
    const auto* found = std::lower_bound(cells.begin(), cells.end(), feature.offset);
    for (; found != cells.end() && *found - feature.offset < feature.n_codes; ++found)
      use(*found - feature.offset, sums[static_cast<std::size_t>(found - cells.begin())]);
  }

  friend bool operator==(const NodeHistogram& a, const NodeHistogram& b) {
    return std::ranges::equal(a.plain, b.plain) && std::ranges::equal(a.cells, b.cells) &&
           std::ranges::equal(a.sums, b.sums);
  }

 private:
  template <class Change>
  void apply(const NodeHistogram& by, Change&& change);
  void drop_empty();
  void insert(const WipedVector<std::uint32_t>& missing, const Sums& by);
};

// One per node of a tree.
template <class Sums>
using TreeHistograms = std::vector<NodeHistogram<Sums>>;

// The histograms of a tree, of either kind. Copied by way of a vector: if memory runs out in the
// copy constructor of libstdc++ 12's std::variant, it destroys an element that was never
// constructed.
struct AnyTreeHistograms : std::variant<TreeHistograms<PackedSums>, TreeHistograms<WideSums>> {
  using variant::variant;
  using variant::operator=;
  AnyTreeHistograms() = default;
  AnyTreeHistograms(const AnyTreeHistograms& other) : variant() {
    std::visit([this](auto copy) { *this = std::move(copy); }, other);
  }
  AnyTreeHistograms(AnyTreeHistograms&&) noexcept = default;
  AnyTreeHistograms& operator=(AnyTreeHistograms&&) noexcept = default;
};

}  // namespace graftboost
