// The rows of a shard while a model is updated.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "model/rows_by_node.hpp"
#include "remote/encoding.hpp"
#include "remote/shard_work.hpp"
#include "update/leaf_sums.hpp"

namespace graftboost {

void ShardServer::fulfil_update(RequestKind kind, Reader& request, Reply& reply, Writer& rows) {
  const auto number = [&] { return static_cast<std::size_t>(request.get<std::uint64_t>()); };
  switch (kind) {
    case RequestKind::end_training: {
      const std::size_t n_trees = number();
      model().nodes.resize(n_trees);
      shard().trees.resize(model().params.updatable ? n_trees : 0);
      if (n_trees != 0) model().params.n_estimators = model().n_iterations();
      return;
    }
    case RequestKind::find:
      return find(request, rows);
    case RequestKind::add:
      return add(request);
    case RequestKind::base_scores:
      if (!work_->base_scores) work_->base_scores = model().base_scores;
      model().base_scores = request.get_all<std::vector<double>>();
      return;
    case RequestKind::rare_columns:
      for (const std::uint32_t column : request.get_all<std::vector<std::uint32_t>>())
        reply.sums.push_back(shard().rows.n_rows_with(column));
      return;
    case RequestKind::lay_out:
      return lay_out(request, rows);
    case RequestKind::used_columns: {
      std::vector<bool> used(model().layout().added().size());
      shard().rows.mark_added_columns(shard().removed(), used);
      for (const bool is_used : used) reply.sums.push_back(is_used);
      return;
    }
    case RequestKind::place: {
      const std::size_t t = number();
      const auto leaves = request.get_all<WipedVector<std::uint16_t>>();
      const auto recorded = request.get_all<WipedVector<Gradient>>();
      for (std::size_t i = 0; i < work_->own_added.size(); ++i) {
        const std::uint32_t of_all = work_->own_added[i];
        shard().place(t, static_cast<Slot>(shard().n_before() + i), leaves.at(of_all),
                      recorded.at(of_all));
      }
      return;
    }
    case RequestKind::count_nodes:
      return packed_ ? count_nodes<PackedSums>(request, reply)
                     : count_nodes<WideSums>(request, reply);
    case RequestKind::recount: {
      const std::size_t t = number();
      return request.get<std::uint32_t>() == words_per_cell<PackedSums>
                 ? recount<PackedSums>(t, request, reply)
                 : recount<WideSums>(t, request, reply);
    }
    case RequestKind::shift:
      return shift(request, rows);
    case RequestKind::merge_leaves: {
      const std::size_t t = number();
      const auto from = request.get<std::int32_t>();
      shard().merge_leaves(t, from, request.get<std::int32_t>(), work_->slots);
      return;
    }
    case RequestKind::set_trees:
      while (!request.at_end()) {
        const std::size_t t = number();
        set_tree(t, read_tree(request));
      }
      return;
    case RequestKind::set_values:
      for (const LeafValue& leaf : request.get_all<std::vector<LeafValue>>()) {
        double& value =
            model().nodes[leaf.tree].tree.nodes.at(static_cast<std::size_t>(leaf.node)).value;
        if (work_->is_update && !work_->replaced.contains(leaf.tree))
          work_->replaced_values.push_back({leaf.tree, leaf.node, value});
        value = leaf.value;
      }
      return;
    case RequestKind::begin_regrowing: {
      if (!work_->fresh) work_->fresh.emplace(model(), n_threads_);
      const std::size_t first = number();
      // As much of this shard's rows as of all.
      const auto n_rows = static_cast<double>(number()), n_left = static_cast<double>(number());
      const double share = static_cast<double>(shard().size()) /
                           static_cast<double>(std::max(number(), std::size_t{1}));
      work_->fresh->begin_iteration(first, static_cast<std::size_t>(n_rows * share),
                                    static_cast<std::size_t>(n_left * share));
      return;
    }
    case RequestKind::refresh:
      return refresh(request, reply);
    case RequestKind::refit:
      return refit(request);
    case RequestKind::layout_at_commit:
      work_->layout_at_commit = request.get_all<std::vector<std::uint32_t>>();
      return;
    case RequestKind::commit:
      commit();
      rows.put(facts());
      return;
    case RequestKind::undo:
      undo();
      rows.put(facts());
      return;
    default:
      throw std::invalid_argument("a message has a request of an unknown kind");
  }
}

void ShardServer::find(Reader& request, Writer& rows) {
  const auto removed_ids = request.get_all<WipedVector<RowId>>();
  const auto added_ids = request.get_all<WipedVector<RowId>>();
  std::vector<std::uint32_t> removed_held, added_held;
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < removed_ids.size(); ++i) {
    const auto found = shard().find(removed_ids[i]);
    if (!found) continue;
    removed_held.push_back(static_cast<std::uint32_t>(i));
    slots.push_back(*found);
  }
  for (std::size_t i = 0; i < added_ids.size(); ++i)
    if (shard().find(added_ids[i])) added_held.push_back(static_cast<std::uint32_t>(i));
  std::ranges::sort(slots);
  rows.put_all(removed_held).put_all(added_held).put(std::uint64_t{shard().trees.size()});
  write_fetched(rows, copy_rows(shard(), model().loss.records_wide(), slots));
  shard().begin_update(std::move(slots));
  work_->is_update = true;
}

