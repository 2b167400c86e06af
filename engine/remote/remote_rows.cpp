#include "remote/remote_rows.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <ranges>
#include <stdexcept>

#include "remote/encoding.hpp"

namespace graftboost {
namespace {

std::vector<Slot> all_slots(std::size_t n) {
  std::vector<Slot> slots(n);
  std::iota(slots.begin(), slots.end(), Slot{0});
  return slots;
}

}  // namespace

// --- facts ---------------------------------------------------------------------------------------

void RemoteRows::read_facts() { set_facts(rounds_.ask(RequestKind::facts, {}, 0)); }

void RemoteRows::set_facts(const Answer& answer) {
  RowFacts all;
  for (const auto& of_shard : answer.rows) {
    const auto facts = Reader(of_shard).get<RowFacts>();
    all.n_rows += facts.n_rows;
    all.n_in_histograms += facts.n_in_histograms;
    all.largest_weight = std::max(all.largest_weight, facts.largest_weight);
    all.is_weighted |= facts.is_weighted;
    all.has_sparse |= facts.has_sparse;
  }
  facts_ = all;
  has_facts_ = true;
}

std::pair<double, double> RemoteRows::target_range() {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const auto& of_shard : rounds_.ask(RequestKind::target_range, {}, 0).rows) {
    Reader reader(of_shard);
    least = std::min(least, reader.get<double>());
    most = std::max(most, reader.get<double>());
  }
  return {least, most};
}

void RemoteRows::add_column_counts(WipedVector<std::uint32_t>& counts, std::size_t n_columns) {
  counts.resize(n_columns);
  const Answer answer = rounds_.ask(RequestKind::count_columns, {}, counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i)
    counts[i] += static_cast<std::uint32_t>(answer.sums[i]);
}

void RemoteRows::add_cell_counts(WipedVector<std::uint32_t>& counts) {
  const Answer answer = rounds_.ask(RequestKind::count_cells, {}, counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i)
    counts[i] += static_cast<std::uint32_t>(answer.sums[i]);
}

void RemoteRows::set_layout(std::span<const std::uint32_t> added_columns) {
  rounds_.tell(RequestKind::set_layout, Writer().put_all(added_columns));
}

void RemoteRows::put_on_grids(const Loss& loss, TargetSums& sums) {
  Writer request;
  write_loss(request, loss);
  add_target_sums(rounds_.ask(RequestKind::put_on_grids, request, sums.classes.size() + 3), sums);
  read_facts();
}

double RemoteRows::Weights::largest() const {
  double largest = 0;
  const Writer request = Writer().put(std::uint32_t{0});
  for (const auto& of_shard : rounds_.ask(RequestKind::weight_facts, request, 0).rows)
    largest = std::max(largest, Reader(of_shard).get<double>());
  return largest;
}

WeightStatistics::Sum RemoteRows::Weights::sum(double top) const {
  const Writer request = Writer().put(std::uint32_t{1}).put(top);
  const Answer answer = rounds_.ask(RequestKind::weight_facts, request, 3);
  return {static_cast<unsigned __int128>(get_wide(answer.sums.data())), answer.sums[2]};
}

std::vector<std::uint64_t> RemoteRows::Weights::count(const Steps& steps) const {
  const Writer request = Writer()
                             .put(std::uint32_t{2})
                             .put(steps.top)
                             .put(steps.bits)
                             .put(steps.from)
                             .put(steps.shift);
  const Answer answer = rounds_.ask(RequestKind::weight_facts, request, n_counts);
  return {answer.sums.begin(), answer.sums.end()};
}

// --- training ------------------------------------------------------------------------------------

void RemoteRows::begin_training(const Loss& loss, const TrainingParams& params, bool packed,
                                std::span<const double> base_scores,
                                const WipedVector<std::uint32_t>* rows_in_cells) {
  Writer request;
  write_loss(request, loss);
  write_params(request, params);
  request.put(static_cast<std::uint32_t>(packed)).put_all(base_scores);
  request.put(static_cast<std::uint32_t>(rows_in_cells != nullptr));
  if (rows_in_cells != nullptr) request.put_all(*rows_in_cells);
  rounds_.tell(RequestKind::begin_training, request);
  sent_.clear();
}

void RemoteRows::record(std::size_t first_tree) {
  rounds_.tell(RequestKind::record, Writer().put(std::uint64_t{first_tree}));
}

