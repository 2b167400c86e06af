// Test cases of the engine: a small subset of the macros that doctest and Catch2 share.
//
//     TEST_CASE("sums of two rows add up") {
//       CHECK_EQ(a + b, c);
//     }
//
// Neither of those libraries is on PyPI, and the tests must build on a machine that only has a
// compiler and pip. A failed CHECK is printed and the test case continues; a failed REQUIRE ends
// the test case.
#pragma once

#include <ostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace graftboost::testing {

struct TestCase {
  const char* name;
  const char* file;
  void (*run)();
};

// All test cases of the program. Each registers itself before main() starts.
std::vector<TestCase>& test_cases();

struct Registration {
  Registration(const char* name, const char* file, void (*run)()) {
    test_cases().push_back({name, file, run});
  }
};

// Thrown by REQUIRE. It is not derived from std::exception, so that no code under test catches it.
struct Abandoned {};

void report_failure(const char* file, int line, const std::string& message);

template <class T>
std::string shown(const T& value) {
  if constexpr (requires(std::ostream& out) { out << +value; }) {
    std::ostringstream out;
    out.precision(17);
    out << +value;
    return out.str();
  } else {
    return "(value)";
  }
}
template <class T>
  requires requires(const T& text) { std::string(text); }
std::string shown(const T& text) {
  return '"' + std::string(text) + '"';
}

template <class A, class B>
bool check_equal(const A& a, const B& b, const char* text, const char* file, int line) {
  bool equal;
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B> && !std::is_same_v<A, bool> &&
                !std::is_same_v<B, bool>) {
    equal = std::cmp_equal(a, b);
  } else {
    equal = a == b;
  }
  if (!equal)
    report_failure(file, line,
                   std::string(text) + ": " + shown(a) + " and " + shown(b) + " differ");
  return equal;
}

}  // namespace graftboost::testing

#define GRAFTBOOST_JOINED_(a, b) a##b
#define GRAFTBOOST_JOINED(a, b) GRAFTBOOST_JOINED_(a, b)

#define TEST_CASE(name)                                                                      \
  static void GRAFTBOOST_JOINED(test_case_, __LINE__)();                                     \
  static const graftboost::testing::Registration GRAFTBOOST_JOINED(registration_, __LINE__)( \
      name, __FILE__, &GRAFTBOOST_JOINED(test_case_, __LINE__));                             \
  static void GRAFTBOOST_JOINED(test_case_, __LINE__)()

#define CHECK(...)                                                                       \
  do {                                                                                   \
    if (!(__VA_ARGS__))                                                                  \
      graftboost::testing::report_failure(__FILE__, __LINE__, #__VA_ARGS__ " is false"); \
  } while (false)

#define CHECK_EQ(a, b) graftboost::testing::check_equal((a), (b), #a " == " #b, __FILE__, __LINE__)

#define REQUIRE(...)                                                                     \
  do {                                                                                   \
    if (!(__VA_ARGS__)) {                                                                \
      graftboost::testing::report_failure(__FILE__, __LINE__, #__VA_ARGS__ " is false"); \
      throw graftboost::testing::Abandoned{};                                            \
    }                                                                                    \
  } while (false)

#define CHECK_THROWS_AS(expression, Type)                                       \
  do {                                                                          \
    bool thrown_as_expected = false;                                            \
    try {                                                                       \
      static_cast<void>(expression);                                            \
    } catch (const Type&) {                                                     \
      thrown_as_expected = true;                                                \
    }                                                                           \
    if (!thrown_as_expected)                                                    \
      graftboost::testing::report_failure(__FILE__, __LINE__,                   \
                                          #expression " did not throw " #Type); \
  } while (false)
