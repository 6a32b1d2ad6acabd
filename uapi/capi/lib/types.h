/* The types of the founding document's programs. */
#ifndef RDMASHIM_TYPES_H
#define RDMASHIM_TYPES_H

#include <stdint.h>

typedef uint8_t uint8;
typedef uint16_t uint16;
typedef uint32_t uint32;
typedef uint64_t uint64;

#endif