void RemoteRows::end_training(std::size_t n_trees) {
  rounds_.tell(RequestKind::end_training, Writer().put(std::uint64_t{n_trees}));
  sent_.resize(n_trees);
}

// --- growing -------------------------------------------------------------------------------------

void RemoteRows::start_tree(std::uint32_t growth, std::size_t t) {
  rounds_.tell(RequestKind::start_tree, Writer().put(growth).put(std::uint64_t{t}));
}

void RemoteRows::split(std::uint32_t growth, const NodeSplit& split) {
  rounds_.tell(RequestKind::split, Writer().put(growth).put(split));
}

template <class Sums>
RemoteRows::Root RemoteRows::count_root(std::uint32_t growth, Histogram<Sums>& histogram,
                                        Histogram<Sums>* before) {
  const std::size_t n_cells = histogram.size() * words_per_cell<Sums>;
  const std::size_t n_before = before == nullptr ? 0 : before->size() * words_per_cell<Sums>;
  const Answer answer =
      rounds_.ask(RequestKind::count_root, Writer().put(growth), n_cells + 6 + n_before);
  add_histogram(answer.sums.first(n_cells), histogram);
  const std::uint64_t* rest = answer.sums.data() + n_cells;
  if (before != nullptr) add_histogram(answer.sums.subspan(n_cells + 6), *before);
  return {get_totals(rest), get_wide(rest + 3), rest[5]};
}

template <class Sums>
void RemoteRows::count(std::uint32_t growth, std::span<const NodeIndex> nodes,
                       std::span<Histogram<Sums>* const> histograms) {
  ask_histograms(RequestKind::count, Writer().put(growth).put_all(nodes), histograms);
}

// Adds the histograms that a request is answered with.
template <class Sums>
void RemoteRows::ask_histograms(RequestKind kind, const Writer& request,
                                std::span<Histogram<Sums>* const> histograms) {
  std::size_t n_cells = 0;
  for (const Histogram<Sums>* histogram : histograms)
    n_cells += histogram->size() * words_per_cell<Sums>;
  const Answer answer = rounds_.ask(kind, request, n_cells);
  std::size_t at = 0;
  for (Histogram<Sums>* histogram : histograms) {
    const std::size_t n = histogram->size() * words_per_cell<Sums>;
    add_histogram(answer.sums.subspan(at, n), *histogram);
    at += n;
  }
}

void RemoteRows::end_tree(std::uint32_t growth, std::size_t t, const Tree& tree,
                          std::span<const NodeIndex> nodes) {
  Writer request;
  request.put(growth).put(std::uint64_t{t}).put_all(nodes);
  write_tree(request, tree);
  rounds_.tell(RequestKind::end_tree, request);
  const std::lock_guard lock(sent_lock_);
  if (sent_.size() <= t) sent_.resize(t + 1);
  sent_[t] = tree;
}

// --- updates -------------------------------------------------------------------------------------

RemoteRows::Found RemoteRows::find(std::span<const RowId> removed, std::span<const RowId> added,
                                   const CodeLayout& layout) {
  Found found{std::vector<std::uint8_t>(removed.size()), std::vector<std::uint8_t>(added.size())};
  removed_ = {};
  removed_.rows.layout = layout;
  added_ = {};
  added_.layout = layout;
  begin();
  const Answer answer = rounds_.ask(RequestKind::find, Writer().put_all(removed).put_all(added), 0);
  std::vector<FetchedRows> parts;
  std::size_t n = 0, n_trees = 0;
  for (const auto& of_shard : answer.rows) {
    Reader reader(of_shard);
    for (const std::uint32_t i : reader.get_all<std::vector<std::uint32_t>>())
      found.is_removed_held.at(i) = 1;
    for (const std::uint32_t i : reader.get_all<std::vector<std::uint32_t>>())
      found.is_added_held.at(i) = 1;
    n_trees = static_cast<std::size_t>(reader.get<std::uint64_t>());
    n += parts.emplace_back(read_fetched(reader, layout)).rows.size();
  }
  removed_.recorded = GradientArray(!parts.empty() && parts[0].recorded.is_wide, n_trees * n);
  removed_.leaves.resize(n_trees * n);
  std::size_t first = 0;
  for (const FetchedRows& part : parts) {
    const std::size_t size = part.rows.size();
    removed_.rows.append_rows(part.rows, all_slots(size));
    for (std::size_t t = 0; t < n_trees; ++t) {
      for (std::size_t i = 0; i < size; ++i) {
        removed_.recorded.set(t * n + first + i, part.recorded[t * size + i]);
        removed_.leaves[t * n + first + i] = part.leaves[t * size + i];
      }
    }
    first += size;
  }
  return found;
}

