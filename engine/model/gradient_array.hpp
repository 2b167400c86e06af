// The gradients that rows recorded in one tree, in two bytes each or in four.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/array.hpp"
#include "core/types.hpp"

namespace graftboost {

// Points to gradients of either width. The pointer that is not in use is null.
template <class Narrow, class Wide>
struct BasicGradientPointer {
  Narrow* narrow = nullptr;
  Wide* wide = nullptr;

  BasicGradientPointer() = default;
  BasicGradientPointer(Narrow* gradients) : narrow(gradients) {}  // NOLINT: like any pointer
  BasicGradientPointer(Wide* gradients) : wide(gradients) {}      // NOLINT
  // To a pointer through which nothing is changed.
  template <class N, class W>
    requires(std::is_const_v<Narrow> && !std::is_const_v<N>)
  BasicGradientPointer(const BasicGradientPointer<N, W>& other)  // NOLINT
      : narrow(other.narrow), wide(other.wide) {}

  Gradient operator[](std::size_t i) const { return wide != nullptr ? wide[i] : narrow[i]; }
  BasicGradientPointer operator+(std::size_t n) const { return at(n); }
  // Calls `use` with the pointer itself, so that loops over rows do not ask for the width each time.
  template <class Use>
  decltype(auto) visit(Use&& use) const {
    return wide != nullptr ? use(wide) : use(narrow);
  }

 private:
  BasicGradientPointer at(std::size_t n) const {
    return wide != nullptr ? BasicGradientPointer(wide + n) : BasicGradientPointer(narrow + n);
  }
};
using GradientPointer = BasicGradientPointer<NarrowGradient, Gradient>;
using ConstGradientPointer = BasicGradientPointer<const NarrowGradient, const Gradient>;

// One gradient per slot: in two bytes if the loss is one of classes, in four for squared error. The
// array that is not in use is empty. Like any Array, it leaves no copy of its elements behind.
struct GradientArray {
  Array<NarrowGradient> narrow;
  Array<Gradient> wide;
  bool is_wide = false;  // which of them is in use, also while there are no rows

  GradientArray() = default;
  explicit GradientArray(bool is_wide, std::size_t size = 0) : is_wide(is_wide) { resize(size); }

  std::size_t size() const { return is_wide ? wide.size() : narrow.size(); }
  void resize(std::size_t size) { is_wide ? wide.resize(size) : narrow.resize(size); }
  void reserve(std::size_t capacity) {
    is_wide ? wide.reserve(capacity) : narrow.reserve(capacity);
  }

  Gradient operator[](std::size_t i) const { return is_wide ? wide[i] : narrow[i]; }
  void set(std::size_t i, Gradient gradient) {
    if (is_wide) {
      wide[i] = gradient;
    } else {
      narrow[i] = static_cast<NarrowGradient>(gradient);
    }
  }
  void push_back(Gradient gradient) {
    is_wide ? wide.push_back(gradient) : narrow.push_back(static_cast<NarrowGradient>(gradient));
  }

  GradientPointer data() {
    return is_wide ? GradientPointer(wide.data()) : GradientPointer(narrow.data());
  }
  ConstGradientPointer data() const {
    return is_wide ? ConstGradientPointer(wide.data()) : ConstGradientPointer(narrow.data());
  }
  // The elements, if they are of this width; else null.
  template <class Element>
  Element* of() {
    if constexpr (std::is_same_v<Element, NarrowGradient>) return narrow.data();
    if constexpr (std::is_same_v<Element, Gradient>) return wide.data();
  }
  // Calls `use` with the array's elements, as BasicGradientPointer::visit does, also if there are
  // none.
  template <class Use>
  decltype(auto) visit(Use&& use) {
    return is_wide ? use(wide.data()) : use(narrow.data());
  }
  template <class Use>
  decltype(auto) visit(Use&& use) const {
    return is_wide ? use(wide.data()) : use(narrow.data());
  }
};

// Keeps the gradients of rows whose mark is -1, all bits, and sets the others, whose mark is 0, to 0.
template <class Element>
void keep_marked(Element* gradients, const std::int32_t* marks, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    gradients[i] = static_cast<Element>(gradients[i] & static_cast<Element>(marks[i]));
}

}  // namespace graftboost
