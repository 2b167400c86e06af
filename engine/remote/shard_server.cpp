#include "remote/shard_server.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <utility>

#include "model/rows_by_node.hpp"
#include "remote/encoding.hpp"
#include "train/boosting_rows.hpp"
#include "update/fresh_gradients.hpp"
#include "update/leaf_sums.hpp"
#include "update/regrowing_rows.hpp"

namespace graftboost {

// The growths of one operation.
template <class Sums>
struct ShardServer::Growing {
  struct Growth {
    GrowingRows<Sums> rows;
    __int128 squares = 0;
    std::uint64_t n_rows = 0;
    Histogram<Sums> before;
  };

  std::optional<GrowingCells> cells;
  std::unique_ptr<RegrowingRows<Sums>> regrowing;
  std::map<std::uint32_t, Growth> growths;

  void clear() {
    growths.clear();
    regrowing.reset();
    cells.reset();
  }
  Growth& open(std::uint32_t number, const ModelState& model, int n_threads) {
    if (!cells) cells.emplace(GrowingCells::of_layout(model.shards));
    const auto found = growths.find(number);
    if (found != growths.end()) return found->second;
    return growths
        .emplace(number, Growth{GrowingRows<Sums>(model.shards, *cells, n_threads), 0, 0, {}})
        .first->second;
  }
};

struct ShardServer::Work {
  bool is_update = false;  // the shard has saved what it changes
  bool is_refresh = false;
  std::optional<BoostingRows> boosting;
  std::optional<FreshGradients> fresh;
  Growing<PackedSums> packed;
  Growing<WideSums> wide;
  std::map<std::size_t, Tree> replaced;            // trees as they were before
  std::vector<LeafValue> replaced_values;          // likewise, of other trees, in order
  std::optional<std::vector<double>> base_scores;  // likewise
  std::optional<bool> packed_before;               // likewise
  std::vector<std::uint32_t> own_added;  // numbers, among the added rows, of those of this shard
  std::optional<std::vector<std::uint32_t>> layout_at_commit;
  std::vector<Array<double>> terms;  // of scores, per tree of an iteration, during a refresh
  Array<Slot> slots;

