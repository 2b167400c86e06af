#include "model/node_histogram.hpp"

namespace graftboost {

template <class Sums>
NodeHistogram<Sums>::NodeHistogram(const CodeLayout& layout, Histogram<Sums>& histogram,
                                   const std::uint32_t* sparse_cells)
    : cached(true) {
  const Sums none(Totals{});
  if (layout.histogram_size() == layout.plain_size()) {
    plain = std::move(histogram);
  } else {
    plain.resize(layout.plain_size());
    std::copy_n(histogram.begin(), plain.size(), plain.begin());
  }
  for (const std::uint32_t cell : layout.implied_cells()) plain[cell] = none;
  if (histogram.empty()) return;
  // Written without a branch, because nothing predicts which cells are in use: into memory for all
  // of them first.
  const std::size_t first = layout.plain_size(), n_all = histogram.size() - first;
  const Sums* from = histogram.data() + first;
  thread_local Array<std::uint32_t> found;
  thread_local Array<Sums> found_sums;
  if (found.size() < n_all) found.resize(n_all);
  if (found_sums.size() < n_all) found_sums.resize(n_all);
  std::size_t n = 0;
  for (std::size_t i = 0; i < n_all; ++i) {
    found[n] = sparse_cells == nullptr ? static_cast<std::uint32_t>(first + i) : sparse_cells[i];
    found_sums[n] = from[i];
    n += static_cast<std::size_t>(!(from[i] == none));
  }
  cells.resize(n);
  sums.resize(n);
  std::copy_n(found.begin(), n, cells.begin());
  std::copy_n(found_sums.begin(), n, sums.begin());
  // No copy may outlive the rows.
  wipe(found.data(), std::min(n + 1, n_all) * sizeof(std::uint32_t));
  wipe(found_sums.data(), std::min(n + 1, n_all) * sizeof(Sums));
}

template <class Sums>
void NodeHistogram<Sums>::book(std::span<const std::uint32_t> row, const Sums& by, bool enters) {
  const Sums none(Totals{});
  // Cells of sparse features have the largest numbers.
  if (row.empty() || row.back() < plain.size()) {
    const Sums signed_by = enters ? by : none - by;
    for (const std::uint32_t cell : row) plain[cell] += signed_by;
    return;
  }
  WipedVector<std::uint32_t> missing;
  bool emptied = false;
  const std::uint32_t* from = cells.begin();
  for (const std::uint32_t cell : row) {
    if (cell < plain.size()) {
      enters ? plain[cell] += by : plain[cell] -= by;
      continue;
    }
    from = std::lower_bound(from, static_cast<const std::uint32_t*>(cells.end()), cell);
    if (from == cells.end() || *from != cell) {
      missing.push_back(cell);
      continue;
    }
    Sums& sum = sums[static_cast<std::size_t>(from - cells.begin())];
    enters ? sum += by : sum -= by;
    emptied |= sum == none;
  }
  if (emptied) drop_empty();
  if (enters && !(by == none)) insert(missing, by);
}

template <class Sums>
void NodeHistogram<Sums>::exchange(const NodeHistogram& before, const NodeHistogram& after) {
  for (std::size_t c = 0; c < plain.size(); ++c)
    plain[c] += after.plain[c], plain[c] -= before.plain[c];
  apply(after, [](Sums& to, const Sums& by) { to += by; });
  apply(before, [](Sums& to, const Sums& by) { to -= by; });
}

template <class Sums>
NodeHistogram<Sums>& NodeHistogram<Sums>::operator-=(const NodeHistogram& part) {
  for (std::size_t c = 0; c < plain.size(); ++c) plain[c] -= part.plain[c];
  apply(part, [](Sums& to, const Sums& by) { to -= by; });
  drop_empty();
  return *this;
}

template <class Sums>
NodeHistogram<Sums>& NodeHistogram<Sums>::operator+=(const NodeHistogram& rows) {
  for (std::size_t c = 0; c < plain.size(); ++c) plain[c] += rows.plain[c];
  return *this;
}

template <class Sums>
void NodeHistogram<Sums>::move_cells(const CodeLayout& before, const CodeLayout& after) noexcept {
  if (before.added().empty()) return;
  const std::uint32_t first = before.of(before.added()[0]).offset;
  for (std::size_t i = cells.size(); i > 0 && cells[i - 1] >= first; --i) {
    const std::uint32_t number = (cells[i - 1] - first) / BinMap::rare().n_codes();
    const std::uint32_t column = before.added()[number];
    cells[i - 1] = after.of(column).offset + (cells[i - 1] - before.of(column).offset);
  }
}

template <class Sums>
template <class Change>
void NodeHistogram<Sums>::apply(const NodeHistogram& by, Change&& change) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < by.cells.size(); ++i) {
    while (at < cells.size() && cells[at] < by.cells[i]) ++at;
    if (at < cells.size() && cells[at] == by.cells[i]) change(sums[at], by.sums[i]);
  }
}

// An empty cell would reveal that a row was once there.
template <class Sums>
void NodeHistogram<Sums>::drop_empty() {
  const Sums none(Totals{});
  std::size_t n = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (sums[i] == none) continue;
    cells[n] = cells[i];
    sums[n++] = sums[i];
  }
  std::fill(cells.begin() + n, cells.end(), 0);
  std::fill(sums.begin() + n, sums.end(), none);
  cells.resize(n);
  sums.resize(n);
}

template <class Sums>
void NodeHistogram<Sums>::insert(const WipedVector<std::uint32_t>& missing, const Sums& by) {
  if (missing.empty()) return;
  std::size_t from = cells.size(), to = from + missing.size();
  cells.resize(to);
  sums.resize(to);
  for (std::size_t i = missing.size(); i > 0;) {
    if (from > 0 && cells[from - 1] > missing[i - 1]) {
      --from, --to;
      cells[to] = cells[from];
      sums[to] = sums[from];
    } else {
      --i, --to;
      cells[to] = missing[i];
      sums[to] = by;
    }
  }
}

template class NodeHistogram<PackedSums>;
template class NodeHistogram<WideSums>;

}  // namespace graftboost
