#include "python/shards.hpp"

#include <nanobind/stl/unique_ptr.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "model/model.hpp"
#include "python/bindings.hpp"
#include "python/model_arrays.hpp"
#include "remote/encoding.hpp"
#include "remote/node_half.hpp"
#include "remote/packed_sums.hpp"
#include "remote/remote_binning.hpp"
#include "remote/shard_server.hpp"

namespace graftboost::python {
namespace {

nb::bytes to_bytes(std::span<const std::uint8_t> bytes) {
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}
std::span<const std::uint8_t> bytes_of(const nb::bytes& bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.c_str()), bytes.size()};
}

// What each message is answered with has many bytes, whose memory is used again. It is wiped.
struct ReplyMemory {
  gb::Reply reply;
  gb::Bytes packed;
};

ReplyMemory& reply_memory() {
  static thread_local ReplyMemory memory;
  return memory;
}

// What was freed in between stays with the process otherwise: a tenth of a shard after a fit.
void return_memory() {
  reply_memory() = {};
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

template <class Server>
nb::tuple execute(Server& server, std::span<const std::uint8_t> message) {
  ReplyMemory& memory = reply_memory();
  std::span<std::uint8_t> packed;
  {
    nb::gil_scoped_release release;
    server.execute(message, memory.reply);
    packed = gb::pack_sums(memory.reply.sums, memory.packed);
  }
  nb::tuple answer = nb::make_tuple(to_bytes(packed), to_bytes(memory.reply.rows));
  std::ranges::fill(packed, std::uint8_t{0});
  std::ranges::fill(memory.reply.sums, std::uint64_t{0});
  memory.reply.rows = {};
  return answer;
}
template <class Server>
nb::tuple execute_bytes(Server& server, const nb::bytes& message) {
  return execute(server, bytes_of(message));
}

// A message of one request without content, and its answer.
nb::tuple ask(gb::ShardServer& shard, gb::RequestKind kind) {
  gb::Writer message;
  message.put(kind).put(std::uint32_t{1}).put(std::uint64_t{0});
  return execute(shard, message.bytes());
}

// The sums of several shards as those of one.
nb::bytes add_sums(const std::vector<nb::bytes>& parts) {
  std::vector<std::span<const std::uint8_t>> spans;
  for (const nb::bytes& part : parts) spans.push_back(bytes_of(part));
  const gb::Bytes packed = [&] {
    nb::gil_scoped_release release;
    gb::WipedVector<std::uint64_t> sums;
    for (const auto& part : spans) gb::add_packed_sums(sums, part);
    return gb::pack_sums(sums);
  }();
  return to_bytes(packed);
}

// Keeps the caller's table and ids.
class TableToBin {
 public:
  TableToBin(AnyTable x, Integers ids, int n_threads) : x_(std::move(x)), ids_(std::move(ids)) {
    with_table(x_, [&]<class Table>(const Table& table) {
      if (ids_.size() != table.rows) throw nb::value_error("row_ids: expected one for each row");
      server_ = gb::BinningServer::of(gb::TableShard<Table>{table, {ids_.data(), ids_.size()}, 0},
                                      n_threads);
    });
  }
  void execute(std::span<const std::uint8_t> message, gb::Reply& reply) {
    server_->execute(message, reply);
  }

 private:
  AnyTable x_;
  Integers ids_;
  std::unique_ptr<gb::BinningServer> server_;
};

gb::BinMap find_bins(nb::object exchange, const nb::dict& n_categories, int max_bins,
                     double split_sample, bool width, const nb::dict& bin_edges, std::uint64_t seed,
                     std::size_t rare_below) {
  const gb::BinningParams params{max_bins, split_sample, width, seed, rare_below};
  const gb::GivenColumns given = given_columns(n_categories, bin_edges);
  const gb::Exchange ask = exchange_by(std::move(exchange));
  nb::gil_scoped_release release;
  gb::RemoteRowsToBin rows(ask);
  return gb::find_bins(rows, given, params, 1);
}

void append(gb::ShardServer& shard, const AnyTable& x, const Doubles& y,
            const std::optional<Doubles>& weight, const Integers& row_ids) {
  with_table(x, [&]<class Table>(const Table& table) {
    const gb::Sample<Table> sample{
        table, {y.data(), y.size()}, view<double>(weight), {row_ids.data(), row_ids.size()}};
    nb::gil_scoped_release release;
    shard.append(sample);
  });
}

}  // namespace

// Python may be called from any thread that grows a tree. What it raises travels on as it is.
gb::Exchange exchange_by(nb::object function) {
  // The last owner need not have the interpreter's lock.
  const std::shared_ptr<nb::object> kept(new nb::object(std::move(function)), [](nb::object* p) {
    nb::gil_scoped_acquire gil;
    delete p;
  });
  return [kept](const gb::Bytes& message, gb::Phase phase, const gb::Bytes& node_half) {
    nb::gil_scoped_acquire gil;
    const auto answer = nb::cast<nb::tuple>(
        (*kept)(to_bytes(message), static_cast<int>(phase), to_bytes(node_half)));
    gb::Replies replies;
    for (const nb::handle of_shard : answer[0])
      gb::add_packed_sums(replies.sums, bytes_of(nb::cast<nb::bytes>(of_shard)));
    for (const nb::handle of_shard : answer[1]) {
      const auto bytes = bytes_of(nb::cast<nb::bytes>(of_shard));
      replies.rows.emplace_back(bytes.begin(), bytes.end());
    }
    return replies;
  };
}