  template <class Sums>
  Growing<Sums>& growing() {
    if constexpr (std::is_same_v<Sums, PackedSums>) {
      return packed;
    } else {
      return wide;
    }
  }
};

ShardServer::ShardServer(std::shared_ptr<const BinMap> bins, LossKind loss, int n_classes,
                         std::size_t index, std::size_t n_shards, int n_threads)
    : index_(index), n_shards_(n_shards), n_threads_(n_threads), work_(std::make_unique<Work>()) {
  state_.bins = std::move(bins);
  state_.loss.kind = loss;
  state_.loss.n_classes = n_classes;
  state_.set_layout(CodeLayout(*state_.bins));
  // Until the node half knows better.
  state_.target_sums = TargetSums(n_classes);
  state_.base_scores.assign(static_cast<std::size_t>(state_.trees_per_iteration()), 0.0);
}

ShardServer::ShardServer(ModelState state, bool packed, std::size_t index, std::size_t n_shards,
                         int n_threads)
    : index_(index),
      n_shards_(n_shards),
      n_threads_(n_threads),
      state_(std::move(state)),
      packed_(packed),
      work_(std::make_unique<Work>()) {}

ShardServer::~ShardServer() = default;

template <class Table>
void ShardServer::append(const Sample<Table>& sample) {
  check_sample(sample, *state_.bins, state_.loss.n_classes);
  state_.shards.append(*state_.bins, sample, state_.loss.kind, n_threads_);
  // The grids are not known yet, but a file may be written before they are.
  RowTable& rows = state_.shards[0].rows;
  if (state_.loss.kind == LossKind::squared) rows.target.fill(0);
  rows.weight.fill(0);
}

// --- messages ------------------------------------------------------------------------------------

void ShardServer::execute(std::span<const std::uint8_t> message, Reply& reply) {
  answer_message<RequestKind>(message, reply, [&](RequestKind kind, Reader& request, Writer& rows) {
    fulfil(kind, request, reply, rows);
  });
}

void ShardServer::fulfil(RequestKind kind, Reader& request, Reply& reply, Writer& rows) {
  switch (kind) {
    case RequestKind::begin_training:
    case RequestKind::record:
    case RequestKind::start_tree:
    case RequestKind::split:
    case RequestKind::count:
    case RequestKind::count_root:
    case RequestKind::end_tree:
    case RequestKind::start_node:
    case RequestKind::end_node:
      if (kind == RequestKind::begin_training) {
        work_->packed.clear();
        work_->wide.clear();
        model().loss = read_loss(request);
        model().params = read_params(request);
        if (!work_->packed_before) work_->packed_before = packed_;
        packed_ = request.get<std::uint32_t>() != 0;
        model().base_scores = request.get_all<std::vector<double>>();
      }
      return packed_ ? fulfil_growing<PackedSums>(kind, request, reply)
                     : fulfil_growing<WideSums>(kind, request, reply);
    case RequestKind::facts:
    case RequestKind::weight_facts:
    case RequestKind::target_range:
    case RequestKind::put_on_grids:
    case RequestKind::count_columns:
    case RequestKind::set_layout:
    case RequestKind::count_cells:
    case RequestKind::target_sums:
    case RequestKind::check_tree:
    case RequestKind::ids:
    case RequestKind::held_codes:
    case RequestKind::fetch:
    case RequestKind::take:
      return fulfil_reading(kind, request, reply, rows);
    default:
      return fulfil_update(kind, request, reply, rows);
  }
}

// --- facts ---------------------------------------------------------------------------------------

RowFacts ShardServer::facts() {
  const RowTable& rows = shard().rows;
  RowFacts facts{rows.size(), rows.n_in_histograms(), 0,
                 static_cast<std::uint32_t>(!rows.raw_weight.empty()),
                 static_cast<std::uint32_t>(rows.has_sparse())};
  for (const Weight weight : rows.weight)
    facts.largest_weight = std::max<std::int64_t>(facts.largest_weight, weight);
  return facts;
}

void ShardServer::put_target_sums(Reply& reply) {
  TargetSums sums(model().loss.n_classes);
  for (Slot row = 0; row < shard().size(); ++row)
    sums.add(shard().rows.target[row], shard().weight_of(row));
  for (const std::int64_t of_class : sums.classes)
    reply.sums.push_back(static_cast<std::uint64_t>(of_class));
  reply.sums.push_back(static_cast<std::uint64_t>(sums.weight));
  put_wide(reply.sums, sums.sum);
}

void ShardServer::fulfil_reading(RequestKind kind, Reader& request, Reply& reply, Writer& rows) {
  const RowTable& table = shard().rows;
  switch (kind) {
    case RequestKind::facts:
      rows.put(facts());
      return;
    case RequestKind::weight_facts: {
      const WeightsInMemory weights({{table.raw_weight.data(), table.raw_weight.size()}});
      const auto question = request.get<std::uint32_t>();
      if (question == 0) {
        rows.put(weights.largest());
      } else if (question == 1) {
        const WeightStatistics::Sum sum = weights.sum(request.get<double>());
        put_wide(reply.sums, static_cast<__int128>(sum.weight));
        reply.sums.push_back(sum.n_positive);
      } else {
        WeightStatistics::Steps steps{};
        steps.top = request.get<double>();
        steps.bits = request.get<std::int32_t>();
        steps.from = request.get<std::int32_t>();
        steps.shift = request.get<std::int32_t>();
        const std::vector<std::uint64_t> counts = weights.count(steps);
        reply.sums.insert(reply.sums.end(), counts.begin(), counts.end());
      }
      return;
    }
    case RequestKind::target_range: {
      double least = std::numeric_limits<double>::infinity(), most = -least;
      const std::vector<Slot>& removed = shard().removed();
      for (Slot row = 0; row < table.raw_target.size(); ++row) {
        if (std::ranges::binary_search(removed, row)) continue;
        least = std::min(least, table.raw_target[row]);
        most = std::max(most, table.raw_target[row]);
      }
      rows.put(least).put(most);
      return;
    }
    case RequestKind::put_on_grids:
      model().loss = read_loss(request);
      shard().put_on_grids(model().loss, 0);
      put_target_sums(reply);
      return;
    case RequestKind::target_sums:
      put_target_sums(reply);
      return;
    case RequestKind::count_columns: {
      WipedVector<std::uint32_t> counts;
      table.count_uncut_columns(counts);
      counts.resize(model().bins->n_features());
      reply.sums.insert(reply.sums.end(), counts.begin(), counts.end());
      return;
    }
    case RequestKind::set_layout: {
      CodeLayout chosen(*model().bins);
      chosen.add(request.get_all<std::vector<std::uint32_t>>());
      shard().rows.exchange_layout(chosen);
      return;
    }
    case RequestKind::count_cells: {
      WipedVector<std::uint32_t> counts = GrowingCells::count_rows(model().shards);
      counts.resize(model().layout().histogram_size());
      reply.sums.insert(reply.sums.end(), counts.begin(), counts.end());
      return;
    }
    case RequestKind::check_tree:
      return check_tree(request, reply);
    case RequestKind::held_codes: {
      const auto feature = request.get<std::uint32_t>();
      std::vector<std::uint64_t> held((*model().bins)[feature].n_codes());
      for (Slot row = 0; row < table.size(); ++row) held[table.code(row, feature)] = 1;
      reply.sums.insert(reply.sums.end(), held.begin(), held.end());
      return;
    }
    case RequestKind::fetch: {
      const auto n = static_cast<std::uint64_t>(table.size());
      const auto begin = std::min(request.get<std::uint64_t>(), n);
      const auto end = std::max(begin, std::min(request.get<std::uint64_t>(), n));
      std::vector<Slot> slots(static_cast<std::size_t>(end - begin));
      std::iota(slots.begin(), slots.end(), static_cast<Slot>(begin));
      write_fetched(rows, copy_rows(shard(), model().loss.records_wide(), slots));
      return;
    }
    case RequestKind::take: {
      const FetchedRows taken = read_fetched(request, model().layout());
      append_rows(shard(), taken, own_rows(taken.rows));
      return;
    }
    default:  // ids
      rows.put_all(table.ids);
  }
}

void ShardServer::check_tree(Reader& request, Reply& reply) {
  const auto t = static_cast<std::size_t>(request.get<std::uint64_t>());
  std::vector<Totals> totals(static_cast<std::size_t>(request.get<std::uint64_t>()));
  const Tree& tree = model().nodes.tree(t);
  const LossKind kind = model().loss.kind;
  const RecordedGradients recorded = shard().recorded_in(t, kind);
  std::uint64_t n_misplaced = 0;
  for (Slot row = 0; row < shard().size(); ++row) {
    const std::size_t leaf = shard().trees[t].leaf_ids[row];
    const NodeIndex reached =
        tree.route([&](std::uint32_t column) { return shard().rows.code(row, column); });
    if (leaf >= totals.size() || leaf >= tree.leaves.size() || reached != tree.leaves[leaf]) {
      ++n_misplaced;
    } else if (model().params.in_subsample(t, shard().rows.ids[row])) {
      totals[leaf] += recorded.of(row);
    }
  }
  for (const Totals& of_leaf : totals) put_totals(reply.sums, of_leaf);
  put_wide(reply.sums, shard().squares_in(t, kind));
  reply.sums.push_back(n_misplaced);
}

// --- growing -------------------------------------------------------------------------------------

template <class Sums>
void ShardServer::fulfil_growing(RequestKind kind, Reader& request, Reply& reply) {
  Growing<Sums>& growing = work_->growing<Sums>();
  const auto tree_number = [&] { return static_cast<std::size_t>(request.get<std::uint64_t>()); };
  const auto growth = [&]() -> typename Growing<Sums>::Growth& {
    return growing.open(request.get<std::uint32_t>(), model(), n_threads_);
  };
  switch (kind) {
    case RequestKind::begin_training: {
      WipedVector<std::uint32_t> rows_in_cells;
      if (request.get<std::uint32_t>() != 0)
        rows_in_cells = request.get_all<WipedVector<std::uint32_t>>();
      growing.cells.emplace(GrowingCells::of_rows(model().shards, rows_in_cells));
      model().nodes = {};
      work_->boosting.emplace(model(), n_threads_);
      return;
    }
    case RequestKind::record: {
      const std::size_t first = tree_number();
      model().nodes.resize(first + static_cast<std::size_t>(model().trees_per_iteration()));
      work_->boosting->record(first);
      return;
    }
    case RequestKind::start_tree: {
      auto& started = growth();
      const std::size_t t = tree_number();
      work_->boosting->start(t, started.rows, n_threads_);
      started.squares = work_->boosting->squares(t);
      started.n_rows = started.rows.rows_of(0, 0).size();
      started.before = {};
      return;
    }
    case RequestKind::start_node: {
      auto& started = growth();
      const std::size_t t = tree_number();
      const auto leaves = request.get_all<std::vector<std::int32_t>>();
      started.before = {};
      if (request.get<std::uint32_t>() != 0) {
        started.before.resize(model().layout().histogram_size());
        started.before.fill(Sums(Totals{}));
      }
      if (!growing.regrowing) {
        growing.regrowing =
            std::make_unique<RegrowingRows<Sums>>(model(), *work_->fresh, n_threads_);
      }
      const auto found = growing.regrowing->start(t, growing.regrowing->find(t, leaves),
                                                  started.rows, started.before);
      started.squares = found.more_squares;
      started.n_rows = found.n_rows;
      return;
    }
    case RequestKind::split: {
      auto& of_node = growth();
      const auto split = request.get<NodeSplit>();
      of_node.rows.split(split.parent, split.split, split.left, split.right);
      return;
    }
    case RequestKind::count: {
      auto& of_nodes = growth();
      Histogram<Sums> histogram(growing.cells->active().size());
      for (const NodeIndex node : request.get_all<std::vector<NodeIndex>>()) {
        of_nodes.rows.count(node, histogram);
        put_histogram(reply.sums, histogram);
      }
      return;
    }
    case RequestKind::count_root: {
      auto& of_root = growth();
      Histogram<Sums> histogram(growing.cells->active().size());
      of_root.rows.count_root(histogram);
      put_histogram(reply.sums, histogram);
      put_totals(reply.sums, of_root.rows.total());
      put_wide(reply.sums, of_root.squares);
      reply.sums.push_back(of_root.n_rows);
      put_histogram(reply.sums, of_root.before);
      return;
    }
    case RequestKind::end_tree: {
      auto& grown = growth();
      const std::size_t t = tree_number();
      const auto nodes = request.get_all<std::vector<NodeIndex>>();
      model().nodes[t].tree = read_tree(request);
      work_->boosting->place(t, grown.rows, nodes, n_threads_);
      if (!model().params.updatable) shard().trees[t] = {};
      return;
    }
    default: {  // end_node
      auto& grown = growth();
      const std::size_t t = tree_number();
      const auto nodes = request.get_all<std::vector<NodeIndex>>();
      const auto leaf_ids = request.get_all<std::vector<std::int32_t>>();
      growing.regrowing->place(t, grown.rows, nodes, leaf_ids);
    }
  }
}

// --- updates -------------------------------------------------------------------------------------

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

void ShardServer::commit() {
  if (next_) {
    state_ = std::move(*next_);
    next_.reset();
  } else if (work_->is_update) {
    shard().commit(shard().moves_to_commit());
    if (work_->layout_at_commit) {
      CodeLayout layout(*state_.bins);
      layout.add(*work_->layout_at_commit);
      shard().rows.exchange_layout(layout);
    }
  }
  work_ = std::make_unique<Work>();
}

void ShardServer::undo() {
  if (work_->is_refresh)
    throw std::runtime_error("a refresh is undone by restoring the shard from its files");
  next_.reset();
  for (auto& [t, tree] : work_->replaced) state_.nodes[t].tree = std::move(tree);
  for (const LeafValue& before : work_->replaced_values | std::views::reverse)
    state_.nodes[before.tree].tree[before.node].value = before.value;
  if (work_->base_scores) state_.base_scores = std::move(*work_->base_scores);
  if (work_->packed_before) packed_ = *work_->packed_before;
  state_.shards[0].undo();
  work_ = std::make_unique<Work>();
}

#define GRAFTBOOST_FOR_TABLE(Table) template void ShardServer::append(const Sample<Table>&);
GRAFTBOOST_FOR_TABLE(DenseTable<float>)
GRAFTBOOST_FOR_TABLE(DenseTable<double>)
GRAFTBOOST_FOR_TABLE(SparseTable<float>)
GRAFTBOOST_FOR_TABLE(SparseTable<double>)

}  // namespace graftboost
