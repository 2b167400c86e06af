#include "remote/rounds.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace graftboost {

void Rounds::append(RequestKind kind, bool asks, const Writer& request) {
  round_->requests.put(kind).put(static_cast<std::uint32_t>(asks)).put_all(request.bytes());
}

void Rounds::tell(RequestKind kind, const Writer& request) {
  const std::lock_guard lock(lock_);
  append(kind, false, request);
}

Answer Rounds::ask(RequestKind kind, const Writer& request, std::size_t n_sums, Phase phase) {
  std::unique_lock lock(lock_);
  append(kind, true, request);
  const std::shared_ptr<Round> round = round_;
  const std::size_t number = round->n_sums.size();
  round->n_sums.push_back(n_sums);
  ++n_waiting_;
  if (n_waiting_ == n_working_) {
    send(lock, phase);
  } else {
    round_done_.wait(lock, [&] { return round->done; });
  }
  if (round->failure) std::rethrow_exception(round->failure);
  return round->answers[number];
}

void Rounds::prepare(const Bytes& node_half) {
  std::unique_lock lock(lock_);
  const std::shared_ptr<Round> round = round_;
  send(lock, Phase::prepare, node_half);
  if (round->failure) std::rethrow_exception(round->failure);
}

void Rounds::forget() noexcept {
  const std::lock_guard lock(lock_);
  round_->requests = {};
  round_->n_sums.clear();
}

// Everyone else waits meanwhile, so nothing is appended.
void Rounds::send(std::unique_lock<std::mutex>& lock, Phase phase, const Bytes& node_half) {
  const std::shared_ptr<Round> round = std::exchange(round_, std::make_shared<Round>());
  n_waiting_ = 0;
  lock.unlock();
  try {
    const std::lock_guard one_at_a_time(exchange_lock_);
    round->replies =
        std::make_shared<const Replies>(exchange_(round->requests.bytes(), phase, node_half));
    round->answers = divide(*round);
  } catch (...) {
    round->failure = std::current_exception();
  }
  lock.lock();
  round->done = true;
  round_done_.notify_all();
}

// Each request that asks has its part of the sums and, per shard, of what is said of rows.
std::vector<Answer> Rounds::divide(const Round& round) {
  const Replies& replies = *round.replies;
  std::vector<Answer> answers(round.n_sums.size());
  std::size_t n_sums = 0;
  for (std::size_t i = 0; i < answers.size(); n_sums += round.n_sums[i++]) {
    if (n_sums + round.n_sums[i] > replies.sums.size())
      throw std::invalid_argument("a shard gave fewer sums than a message asks for");
    answers[i].sums = std::span(replies.sums).subspan(n_sums, round.n_sums[i]);
    answers[i].replies = round.replies;
  }
  if (n_sums != replies.sums.size())
    throw std::invalid_argument("a shard gave more sums than a message asks for");
  for (const Bytes& of_shard : replies.rows) {
    Reader reader(of_shard);
    for (Answer& answer : answers)
      answer.rows.push_back(reader.next(static_cast<std::size_t>(reader.get<std::uint64_t>())));
  }
  return answers;
}

void Rounds::together(std::size_t n, const std::function<void(std::size_t)>& task) {
  const std::size_t n_threads = std::min(n, most_together);
  if (n_threads == 0) return;
  {
    const std::lock_guard lock(lock_);
    n_working_ = n_threads;
  }
  std::exception_ptr failure;
  const auto stop_working = [&](std::size_t n_stop, const std::exception_ptr& thrown) {
    std::unique_lock lock(lock_);
    if (thrown && !failure) failure = thrown;
    // The others may all be waiting for these.
    n_working_ -= n_stop;
    if (n_working_ != 0 && n_waiting_ == n_working_) send(lock, phase_);
  };
  const auto work = [&](std::size_t u) {
    std::exception_ptr thrown;
    try {
      for (std::size_t i = u; i < n; i += n_threads) task(i);
    } catch (...) {
      thrown = std::current_exception();
    }
    stop_working(1, thrown);
  };
  {
    std::vector<std::jthread> threads;
    try {
      threads.reserve(n_threads);
      for (std::size_t u = 1; u < n_threads; ++u) threads.emplace_back(work, u);
    } catch (...) {
      stop_working(n_threads - 1 - threads.size(), std::current_exception());
    }
    work(0);
  }
  n_working_ = 1;
  if (failure) std::rethrow_exception(failure);
}

}  // namespace graftboost
