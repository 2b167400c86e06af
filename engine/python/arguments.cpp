#include "python/arguments.hpp"

#include "data/bins.hpp"

namespace graftboost::python {

SparseArrays::SparseArrays(Begin begin, Columns columns, Values values, std::size_t n_columns)
    : begin_(std::move(begin)),
      columns_(std::move(columns)),
      values_(std::move(values)),
      n_columns_(n_columns) {
  if (n_columns == 0 || n_columns >= gb::most_columns)
    throw nb::value_error("n_columns: there are too many columns, or none");
  const std::size_t n = columns_.size();
  bool valid = begin_.size() > 0 && begin_(0) == 0 && values_.size() == n &&
               begin_(begin_.size() - 1) == static_cast<std::int64_t>(n);
  for (std::size_t r = 0; valid && r + 1 < begin_.size(); ++r) valid = begin_(r) <= begin_(r + 1);
  for (std::size_t r = 0; valid && r + 1 < begin_.size(); ++r) {
    std::int64_t last = -1;
    for (std::int64_t i = begin_(r); i < begin_(r + 1); ++i) {
      const std::int32_t column = columns_.data()[i];
      valid &= column > last;
      last = column;
    }
    valid &= last < static_cast<std::int64_t>(n_columns);
  }
  if (!valid) throw nb::value_error("the columns of a row do not ascend, or are out of range");
}

gb::LossKind loss_kind(const std::string& name) {
  for (std::size_t i = 0; i < loss_names.size(); ++i)
    if (name == loss_names[i]) return static_cast<gb::LossKind>(i);
  throw nb::value_error("loss: expected 'logistic', 'softmax' or 'squared'");
}

}  // namespace graftboost::python