void RemoteRows::add(RowTable rows) {
  Writer request;
  write_rows(request, rows);
  rounds_.tell(RequestKind::add, request);
  facts_.n_rows += rows.size();
  facts_.n_in_histograms += rows.n_in_histograms();
  for (const Weight weight : rows.weight)
    facts_.largest_weight = std::max<std::int64_t>(facts_.largest_weight, weight);
  facts_.has_sparse |= rows.has_sparse();
  added_ = std::move(rows);
}

void RemoteRows::set_base_scores(std::span<const double> base_scores) {
  rounds_.tell(RequestKind::base_scores, Writer().put_all(base_scores));
}

void RemoteRows::count_rare(std::span<const std::uint32_t> columns,
                            std::span<std::int64_t> counts) {
  const Answer answer =
      rounds_.ask(RequestKind::rare_columns, Writer().put_all(columns), columns.size());
  for (std::size_t i = 0; i < counts.size(); ++i)
    counts[i] += static_cast<std::int64_t>(answer.sums[i]);
}

std::vector<RowsWithNewCells> RemoteRows::lay_out(std::span<const std::uint32_t> columns,
                                                  const CodeLayout& layout) {
  for (RowTable* rows : {&removed_.rows, &added_}) {
    CodeLayout next = layout;
    rows->exchange_layout(next);
  }
  std::vector<RowsWithNewCells> found;
  for (const auto& of_shard :
       rounds_.ask(RequestKind::lay_out, Writer().put_all(columns), 0).rows) {
    Reader reader(of_shard);
    RowsWithNewCells& part = found.emplace_back();
    part.row = reader.get_all<WipedVector<std::uint32_t>>();
    part.cell = reader.get_all<WipedVector<std::uint32_t>>();
    part.totals = reader.get_all<WipedVector<Totals>>();
    part.leaves = reader.get_all<WipedVector<std::uint16_t>>();
    part.n_rows = reader.get<std::uint64_t>();
  }
  read_facts();
  return found;
}

void RemoteRows::mark_used_columns(std::vector<bool>& used) {
  const Answer answer = rounds_.ask(RequestKind::used_columns, {}, used.size());
  for (std::size_t i = 0; i < used.size(); ++i)
    if (answer.sums[i] != 0) used[i] = true;
}

void RemoteRows::place(std::size_t t, std::span<const std::uint16_t> leaves,
                       std::span<const Gradient> recorded) {
  rounds_.tell(RequestKind::place,
               Writer().put(std::uint64_t{t}).put_all(leaves).put_all(recorded));
}

template <class Sums>
void RemoteRows::count_nodes(std::size_t t, std::span<const std::vector<std::int32_t>> leaves,
                             std::span<Histogram<Sums>* const> histograms) {
  Writer request;
  request.put(std::uint64_t{t});
  write_leaves(request, leaves);
  ask_histograms(RequestKind::count_nodes, request, histograms);
}

template <class Sums>
void RemoteRows::recount(std::size_t t, std::span<const NodeIndex> nodes,
                         std::span<Histogram<Sums>* const> histograms) {
  Writer request;
  request.put(std::uint64_t{t}).put(static_cast<std::uint32_t>(words_per_cell<Sums>));
  request.put_all(nodes);
  ask_histograms(RequestKind::recount, request, histograms);
}

std::vector<FetchedMoves> RemoteRows::shift(std::size_t t, NodeIndex node, const Split& before,
                                            const Split& after, const CodeLayout& layout) {
  const Writer request = Writer().put(std::uint64_t{t}).put(node).put(before).put(after);
  {
    const std::lock_guard lock(sent_lock_);
    if (is_begun_) replaced_.emplace(t, sent_[t]);
    sent_[t][node].split = after;
  }
  std::vector<FetchedMoves> moves;
  for (const auto& of_shard : rounds_.ask(RequestKind::shift, request, 0).rows) {
    Reader reader(of_shard);
    FetchedMoves& part = moves.emplace_back();
    part.rows = read_rows(reader, layout);
    part.from = reader.get_all<WipedVector<std::uint16_t>>();
    part.to = reader.get_all<WipedVector<std::uint16_t>>();
    part.totals = reader.get_all<WipedVector<Totals>>();
  }
  return moves;
}

