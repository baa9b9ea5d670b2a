/* proto/base/half.c - f16 and bf16 to and from f32, one at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/half.h"

#include "base/dtype.h"

float float_from_f16(uint16_t h)
{
    return half_from_f16(h);
}

uint16_t float_to_f16(float f)
{
    return half_to_f16(f);
}

float float_from_bf16(uint16_t h)
{
    return half_from_bf16(h);
}

uint16_t float_to_bf16(float f)
{
    return half_to_bf16(f);
}
