#include "remote/remote_binning.hpp"

#include <optional>
#include <stdexcept>

#include "remote/encoding.hpp"
#include "remote/requests.hpp"

namespace graftboost {
namespace {

struct TableFacts {
  std::uint64_t n_rows, n_columns, is_sparse;
};

void write_sample(Writer& to, const RowSample& sample) {
  to.put(sample.seed).put(sample.purpose).put(sample.share);
}
RowSample read_sample(Reader& from) {
  RowSample sample;
  sample.seed = from.get<std::uint64_t>();
  sample.purpose = from.get<std::uint64_t>();
  sample.share = from.get<double>();
  return sample;
}

void write_values(Writer& to, const ColumnValues& values) {
  to.put(std::uint64_t{values.size()});
  for (const auto& of_column : values) to.put_all(of_column);
}
ColumnValues read_values(Reader& from) {
  ColumnValues values;
  for (auto n = from.get<std::uint64_t>(); n > 0; --n)
    values.push_back(from.get_all<WipedVector<double>>());
  return values;
}

void write_distributions(Writer& to, const std::vector<Distribution>& distributions) {
  for (const Distribution& found : distributions) {
    to.put_all(found.values).put_all(found.first);
    to.put(std::uint64_t{found.size}).put(std::uint64_t{found.n_zeros});
    to.put(std::uint64_t{found.n_missing});
  }
}
std::vector<Distribution> read_distributions(Reader& from, std::size_t n) {
  std::vector<Distribution> distributions(n);
  for (Distribution& found : distributions) {
    found.values = from.get_all<WipedVector<double>>();
    found.first = from.get_all<std::vector<std::size_t>>();
    found.size = static_cast<std::size_t>(from.get<std::uint64_t>());
    found.n_zeros = static_cast<std::size_t>(from.get<std::uint64_t>());
    found.n_missing = static_cast<std::size_t>(from.get<std::uint64_t>());
  }
  return distributions;
}

}  // namespace

// --- the side that chooses -----------------------------------------------------------------------

RemoteRowsToBin::RemoteRowsToBin(Exchange exchange) : rounds_(std::move(exchange)) {
  bool is_first = true;
  for (const auto& of_shard : rounds_.ask(RequestKind::facts, {}, 0).rows) {
    const auto facts = Reader(of_shard).get<TableFacts>();
    if (!is_first && (n_columns_ != facts.n_columns || is_sparse_ != (facts.is_sparse != 0)))
      throw std::invalid_argument("all shards must have the same columns, dense or sparse");
    is_first = false;
    n_rows_ += static_cast<std::size_t>(facts.n_rows);
    n_columns_ = static_cast<std::size_t>(facts.n_columns);
    is_sparse_ = facts.is_sparse != 0;
  }
}

void RemoteRowsToBin::draw(const RowSample& sample) {
  Writer request;
  write_sample(request, sample);
  rounds_.tell(RequestKind::draw, request);
}

NonzeroCounts RemoteRowsToBin::nonzero_counts() {
  const Answer answer = rounds_.ask(RequestKind::nonzero_counts, {}, n_columns_ + 1);
  NonzeroCounts counts;
  counts.n_rows = static_cast<std::size_t>(answer.sums[0]);
  for (const std::uint64_t count : answer.sums.subspan(1))
    counts.by_column.push_back(static_cast<std::uint32_t>(count));
  return counts;
}

void RemoteRowsToBin::select(const std::vector<std::uint32_t>& columns) {
  rounds_.tell(RequestKind::select, Writer().put_all(columns));
}

std::vector<Distribution> RemoteRowsToBin::distributions(std::size_t begin, std::size_t end) {
  const Writer request = Writer().put(std::uint64_t{begin}).put(std::uint64_t{end});
  std::vector<Distribution> merged;
  for (const auto& of_shard : rounds_.ask(RequestKind::distributions, request, 0).rows) {
    Reader reader(of_shard);
    std::vector<Distribution> more = read_distributions(reader, end - begin);
    if (merged.empty()) {
      merged = std::move(more);
    } else {
      merge_all(merged, more);
    }
  }
  return merged;
}

ColumnValues RemoteRowsToBin::least_above(const ColumnValues& lower, int) {
  Writer request;
  write_values(request, lower);
  ColumnValues least;
  for (const auto& of_shard : rounds_.ask(RequestKind::least_above, request, 0).rows) {
    Reader reader(of_shard);
    ColumnValues more = read_values(reader);
    if (least.empty()) {
      least = std::move(more);
    } else {
      take_least(least, more);
    }
  }
  return least;
}

BundleConflicts RemoteRowsToBin::conflicts(const BinChooser& chooser,
                                           const BundleCandidates& candidates) {
  Writer request;
  write_features(request, chooser.columns(), chooser.features());
  write_sample(request, chooser.bundle_sample());
  BundleConflicts conflicts(candidates.size());
  for (const auto& of_shard : rounds_.ask(RequestKind::conflicts, request, 0).rows)
    conflicts.add_words(Reader(of_shard).get_all<std::vector<std::uint64_t>>());
  return conflicts;
}

// --- the side that reads rows --------------------------------------------------------------------

namespace {

template <class Table>
class TableBinningServer final : public BinningServer {
 public:
  TableBinningServer(const TableShard<Table>& shard, int n_threads)
      : shard_(shard), n_threads_(n_threads) {}

