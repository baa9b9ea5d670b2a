/* proto/base/vector.h - loops that are compiled for wider vectors as well, of which the machine's best is taken when the
 * program is loaded.
 *
 *     VECTOR_CLONES static void row(...) { for (...) }
 *
 * All of them compute the same bits: nothing here fuses a multiplication with an addition (-ffp-contract=off), and sums go by
 * lanes whose number is written in the source, not chosen by the machine.
 * On processors other than x86-64, without glibc (which makes the choice), under sanitizers (which cannot stand a choice made before
 * they have begun) and with clang (which gives the choosers of functions of one name in two files the same outside name) there
 * is one version, for the vectors that every processor of the kind has.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_VECTOR_H
#define BASE_VECTOR_H

#include <features.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(IS_SANITIZED)
#define VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define VECTOR_CLONES
#endif

#endif
