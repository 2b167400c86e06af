#include "forest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "parallel.hpp"
#include "training.hpp"

namespace graftboost {
namespace {

void check_targets(std::span<const double> y) {
  const auto [least, most] = std::minmax_element(y.begin(), y.end());
  if (Loss{}.set_scale(*least, *most)) return;
  throw std::invalid_argument(
      "y: its values are too close to each other to be told apart (extent " +
      std::to_string(*most / 2 - *least / 2) + "); multiply it by a large number first");
}

// As fine a unit as the sums have room for: the largest weight is 2^bits of it.
double weight_unit(const Loss& loss, const Array<double>& weight) {
  const int room = loss.kind == LossKind::squared ? 34 : 40;
  const auto rows_bits =
      static_cast<int>(std::ceil(std::log2(static_cast<double>(weight.size()) + 1)));
  const int bits = std::clamp(room - rows_bits, 8, loss.kind == LossKind::squared ? 20 : 24);
  const double largest = *std::max_element(weight.begin(), weight.end());
  return std::ldexp(power_of_two_above(largest), -bits);
}

// Over the rows that count. Of integers, so that the order of rows does not matter.
double mean_weight(const Loss& loss, const Array<Weight>& weights) {
  std::int64_t sum = 0, n = 0;
  for (const Weight w : weights) sum += w, n += w != 0;
  return static_cast<double>(sum) / static_cast<double>(std::max<std::int64_t>(n, 1)) *
         loss.weight_unit;
}

}  // namespace

template <class Table>
std::unique_ptr<Forest> Forest::fit(std::shared_ptr<const BinMap> bins, const Sample<Table>& sample,
                                    LossKind kind, int n_classes, const TrainingParams& params,
                                    std::size_t stats_memory, const Sample<Table>* validation,
                                    const Stopping& stopping, const OnIteration& on_iteration,
                                    int n_threads) {
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
    held_out.weight.assign(validation->weight.begin(), validation->weight.end());
    for (const double base : forest.base_scores) {
      held_out.scores.emplace_back(validation->x.rows, base);
    }
  }
  train(forest, validation == nullptr ? nullptr : &held_out, stopping, on_iteration, n_threads);
  if (!params.updatable) {
    CodeLayout layout = std::move(forest.rows.layout);
    forest.rows = Rows{};
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
  loss.weight_unit = 1;
  loss.least_hessian = Loss{}.least_hessian;
  if (rows.raw_weight.empty()) return;
  loss.weight_unit = weight_unit(loss, rows.raw_weight);
  put_on_grids(0);
  // Weights of one and more say how often a row counts, smaller ones only how much beside others.
  loss.least_hessian *= std::min(1.0, mean_weight(loss, rows.weight));
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
  made->states = states;
  made->validation_losses = validation_losses;
  made->stats_memory = stats_memory;
  return made;
}

void Forest::refit(int n_threads) {
  set_scales();
  put_on_grids(0);
  base_scores = loss.base_scores(target_sums);
  trees.clear();
  drop_states(n_threads);
  train(*this, nullptr, {}, {}, n_threads);
}

void Forest::drop_states(int n_threads) {
  parallel(n_threads, states.size(), [&](std::size_t t) {
    states[t].recorded.wipe();
    states[t].leaf_ids.narrow.wipe();
    states[t].leaf_ids.wide.wipe();
    states[t] = {};
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
    std::lock_guard lock(snapshot_lock_);
    if (snapshot_) return snapshot_;
  }
  std::lock_guard no_change(change_lock);
  std::lock_guard lock(snapshot_lock_);
  if (!snapshot_) {
    snapshot_ = std::make_shared<const Snapshot>(
        Snapshot{Scorer(*bins, trees, trees_per_iteration()), base_scores, loss});
  }
  return snapshot_;
}

void Forest::forget_snapshot() {
  std::lock_guard lock(snapshot_lock_);
  snapshot_.reset();
}

template <class Table>
Columns<double> Forest::scores(const Table& x, int first, int last, int n_threads) const {
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
      if (!node.is_leaf() && node.gain > 0) gains[node.test.feature] += node.gain;
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
    if (node.value != forest.loss.leaf_value(node.sums, forest.params.learning_rate,
                                             forest.params.l2_regularization)) {
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
  template std::unique_ptr<Forest> Forest::fit(                                                  \
      std::shared_ptr<const BinMap>, const Sample<Table>&, LossKind, int, const TrainingParams&, \
      std::size_t, const Sample<Table>*, const Stopping&, const OnIteration&, int);              \
  template void Forest::append(const Sample<Table>&, int);                                       \
  template Columns<double> Forest::scores(const Table&, int, int, int) const;                    \
  template Columns<std::int32_t> Forest::leaf_ids(const Table&, int) const;
GRAFTBOOST_FOR_TABLE(Matrix<float>)
GRAFTBOOST_FOR_TABLE(Matrix<double>)
GRAFTBOOST_FOR_TABLE(SparseMatrix<float>)
GRAFTBOOST_FOR_TABLE(SparseMatrix<double>)

}  // namespace graftboost
