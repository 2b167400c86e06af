#include "soundness.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>
#include <vector>

#include "parallel.hpp"

namespace graftboost {
namespace {

constexpr Weight largest_weight = Weight{1} << 30;
constexpr double largest_target = Loss::widest_target / Loss::target_grid;

using Flaw = std::optional<std::string>;

// Blocks of rows, so that threads share them; the first flaw by place is told.
template <class Find>
Flaw first_flaw(int n_threads, std::size_t n, std::size_t together, Find&& find) {
  std::vector<Flaw> flaws((n + together - 1) / together);
  parallel_blocks(n_threads, n, together, [&](std::size_t begin, std::size_t end) {
    flaws[begin / together] = find(begin, end);
  });
  for (Flaw& flaw : flaws) {
    if (flaw) return flaw;
  }
  return std::nullopt;
}

// How many values each byte and each word of a row may have.
struct CellLimits {
  std::vector<std::uint32_t> bytes, words;

  explicit CellLimits(const CodeLayout& layout) {
    bytes.resize(layout.n_bytes());
    words.resize(layout.n_words());
    for (std::size_t f = 0; f < layout.n_features(); ++f) {
      const CodeLayout::Place& place = layout[f];
      switch (place.kind) {
        case CodeLayout::Kind::narrow:
          bytes[place.position] = place.n_codes;
          break;
        case CodeLayout::Kind::bundled:
          bytes[place.position] = std::max(bytes[place.position], place.base + place.n_codes);
          break;
        case CodeLayout::Kind::wide:
          words[place.position - layout.first_word()] = place.n_codes;
          break;
        case CodeLayout::Kind::sparse:
          break;
      }
    }
  }
};

bool has_twins(const Array<RowId>& ids) {
  std::vector<RowId> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

Flaw flaw_in_rows(const Forest& forest, int n_threads) {
  const Rows& rows = forest.rows;
  const CellLimits limits(rows.layout);
  constexpr std::size_t together = 4096;
  return first_flaw(
      n_threads, rows.size(), together, [&](std::size_t begin, std::size_t end) -> Flaw {
        for (std::size_t r = begin; r < end; ++r) {
          const auto row = static_cast<Slot>(r);
          const std::string where = "row " + std::to_string(rows.ids[r]);
          bool inside = true;
          for (std::size_t j = 0; j < limits.bytes.size(); ++j)
            inside &= rows.narrow_codes(row)[j] < limits.bytes[j];
          for (std::size_t j = 0; j < limits.words.size(); ++j)
            inside &= rows.wide_codes(row)[rows.layout.first_word() + j] < limits.words[j];
          if (!inside) return where + " has a code that its feature does not have";
          if (rows.has_sparse()) {
            const std::uint64_t first = rows.sparse_begin[r], n = rows.sparse_count[r];
            if (first > rows.sparse_entries.size() || n > rows.sparse_entries.size() - first)
              return where + " has cells that are not there";
            for (const std::uint32_t entry : rows.sparse_codes(row)) {
              if (entry >= rows.layout.histogram_size())
                return where + " has a code that its feature does not have";
            }
          }
          if (forest.loss.kind != LossKind::squared &&
              (rows.target[r] < 0 || rows.target[r] >= forest.loss.n_classes))
            return where + " is of a class that is not there";
          if (!rows.weight.empty() &&
              (rows.weight[r] < 0 || rows.weight[r] > largest_weight ||
               !std::isfinite(rows.raw_weight[r]) || rows.raw_weight[r] < 0))
            return where + " has a weight that is not one";
          if (!rows.raw_target.empty() && (!std::isfinite(rows.raw_target[r]) ||
                                           std::abs(double(rows.target[r])) > largest_target))
            return where + " has a target out of range";
        }
        return std::nullopt;
      });
}

template <class LeafId>
Flaw flaw_in_leaf_ids(const Tree& tree, const LeafId* ids, std::size_t n) {
  // Ids are in use without gaps, mostly: then the largest of them tells.
  LeafId largest = 0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, ids[i]);
  const bool gaps = std::find(tree.leaves.begin(), tree.leaves.end(), no_node) != tree.leaves.end();
  bool inside = n == 0 || largest < tree.leaves.size();
  for (std::size_t i = 0; inside && gaps && i < n; ++i) inside = tree.leaves[ids[i]] != no_node;
  if (inside) return std::nullopt;
  return "a row is in a leaf that is not there";
}

Flaw flaw_in_recorded(const Forest& forest, const Array<Gradient>& recorded) {
  // Squared errors may be any number but the one that has no opposite.
  const std::int64_t largest =
      std::min<std::int64_t>(forest.loss.largest_gradient(), std::numeric_limits<Gradient>::max());
  const Array<Weight>& weight = forest.rows.weight;
  double sum = 0;
  for (std::size_t r = 0; r < recorded.size(); ++r) {
    const std::int64_t g = recorded[r];
    if (g > largest || g < -largest) return "a row recorded a gradient out of range";
    const double w = weight.empty() ? 1.0 : weight[r];
    sum += w * static_cast<double>(std::max(std::abs(g), forest.loss.hessian(recorded[r])));
  }
  if (sum >= static_cast<double>(largest_sum))
    return "rows recorded gradients that add up to too much";
  return std::nullopt;
}

bool in_range(const Totals& sums, std::int64_t n_rows) {
  return sums.g > -largest_sum && sums.g < largest_sum && sums.h >= 0 && sums.h < largest_sum &&
         sums.n >= 0 && sums.n <= n_rows;
}

// All that is ever added up of a feature's cells.
template <class Sums>
bool in_range(const CodeLayout& layout, const Histogram<Sums>& histogram, std::int64_t n_rows) {
  for (std::size_t f = 0; f < layout.n_features(); ++f) {
    Totals sum;
    for (std::uint32_t c = 0; c < layout[f].n_codes; ++c) {
      const Totals cell(histogram[layout[f].offset + c]);
      if (!in_range(cell, n_rows)) return false;
      sum += cell;
      if (!in_range(sum, n_rows)) return false;
    }
  }
  return true;
}

Flaw flaw_in_sums(const Forest& forest, std::size_t t) {
  const auto n_rows = static_cast<std::int64_t>(forest.rows.size());
  const std::vector<Node>& nodes = forest.trees[t].nodes;
  for (const Node& node : nodes) {
    if (!in_range(node.sums, n_rows)) return "a node has sums out of range";
  }
  for (const Node& node : nodes) {
    if (!node.is_leaf() && nodes[static_cast<std::size_t>(node.left)].sums +
                                   nodes[static_cast<std::size_t>(node.right)].sums !=
                               node.sums)
      return "a node's sums are not those of its children";
  }
  const bool fine = std::visit(
      [&](const auto& kept) {
        return std::all_of(kept.begin(), kept.end(), [&](const auto& histogram) {
          return histogram.empty() || in_range(forest.rows.layout, histogram, n_rows);
        });
      },
      forest.states[t].sums);
  return fine ? std::nullopt : Flaw("a node has candidates' sums out of range");
}

Flaw flaw_in_tree(const Forest& forest, std::size_t t, bool thorough) {
  const TreeState& state = forest.states[t];
  Flaw flaw = state.leaf_ids.visit(
      [&](const auto* ids) { return flaw_in_leaf_ids(forest.trees[t], ids, forest.rows.size()); });
  if (!flaw && thorough) flaw = flaw_in_recorded(forest, state.recorded);
  if (!flaw && thorough) flaw = flaw_in_sums(forest, t);
  if (flaw) flaw = "tree " + std::to_string(t) + ": " + *flaw;
  return flaw;
}

}  // namespace

std::optional<std::string> find_flaw(const Forest& forest, bool thorough, int n_threads) {
  if (forest.states.empty()) return std::nullopt;
  if (Flaw flaw = flaw_in_rows(forest, n_threads)) return flaw;
  if (thorough && has_twins(forest.rows.ids)) return "two rows have the same id";
  return first_flaw(n_threads, forest.trees.size(), 1,
                    [&](std::size_t t, std::size_t) { return flaw_in_tree(forest, t, thorough); });
}

}  // namespace graftboost
