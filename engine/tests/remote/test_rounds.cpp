#include <cstdint>
#include <stdexcept>

#include "remote/requests.hpp"
#include "remote/rounds.hpp"
#include "tests/check.hpp"

namespace graftboost {
namespace {

// One shard, which answers every message with so many sums.
Rounds rounds_with(std::size_t n_sums) {
  return Rounds([n_sums](const Bytes&, Phase, const Bytes&) {
    Replies replies;
    for (std::size_t i = 0; i < n_sums; ++i) replies.sums.push_back(i);
    Writer nothing_about_rows;
    nothing_about_rows.put(std::uint64_t{0});
    replies.rows.push_back(nothing_about_rows.bytes());
    return replies;
  });
}

TEST_CASE("a shard answers with as many sums as a message asks for, or the call fails") {
  Rounds rounds = rounds_with(3);
  CHECK_EQ(rounds.ask(RequestKind::target_sums, {}, 3).sums.size(), std::size_t{3});
  CHECK_THROWS_AS(rounds.ask(RequestKind::target_sums, {}, 2), std::invalid_argument);
  CHECK_THROWS_AS(rounds.ask(RequestKind::target_sums, {}, 4), std::invalid_argument);
}

TEST_CASE("requests that need no answer wait for the next message, or are dropped") {
  std::size_t n_bytes = 0;
  Rounds rounds([&](const Bytes& message, Phase, const Bytes&) {
    n_bytes = message.size();
    Writer nothing_about_rows;
    nothing_about_rows.put(std::uint64_t{0});
    return Replies{{}, {nothing_about_rows.bytes()}};
  });
  rounds.ask(RequestKind::ids, {}, 0);
  const std::size_t alone = n_bytes;
  rounds.tell(RequestKind::record, {});
  rounds.ask(RequestKind::ids, {}, 0);
  CHECK(n_bytes > alone);
  rounds.tell(RequestKind::record, {});
  rounds.forget();
  rounds.ask(RequestKind::ids, {}, 0);
  CHECK_EQ(n_bytes, alone);
}

}  // namespace
}  // namespace graftboost
