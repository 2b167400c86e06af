// What a shard tells about its rows.
#include <algorithm>
#include <limits>
#include <numeric>

#include "remote/encoding.hpp"
#include "remote/shard_work.hpp"

namespace graftboost {

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
      // The node half has the sums; here they only have to be as many as there are classes.
      model().target_sums = TargetSums(model().loss.n_classes);
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

}  // namespace graftboost
