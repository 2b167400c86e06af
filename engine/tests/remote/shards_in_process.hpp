// Shards behind messages, in the process of the test.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "remote/packed_sums.hpp"
#include "remote/remote_rows.hpp"
#include "remote/shard_server.hpp"
#include "tests/models.hpp"

namespace graftboost::testing {

// Servers with the rows of a table, dealt out by a hash of the id, and what was exchanged with them.
struct ShardsInProcess {
  std::vector<std::unique_ptr<ShardServer>> servers;
  std::size_t n_messages = 0, n_bytes_sent = 0, n_bytes_received = 0;
  // The message with this number fails, after the shards before `failing_shard` have got it.
  std::size_t failing_message = static_cast<std::size_t>(-1), failing_shard = 0;

  ShardsInProcess(const TrainingRows& rows, const ModelOptions& options,
                  const std::shared_ptr<const BinMap>& bins, std::size_t n_shards) {
    for (std::size_t s = 0; s < n_shards; ++s) {
      std::vector<std::size_t> own;
      for (std::size_t r = 0; r < rows.size(); ++r)
        if (mix(static_cast<std::uint64_t>(rows.ids()[r])) % n_shards == s) own.push_back(r);
      servers.push_back(std::make_unique<ShardServer>(
          bins, options.loss, options.loss == LossKind::squared ? 1 : options.n_classes, s,
          n_shards, 1));
      servers.back()->append(rows.select(own).sample());
    }
  }

  Exchange exchange() {
    return [this](const Bytes& message, Phase, const Bytes&) {
      Replies replies;
      n_bytes_sent += message.size();
      const bool fails = n_messages++ == failing_message;
      for (std::size_t s = 0; s < servers.size(); ++s) {
        if (fails && s == failing_shard) throw std::runtime_error("a shard is lost");
        Reply reply;
        servers[s]->execute(message, reply);
        const Bytes sums = pack_sums(reply.sums);
        n_bytes_received += sums.size() + reply.rows.size();
        add_packed_sums(replies.sums, sums);
        replies.rows.push_back(std::move(reply.rows));
      }
      return replies;
    };
  }
};

inline std::unique_ptr<Model> fit_remote(ShardsInProcess& shards, const ModelOptions& options,
                                         std::shared_ptr<const BinMap> bins) {
  FitParams params;
  params.loss = options.loss;
  params.n_classes = options.loss == LossKind::squared ? 1 : options.n_classes;
  params.training = options.training;
  params.histogram_memory = options.histogram_memory;
  return Model::fit<DenseTable<double>>(
      std::move(bins), std::make_shared<RemoteRows>(shards.exchange()), nullptr, params, {}, 2);
}

// The nodes of the model, with the rows of all shards.
inline Contents contents_of(const Model& model, const ShardsInProcess& shards) {
  Contents contents = model.read([](const ModelState& state) { return contents_of(state); });
  for (const auto& server : shards.servers) contents.rows.merge(contents_of(server->state()).rows);
  return contents;
}

}  // namespace graftboost::testing
