#include "model/model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "core/parallel.hpp"
#include "train/boosting.hpp"

namespace graftboost {
namespace {

void check_targets(std::span<const double> y) {
  const auto [least, most] = std::minmax_element(y.begin(), y.end());
  if (Loss{}.set_scale(*least, *most)) return;
  throw std::invalid_argument(
      "y: the range of its values is too small to represent; multiply it by a large number first");
}

}  // namespace

void check_columns(std::size_t n_columns, const BinMap& bins) {
  if (n_columns == bins.n_features()) return;
  throw std::invalid_argument("X: has " + std::to_string(n_columns) + " columns where " +
                              std::to_string(bins.n_features()) + " were expected");
}

template <class Table>
void check_sample(const Sample<Table>& sample, const BinMap& bins, int n_classes) {
  const std::size_t n = sample.x.rows;
  check_columns(sample.x.columns, bins);
  const auto check = [](bool fine, const std::string& what) {
    if (!fine) throw std::invalid_argument(what);
  };
  check(sample.y.size() == n, "y: has another number of rows than X");
  check(sample.weight.empty() || sample.weight.size() == n,
        "sample_weight: has another number of rows than X");
  check(sample.ids.empty() || sample.ids.size() == n, "row_ids: has another number of rows than X");
  for (const double y : sample.y) {
    check(
        n_classes > 1 ? y >= 0 && y < n_classes && y == std::floor(y) : std::isfinite(y),
        n_classes > 1 ? "y: has a number that no class has" : "y: has a number that is not finite");
  }
  for (const double weight : sample.weight)
    check(std::isfinite(weight) && weight >= 0,
          "sample_weight: has a weight that is negative or not finite");
}

template <class Table>
std::unique_ptr<Forest> Forest::fit(std::shared_ptr<const BinMap> bins, const Sample<Table>& sample,
                                    LossKind kind, int n_classes, const TrainingParams& params,
                                    std::size_t stats_memory, const Sample<Table>* validation,
                                    const Stopping& stopping, const OnIteration& on_iteration,
                                    int n_threads) {
  check_sample(sample, *bins, n_classes);
  if (validation != nullptr) check_sample(*validation, *bins, n_classes);
  auto made = std::make_unique<Forest>();
  Forest& forest = *made;
  forest.bins = std::move(bins);
  forest.params = params;
  forest.stats_memory = stats_memory;
  forest.loss.kind = kind;
  forest.loss.n_classes = n_classes;
  forest.rows.layout = CodeLayout(*forest.bins);
  forest.append(sample, n_threads);
  if (kind == LossKind::squared) check_targets(sample.y);
  forest.set_scales();
  forest.put_on_grids(0);
  forest.base_scores = forest.loss.base_scores(forest.target_sums);

  Validation held_out;
  if (validation != nullptr) {
    held_out.rows.layout = forest.rows.layout;
    held_out.rows.append_codes(*forest.bins, validation->x, n_threads);
    for (const double y : validation->y)
      held_out.rows.target.push_back(forest.loss.target_on_grid(y));
    // Only how they compare matters, and so they cannot overflow.
    double largest = 0;
    for (const double weight : validation->weight) largest = std::max(largest, weight);
    for (const double weight : validation->weight)
      held_out.weight.push_back(weight / power_of_two_below(largest));
    for (const double base : forest.base_scores) {
      held_out.scores.emplace_back(validation->x.rows, base);
    }
  }
  train(forest, validation == nullptr ? nullptr : &held_out, stopping, on_iteration, n_threads);
  if (!params.updatable) {
    CodeLayout layout = std::move(forest.rows.layout);
    forest.rows = RowTable{};
    forest.rows.layout = std::move(layout);
  }
  return made;
}

template <class Table>
void Forest::append(const Sample<Table>& sample, int n_threads) {
  const std::size_t first = rows.size(), n = first + sample.x.rows;
  rows.append_codes(*bins, sample.x, n_threads);
  rows.ids.resize(n);
  if (sample.ids.empty()) {
    std::iota(rows.ids.begin() + first, rows.ids.end(), static_cast<RowId>(first));
  } else {
    std::copy(sample.ids.begin(), sample.ids.end(), rows.ids.begin() + first);
  }
  if (loss.kind == LossKind::squared) {
    rows.raw_target.resize(n);
    rows.target.resize(n);
    std::copy(sample.y.begin(), sample.y.end(), rows.raw_target.begin() + first);
  } else {
    rows.target.resize(n);
    std::copy(sample.y.begin(), sample.y.end(), rows.target.begin() + first);
  }
  if (!sample.weight.empty() && rows.raw_weight.empty()) {
    rows.raw_weight.resize(first);
    rows.raw_weight.fill(1);
  }
  if (sample.weight.empty() && rows.raw_weight.empty()) return;
  rows.raw_weight.resize(n);
  rows.weight.resize(n);
  for (std::size_t i = 0; i < sample.x.rows; ++i) {
    rows.raw_weight[first + i] = sample.weight.empty() ? 1.0 : sample.weight[i];
  }
}

void Forest::set_scales() {
  if (loss.kind == LossKind::squared) {
    // If they cannot be told apart on a scale of their own, the one that they are on will do.
    const auto [least, most] = std::minmax_element(rows.raw_target.begin(), rows.raw_target.end());
    loss.set_scale(*least, *most);
  }
  if (!rows.raw_weight.empty())
    loss.set_weight_scale({rows.raw_weight.data(), rows.raw_weight.size()});
}

void Forest::put_on_grids(std::size_t first) {
  if (first == 0) target_sums = TargetSums(loss.n_classes);
  if (loss.kind == LossKind::squared) {
    for (std::size_t r = first; r < rows.size(); ++r)
      rows.target[r] = loss.target_on_grid(rows.raw_target[r]);
  }
  for (std::size_t r = first; r < rows.weight.size(); ++r)
    rows.weight[r] = loss.weight_on_grid(rows.raw_weight[r]);
  for (std::size_t r = first; r < rows.size(); ++r) {
    target_sums.add(rows.target[r], rows.weight.empty() ? 1 : rows.weight[r]);
  }
}

std::unique_ptr<Forest> Forest::copy() const {
  auto made = std::make_unique<Forest>();
  made->bins = bins;
  made->loss = loss;
  made->params = params;
  made->rows = rows;
  made->index = index;
  made->target_sums = target_sums;
  made->base_scores = base_scores;
  made->noise = noise;
  made->trees = trees;
  made->states = std::vector<TreeState>(states);
  made->validation_losses = validation_losses;
  made->stats_memory = stats_memory;
  return made;
}

void Forest::refit(int n_threads, const std::function<void(Forest&)>& change) {
  // Two sets of histograms would take too much memory. These can be computed again, should it fail.
  for (TreeState& state : states) state.drop_sums();
  Forest next;
  next.bins = bins;
  next.loss = loss;
  next.params = params;
  next.stats_memory = stats_memory;
  next.rows = rows;
  if (change) change(next);
  next.set_scales();
  next.put_on_grids(0);
  next.base_scores = next.loss.base_scores(next.target_sums);
  train(next, nullptr, {}, {}, n_threads);

  // Nothing below can fail.
  loss = next.loss;
  params.n_estimators = next.params.n_estimators;
  noise = next.noise;
  std::swap(rows, next.rows);
  index = {};
  std::swap(target_sums, next.target_sums);
  std::swap(base_scores, next.base_scores);
  std::swap(trees, next.trees);
  std::swap(states, next.states);
  next.drop_states(n_threads);
}

void Forest::drop_states(int n_threads) {
  parallel(n_threads, states.size(), [this](std::size_t t) {
    states[t].recorded = {};
    states[t].leaf_ids = {};
  });
  states.clear();
}

// What a prediction needs, as of one moment.
struct Forest::Snapshot {
  Scorer scorer;
  std::vector<double> base_scores;
  Loss loss;
};

// If there is none, a change may be under way: it ends before the next one is compiled.
std::shared_ptr<const Forest::Snapshot> Forest::snapshot() const {
  {
    const ForkBarrier::AtWork at_work;
    std::lock_guard lock(snapshot_lock_);
    if (snapshot_) return snapshot_;
  }
  const Exclusive no_change(*this);
  std::lock_guard lock(snapshot_lock_);
  if (!snapshot_) {
    snapshot_ = std::make_shared<const Snapshot>(
        Snapshot{Scorer(*bins, trees, trees_per_iteration()), base_scores, loss});
  }
  return snapshot_;
}

void Forest::publish_change() noexcept {
  ++n_changes;
  std::lock_guard lock(snapshot_lock_);
  snapshot_.reset();
}

template <class Table>
Columns<double> Forest::scores(const Table& x, int first, int last, int n_threads) const {
  check_columns(x.columns, *bins);
  const auto now = snapshot();
  const std::vector<double>& base = now->base_scores;
  const std::size_t k_trees = base.size(), n_trees = now->scorer.n_trees();
  const auto tree = [&](int iteration) {
    const std::size_t at = static_cast<std::size_t>(iteration) * k_trees;
    return iteration < 0 ? n_trees : std::min(at, n_trees);
  };
  Columns<double> result{std::vector<double>(x.rows * k_trees), k_trees};
  std::vector<double>& scores = result.values;
  for (std::size_t i = 0; first == 0 && i < scores.size(); ++i) scores[i] = base[i % k_trees];
  now->scorer.add_scores(x, tree(first), tree(last), scores.data(), n_threads);
  if (now->loss.kind == LossKind::squared) {
    const double centre = first == 0 ? now->loss.centre : 0.0;
    for (double& score : scores) score = score * now->loss.scale + centre;
  }
  return result;
}

template <class Table>
Columns<std::int32_t> Forest::leaf_ids(const Table& x, int n_threads) const {
  check_columns(x.columns, *bins);
  const auto now = snapshot();
  const std::size_t n_trees = now->scorer.n_trees();
  Columns<std::int32_t> result{std::vector<std::int32_t>(x.rows * n_trees), n_trees};
  now->scorer.leaf_ids(x, result.values.data(), n_threads);
  return result;
}

std::vector<double> Forest::gain_importances() const {
  std::vector<double> gains(bins->n_features());
  for (const Tree& tree : trees) {
    for (const Node& node : tree.nodes) {
      // A split that has come to leave a side too little has no gain; an update may keep it.
      if (!node.is_leaf() && node.gain > 0) gains[node.split.feature] += node.gain;
    }
  }
  return gains;
}

namespace {

// Recounts one tree. Slots in the order of their leaves, so that each node's rows lie together.
template <class Sums>
std::optional<std::string> find_fault_in_tree(const Forest& forest, std::size_t t,
                                              const KeptSums<Sums>& kept) {
  const Tree& tree = forest.trees[t];
  const TreeState& state = forest.states[t];
  const Contributions contributions = forest.contributions_to(t);
  const std::string where = "tree " + std::to_string(t) + ", node ";
  std::vector<std::vector<Slot>> slots(tree.nodes.size());
  for (Slot row = 0; row < forest.rows.size(); ++row) {
    const auto leaf =
        state.leaf_ids.visit([&](const auto* ids) { return static_cast<std::size_t>(ids[row]); });
    if (leaf >= tree.leaves.size())
      return where + "of row " + std::to_string(forest.rows.ids[row]) + ": no such leaf";
    const NodeIndex reached = tree.route([&](std::uint32_t f) { return forest.rows.code(row, f); });
    if (reached != tree.leaves[leaf])
      return where + std::to_string(reached) + ": a row there is booked in another leaf";
    if (!forest.in_bag(t, forest.rows.ids[row])) continue;
    for (NodeIndex at = reached; at != no_node;
         at = tree.nodes[static_cast<std::size_t>(at)].parent) {
      slots[static_cast<std::size_t>(at)].push_back(row);
    }
  }
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const Node& node = tree.nodes[i];
    const std::size_t n = slots[i].size();
    slots[i].resize(n + slots_read_ahead);
    const std::span<const Slot> reached(slots[i].data(), n);
    if (total_of(contributions, reached, 1) != node.sums)
      return where + std::to_string(i) + ": its sums are not those of its rows";
    if (node.value != forest.loss.leaf_value(node.sums, forest.params.learning_rate, forest.l2())) {
      return where + std::to_string(i) + ": its value does not follow from its sums";
    }
    if (i >= kept.size() || !kept[i].kept) continue;
    Histogram<Sums> histogram(forest.rows.layout.histogram_size());
    histogram.fill(Sums(Totals{}));
    accumulate(forest.rows, contributions, reached, histogram.data());
    if (!(NodeSums<Sums>(forest.rows.layout, histogram) == kept[i])) {
      return where + std::to_string(i) + ": its candidates' sums are not those of its rows";
    }
  }
  return std::nullopt;
}

}  // namespace