  void execute(std::span<const std::uint8_t> message, Reply& reply) override {
    answer_message<RequestKind>(message, reply,
                                [&](RequestKind kind, Reader& request, Writer& rows) {
                                  fulfil(kind, request, reply, rows);
                                });
  }

 private:
  void fulfil(RequestKind kind, Reader& request, Reply& reply, Writer& rows) {
    switch (kind) {
      case RequestKind::facts:
        rows.put(TableFacts{shard_.table.rows, shard_.table.columns, is_sparse_table<Table>});
        return;
      case RequestKind::draw:
        part_.emplace(shard_, read_sample(request));
        return;
      case RequestKind::nonzero_counts: {
        const NonzeroCounts& counts = part_->nonzero_counts();
        reply.sums.push_back(counts.n_rows);
        reply.sums.insert(reply.sums.end(), counts.by_column.begin(), counts.by_column.end());
        return;
      }
      case RequestKind::select:
        part_->select(request.get_all<std::vector<std::uint32_t>>());
        return;
      case RequestKind::distributions: {
        const auto begin = static_cast<std::size_t>(request.get<std::uint64_t>());
        write_distributions(
            rows,
            part_->distributions(begin, static_cast<std::size_t>(request.get<std::uint64_t>())));
        return;
      }
      case RequestKind::least_above:
        write_values(rows, part_->least_above(read_values(request), n_threads_));
        return;
      case RequestKind::conflicts: {
        std::vector<std::uint32_t> columns;
        std::vector<Feature> features;
        read_features(request, columns, features);
        const BundleCandidates candidates(columns, features);
        rows.put_all(part_->conflicts(candidates, read_sample(request)).words());
        return;
      }
      default:
        throw std::invalid_argument("a message has a request of an unknown kind");
    }
  }

  TableShard<Table> shard_;
  int n_threads_;
  std::optional<ShardBinning<Table>> part_;
};

}  // namespace

template <class Table>
std::unique_ptr<BinningServer> BinningServer::of(const TableShard<Table>& shard, int n_threads) {
  return std::make_unique<TableBinningServer<Table>>(shard, n_threads);
}

#define GRAFTBOOST_FOR_TABLE(Table) \
  template std::unique_ptr<BinningServer> BinningServer::of(const TableShard<Table>&, int);
GRAFTBOOST_FOR_TABLE(DenseTable<float>)
GRAFTBOOST_FOR_TABLE(DenseTable<double>)
GRAFTBOOST_FOR_TABLE(SparseTable<float>)
GRAFTBOOST_FOR_TABLE(SparseTable<double>)

}  // namespace graftboost