// Of rows that are dealt out, those of this shard.
std::vector<Slot> ShardServer::own_rows(const RowTable& rows) const {
  std::vector<Slot> own;
  for (Slot i = 0; i < rows.size(); ++i)
    if (mix(static_cast<std::uint64_t>(rows.ids[i])) % n_shards_ == index_) own.push_back(i);
  return own;
}

void ShardServer::add(Reader& request) {
  const RowTable all = read_rows(request, model().layout());
  const std::vector<Slot> own = own_rows(all);
  work_->own_added.insert(work_->own_added.end(), own.begin(), own.end());
  RowTable& rows = shard().rows;
  // The first rows with weights: the others have weight 1.
  if (!all.raw_weight.empty() && rows.raw_weight.empty()) {
    rows.raw_weight.resize(rows.size());
    rows.raw_weight.fill(1);
    rows.weight.resize(rows.size());
    rows.weight.fill(0);
  }
  rows.append_rows(all, own);
  shard().extend_trees();
}

void ShardServer::lay_out(Reader& request, Writer& rows) {
  const auto columns = request.get_all<std::vector<std::uint32_t>>();
  CodeLayout layout = model().layout();
  layout.add(columns);
  const WipedVector<RowTable::NewCell> cells = shard().rows.new_cells(layout, columns);
  shard().lay_out_columns(layout, columns, cells);
  RowsWithNewCells found;
  std::vector<Slot> with;
  for (const RowTable::NewCell& cell : cells) {
    if (cell.row >= shard().n_before()) continue;
    if (with.empty() || with.back() != cell.row) with.push_back(cell.row);
    found.row.push_back(static_cast<std::uint32_t>(with.size() - 1));
    found.cell.push_back(cell.cell);
  }
  for (std::size_t t = 0; t < shard().trees.size(); ++t) {
    for (const Slot slot : with) {
      const bool inside = model().params.in_subsample(t, shard().rows.ids[slot]);
      found.totals.push_back(inside ? shard().recorded_in(t, model().loss.kind).of(slot)
                                    : Totals{});
      found.leaves.push_back(shard().trees[t].leaf_ids[slot]);
    }
  }
  rows.put_all(found.row).put_all(found.cell).put_all(found.totals).put_all(found.leaves);
  rows.put(std::uint64_t{with.size()});
}

template <class Sums>
void ShardServer::count_nodes(Reader& request, Reply& reply) {
  const auto t = static_cast<std::size_t>(request.get<std::uint64_t>());
  Histogram<Sums> histogram(model().layout().histogram_size());
  for (const std::vector<std::int32_t>& leaves : read_leaves(request)) {
    histogram.fill(Sums(Totals{}));
    const ReachingRows rows = shard().rows_in(t, leaves, model().params, work_->slots);
    accumulate(shard().rows, shard().recorded_in(t, model().loss.kind), rows.inside,
               histogram.data());
    put_histogram(reply.sums, histogram);
  }
}

template <class Sums>
void ShardServer::recount(std::size_t t, Reader& request, Reply& reply) {
  const RowsByNode rows(model(), t);
  for (const NodeIndex node : request.get_all<std::vector<NodeIndex>>())
    put_histogram(reply.sums, rows.count<Sums>(node));
}