Slot Forest::slot_of(RowId id, const std::string& argument) const {
  const std::optional<Slot> slot = index.find(rows.ids, id);
  if (!slot) {
    throw std::invalid_argument(argument + ": the model holds no row with id " +
                                std::to_string(id) + "; row_ids_ has the ids of those it holds");
  }
  return *slot;
}

std::optional<std::string> Forest::find_fault(int n_threads) const {
  if (states.empty()) return std::nullopt;
  TargetSums recounted(loss.n_classes);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    recounted.add(rows.target[r], rows.weight.empty() ? 1 : rows.weight[r]);
  }
  if (recounted != target_sums) return "the sums of targets are not those of the rows";
  if (base_scores != loss.base_scores(target_sums))
    return "the base scores do not follow from the targets";
  std::vector<std::optional<std::string>> faults(trees.size());
  parallel(n_threads, trees.size(), [&](std::size_t t) {
    faults[t] = std::visit([&](const auto& kept) { return find_fault_in_tree(*this, t, kept); },
                           states[t].sums);
  });
  for (auto& fault : faults) {
    if (fault) return fault;
  }
  return std::nullopt;
}

#define GRAFTBOOST_FOR_TABLE(Table)                                                              \
  template void check_sample(const Sample<Table>&, const BinMap&, int);                          \
  template std::unique_ptr<Forest> Forest::fit(                                                  \
      std::shared_ptr<const BinMap>, const Sample<Table>&, LossKind, int, const TrainingParams&, \
      std::size_t, const Sample<Table>*, const Stopping&, const OnIteration&, int);              \
  template void Forest::append(const Sample<Table>&, int);                                       \
  template Columns<double> Forest::scores(const Table&, int, int, int) const;                    \
  template Columns<std::int32_t> Forest::leaf_ids(const Table&, int) const;
GRAFTBOOST_FOR_TABLE(DenseTable<float>)
GRAFTBOOST_FOR_TABLE(DenseTable<double>)
GRAFTBOOST_FOR_TABLE(SparseTable<float>)
GRAFTBOOST_FOR_TABLE(SparseTable<double>)

}  // namespace graftboost
