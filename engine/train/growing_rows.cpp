#include "train/growing_rows.hpp"

#include <algorithm>
#include <utility>

#include "core/parallel.hpp"

namespace graftboost {
namespace {

// With less to count one thread is done before a second has started.
constexpr double least_cells_to_share = 8'000, least_cells_per_sparse_cell = 2;
// The sums of so many rows stay in cache.
constexpr std::size_t most_rows_in_cache = std::size_t{1} << 15;
constexpr double least_entries_per_row = 4;

}  // namespace

GrowingCells::GrowingCells(const Shards& shards, std::unique_ptr<const ActiveCells> active)
    : active_(std::move(active)) {
  for (const RowShard& shard : shards) entries_.emplace_back(shard.rows, *active_);
}

GrowingCells GrowingCells::of_layout(const Shards& shards) {
  return {shards, std::make_unique<const ActiveCells>(shards.layout())};
}

WipedVector<std::uint32_t> GrowingCells::count_rows(const Shards& shards) {
  const auto has_sparse = [](const RowShard& shard) { return shard.rows.has_sparse(); };
  WipedVector<std::uint32_t> n_rows_in;
  if (std::none_of(shards.begin(), shards.end(), has_sparse)) return n_rows_in;
  n_rows_in.resize(shards.layout().histogram_size());
  for (const RowShard& shard : shards) {
    for (Slot row = 0; has_sparse(shard) && row < shard.size(); ++row)
      for (const std::uint32_t cell : shard.rows.sparse_codes(row)) ++n_rows_in[cell];
  }
  return n_rows_in;
}

GrowingCells GrowingCells::of_rows(const Shards& shards,
                                   const WipedVector<std::uint32_t>& n_rows_in) {
  if (n_rows_in.empty()) return of_layout(shards);
  return {shards, std::make_unique<const ActiveCells>(shards.layout(), n_rows_in)};
}

template <class Sums>
GrowingRows<Sums>::GrowingRows(const Shards& shards, const GrowingCells& cells, int n_threads,
                               RemoteRows* elsewhere)
    : shards_(shards),
      cells_(cells),
      n_threads_(n_threads),
      elsewhere_(elsewhere),
      growth_(elsewhere == nullptr ? 0 : elsewhere->new_growth()),
      cells_per_row_(shards.cells_per_row() + 1) {
  for (std::size_t s = 0; s < shards.size(); ++s) {
    parts_.emplace_back(shards[s].rows, cells.entries(s), n_threads);
    outside_.emplace_back(shards[s].rows, cells.entries(s), n_threads);
  }
}

template <class Sums>
void GrowingRows<Sums>::begin(std::size_t t, LossKind kind) {
  recorded_.clear();
  has_outside_ = false;
  for (const RowShard& shard : shards_) recorded_.push_back(shard.recorded_in(t, kind));
}

template <class Sums>
Totals GrowingRows<Sums>::total() const {
  Totals sum = root_.total;
  for (std::size_t s = 0; s < parts_.size(); ++s)
    sum += total_of(recorded_[s], parts_[s].rows_of(0), n_threads_);
  return sum;
}

template <class Sums>
void GrowingRows<Sums>::count(NodeIndex node, Histogram<Sums>& histogram,
                              const std::function<void()>& meanwhile) {
  for (std::size_t s = 0; s < parts_.size(); ++s)
    add_rows(s, node, histogram, s == 0, s == 0 ? meanwhile : std::function<void()>());
  if (elsewhere_ == nullptr) return;
  Histogram<Sums>* const one = &histogram;
  elsewhere_->count<Sums>(growth_, {&node, 1}, {&one, 1});
}

template <class Sums>
void GrowingRows<Sums>::count_all(std::span<const NodeIndex> nodes,
                                  std::span<Histogram<Sums>* const> histograms) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::size_t s = 0; s < parts_.size(); ++s)
      add_rows(s, nodes[i], *histograms[i], s == 0, {});
  }
  if (elsewhere_ != nullptr) elsewhere_->count<Sums>(growth_, nodes, histograms);
}

template <class Sums>
void GrowingRows<Sums>::count_root(Histogram<Sums>& histogram, Histogram<Sums>* before) {
  const bool by_cell = counts_by_cell();
  for (std::size_t s = 0; s < parts_.size(); ++s)
    by_cell ? add_root(s, histogram, s == 0) : add_rows(s, 0, histogram, s == 0, {});
  if (elsewhere_ != nullptr) root_ = elsewhere_->count_root(growth_, histogram, before);
}

