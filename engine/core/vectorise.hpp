// Loops that are worth having in AVX2 as well.
#pragma once

// A function so marked is compiled twice and chosen when the module is loaded. Both versions give the
// same bits: they are compiled without fused operations, and nothing in them depends on an order of
// additions.
//
// Not under the sanitizers: the choice is made before their runtime is ready.
#if defined(__x86_64__) && defined(__ELF__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define GRAFTBOOST_ALSO_AVX2 [[gnu::target_clones("avx2", "default")]]
#else
#define GRAFTBOOST_ALSO_AVX2
#endif
