#include "update/fresh_gradients.hpp"

#include <utility>

#include "core/parallel.hpp"

namespace graftboost {
namespace {

// All rows are recorded if at least this share of them is asked for.
constexpr double least_share = 0.6;

}  // namespace

FreshGradients::FreshGradients(const ModelState& model, int n_threads)
    : model_(model),
      n_threads_(n_threads),
      k_trees_(static_cast<std::size_t>(model.trees_per_iteration())),
      scores_(model, n_threads) {}

void FreshGradients::begin_iteration(std::size_t first_tree, std::size_t n_rows,
                                     std::size_t n_rows_left) {
  first_tree_ = first_tree;
  scores_.begin_iteration(first_tree, n_rows_left);
  are_all_recorded_ =
      scores_.are_carried() &&
      static_cast<double>(n_rows) >= least_share * static_cast<double>(model_.n_rows());
  if (are_all_recorded_) record_all();
}

void FreshGradients::record_all() {
  const bool is_new = all_.empty();
  if (is_new) all_.resize(model_.shards.size());
  for (std::size_t s = 0; s < model_.shards.size(); ++s) {
    const RowShard& shard = model_.shards[s];
    std::vector<const double*> from;
    std::vector<GradientPointer> to;
    for (std::size_t k = 0; k < k_trees_; ++k) {
      if (is_new) all_[s].emplace_back(model_.loss.records_wide(), shard.size());
      from.push_back(scores_.carried(s, k).data());
      to.push_back(all_[s][k].data());
    }
    constexpr std::size_t rows_together = 2048;
    parallel_blocks(
        n_threads_, shard.size(), rows_together, [&](std::size_t begin, std::size_t end) {
          model_.loss.record(model_.recording_rows(s, first_tree_), from, to, begin, end);
        });
  }
}

GradientArray FreshGradients::of(std::size_t t, std::size_t s, std::span<const Slot> slots) {
  if (!are_all_recorded_) return computed(t, s, slots);
  GradientArray found(model_.loss.records_wide(), slots.size());
  all_[s][t % k_trees_].visit([&]<class Element>(Element* recorded) {
    Element* to = found.of<Element>();
    for (std::size_t i = 0; i < slots.size(); ++i) to[i] = recorded[slots[i]];
  });
  return found;
}

GradientArray FreshGradients::computed(std::size_t t, std::size_t s, std::span<const Slot> slots) {
  const RowTable& rows = model_.shards[s].rows;
  const std::vector<Array<double>> scores = scores_.gather(s, slots);
  Array<std::int32_t> targets(slots.size());
  Array<RowId> ids(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    targets[i] = rows.target[slots[i]];
    ids[i] = rows.ids[slots[i]];
  }
  // Those of all trees of the iteration share their exponentials.
  std::vector<GradientArray> found;
  std::vector<const double*> from;
  std::vector<GradientPointer> to;
  for (std::size_t k = 0; k < k_trees_; ++k) {
    from.push_back(scores[k].data());
    to.push_back(found.emplace_back(model_.loss.records_wide(), slots.size()).data());
  }
  model_.loss.record(
      {{targets.data(), targets.size()}, {ids.data(), ids.size()}, model_.params.seed, first_tree_},
      from, to, 0, slots.size());
  return std::move(found[t % k_trees_]);
}

}  // namespace graftboost
