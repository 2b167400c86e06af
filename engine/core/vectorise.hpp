// Functions that are compiled for AVX2 as well.
#pragma once

// A function with this attribute is compiled twice, and one version is chosen when the module is
// loaded. Both versions must give the same bits: they are compiled without fused operations, and
// their results must not depend on the order of additions.
//
// The attribute is empty under sanitizers, because the choice is made before their runtime is
// ready.
#if defined(__x86_64__) && defined(__ELF__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define GRAFTBOOST_ALSO_AVX2 [[gnu::target_clones("avx2", "default")]]
#else
#define GRAFTBOOST_ALSO_AVX2
#endif
