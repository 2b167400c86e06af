// A shard that answers the node half of another process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/sample.hpp"
#include "model/model_state.hpp"
#include "remote/message.hpp"
#include "remote/requests.hpp"

namespace graftboost {

// Owns a shard of the rows of a model and fulfils the requests of the node half (see requests.hpp).
// What it does follows from the rows it began with and from the messages alone, so a shard that was
// lost can be restored from these.
//
// Besides the rows it has what they depend on: bins, loss, parameters, base scores, and the trees,
// without sums, histograms and gains. Not for two threads at once.
class ShardServer {
 public:
  // The shard `index` of `n_shards`.
  ShardServer(std::shared_ptr<const BinMap> bins, LossKind loss, int n_classes, std::size_t index,
              std::size_t n_shards, int n_threads);
  // Continues from a state that state() returned.
  ShardServer(ModelState state, bool packed, std::size_t index, std::size_t n_shards,
              int n_threads);
  ~ShardServer();

  // Appends rows to train on, before the first message.
  template <class Table>
  void append(const Sample<Table>& sample);

  // Fulfils the requests of a message. If it throws, the message was not valid, or memory ran out:
  // then the shard has to be restored from what was committed last.
  void execute(std::span<const std::uint8_t> message, Reply& reply);

  // Between operations.
  const ModelState& state() const { return state_; }
  bool has_packed_sums() const { return packed_; }

 private:
  template <class Sums>
  struct Growing;
  struct Work;

  void fulfil(RequestKind kind, Reader& request, Reply& reply, Writer& rows);
  template <class Sums>
  void fulfil_growing(RequestKind kind, Reader& request, Reply& reply);
  void fulfil_update(RequestKind kind, Reader& request, Reply& reply, Writer& rows);
  void fulfil_reading(RequestKind kind, Reader& request, Reply& reply, Writer& rows);

  ModelState& model() { return next_ ? *next_ : state_; }
  RowShard& shard() { return model().shards[0]; }
  RowFacts facts();
  void put_target_sums(Reply& reply);
  void find(Reader& request, Writer& rows);
  std::vector<Slot> own_rows(const RowTable& rows) const;
  void add(Reader& request);
  void lay_out(Reader& request, Writer& rows);
  void shift(Reader& request, Writer& rows);
  void refit(Reader& request);
  void refresh(Reader& request, Reply& reply);
  void check_tree(Reader& request, Reply& reply);
  template <class Sums>
  void count_nodes(Reader& request, Reply& reply);
  template <class Sums>
  void recount(std::size_t t, Reader& request, Reply& reply);
  void set_tree(std::size_t t, Tree tree);
  void commit();
  void undo();

  std::size_t index_, n_shards_;
  int n_threads_;
  ModelState state_;
  std::optional<ModelState> next_;  // during a refit
  bool packed_ = true;              // histograms hold PackedSums
  std::unique_ptr<Work> work_;      // of the operation that is under way
};

}  // namespace graftboost
