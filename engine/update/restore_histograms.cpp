#include "update/restore_histograms.hpp"

#include <algorithm>

#include "core/parallel.hpp"
#include "update/histogram_budget.hpp"
#include "update/row_answers.hpp"
#include "update/split_check.hpp"

namespace graftboost {
namespace {

template <class Sums>
void restore(const UpdateContext& context, std::size_t t) {
  TreeNodes& nodes = context.model.nodes[t];
  recount_tree<Sums>(context.model, t, context.gain);
  nodes.counted = true;
  SplitChecker<Sums> checker(context);
  TreeCheck<Sums> check;
  check.reset(t, nodes.tree.nodes.size(), false);
  checker.evaluate_all(check);
  trim_histograms(context.model, nodes.tree, std::get<TreeHistograms<Sums>>(nodes.histograms));
}

}  // namespace

void restore_tree(const UpdateContext& context, std::size_t t) {
  context.model.nodes.holds_packed_sums() ? restore<PackedSums>(context, t)
                                          : restore<WideSums>(context, t);
}

void restore_histograms(ModelState& model, int n_threads) {
  const auto is_stale = [](const TreeNodes& nodes) { return !nodes.counted; };
  if (std::none_of(model.nodes.begin(), model.nodes.end(), is_stale)) return;
  const UpdateRule rule;
  NodeUndo undo(model);  // gains change, but nothing that does not follow from the rows
  undo.commit();
  const UpdateContext context(model, rule, undo, n_threads);
  parallel(n_threads, model.nodes.size(), [&](std::size_t t) {
    if (!model.nodes[t].counted) restore_tree(context, t);
  });
}

}  // namespace graftboost
