/* What the founding document's programs have of libc. */
#ifndef RDMASHIM_USER_H
#define RDMASHIM_USER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#endif
