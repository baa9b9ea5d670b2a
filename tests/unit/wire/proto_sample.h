/* tests/unit/wire/proto_sample.h - a message of any type, filled from its descriptor.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PROTO_SAMPLE_H
#define PROTO_SAMPLE_H

#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

/* An envelope (a type with one oneof) with the body'th arm set and every field filled, differently for each seed; packed.
 * The caller frees ret_bytes with free().  Returns the name of the arm, NULL when there is none such. */
const char *sample_pack(const ProtobufCMessageDescriptor *envelope, unsigned body, uint64_t seed, uint8_t **ret_bytes,
                        size_t *ret_len);

#endif
