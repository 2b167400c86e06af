// Rounds of messages: threads that work side by side ask the shards together.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "remote/message.hpp"

namespace graftboost {

// The kinds of requests that a message consists of. See requests.hpp.
enum class RequestKind : std::uint32_t;

// What a message is for: to read something, while no operation is under way; to work on an operation;
// to make sure that the shards can complete it, after which it is decided; to complete it; or to undo
// it.
enum class Phase : std::uint32_t { read, work, prepare, commit, undo };

// Sends a message to all shards and returns their combined answers, or throws. Once `prepare` has
// returned, the operation is done: shards that do not get the message `commit` at once get it later.
// With `prepare` comes the node half as it will be then (see node_half.hpp).
using Exchange = std::function<Replies(const Bytes& message, Phase phase, const Bytes& node_half)>;

// The answer to one request: its part of the sums, and what each shard said of rows.
struct Answer {
  std::span<const std::uint64_t> sums;
  std::vector<std::span<const std::uint8_t>> rows;

  std::shared_ptr<const Replies> replies;  // what the others point into
};

// Collects requests into messages. A message consists of requests:
//
//     kind, whether it asks, length, content | kind, whether it asks, length, content | ...
//
// A request that needs no answer waits for the next message. One that needs an answer is sent when
// all threads that work side by side wait for theirs, so that a round serves all of them. If a round
// fails, all who wait for it throw.
class Rounds {
 public:
  explicit Rounds(Exchange exchange) : exchange_(std::move(exchange)) {}

  void tell(RequestKind kind, const Writer& request);
  // `n_sums` is how many sums each shard answers with.
  Answer ask(RequestKind kind, const Writer& request, std::size_t n_sums) {
    return ask(kind, request, n_sums, phase_);
  }
  Answer ask(RequestKind kind, const Writer& request, std::size_t n_sums, Phase phase);
  // Messages are for an operation from here on, until end_operation().
  void begin_operation() { phase_ = Phase::work; }
  void end_operation() { phase_ = Phase::read; }
  // Sends what waits, even if that is nothing.
  void prepare(const Bytes& node_half);
  // Drops what waits.
  void forget() noexcept;

  // Calls task(0) to task(n - 1), so many of them side by side, and rethrows the first exception.
  static constexpr std::size_t most_together = 32;
  void together(std::size_t n, const std::function<void(std::size_t)>& task);

 private:
  struct Round {
    Writer requests;
    std::vector<std::size_t> n_sums;  // of each request that asks
    bool done = false;
    std::exception_ptr failure;
    std::shared_ptr<const Replies> replies;
    std::vector<Answer> answers;
  };

  void append(RequestKind kind, bool asks, const Writer& request);
  void send(std::unique_lock<std::mutex>& lock, Phase phase, const Bytes& node_half = {});
  static std::vector<Answer> divide(const Round& round);

  Exchange exchange_;
  Phase phase_ = Phase::read;
  std::mutex exchange_lock_;  // one message after the other
  std::mutex lock_;
  std::condition_variable round_done_;
  std::shared_ptr<Round> round_ = std::make_shared<Round>();
  std::size_t n_working_ = 1, n_waiting_ = 0;
};

}  // namespace graftboost
