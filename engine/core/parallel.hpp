// Running tasks on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace graftboost {

// Calls task(0) to task(n_tasks - 1) on at most n_threads threads and returns when all have
// finished. The first exception that a task throws is rethrown here; tasks that have not begun by
// then are skipped. Calls from inside a task, and calls while another thread uses the workers, run
// on the calling thread alone. Results must not depend on which thread runs a task.
void parallel(int n_threads, std::size_t n_tasks, const std::function<void(std::size_t)>& task);

// Calls block(begin, end) for consecutive blocks that cover [0, size).
void parallel_blocks(int n_threads, std::size_t size, std::size_t block_size,
                     const std::function<void(std::size_t, std::size_t)>& block);

}  // namespace graftboost
