#include "remote/shard_server.hpp"

#include <ranges>
#include <stdexcept>
#include <utility>

#include "remote/encoding.hpp"
#include "remote/shard_work.hpp"

namespace graftboost {

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

// --- the end of an operation ----------------------------------------------------------------------

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
