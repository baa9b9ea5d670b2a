/* proto/base/kept.h - whether freed blocks may be kept for the next need: not where a sanitizer watches memory, so that it sees
 * every use of a freed block.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_KEPT_H
#define BASE_KEPT_H

#include <stdbool.h>

#if defined(__SANITIZE_ADDRESS__)
#define KEEPS_BLOCKS false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define KEEPS_BLOCKS false
#endif
#endif
#ifndef KEEPS_BLOCKS
#define KEEPS_BLOCKS true
#endif

#endif
