#include "io/validate_state.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "core/parallel.hpp"

namespace graftboost {
namespace {

constexpr double largest_target = Loss::widest_target / Loss::target_grid;

using Fault = std::optional<std::string>;

// Searches blocks in parallel; returns the fault of the first block that has one.
template <class Find>
Fault first_fault(int n_threads, std::size_t n, std::size_t together, Find&& find) {
  std::vector<Fault> faults((n + together - 1) / together);
  parallel_blocks(n_threads, n, together, [&](std::size_t begin, std::size_t end) {
    faults[begin / together] = find(begin, end);
  });
  for (Fault& fault : faults) {
    if (fault) return fault;
  }
  return std::nullopt;
}

// The number of valid values of each byte and each word of a row.
struct CellLimits {
  std::vector<std::uint32_t> bytes, words;

  explicit CellLimits(const CodeLayout& layout) {
    bytes.resize(layout.n_bytes());
    words.resize(layout.n_words());
    for (std::size_t p = 0; p < layout.size(); ++p) {
      const FeatureLayout& feature = layout[p];
      switch (feature.kind) {
        case FeatureLayout::Kind::narrow:
          bytes[feature.position] = feature.n_codes;
          break;
        case FeatureLayout::Kind::bundled:
          bytes[feature.position] =
              std::max(bytes[feature.position], feature.base + feature.n_bundled);
          break;
        case FeatureLayout::Kind::wide:
          words[feature.position - layout.first_word()] = feature.n_codes;
          break;
        case FeatureLayout::Kind::sparse:
        case FeatureLayout::Kind::rare:
          break;
      }
    }
  }
};

bool has_twins(const Array<RowId>& ids) {
  WipedVector<RowId> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

// Whether the entries of a row ascend and are valid cells.
bool are_sound(const RowTable& rows, Slot row, std::size_t n_features) {
  const auto ascend = [](std::span<const std::uint32_t> entries) {
    return std::ranges::adjacent_find(entries, std::ranges::greater_equal{}) == entries.end();
  };
  const auto sparse = rows.sparse_codes(row), rare = rows.rare_cells(row);
  return ascend(sparse) && ascend(rare) &&
         (sparse.empty() || sparse.back() < rows.layout.histogram_size()) &&
         (rare.empty() ||
          (rare.front() >= RareCell::first && RareCell::column(rare.back()) < n_features));
}

// Whether the entries of different rows do not overlap.
bool lie_apart(const RowTable& rows) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> stretches;
  for (std::size_t r = 0; r < rows.sparse_begin.size(); ++r) {
    const std::uint64_t n = std::uint64_t{rows.sparse_count[r]} + rows.rare_count[r];
    if (n != 0) stretches.emplace_back(rows.sparse_begin[r], n);
  }
  std::sort(stretches.begin(), stretches.end());
  return std::ranges::adjacent_find(stretches, [](const auto& a, const auto& b) {
           return a.second > b.first - a.first;
         }) == stretches.end();
}

Fault fault_in_rows(const ModelState& model, int n_threads) {
  const RowTable& rows = model.shards[0].rows;
  const CellLimits limits(rows.layout);
  constexpr std::size_t together = 4096;
  return first_fault(
      n_threads, rows.size(), together, [&](std::size_t begin, std::size_t end) -> Fault {
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
            const std::uint64_t first = rows.sparse_begin[r];
            const std::uint64_t n = std::uint64_t{rows.sparse_count[r]} + rows.rare_count[r];
            if (first > rows.sparse_entries.size() || n > rows.sparse_entries.size() - first)
              return where + " has cells that do not exist";
            if (!are_sound(rows, row, model.bins->n_features()))
              return where + " has a code that its feature does not have";
          }
          if (model.loss.kind != LossKind::squared &&
              (rows.target[r] < 0 || rows.target[r] >= model.loss.n_classes))
            return where + " is of a class that does not exist";
          if (!rows.weight.empty() &&
              (rows.weight[r] < 0 || rows.weight[r] > Loss::largest_weight ||
               !std::isfinite(rows.raw_weight[r]) || rows.raw_weight[r] < 0))
            return where + " has an invalid weight";
          if (!rows.raw_target.empty() && (!std::isfinite(rows.raw_target[r]) ||
                                           std::abs(double(rows.target[r])) > largest_target))
            return where + " has a target out of range";
        }
        return std::nullopt;
      });
}

template <class LeafId>
Fault fault_in_leaf_ids(const Tree& tree, const LeafId* ids, std::size_t n) {
  // Leaf ids mostly have no gaps; then only the largest need be checked.
  LeafId largest = 0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, ids[i]);
  const bool gaps = std::find(tree.leaves.begin(), tree.leaves.end(), no_node) != tree.leaves.end();
  bool inside = n == 0 || largest < tree.leaves.size();
  for (std::size_t i = 0; inside && gaps && i < n; ++i) inside = tree.leaves[ids[i]] != no_node;
  if (inside) return std::nullopt;
  return "a row is in a leaf that does not exist";
}

