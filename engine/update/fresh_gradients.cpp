#include "update/fresh_gradients.hpp"

#include <algorithm>
#include <utility>

#include "core/parallel.hpp"

namespace graftboost {
namespace {

// Terms of all rows are added up if at least this share of the rows is asked for.
constexpr double least_share = 0.15;

using Stretch = RecordScratch::Stretch;

}  // namespace

FreshGradients::FreshGradients(const ModelState& model, int n_threads)
    : model_(model),
      n_threads_(n_threads),
      k_trees_(static_cast<std::size_t>(model.trees_per_iteration())),
      terms_(model, n_threads) {}

void FreshGradients::begin_iteration(std::size_t first_tree, std::size_t n_rows,
                                     std::size_t n_rows_left) {
  first_tree_ = first_tree;
  terms_.begin_iteration(first_tree, n_rows_left);
  are_added_up_ = k_trees_ > 1 && terms_.are_carried() && terms_.terms().are_products() &&
                  static_cast<double>(n_rows) >= least_share * static_cast<double>(model_.n_rows());
  if (are_added_up_) add_up_all();
}

void FreshGradients::add_up_all() {
  inverse_.resize(model_.shards.size());
  for (std::size_t s = 0; s < model_.shards.size(); ++s) {
    Array<double>& inverse = inverse_[s];
    inverse.resize(model_.shards[s].size());
    constexpr std::size_t rows_together = 2048;
    parallel_blocks(n_threads_, inverse.size(), rows_together,
                    [&](std::size_t begin, std::size_t end) {
                      std::fill(inverse.begin() + begin, inverse.begin() + end, 0.0);
                      for (std::size_t k = 0; k < k_trees_; ++k) {
                        const double* terms = terms_.carried(s, k).data();
                        for (std::size_t r = begin; r < end; ++r) inverse[r] += terms[r];
                      }
                      for (std::size_t r = begin; r < end; ++r) inverse[r] = 1 / inverse[r];
                    });
  }
}

GradientArray FreshGradients::of(std::size_t t, std::size_t s, std::span<const Slot> slots) {
  const std::size_t k = t % k_trees_;
  return terms_.terms().are_products() ? from_products(k, s, slots) : from_scores(k, s, slots);
}

GradientArray FreshGradients::from_products(std::size_t k, std::size_t s,
                                            std::span<const Slot> slots) {
  constexpr std::size_t stretch = RecordScratch::stretch;
  const RowTable& rows = model_.shards[s].rows;
  const bool is_logistic = model_.loss.kind == LossKind::logistic;
  GradientArray found(model_.loss.records_wide(), slots.size());
  RecordScratch scratch(k_trees_);
  std::vector<Array<double>> gathered;
  if (!are_added_up_) gathered = terms_.gather(s, slots);
  for (std::size_t from = 0; from < slots.size(); from += stretch) {
    const std::span<const Slot> some = slots.subspan(from, std::min(stretch, slots.size() - from));
    std::array<std::int32_t, stretch> targets;
    std::array<RowId, stretch> ids;
    Stretch part, inverse;
    part.fill(1.0);
    inverse.fill(1.0);
    for (std::size_t i = 0; i < some.size(); ++i) {
      targets[i] = rows.target[some[i]];
      ids[i] = rows.ids[some[i]];
    }
    if (are_added_up_) {
      const double* terms = terms_.carried(s, k).data();
      for (std::size_t i = 0; i < some.size(); ++i) {
        part[i] = terms[some[i]];
        inverse[i] = inverse_[s][some[i]];
      }
    } else {
      for (std::size_t i = 0; i < some.size(); ++i) {
        double sum = is_logistic ? 1.0 : 0.0;
        for (std::size_t j = 0; j < k_trees_; ++j) sum += gathered[j][from + i];
        part[i] = is_logistic ? 1.0 : gathered[k][from + i];
        inverse[i] = 1 / sum;
      }
    }
    record_one_class(
        model_.loss,
        {{targets.data(), some.size()}, {ids.data(), some.size()}, model_.params.seed, first_tree_},
        k, part, inverse, found.narrow.data() + from,
        ScoresFromLeaves(model_, s, first_tree_, some), scratch);
  }
  return found;
}

GradientArray FreshGradients::from_scores(std::size_t k, std::size_t s,
                                          std::span<const Slot> slots) {
  const RowTable& rows = model_.shards[s].rows;
  const std::vector<Array<double>> scores = terms_.gather(s, slots);
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
  for (std::size_t j = 0; j < k_trees_; ++j) {
    from.push_back(scores[j].data());
    to.push_back(found.emplace_back(model_.loss.records_wide(), slots.size()).data());
  }
  RecordScratch scratch(k_trees_);
  record_scores(
      model_.loss,
      {{targets.data(), targets.size()}, {ids.data(), ids.size()}, model_.params.seed, first_tree_},
      from, to, 0, slots.size(), scratch);
  return std::move(found[k]);
}

}  // namespace graftboost
