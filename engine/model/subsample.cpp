#include "model/subsample.hpp"

#include "core/vectorise.hpp"

namespace graftboost {
namespace {

GRAFTBOOST_ALSO_AVX2
void find_in(Subsample subsample, const RowId* ids, std::size_t n, std::int32_t* inside) {
  for (std::size_t i = 0; i < n; ++i) inside[i] = subsample.contains(ids[i]) ? -1 : 0;
}

}  // namespace

void Subsample::find(const RowId* ids, std::size_t n, std::int32_t* inside) const {
  find_in(*this, ids, n, inside);
}

}  // namespace graftboost
