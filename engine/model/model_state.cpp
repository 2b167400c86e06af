#include "model/model_state.hpp"

#include <algorithm>

namespace graftboost {

double ModelState::variance_in(std::size_t t) const {
  const double squares = static_cast<double>(nodes[t].squares) * loss.square_unit();
  const double hessian = static_cast<double>(nodes.tree(t)[0].sums.h) * loss.hessian_unit();
  return squares > 0 && hessian > 0 ? squares / hessian : 1;
}

GainParams ModelState::gain_params() const {
  std::int64_t largest_weight = 1;
  if (loss.weighted) {
    largest_weight = 0;
    for (const RowShard& shard : shards)
      for (const Weight weight : shard.rows.weight)
        largest_weight = std::max<std::int64_t>(largest_weight, weight);
    if (elsewhere) largest_weight = std::max(largest_weight, elsewhere->facts().largest_weight);
  }
  return {loss.gradient_unit(),
          loss.hessian_unit(),
          l2(),
          loss.least_hessian(params.min_hessian),
          loss.least_gain(),
          params.min_samples_leaf,
          loss.largest_of_row() * std::max<std::int64_t>(largest_weight, 1)};
}

double ModelState::cells_per_row() const {
  std::uint64_t n_entries = elsewhere ? elsewhere->facts().n_in_histograms : 0;
  for (const RowShard& shard : shards) n_entries += shard.rows.n_in_histograms();
  const auto plain = static_cast<double>(layout().n_bytes() + layout().n_words());
  return n_entries == 0 ? plain
                        : plain + static_cast<double>(n_entries) / static_cast<double>(n_rows());
}

void ModelState::set_layout(const CodeLayout& layout) {
  for (RowShard& shard : shards) shard.rows.layout = layout;
}

void ModelState::set_scales() {
  if (loss.kind == LossKind::squared) {
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (const RowShard& shard : shards) {
      for (const double y : shard.rows.raw_target)
        least = std::min(least, y), most = std::max(most, y);
    }
    if (elsewhere) {
      const auto [least_there, most_there] = elsewhere->target_range();
      least = std::min(least, least_there), most = std::max(most, most_there);
    }
    // If the range is too small for a scale of its own, the present scale stays.
    loss.set_scale(least, most);
  }
  if (elsewhere) {
    if (elsewhere->facts().is_weighted != 0) loss.set_weight_scale(elsewhere->weights());
    return;
  }
  std::vector<std::span<const double>> weights;
  for (const RowShard& shard : shards) {
    const Array<double>& raw = shard.rows.raw_weight;
    if (!raw.empty()) weights.emplace_back(raw.data(), raw.size());
  }
  if (!weights.empty()) loss.set_weight_scale(WeightsInMemory(std::move(weights)));
}

void ModelState::put_on_grids() {
  target_sums = TargetSums(loss.n_classes);
  for (RowShard& shard : shards) {
    shard.put_on_grids(loss, 0);
    add_targets(shard, 0);
  }
  if (elsewhere) elsewhere->put_on_grids(loss, target_sums);
}

void ModelState::add_targets(const RowShard& shard, std::size_t first) {
  for (std::size_t r = first; r < shard.size(); ++r)
    target_sums.add(shard.rows.target[r], shard.weight_of(static_cast<Slot>(r)));
}

}  // namespace graftboost
