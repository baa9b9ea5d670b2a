/* tests/fuzz/fuzz.h - what a fuzz target gives: libFuzzer's entry point.
 *
 * Built as an ordinary test (replay.c) each target replays its corpus folder and seeded mutations of it.  For a real search:
 *     clang -fsanitize=fuzzer,address ... tests/fuzz/fuzz_codec.c   (dev asan builds first), then run it on the corpus
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