void bind_shards(nb::module_& m) {
  nb::class_<TableToBin>(m, "TableToBin", "Rows of one shard, from which bins are found.")
      // A sparse table is a view of arrays that another Python object owns.
      .def(nb::init<AnyTable, Integers, int>(), "X"_a, "row_ids"_a, "n_threads"_a,
           nb::keep_alive<1, 2>())
      .def("execute", &execute_bytes<TableToBin>, "message"_a,
           "Answer a message: sums, which are added up over all shards, and bytes about rows.");
  m.def("return_memory", &return_memory, nb::call_guard<nb::gil_scoped_release>(),
        "Give memory that long operations of shards have used back to the system.");
  m.def("add_sums", &add_sums, "parts"_a, "Add up the sums of several shards.");
  m.def("find_bins", &find_bins, "exchange"_a, "n_categories"_a, "max_bins"_a, "split_sample"_a,
        "width"_a, "bin_edges"_a, "seed"_a, "rare_below"_a,
        "Find the bins of rows in all shards. exchange(message, phase, node_half) sends a message "
        "to every shard and returns the list of their sums and the list of their bytes.");
  nb::class_<gb::ShardServer>(m, "ShardServer",
                              "Some of a model's rows, which answer to the node half elsewhere.")
      .def(
          "__init__",
          [](gb::ShardServer* self, const gb::BinMap& bins, const std::string& loss, int n_classes,
             std::size_t index, std::size_t n_shards, int n_threads) {
            new (self) gb::ShardServer(std::make_shared<const gb::BinMap>(bins), loss_kind(loss),
                                       n_classes, index, n_shards, n_threads);
          },
          "bins"_a, "loss"_a, "n_classes"_a, "index"_a, "n_shards"_a, "n_threads"_a)
      .def_static(
          "from_arrays",
          [](const nb::dict& summary, const nb::dict& arrays, bool packed, std::size_t index,
             std::size_t n_shards, int n_threads) {
            return std::make_unique<gb::ShardServer>(shard_from(summary, arrays), packed, index,
                                                     n_shards, n_threads);
          },
          "summary"_a, "arrays"_a, "packed"_a, "index"_a, "n_shards"_a, "n_threads"_a,
          "A shard from its summary and arrays, which it uses in place.")
      .def_prop_ro("packed", &gb::ShardServer::has_packed_sums,
                   "How sums are stored; needed to restore the shard.")
      .def_static(
          "from_node_half",
          [](const gb::BinMap& bins, const nb::bytes& node_half, std::size_t index,
             std::size_t n_shards, int n_threads) {
            gb::ModelState state =
                gb::read_node_half(std::make_shared<const gb::BinMap>(bins), bytes_of(node_half));
            const bool packed = state.nodes.holds_packed_sums();
            return std::make_unique<gb::ShardServer>(std::move(state), packed, index, n_shards,
                                                     n_threads);
          },
          "bins"_a, "node_half"_a, "index"_a, "n_shards"_a, "n_threads"_a,
          "A shard without rows, which it is given afterwards.")
      .def("append", &append, "X"_a, "y"_a, "sample_weight"_a.none(), "row_ids"_a,
           "Append rows to train on, before the first message.")
      .def("execute", &execute_bytes<gb::ShardServer>, "message"_a,
           "Answer a message: sums, which are added up over all shards, and bytes.")
      .def(
          "facts", [](gb::ShardServer& shard) { return ask(shard, gb::RequestKind::facts); },
          "What the node half has to know about the rows, as an answer.")
      .def(
          "commit", [](gb::ShardServer& shard) { return ask(shard, gb::RequestKind::commit); },
          "Complete what messages have begun; answers with the facts.")
      .def(
          "undo", [](gb::ShardServer& shard) { return ask(shard, gb::RequestKind::undo); },
          "Undo what messages have begun; answers with the facts. Raises RuntimeError if that "
          "takes the files of the shard.")
      .def_prop_ro("n_rows", [](const gb::ShardServer& shard) { return shard.state().n_rows(); })
      .def(
          "summary",
          [](const gb::ShardServer& shard, bool state, bool room) {
            return describe(gb::summary_of(shard.state(), state, room));
          },
          "state"_a, "room"_a, "As of an engine model.")
      .def(
          "arrays",
          [](const nb::object& self, bool state, bool room) {
            const auto& shard = nb::cast<const gb::ShardServer&>(self);
            return describe(gb::arrays_of(shard.state(), state, room), self);
          },
          "state"_a, "room"_a, "As of an engine model.");
}

}  // namespace graftboost::python