template <class Sums>
bool GrowingRows<Sums>::counts_by_cell() const {
  const ActiveCells& active = cells_.active();
  const CodeLayout& layout = active.layout();
  const std::size_t n_sparse = active.size() - active.plain_size();
  const double entries_per_row =
      cells_per_row_ - 1 - static_cast<double>(layout.n_bytes() + layout.n_words());
  return active.is_renumbered() && entries_per_row >= least_entries_per_row &&
         shards_.n_rows() <= std::max(n_sparse, most_rows_in_cache);
}

template <class Sums>
void GrowingRows<Sums>::add_rows(std::size_t shard, NodeIndex node, Histogram<Sums>& histogram,
                                 bool clear, const std::function<void()>& meanwhile) {
  const ActiveCells& active = cells_.active();
  const std::span<const Slot> slots = parts_[shard].rows_of(node);
  // The counts of other threads have to be added up, cell by cell.
  const auto n_sparse = static_cast<double>(active.size() - active.plain_size());
  const double least = std::max(least_cells_to_share, least_cells_per_sparse_cell * n_sparse);
  const bool shared = static_cast<double>(slots.size()) * cells_per_row_ >= least;
  const std::size_t n_shares = shared ? static_cast<std::size_t>(std::max(n_threads_, 1)) : 1;
  if (partial_.size() + 1 < n_shares) partial_.resize(n_shares - 1);
  for (std::size_t share = 1; share < n_shares; ++share) partial_[share - 1].resize(active.size());
  parallel(n_threads_, n_shares + (meanwhile ? 1 : 0), [&](std::size_t share) {
    if (share == n_shares) return meanwhile();
    const std::size_t begin = slots.size() * share / n_shares;
    const std::size_t end = slots.size() * (share + 1) / n_shares;
    Histogram<Sums>& target = share == 0 ? histogram : partial_[share - 1];
    if (share != 0 || clear) target.fill(Sums(Totals{}));
    accumulate(shards_[shard].rows, recorded_[shard], slots.subspan(begin, end - begin),
               target.data(), cells_.entries(shard).entries());
  });
  for (std::size_t share = 1; share < n_shares; ++share) {
    const Histogram<Sums>& part = partial_[share - 1];
    for (std::size_t i = 0; i < part.size(); ++i) histogram[i] += part[i];
  }
}

// All rows reach the root, so sparse cells can be added up one after the other from the rows that
// are listed for them: this only reads what each row adds, and rows take fewer bytes than cells.
template <class Sums>
void GrowingRows<Sums>::add_root(std::size_t shard, Histogram<Sums>& histogram, bool clear) {
  const ActiveCells& active = cells_.active();
  const ActiveEntries& entries = cells_.entries(shard);
  const RowTable& rows = shards_[shard].rows;
  const std::size_t n_plain = active.plain_size(), n_sparse = active.size() - n_plain;
  const std::span<const Slot> slots = parts_[shard].rows_of(0);
  of_rows_.resize(rows.size());
  if (slots.size() < rows.size()) of_rows_.fill(Sums(Totals{}));
  for (const Slot row : slots) of_rows_[row] = Sums(recorded_[shard].of(row));
  const auto sum_of = [&](std::size_t cell) {
    Sums sum = clear ? Sums(Totals{}) : histogram[cell];
    for (const Slot row : entries.rows_in(cell)) sum += of_rows_[row];
    return sum;
  };
  const auto n_threads = static_cast<std::size_t>(std::max(n_threads_, 1));
  const std::size_t n_shares = 4 * n_threads;  // of the sparse cells, to balance the threads
  if (partial_.size() < n_threads) partial_.resize(n_threads);
  parallel(n_threads_, n_threads + n_shares, [&](std::size_t task) {
    if (task < n_threads) {
      const std::size_t begin = slots.size() * task / n_threads;
      const std::size_t end = slots.size() * (task + 1) / n_threads;
      partial_[task].resize(active.size());
      std::fill_n(partial_[task].data(), n_plain, Sums(Totals{}));
      accumulate(rows, recorded_[shard], slots.subspan(begin, end - begin), partial_[task].data(),
                 SparseEntries{});
      return;
    }
    const std::size_t share = task - n_threads;
    const std::size_t end = n_plain + n_sparse * (share + 1) / n_shares;
    for (std::size_t cell = n_plain + n_sparse * share / n_shares; cell < end; ++cell)
      histogram[cell] = sum_of(cell);
  });
  for (std::size_t cell = 0; cell < n_plain; ++cell) {
    histogram[cell] = sum_of(cell);
    for (std::size_t share = 0; share < n_threads; ++share)
      histogram[cell] += partial_[share][cell];
  }
}

template class GrowingRows<PackedSums>;
template class GrowingRows<WideSums>;

}  // namespace graftboost
