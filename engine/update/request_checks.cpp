#include "update/request_checks.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "data/table.hpp"
#include "update/update_cost.hpp"

namespace graftboost {
namespace {

// Which rows stay after the removed ones are gone.
bool is_removed(const RemovedSlots& removed, std::size_t shard, Slot slot) {
  return std::binary_search(removed[shard].begin(), removed[shard].end(), slot);
}

void check_distinct(std::span<const RowId> ids, const std::string& argument,
                    const std::string& fault) {
  WipedVector<RowId> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    throw std::invalid_argument(argument + ": the id " + std::to_string(*twice) + fault);
}

RemovedSlots find_removed(ModelState& model, std::span<const RowId> ids,
                          const std::string& argument, const RemoteRows::Found& elsewhere) {
  RemovedSlots removed(model.shards.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto found = model.shards.find(ids[i]);
    if (found) {
      removed[found->shard].push_back(found->slot);
    } else if (elsewhere.is_removed_held.empty() || elsewhere.is_removed_held[i] == 0) {
      throw std::invalid_argument(argument + ": the model holds no row with id " +
                                  std::to_string(ids[i]) +
                                  "; row_ids_ has the ids of those it holds");
    }
  }
  for (std::vector<Slot>& slots : removed) std::sort(slots.begin(), slots.end());
  return removed;
}

void check_added_ids(ModelState& model, std::span<const RowId> added,
                     std::span<const RowId> removed_ids, const RemovedSlots& removed,
                     const RemoteRows::Found& elsewhere) {
  WipedVector<RowId> removed_sorted;
  if (model.elsewhere) {
    removed_sorted.assign(removed_ids.begin(), removed_ids.end());
    std::sort(removed_sorted.begin(), removed_sorted.end());
  }
  for (std::size_t i = 0; i < added.size(); ++i) {
    const auto found = model.shards.find(added[i]);
    const bool is_held = found && !is_removed(removed, found->shard, found->slot);
    const bool is_held_elsewhere = !elsewhere.is_added_held.empty() &&
                                   elsewhere.is_added_held[i] != 0 &&
                                   !std::ranges::binary_search(removed_sorted, added[i]);
    if (is_held || is_held_elsewhere) {
      throw std::invalid_argument("row_ids: the model already holds a row with id " +
                                  std::to_string(added[i]) +
                                  "; remove it in the same update, or choose another id");
    }
  }
  check_distinct(added, "row_ids", " is given to two rows");
}

// The classes of a model that grows are renumbered: each former one needs a number of its own.
void check_relabel(const ModelState& model, std::span<const std::int32_t> relabel, int n_classes) {
  std::vector<bool> taken(static_cast<std::size_t>(n_classes));
  bool valid = relabel.size() == static_cast<std::size_t>(model.loss.n_classes);
  for (const std::int32_t label : relabel) {
    valid = valid && label >= 0 && label < n_classes && !taken[static_cast<std::size_t>(label)];
    if (valid) taken[static_cast<std::size_t>(label)] = true;
  }
  if (!valid) throw std::invalid_argument("relabel: each class needs a number of its own");
}

// Whether a refit can set a scale for the targets of all rows there will be.
// Rows elsewhere leave out those that are marked as removed.
bool can_scale(const ModelState& model, std::span<const double> added,
               const RemovedSlots& removed) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  const auto add = [&](double y) { least = std::min(least, y), most = std::max(most, y); };
  for (std::size_t s = 0; s < model.shards.size(); ++s) {
    const RowTable& rows = model.shards[s].rows;
    for (Slot slot = 0; slot < rows.size(); ++slot)
      if (!is_removed(removed, s, slot)) add(rows.raw_target[slot]);
  }
  for (const double y : added) add(y);
  if (model.elsewhere) {
    const auto [least_there, most_there] = model.elsewhere->target_range();
    least = std::min(least, least_there), most = std::max(most, most_there);
  }
  return Loss(model.loss).set_scale(least, most);
}

// Targets and weights that the grids can represent: as they are, or as a refit will set them. Rows
// without a weight have weight 1.
template <class Table>
void check_added_values(const ModelState& model, const Sample<Table>& added,
                        const RemovedSlots& removed, bool refits) {
  if (model.loss.kind == LossKind::squared && !(refits && can_scale(model, added.y, removed))) {
    for (const double y : added.y) model.loss.target_on_grid(y);
  }
  if (refits || !model.loss.weighted) return;
  for (const double weight : added.weight) model.loss.weight_on_grid(weight);
  if (added.weight.empty()) model.loss.weight_on_grid(1);
}

template <class Table>
void check_rows_left(const ModelState& model, const Sample<Table>* added,
                     const RemovedSlots& removed, const std::string& argument) {
  std::size_t n_removed = 0;
  std::int64_t weight_left = model.target_sums.weight;
  for (std::size_t s = 0; s < removed.size(); ++s) {
    n_removed += removed[s].size();
    for (const Slot slot : removed[s]) weight_left -= model.shards[s].weight_of(slot);
  }
  if (model.elsewhere) {
    const RowTable& rows = model.elsewhere->removed().rows;
    n_removed += rows.size();
    for (std::size_t i = 0; i < rows.size(); ++i)
      weight_left -= rows.weight.empty() ? 1 : rows.weight[i];
  }
  if (model.n_rows() + (added == nullptr ? 0 : added->x.rows) == n_removed) {
    throw std::invalid_argument(argument +
                                ": these are all the rows that the model holds; a model needs at "
                                "least one, so add rows in the same update or fit anew");
  }
  const bool any_added =
      added != nullptr &&
      (added->weight.empty() ||
       std::any_of(added->weight.begin(), added->weight.end(), [](double w) { return w > 0; }));
  if (weight_left == 0 && !any_added) {
    throw std::invalid_argument(argument +
                                ": all rows that would be left have weight 0; a model needs one "
                                "that counts, so add one in the same update or fit anew");
  }
}

// Whether the weights of all rows there will be may add up to more than the sums can represent.
template <class Table>
bool is_too_heavy(const ModelState& model, const Sample<Table>& added) {
  const Loss& loss = model.loss;
  const auto units = [&](double weight) {
    return std::min(weight / loss.weight_scale / loss.weight_unit, Loss::largest_weight) + 1;
  };
  auto sum = static_cast<double>(model.target_sums.weight);
  for (const double weight : added.weight) sum += units(weight);
  if (added.weight.empty()) sum += units(1) * static_cast<double>(added.x.rows);
  return sum > static_cast<double>(loss.most_weight());
}

// Whether the trees cannot stay: there are more classes, or many changed rows, or rows that the
// sums as they are packed cannot represent.
template <class Table>
bool must_refit(const ModelState& model, const UpdateRequest<Table>& request, bool grows,
                bool keeps_structure) {
  const std::size_t n_added = request.added == nullptr ? 0 : request.added->x.rows;
  const std::size_t n_rows = model.n_rows() + n_added;
  const bool many = cost::largest_change * static_cast<double>(request.removed.size() + n_added) >
                    static_cast<double>(n_rows);
  if (grows || (many && !keeps_structure)) return true;
  if (model.nodes.holds_packed_sums() && static_cast<std::int64_t>(n_rows) > PackedSums::most_rows)
    return true;
  if (n_added == 0) return false;
  return model.loss.weighted ? is_too_heavy(model, *request.added) : !request.added->weight.empty();
}

}  // namespace