void RemoteRows::merge_leaves(std::size_t t, std::int32_t from, std::int32_t to) {
  rounds_.tell(RequestKind::merge_leaves, Writer().put(std::uint64_t{t}).put(from).put(to));
}

void RemoteRows::send_trees(std::size_t t_begin, std::size_t t_end,
                            const std::function<const Tree&(std::size_t)>& tree) {
  Writer trees;
  std::vector<LeafValue> values;
  for (std::size_t t = t_begin; t < t_end; ++t) {
    if (!have_same_structure(sent_[t], tree(t))) {
      trees.put(std::uint64_t{t});
      write_tree(trees, tree(t));
      if (is_begun_) replaced_.emplace(t, std::move(sent_[t]));
      sent_[t] = tree(t);
      continue;
    }
    for (NodeIndex i = 0; i < static_cast<NodeIndex>(sent_[t].nodes.size()); ++i) {
      Node& sent = sent_[t][i];
      const double value = tree(t)[i].value;
      if (!sent.is_leaf() || sent.value == value) continue;
      const auto number = static_cast<std::uint32_t>(t);
      values.push_back({number, i, value});
      if (is_begun_ && !replaced_.contains(t)) replaced_values_.push_back({number, i, sent.value});
      sent.value = value;
    }
  }
  if (!trees.empty()) rounds_.tell(RequestKind::set_trees, trees);
  if (!values.empty()) rounds_.tell(RequestKind::set_values, Writer().put_all(values));
}

void RemoteRows::begin_regrowing(std::size_t first_tree, std::size_t n_rows,
                                 std::size_t n_rows_left) {
  rounds_.tell(RequestKind::begin_regrowing, Writer()
                                                 .put(std::uint64_t{first_tree})
                                                 .put(std::uint64_t{n_rows})
                                                 .put(std::uint64_t{n_rows_left})
                                                 .put(facts_.n_rows));
}

void RemoteRows::start_node(std::uint32_t growth, std::size_t t,
                            std::span<const std::int32_t> leaves, bool wants_before) {
  rounds_.tell(RequestKind::start_node, Writer()
                                            .put(growth)
                                            .put(std::uint64_t{t})
                                            .put_all(leaves)
                                            .put(static_cast<std::uint32_t>(wants_before)));
}

void RemoteRows::end_node(std::uint32_t growth, std::size_t t, std::span<const NodeIndex> nodes,
                          std::span<const std::int32_t> leaf_ids) {
  rounds_.tell(RequestKind::end_node,
               Writer().put(growth).put(std::uint64_t{t}).put_all(nodes).put_all(leaf_ids));
}

std::vector<RemoteRows::LeafTotals> RemoteRows::refresh(std::size_t first_tree, std::size_t k_trees,
                                                        std::size_t n_leaf_ids) {
  const Writer request = Writer().put(std::uint64_t{first_tree}).put(std::uint64_t{n_leaf_ids});
  const Answer answer = rounds_.ask(RequestKind::refresh, request, k_trees * (3 * n_leaf_ids + 2));
  std::vector<LeafTotals> found(k_trees);
  const std::uint64_t* at = answer.sums.data();
  for (LeafTotals& of_tree : found) {
    for (std::size_t leaf = 0; leaf < n_leaf_ids; ++leaf, at += 3)
      of_tree.of_leaves.push_back(get_totals(at));
    of_tree.squares = get_wide(at);
    at += 2;
  }
  return found;
}

void RemoteRows::refit(std::span<const std::int32_t> relabel, LossKind kind, int n_classes) {
  begin();
  before_refit_ = sent_;
  rounds_.tell(RequestKind::refit, Writer().put_all(relabel).put(kind).put(n_classes));
}

void RemoteRows::prepare(const Bytes& node_half) { rounds_.prepare(node_half); }

void RemoteRows::set_layout_at_commit(std::span<const std::uint32_t> added_columns) {
  rounds_.tell(RequestKind::layout_at_commit, Writer().put_all(added_columns));
}

void RemoteRows::commit() noexcept {
  // The facts of a refit are of the rows after it.
  if (!before_refit_) facts_.n_rows -= removed_.rows.size();
  end(RequestKind::commit, Phase::commit);
}

