// Work shared out among a few threads that wait for it.
#pragma once

#include <cstddef>
#include <functional>

namespace graftboost {

// Calls task(0) .. task(n_tasks - 1), on at most n_threads threads, and returns when all are done.
// The first exception thrown by a task is rethrown here. Calls from inside a task, and calls while
// another thread has the workers, run on the calling thread alone: results never depend on it.
void parallel(int n_threads, std::size_t n_tasks, const std::function<void(std::size_t)>& task);

// The same over [0, size) in blocks: block(begin, end).
void parallel_blocks(int n_threads, std::size_t size, std::size_t block_size,
                     const std::function<void(std::size_t, std::size_t)>& block);

}  // namespace graftboost