template <class Table>
CheckedRequest check_request(ModelState& model, const UpdateRequest<Table>& request,
                             const UpdateRule& rule) {
  CheckedRequest checked;
  checked.grows = model.loss.kind != LossKind::squared && request.n_classes > model.loss.n_classes;
  if (checked.grows) check_relabel(model, request.relabel, request.n_classes);
  check_distinct(request.removed, request.removed_argument, " is given twice; name each row once");
  const std::span<const RowId> added_ids =
      request.added == nullptr ? std::span<const RowId>() : request.added->ids;
  RemoteRows::Found elsewhere;
  if (model.elsewhere)
    elsewhere = model.elsewhere->find(request.removed, added_ids, model.layout());
  checked.removed = find_removed(model, request.removed, request.removed_argument, elsewhere);
  if (request.added != nullptr) {
    check_sample(*request.added, *model.bins,
                 checked.grows ? request.n_classes : model.loss.n_classes);
  }
  checked.refits = must_refit(model, request, checked.grows, rule.keeps_structure() || rule.defers);
  if (request.added != nullptr) {
    check_added_ids(model, added_ids, request.removed, checked.removed, elsewhere);
    check_added_values(model, *request.added, checked.removed, checked.refits);
  }
  check_rows_left(model, request.added, checked.removed, request.removed_argument);
  return checked;
}

#define GRAFTBOOST_FOR_TABLE(Table)                                               \
  template CheckedRequest check_request(ModelState&, const UpdateRequest<Table>&, \
                                        const UpdateRule&);
GRAFTBOOST_FOR_TABLE(DenseTable<float>)
GRAFTBOOST_FOR_TABLE(DenseTable<double>)
GRAFTBOOST_FOR_TABLE(SparseTable<float>)
GRAFTBOOST_FOR_TABLE(SparseTable<double>)

}  // namespace graftboost
