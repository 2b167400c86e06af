#include "update/bounded_evaluation.hpp"

#include <algorithm>

namespace graftboost {

template <class Sums>
BoundedEvaluation<Sums>::BoundedEvaluation(const UpdateContext& context, PathHistogram<Sums>& path)
    : gain_(context.gain),
      layout_(context.model.layout()),
      path_(path),
      grouped_(GainBounds::are_grouped(layout_)),
      n_units_(GainBounds::n_units(layout_)) {}

template <class Sums>
BestSplit BoundedEvaluation<Sums>::find_best(const NodeOnPath& at) {
  const bool known = at.bounds.known();
  const std::uint32_t own = at.node.split.feature, likely = layout_.number_of(own);
  if (!known) at.bounds.start(gain_, at.node.sums, layout_);
  evaluate_changed(at);
  BestSplit best = evaluate_unbounded(at);
  const bool surveys = !grouped_ && !known && at.bounds.known();
  if (likely != ColumnIndex::none && (known || !grouped_)) {
    const BestSplit found = evaluate(at, likely, surveys);
    if (found.better_than(best)) best = found;
  }
  // Of equal gains the smaller feature wins, so an equal bound does not rule a unit out.
  const auto is_ruled_out = [&](double most) { return most < best.gain || most == no_gain; };
  const GainBounds::Limits limits = at.bounds.limits(gain_, at.node.sums);
  if (known && is_ruled_out(limits.of_others(likely))) return best;
  for_each_unit(likely, [&](std::size_t unit) {
    if (!known || !is_ruled_out(limits.of_unit(unit, own))) evaluate_unit(at, unit, best);
    return true;
  });
  return best;
}

template <class Sums>
BestSplit BoundedEvaluation<Sums>::evaluate_feature(const NodeOnPath& at, std::uint32_t number) {
  return evaluate(at, number, !grouped_ && at.bounds.known());
}

template <class Sums>
BestSplit BoundedEvaluation<Sums>::evaluate(const NodeOnPath& at, std::uint32_t number,
                                            bool surveys) {
  SplitEvaluator<Sums> evaluator(gain_, at.node.sums);
  FeatureSurvey survey;
  const BestSplit best = evaluator.best(layout_[number], path_.of_feature(at.depth, number),
                                        surveys ? &survey : nullptr);
  if (surveys) at.bounds.evaluated(gain_, at.node.sums, number, best.gain, survey);
  return best;
}

template <class Sums>
BestSplit BoundedEvaluation<Sums>::evaluate_unbounded(const NodeOnPath& at) {
  BestSplit best;
  for (std::size_t k = 0; grouped_ && k < layout_.first_sparse(); ++k) {
    const std::uint32_t number = layout_.by_offset()[k];
    if (layout_[number].counts_only_differing()) continue;
    const BestSplit found = evaluate_feature(at, number);
    if (found.better_than(best)) best = found;
  }
  return best;
}

template <class Sums>
void BoundedEvaluation<Sums>::evaluate_changed(const NodeOnPath& at) {
  constexpr std::size_t few = 8;  // one feature in so many; if there are more, all are evaluated
  if (!grouped_ || !at.bounds.known() || !at.bounds.is_pending()) return;
  numbers_.clear();
  for (const auto* features : at.changed) {
    numbers_.insert(numbers_.end(), features->begin(), features->end());
    if (numbers_.size() * few > layout_.size()) return;
  }
  for (std::size_t number = at.bounds.n_evaluated(); number < layout_.size(); ++number)
    numbers_.push_back(static_cast<std::uint32_t>(number));
  std::sort(numbers_.begin(), numbers_.end());
  numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
  SplitEvaluator<Sums> evaluator(gain_, at.node.sums);
  BestSplit best;
  GroupSurvey survey;
  for (const std::uint32_t number : numbers_)
    evaluator.improve(layout_[number], path_.of_feature(at.depth, number), best, &survey);
  at.bounds.evaluated_changed(gain_, at.node.sums, survey, layout_.size());
}

template <class Sums>
void BoundedEvaluation<Sums>::evaluate_unit(const NodeOnPath& at, std::size_t unit,
                                            BestSplit& best) {
  if (!grouped_) {
    const BestSplit found = evaluate_feature(at, static_cast<std::uint32_t>(unit));
    if (found.better_than(best)) best = found;
    return;
  }
  SplitEvaluator<Sums> evaluator(gain_, at.node.sums);
  GroupSurvey survey;
  for (const std::uint32_t number : layout_.by_offset()) {
    if (!layout_[number].counts_only_differing()) continue;
    evaluator.improve(layout_[number], path_.of_all(at.depth, number), best,
                      at.bounds.known() ? &survey : nullptr);
  }
  // A leaf's own feature is that of its best candidate.
  const std::uint32_t own = at.node.is_leaf() ? best.split.feature : at.node.split.feature;
  if (at.bounds.known()) at.bounds.evaluated_all(gain_, at.node.sums, survey, own, layout_.size());
}

template class BoundedEvaluation<PackedSums>;
template class BoundedEvaluation<WideSums>;

}  // namespace graftboost
