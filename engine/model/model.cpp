#include "model/model.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "core/stack.hpp"
#include "data/table.hpp"
#include "io/validate_state.hpp"
#include "model/state_check.hpp"
#include "predict/scorer.hpp"
#include "remote/node_half.hpp"
#include "train/refit.hpp"
#include "update/refresh.hpp"
#include "update/restore_histograms.hpp"

namespace graftboost {
namespace {

void check_targets(double least, double most) {
  if (Loss{}.set_scale(least, most)) return;
  throw std::invalid_argument(
      "y: the range of its values is too small to represent; multiply it by a large number first");
}

ModelState state_to_fit(std::shared_ptr<const BinMap> bins, const FitParams& params) {
  ModelState state;
  state.bins = std::move(bins);
  state.params = params.training;
  state.histogram_memory = params.histogram_memory;
  state.loss.kind = params.loss;
  state.loss.n_classes = params.n_classes;
  return state;
}

template <class Table>
Validation encode_validation(const ModelState& model, const Sample<Table>& sample, int n_threads) {
  Validation validation;
  validation.rows.layout = model.layout();
  validation.rows.append_codes(*model.bins, sample.x, n_threads);
  for (const double y : sample.y) validation.rows.target.push_back(model.loss.target_on_grid(y));
  // Only relative weights matter; scaled like this they cannot overflow.
  double largest = 0;
  for (const double weight : sample.weight) largest = std::max(largest, weight);
  for (const double weight : sample.weight)
    validation.weight.push_back(weight / power_of_two_below(largest));
  for (const double base : model.base_scores) validation.scores.emplace_back(sample.x.rows, base);
  return validation;
}

}  // namespace

// What predictions need, as of one moment.
struct Model::Snapshot {
  Scorer scorer;
  std::vector<double> base_scores;
  Loss loss;
};

Model::Model(ModelState state)
    : state_(std::move(state)), bins_(state_.bins), updatable_(state_.params.updatable) {}

Model::~Model() = default;

template <class Table>
std::unique_ptr<Model> Model::fit(std::shared_ptr<const BinMap> bins, const Sample<Table>& sample,
                                  const Sample<Table>* validation, const FitParams& params,
                                  const OnIteration& on_iteration, int n_threads) {
  check_sample(sample, *bins, params.n_classes);
  ModelState state = state_to_fit(std::move(bins), params);
  state.shards = Shards(params.n_shards);
  state.set_layout(CodeLayout(*state.bins));
  state.shards.append(*state.bins, sample, params.loss, n_threads);
  if (params.loss == LossKind::squared) {
    const auto [least, most] = std::minmax_element(sample.y.begin(), sample.y.end());
    check_targets(*least, *most);
  }
  return fit(std::move(state), validation, params, on_iteration, n_threads);
}

template <class Table>
std::unique_ptr<Model> Model::fit(std::shared_ptr<const BinMap> bins,
                                  std::shared_ptr<RemoteRows> rows, const Sample<Table>* validation,
                                  const FitParams& params, const OnIteration& on_iteration,
                                  int n_threads) {
  ModelState state = state_to_fit(std::move(bins), params);
  state.set_layout(CodeLayout(*state.bins));
  state.elsewhere = std::move(rows);
  state.elsewhere->begin();
  state.elsewhere->read_facts();
  if (params.loss == LossKind::squared) {
    const auto [least, most] = state.elsewhere->target_range();
    check_targets(least, most);
  }
  return fit(std::move(state), validation, params, on_iteration, n_threads);
}

// The state has its rows.
template <class Table>
std::unique_ptr<Model> Model::fit(ModelState state, const Sample<Table>* validation,
                                  const FitParams& params, const OnIteration& on_iteration,
                                  int n_threads) {
  if (validation != nullptr) check_sample(*validation, *state.bins, params.n_classes);
  state.set_scales();
  state.put_on_grids();
  state.base_scores = state.loss.base_scores(state.target_sums);
  Validation held_out;
  if (validation != nullptr) held_out = encode_validation(state, *validation, n_threads);
  train(state, validation == nullptr ? nullptr : &held_out, params.stopping, on_iteration,
        n_threads);
  if (state.elsewhere) {
    state.elsewhere->prepare(write_node_half(state));
    state.elsewhere->commit();
  }
  if (!params.training.updatable) {
    const CodeLayout layout = state.layout();
    state.shards = Shards();
    state.elsewhere.reset();
    state.set_layout(layout);
  }
  return std::make_unique<Model>(std::move(state));
}

void Model::attach(std::shared_ptr<RemoteRows> rows) {
  const Exclusive lock(*this);
  if (state_.shards.n_rows() != 0) throw std::invalid_argument("the model holds rows itself");
  rows->read_facts();
  rows->know_trees(state_.nodes);
  state_.elsewhere = std::move(rows);
}

namespace {

// So many rows of each shard travel in a message.
constexpr std::size_t rows_per_message = 50'000;

// Passes the rows of all shards elsewhere to `take`, some at a time.
void fetch_rows(const ModelState& state, const std::function<void(const FetchedRows&)>& take) {
  for (std::size_t begin = 0; state.elsewhere; begin += rows_per_message) {
    std::size_t n = 0;
    for (const FetchedRows& part :
         state.elsewhere->fetch(begin, begin + rows_per_message, state.layout())) {
      if (part.rows.size() != 0) take(part);
      n += part.rows.size();
    }
    if (n == 0) return;
  }
}

}  // namespace

std::unique_ptr<Model> Model::gather() const {
  return read_verified([](const ModelState& state) {
    ModelState one = state;
    one.elsewhere.reset();
    one.shards[0].index = {};  // built when rows are first looked for
    fetch_rows(state, [&](const FetchedRows& part) {
      std::vector<Slot> all(part.rows.size());
      std::iota(all.begin(), all.end(), Slot{0});
      append_rows(one.shards[0], part, all);
    });
    return std::make_unique<Model>(std::move(one));
  });
}

void Model::scatter(RemoteRows& to) const {
  read_verified([&](const ModelState& state) {
    for (const RowShard& shard : state.shards) {
      for (std::size_t begin = 0; begin < shard.size(); begin += rows_per_message) {
        std::vector<Slot> slots(std::min(rows_per_message, shard.size() - begin));
        std::iota(slots.begin(), slots.end(), static_cast<Slot>(begin));
        to.give(copy_rows(shard, state.loss.records_wide(), slots));
      }
    }
    fetch_rows(state, [&](const FetchedRows& part) { to.give(part); });
  });
}

std::unique_ptr<Model> Model::copy() const {
  return read_verified([](const ModelState& state) {
    if (state.elsewhere)
      throw std::invalid_argument("a model whose rows shards hold cannot be copied");
    return std::make_unique<Model>(ModelState(state));
  });
}

// --- changes -------------------------------------------------------------------------------------

template <class Change>
auto Model::change(Change&& change) {
  const StackWiper at_the_end;
  ensure_verified();
  const Exclusive lock(*this);
  const auto publish = [this] {
    ++n_changes_;
    std::lock_guard snapshots(snapshot_lock_);
    snapshot_.reset();
  };
  if constexpr (std::is_void_v<decltype(change(state_))>) {
    change(state_);
    publish();
  } else {
    auto result = change(state_);
    publish();
    return result;
  }
}

void Model::require_updatable() const {
  if (!updatable_) throw std::invalid_argument("the model is not updatable");
}

template <class Table>
UpdateCounts Model::update(const UpdateRequest<Table>& request, const UpdateRule& rule,
                           int n_threads) {
  require_updatable();
  return change(
      [&](ModelState& state) { return graftboost::update(state, request, rule, n_threads); });
}

MemorySurvey Model::memory_of(std::span<const RowId> ids, const std::string& argument,
                              const UpdateRule& rule, int n_threads) {
  require_updatable();
  ensure_verified();
  const Exclusive lock(*this);
  return survey_removal(state_, ids, argument, rule, n_threads);
}

PendingSurvey Model::pending(const UpdateRule& rule, int n_threads) {
  require_updatable();
  ensure_verified();
  const Exclusive lock(*this);
  return survey_pending(state_, rule, n_threads);
}

UpdateCounts Model::regrow(const UpdateRule& rule, double most_work, int n_threads) {
  require_updatable();
  return change(
      [&](ModelState& state) { return graftboost::regrow(state, rule, most_work, n_threads); });
}

void Model::refit(int n_threads) {
  require_updatable();
  change([&](ModelState& state) { graftboost::refit(state, n_threads); });
}

void Model::refresh(int n_threads) {
  require_updatable();
  change([&](ModelState& state) { graftboost::refresh(state, n_threads); });
}

std::int64_t Model::n_changes() const {
  const Exclusive lock(*this);
  return n_changes_;
}

void Model::set_histogram_memory(std::size_t bytes) {
  const Exclusive lock(*this);
  state_.histogram_memory = bytes;
}

// --- predictions ---------------------------------------------------------------------------------

// If there is none, a change may be under way, which has to end before the next snapshot is made.
std::shared_ptr<const Model::Snapshot> Model::snapshot() const {
  {
    const ForkBarrier::AtWork at_work;
    std::lock_guard lock(snapshot_lock_);
    if (snapshot_) return snapshot_;
  }
  const Exclusive no_change(*this);
  std::lock_guard lock(snapshot_lock_);
  if (!snapshot_) {
    snapshot_ = std::make_shared<const Snapshot>(
        Snapshot{Scorer(*state_.bins, state_.nodes, state_.trees_per_iteration()),
                 state_.base_scores, state_.loss});
  }
  return snapshot_;
}

template <class Table>
Columns<double> Model::scores(const Table& x, int first, int last, int n_threads) const {
  check_columns(x.columns, *bins_);
  const auto now = snapshot();
  const std::vector<double>& base = now->base_scores;
  const std::size_t k_trees = base.size(), n_trees = now->scorer.n_trees();
  const auto tree = [&](int iteration) {
    const std::size_t t = static_cast<std::size_t>(iteration) * k_trees;
    return iteration < 0 ? n_trees : std::min(t, n_trees);
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
Columns<std::int32_t> Model::leaf_ids(const Table& x, int n_threads) const {
  check_columns(x.columns, *bins_);
  const auto now = snapshot();
  const std::size_t n_trees = now->scorer.n_trees();
  Columns<std::int32_t> result{std::vector<std::int32_t>(x.rows * n_trees), n_trees};
  now->scorer.leaf_ids(x, result.values.data(), n_threads);
  return result;
}

// --- reading -------------------------------------------------------------------------------------

std::vector<Node> Model::tree_nodes(std::size_t t) {
  ensure_verified();
  const Exclusive lock(*this);
  if (updatable_) restore_histograms(state_, 1);
  return t < state_.nodes.size() ? state_.nodes.tree(t).nodes : std::vector<Node>{};
}

HeldRows Model::held_rows(std::span<const RowId> ids) {
  ensure_verified();
  const Exclusive lock(*this);
  return graftboost::held_rows(state_, ids);
}

void Model::check_state(int n_threads) const {
  const auto difference =
      read_verified([&](const ModelState& state) { return find_difference(state, n_threads); });
  if (difference)
    throw std::runtime_error("stored sums do not match the training rows: " + *difference);
}

void Model::require_verification(std::function<void()> verify_file) {
  verify_file_ = std::move(verify_file);
  is_unverified_ = true;
}

// By one thread; others wait.
void Model::ensure_verified() const {
  if (!is_unverified_) return;
  std::lock_guard lock(verification_lock_);
  if (!is_unverified_) return;
  const bool all = static_cast<bool>(verify_file_);
  if (all) verify_file_();
  const auto fault =
      read([&](const ModelState& state) { return find_invalid_state(state, all, 2); });
  if (fault) throw std::invalid_argument(*fault);
  verify_file_ = {};  // releases the file, from which rows may be removed
  is_unverified_ = false;
}

#define GRAFTBOOST_FOR_TABLE(Table)                                                               \
  template std::unique_ptr<Model> Model::fit(std::shared_ptr<const BinMap>, const Sample<Table>&, \
                                             const Sample<Table>*, const FitParams&,              \
                                             const OnIteration&, int);                            \
  template std::unique_ptr<Model> Model::fit(std::shared_ptr<const BinMap>,                       \
                                             std::shared_ptr<RemoteRows>, const Sample<Table>*,   \
                                             const FitParams&, const OnIteration&, int);          \
  template UpdateCounts Model::update(const UpdateRequest<Table>&, const UpdateRule&, int);       \
  template Columns<double> Model::scores(const Table&, int, int, int) const;                      \
  template Columns<std::int32_t> Model::leaf_ids(const Table&, int) const;
GRAFTBOOST_FOR_TABLE(DenseTable<float>)
GRAFTBOOST_FOR_TABLE(DenseTable<double>)
GRAFTBOOST_FOR_TABLE(SparseTable<float>)
GRAFTBOOST_FOR_TABLE(SparseTable<double>)

}  // namespace graftboost
