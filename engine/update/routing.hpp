// Routing many rows through one tree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/code_layout.hpp"
#include "model/tree.hpp"

namespace graftboost {

// The splits of a tree side by side, with the numbers of their features in a layout, so that rows
// whose codes are known by these numbers are routed without looking up any column.
class Routing {
 public:
  Routing(const Tree& tree, const CodeLayout& layout) {
    for (const Node& node : tree.nodes) {
      const bool is_leaf = node.is_leaf();
      const std::uint32_t number = is_leaf ? 0 : layout.number_of(node.split.feature);
      is_possible_ &= number != ColumnIndex::none;
      steps_.push_back({node.split.low, node.split.span, number, node.left, node.right});
    }
  }

  // Whether all features are in the layout.
  bool is_possible() const { return is_possible_; }
  // The leaf that a row with these codes reaches.
  NodeIndex leaf_of(std::span<const Code> codes) const {
    NodeIndex at = 0;
    for (;;) {
      const Step& step = steps_[static_cast<std::size_t>(at)];
      if (step.left == no_node) return at;
      const auto above_low = static_cast<Code>(codes[step.number] - step.low);
      at = above_low <= step.span ? step.left : step.right;
    }
  }

 private:
  struct Step {
    Code low, span;
    std::uint32_t number;
    NodeIndex left, right;
  };
  std::vector<Step> steps_;
  bool is_possible_ = true;
};

}  // namespace graftboost
