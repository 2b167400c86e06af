// Arguments and results as Python passes them.
//
// If the engine runs out of memory, it raises. A nanobind caster that allocates cannot, because
// casters are noexcept. So no argument of a bound function is a std::vector, a std::map, a
// std::shared_ptr or a long std::string.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/wiping.hpp"
#include "data/table.hpp"
#include "model/loss.hpp"

namespace nb = nanobind;
namespace gb = graftboost;
using namespace nb::literals;

namespace graftboost::python {

using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using DenseArray = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;

// A table of which only the cells that are not 0 need be present, row by row (scipy's CSR). Keeps
// the caller's arrays alive.
class SparseArrays {
 public:
  using Begin = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Columns = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Values = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

  // Checks everything that the engine relies on.
  SparseArrays(Begin begin, Columns columns, Values values, std::size_t n_columns);

  std::size_t n_rows() const { return begin_.size() - 1; }
  nb::dlpack::dtype dtype() const { return values_.dtype(); }
  template <class Value>
  gb::SparseTable<Value> table() const {
    return {begin_.data(), columns_.data(), static_cast<const Value*>(values_.data()), n_rows(),
            n_columns_};
  }

 private:
  Begin begin_;
  Columns columns_;
  Values values_;
  std::size_t n_columns_;
};

// What Python passes for X.
using AnyTable = std::variant<DenseArray, SparseArrays*>;

inline std::size_t n_rows_of(const AnyTable& x) {
  const auto* dense = std::get_if<DenseArray>(&x);
  return dense != nullptr ? dense->shape(0) : std::get<SparseArrays*>(x)->n_rows();
}

template <class Value>
gb::DenseTable<Value> table_of(const DenseArray& x) {
  return {static_cast<const Value*>(x.data()), x.shape(0), x.shape(1), x.stride(0), x.stride(1)};
}
template <class Value>
gb::SparseTable<Value> table_of(const SparseArrays* x) {
  return x->table<Value>();
}
inline nb::dlpack::dtype dtype_of(const DenseArray& x) { return x.dtype(); }
inline nb::dlpack::dtype dtype_of(const SparseArrays* x) { return x->dtype(); }

// Calls `use` with the table as it is stored, with float or double values.
template <class Use>
decltype(auto) with_table(const AnyTable& x, Use&& use) {
  return std::visit(
      [&](const auto& table) {
        if (dtype_of(table) == nb::dtype<float>()) return use(table_of<float>(table));
        if (dtype_of(table) == nb::dtype<double>()) return use(table_of<double>(table));
        throw nb::type_error("X: the engine takes float32 or float64");
      },
      x);
}

template <class T>
std::span<const T> view(
    const std::optional<nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>>& a) {
  return a ? std::span<const T>(a->data(), a->size()) : std::span<const T>();
}

// Gives numpy the memory of a vector, which is wiped when numpy frees it: ids and gradients are
// personal data, too.
template <class T, std::size_t N>
nb::ndarray<nb::numpy, T, nb::ndim<N>> to_numpy(std::vector<T> values,
                                                const std::array<std::size_t, N>& shape) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept {
    auto* memory = static_cast<std::vector<T>*>(p);
    gb::wipe(memory->data(), memory->size() * sizeof(T));
    delete memory;
  });
  return nb::ndarray<nb::numpy, T, nb::ndim<N>>(owned->data(), N, shape.data(), owner);
}
template <class T>
auto to_numpy(std::vector<T> values) {
  const std::size_t size = values.size();
  return to_numpy<T, 1>(std::move(values), {size});
}
// One property of each of some items.
template <class Item, class Of>
auto column(const std::vector<Item>& items, Of&& of) {
  std::vector<decltype(of(items[0]))> values;
  for (const Item& item : items) values.push_back(of(item));
  return to_numpy(std::move(values));
}

inline constexpr std::array<const char*, 3> loss_names{"logistic", "softmax", "squared"};
gb::LossKind loss_kind(const std::string& name);

}  // namespace graftboost::python