void RemoteRows::undo() noexcept {
  rounds_.forget();
  if (!is_begun_) return;
  if (before_refit_) sent_ = std::move(*before_refit_);
  for (auto& [t, tree] : replaced_) sent_[t] = std::move(tree);
  for (const LeafValue& before : replaced_values_ | std::views::reverse)
    sent_[before.tree][before.node].value = before.value;
  facts_.n_rows -= added_.size();
  end(RequestKind::undo, Phase::undo);
}

void RemoteRows::end(RequestKind kind, Phase phase) noexcept {
  is_begun_ = false;
  rounds_.end_operation();
  removed_ = {};
  added_ = {};
  replaced_.clear();
  replaced_values_.clear();
  before_refit_.reset();
  has_facts_ = false;
  try {
    set_facts(rounds_.ask(kind, {}, 0, phase));
  } catch (...) {
    // The next operation reads the facts.
  }
}

// --- reading -------------------------------------------------------------------------------------

void RemoteRows::add_target_sums(TargetSums& sums) {
  const std::size_t n = sums.classes.size();
  add_target_sums(rounds_.ask(RequestKind::target_sums, {}, n + 3), sums);
}

void RemoteRows::add_target_sums(const Answer& answer, TargetSums& sums) {
  const std::size_t n = sums.classes.size();
  for (std::size_t k = 0; k < n; ++k) sums.classes[k] += static_cast<std::int64_t>(answer.sums[k]);
  sums.weight += static_cast<std::int64_t>(answer.sums[n]);
  sums.sum += get_wide(answer.sums.data() + n + 1);
}

RemoteRows::CheckedTree RemoteRows::check_tree(std::size_t t, std::size_t n_leaf_ids) {
  const Writer request = Writer().put(std::uint64_t{t}).put(std::uint64_t{n_leaf_ids});
  const Answer answer = rounds_.ask(RequestKind::check_tree, request, 3 * n_leaf_ids + 3);
  CheckedTree checked;
  const std::uint64_t* at = answer.sums.data();
  for (std::size_t leaf = 0; leaf < n_leaf_ids; ++leaf, at += 3)
    checked.of_leaves.push_back(get_totals(at));
  checked.squares = get_wide(at);
  checked.n_misplaced = at[2];
  return checked;
}

std::vector<RowId> RemoteRows::ids() {
  std::vector<RowId> all;
  for (const auto& of_shard : rounds_.ask(RequestKind::ids, {}, 0).rows) {
    const auto ids = Reader(of_shard).get_all<std::vector<RowId>>();
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

void RemoteRows::mark_held_codes(std::uint32_t feature, std::span<std::uint8_t> held) {
  const Answer answer = rounds_.ask(RequestKind::held_codes, Writer().put(feature), held.size());
  for (std::size_t code = 0; code < held.size(); ++code)
    if (answer.sums[code] != 0) held[code] = 1;
}

std::vector<FetchedRows> RemoteRows::fetch(std::size_t begin, std::size_t end,
                                           const CodeLayout& layout) {
  std::vector<FetchedRows> fetched;
  const Writer request = Writer().put(std::uint64_t{begin}).put(std::uint64_t{end});
  for (const auto& of_shard : rounds_.ask(RequestKind::fetch, request, 0).rows) {
    Reader reader(of_shard);
    fetched.push_back(read_fetched(reader, layout));
  }
  return fetched;
}

void RemoteRows::give(const FetchedRows& rows) {
  Writer request;
  write_fetched(request, rows);
  rounds_.ask(RequestKind::take, request, 0);
}

#define GRAFTBOOST_FOR_SUMS(Sums)                                                                \
  template RemoteRows::Root RemoteRows::count_root(std::uint32_t, Histogram<Sums>&,              \
                                                   Histogram<Sums>*);                            \
  template void RemoteRows::count(std::uint32_t, std::span<const NodeIndex>,                     \
                                  std::span<Histogram<Sums>* const>);                            \
  template void RemoteRows::count_nodes(std::size_t, std::span<const std::vector<std::int32_t>>, \
                                        std::span<Histogram<Sums>* const>);                      \
  template void RemoteRows::recount(std::size_t, std::span<const NodeIndex>,                     \
                                    std::span<Histogram<Sums>* const>);
GRAFTBOOST_FOR_SUMS(PackedSums)
GRAFTBOOST_FOR_SUMS(WideSums)

}  // namespace graftboost
