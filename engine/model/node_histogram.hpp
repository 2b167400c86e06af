// The candidates' sums of a node, as they are kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "core/array.hpp"
#include "data/code_layout.hpp"
#include "core/types.hpp"
#include "core/sums.hpp"

namespace graftboost {

// All cells of a node, side by side. Both kinds of sums hold the same integers; a model uses one of them.
template <class Sums>
using Histogram = Array<Sums>;

// A histogram without what follows from the rest: implied cells are 0. Of sparse features there are only
// the cells that a row of the node is in, so that a node costs what its rows have, not what all have.
template <class Sums>
struct NodeSums {
  bool kept = false;  // if not, they are counted from the node's rows when they are needed
  Array<Sums> plain;
  Array<std::uint32_t> cells;  // of sparse features, ascending ...
  Array<Sums> sums;            // ... and what is in them

  NodeSums() = default;
  // From a histogram that is not completed, whose memory it takes if it can. `sparse_cells` are the cells
  // of the layout that are there behind the plain ones, if not all.
  NodeSums(const CodeLayout& layout, Histogram<Sums>& histogram,
           const std::uint32_t* sparse_cells = nullptr)
      : kept(true) {
    const Sums none(Totals{});
    if (layout.histogram_size() == layout.plain_size()) {
      plain = std::move(histogram);
    } else {
      plain.resize(layout.plain_size());
      std::copy_n(histogram.begin(), plain.size(), plain.begin());
    }
    for (const std::uint32_t cell : layout.implied_cells()) plain[cell] = none;
    if (histogram.empty()) return;
    // Without a branch: nobody can tell which cells are there. Into memory for all of them first.
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
    // What it says of rows is not to outlive them.
    wipe(found.data(), std::min(n + 1, n_all) * sizeof(std::uint32_t));
    wipe(found_sums.data(), std::min(n + 1, n_all) * sizeof(Sums));
  }

  std::size_t bytes() const {
    return plain.size() * sizeof(Sums) + cells.size() * (sizeof(Sums) + sizeof(std::uint32_t));
  }

  // A row comes or goes; `row` are the cells that it counts in, ascending among the sparse ones.
  void book(std::span<const std::uint32_t> row, const Sums& by, bool in) {
    const Sums none(Totals{});
    WipedVector<std::uint32_t> missing;
    bool emptied = false;
    const std::uint32_t* from = cells.begin();
    for (const std::uint32_t cell : row) {
      if (cell < plain.size()) {
        in ? plain[cell] += by : plain[cell] -= by;
        continue;
      }
      from = std::lower_bound(from, static_cast<const std::uint32_t*>(cells.end()), cell);
      if (from == cells.end() || *from != cell) {
        missing.push_back(cell);
        continue;
      }
      Sums& sum = sums[static_cast<std::size_t>(from - cells.begin())];
      in ? sum += by : sum -= by;
      emptied |= sum == none;
    }
    if (emptied) drop_empty();
    if (in && !(by == none)) insert(missing, by);
  }

  // RowTable of the node record otherwise: their cells stay the same.
  void exchange(const NodeSums& before, const NodeSums& after) {
    for (std::size_t c = 0; c < plain.size(); ++c)
      plain[c] += after.plain[c], plain[c] -= before.plain[c];
    apply(after, [](Sums& to, const Sums& by) { to += by; });
    apply(before, [](Sums& to, const Sums& by) { to -= by; });
  }

  // Those of some of its rows.
  NodeSums& operator-=(const NodeSums& part) {
    for (std::size_t c = 0; c < plain.size(); ++c) plain[c] -= part.plain[c];
    apply(part, [](Sums& to, const Sums& by) { to -= by; });
    drop_empty();
    return *this;
  }

  // Columns that nobody has lost their places, so that others have other cells.
  void move_cells(const CodeLayout& before, const CodeLayout& after) {
    if (before.added().empty()) return;
    const std::uint32_t first = before.of(before.added()[0]).offset;
    for (std::size_t i = cells.size(); i > 0 && cells[i - 1] >= first; --i) {
      const std::uint32_t number = (cells[i - 1] - first) / BinMap::rare().n_codes();
      const std::uint32_t column = before.added()[number];
      cells[i - 1] = after.of(column).offset + (cells[i - 1] - before.of(column).offset);
    }
  }

  friend bool operator==(const NodeSums& a, const NodeSums& b) {
    return std::ranges::equal(a.plain, b.plain) && std::ranges::equal(a.cells, b.cells) &&
           std::ranges::equal(a.sums, b.sums);
  }

 private:
  template <class Change>
  void apply(const NodeSums& by, Change&& change) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < by.cells.size(); ++i) {
      while (at < cells.size() && cells[at] < by.cells[i]) ++at;
      if (at < cells.size() && cells[at] == by.cells[i]) change(sums[at], by.sums[i]);
    }
  }

  // Nothing tells afterwards that a row was there.
  void drop_empty() {
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

  void insert(const WipedVector<std::uint32_t>& missing, const Sums& by) {
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
};

template <class Sums>
using KeptSums = std::vector<NodeSums<Sums>>;

// Those of a tree, of either kind. Copied by way of a vector: when the copy constructor of libstdc++ 12's
// std::variant runs out of memory, it destroys what it has not made.
struct AnyKeptSums : std::variant<KeptSums<PackedSums>, KeptSums<WideSums>> {
  using variant::variant;
  using variant::operator=;
  AnyKeptSums() = default;
  AnyKeptSums(const AnyKeptSums& other) : variant() {
    std::visit([this](auto copy) { *this = std::move(copy); }, other);
  }
  AnyKeptSums(AnyKeptSums&&) noexcept = default;
  AnyKeptSums& operator=(AnyKeptSums&&) noexcept = default;
};

}  // namespace graftboost
