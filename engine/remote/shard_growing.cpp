// The rows of a shard while trees, or parts of them, are grown.
#include "remote/encoding.hpp"
#include "remote/shard_work.hpp"

namespace graftboost {

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

template void ShardServer::fulfil_growing<PackedSums>(RequestKind, Reader&, Reply&);
template void ShardServer::fulfil_growing<WideSums>(RequestKind, Reader&, Reply&);

}  // namespace graftboost