// Whether no sum of gradients with these weights can overflow.
bool are_bearable(const Loss& loss, const Array<Weight>& weights) {
  std::int64_t sum = 0;
  for (const Weight weight : weights) sum += weight;
  return sum <= loss.most_weight();
}

Fault fault_in_recorded(const ModelState& model, const GradientArray& recorded) {
  Gradient least = 0, most = 0;
  recorded.visit([&]<class Element>(const Element* gradients) {
    Element low = 0, high = 0;
    for (std::size_t i = 0; i < recorded.size(); ++i)
      low = std::min(low, gradients[i]), high = std::max(high, gradients[i]);
    least = low, most = high;
  });
  const Gradient largest = model.loss.largest_gradient();
  if (most <= largest && least >= -largest) return std::nullopt;
  return "a row recorded a gradient out of range";
}

bool in_range(const Totals& sums, std::int64_t n_rows) {
  return sums.g > -largest_sum && sums.g < largest_sum && sums.h >= 0 && sums.h < largest_sum &&
         sums.n >= 0 && sums.n <= n_rows;
}

// Whether no sum over the cells of a feature is out of range.
template <class Sums>
bool in_range(const CodeLayout& layout, const NodeHistogram<Sums>& kept, std::int64_t n_rows) {
  std::size_t at = 0;  // among the cells of sparse features
  for (const std::uint32_t number : layout.by_offset()) {
    const FeatureLayout& feature = layout[number];
    const bool sparse = feature.kind == FeatureLayout::Kind::sparse;
    Totals sum;
    for (std::uint32_t c = 0; c < feature.n_codes; ++c) {
      const std::uint32_t cell = feature.offset + c;
      const bool there = !sparse || (at < kept.cells.size() && kept.cells[at] == cell);
      if (!there) continue;
      const Totals totals(sparse ? kept.sums[at++] : kept.plain[cell]);
      if (!in_range(totals, n_rows)) return false;
      sum += totals;
      if (!in_range(sum, n_rows)) return false;
    }
  }
  return true;
}

// Whether the cells of sparse features ascend and are valid.
template <class Sums>
bool are_cells(const CodeLayout& layout, const NodeHistogram<Sums>& kept) {
  const auto& cells = kept.cells;
  return std::ranges::adjacent_find(cells, std::ranges::greater_equal{}) == cells.end() &&
         (cells.empty() || (*cells.begin() >= layout.plain_size() &&
                            cells[cells.size() - 1] < layout.histogram_size()));
}

Fault fault_in_nodes(const ModelState& model, std::size_t t) {
  const CodeLayout& layout = model.layout();
  for (const Node& node : model.nodes.tree(t).nodes) {
    if (!node.is_leaf() && layout.number_of(node.split.feature) == ColumnIndex::none)
      return "a node asks for a feature that is too rare to be split";
  }
  const bool fine = std::visit(
      [&](const auto& kept) {
        return std::ranges::all_of(kept, [&](const auto& sums) { return are_cells(layout, sums); });
      },
      model.nodes[t].histograms);
  return fine ? std::nullopt : Fault("a node has sums of cells that do not exist");
}

Fault fault_in_sums(const ModelState& model, std::size_t t) {
  const auto n_rows = static_cast<std::int64_t>(model.n_rows());
  const std::vector<Node>& nodes = model.nodes.tree(t).nodes;
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
        return std::all_of(kept.begin(), kept.end(), [&](const auto& sums) {
          return !sums.cached || in_range(model.layout(), sums, n_rows);
        });
      },
      model.nodes[t].histograms);
  return fine ? std::nullopt : Fault("a node has candidates' sums out of range");
}

Fault fault_in_tree(const ModelState& model, std::size_t t, bool gradients) {
  const TreeRows& rows = model.shards[0].trees[t];
  Fault fault = rows.leaf_ids.visit(
      [&](const auto* ids) { return fault_in_leaf_ids(model.nodes.tree(t), ids, model.n_rows()); });
  if (!fault) fault = fault_in_nodes(model, t);
  if (!fault && gradients) fault = fault_in_recorded(model, rows.recorded);
  if (!fault) fault = fault_in_sums(model, t);
  if (fault) fault = "tree " + std::to_string(t) + ": " + *fault;
  return fault;
}

}  // namespace

std::optional<std::string> find_invalid_state(const ModelState& model, bool all, int n_threads) {
  if (!model.params.updatable) return std::nullopt;
  if (Fault fault = fault_in_rows(model, n_threads)) return fault;
  if (!lie_apart(model.shards[0].rows)) return "two rows have the same cells";
  if (has_twins(model.shards[0].rows.ids)) return "two rows have the same id";
  if (!are_bearable(model.loss, model.shards[0].rows.weight)) return "weights add up to too much";
  return first_fault(n_threads, model.nodes.size(), 1, [&](std::size_t t, std::size_t) {
    return fault_in_tree(model, t, all || model.loss.weighted);
  });
}

}  // namespace graftboost