void ShardServer::shift(Reader& request, Writer& rows) {
  const auto t = static_cast<std::size_t>(request.get<std::uint64_t>());
  const auto node = request.get<NodeIndex>();
  const auto before = request.get<Split>();
  Tree tree = model().nodes.tree(t);
  tree.nodes.at(static_cast<std::size_t>(node)).split = request.get<Split>();
  const WipedVector<MovedRow> moved =
      shard().shift(t, tree, node, before, model().params, model().loss.kind, work_->slots);
  set_tree(t, std::move(tree));
  RowTable table;
  table.layout = model().layout();
  std::vector<Slot> slots;
  WipedVector<std::uint16_t> from, to;
  WipedVector<Totals> totals;
  for (const MovedRow& row : moved) {
    slots.push_back(row.row);
    from.push_back(row.from);
    to.push_back(row.to);
    totals.push_back(row.totals);
  }
  table.append_rows(shard().rows, slots);
  write_rows(rows, table);
  rows.put_all(from).put_all(to).put_all(totals);
}

void ShardServer::set_tree(std::size_t t, Tree tree) {
  Tree& present = model().nodes[t].tree;
  if (work_->is_update) work_->replaced.emplace(t, present);
  present = std::move(tree);
}

// Rows record gradients in the trees of an iteration. The values of the trees before are known.
void ShardServer::refresh(Reader& request, Reply& reply) {
  const auto first = static_cast<std::size_t>(request.get<std::uint64_t>());
  const auto n_leaf_ids = static_cast<std::size_t>(request.get<std::uint64_t>());
  const auto k_trees = static_cast<std::size_t>(model().trees_per_iteration());
  const ScoreTerms score_terms(model(), model().n_iterations(), true);
  work_->is_refresh = true;
  const std::size_t n = shard().size();
  for (std::size_t k = 0; k < k_trees; ++k) {
    if (first == 0) {
      work_->terms.emplace_back(n).fill(score_terms.of(model().base_scores[k]));
    } else {
      const std::size_t t = first - k_trees + k;
      score_terms.pass(shard().trees[t].leaf_ids, score_terms.of_leaves(model().nodes.tree(t)),
                       work_->terms[k].data(), 0, n);
    }
  }
  std::vector<const double*> from;
  std::vector<GradientPointer> to;
  for (std::size_t k = 0; k < k_trees; ++k) {
    from.push_back(work_->terms[k].data());
    to.push_back(shard().trees[first + k].recorded.data());
  }
  RecordScratch scratch(k_trees);
  score_terms.record(model().recording_rows(0, first), from, to, 0, n,
                     ScoresFromLeaves(model(), 0, first), scratch);
  for (std::size_t k = 0; k < k_trees; ++k) {
    const std::size_t t = first + k;
    LeafSums sums(n_leaf_ids);
    for (std::size_t begin = 0; begin < n; begin += LeafSums::most_rows) {
      const std::size_t end = std::min(begin + LeafSums::most_rows, n);
      if (model().params.subsample < 1) {
        std::vector<std::int32_t> inside(end - begin);
        model().params.subsample_of(t).find(shard().rows.ids.data() + begin, end - begin,
                                            inside.data());
        to[k].visit(
            [&](auto* of_rows) { keep_marked(of_rows + begin, inside.data(), end - begin); });
      }
      sums.add(shard().recorded_in(t, model().loss.kind), shard().trees[t].leaf_ids, begin, end);
    }
    for (std::size_t leaf = 0; leaf < n_leaf_ids; ++leaf)
      put_totals(reply.sums, sums.of(static_cast<std::int32_t>(leaf)));
    put_wide(reply.sums, sums.squares());
  }
}

// The rows without those that are marked as removed, and with those that were added.
void ShardServer::refit(Reader& request) {
  const auto relabel = request.get_all<std::vector<std::int32_t>>();
  ModelState next;
  next.bins = state_.bins;
  next.loss = state_.loss;
  next.loss.kind = request.get<LossKind>();
  next.loss.n_classes = request.get<int>();
  next.params = state_.params;
  RowTable& rows = next.shards[0].rows;
  rows = state_.shards[0].rows;
  const std::size_t n_before = state_.shards[0].n_before();
  for (std::size_t row = 0; row < n_before && !relabel.empty(); ++row)
    rows.target[row] = relabel.at(static_cast<std::size_t>(rows.target[row]));
  const std::vector<Slot>& removed = state_.shards[0].removed();
  rows.vacate(removed, rows.moves_to_vacate(removed));
  next_ = std::move(next);
}

}  // namespace graftboost
