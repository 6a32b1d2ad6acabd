/* Programs that end at the first check that fails. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(c)                                                               \
	do {                                                                   \
		if (!(c)) {                                                    \
			fprintf(stderr, "%s, line %d: %s: %s\n", __FILE__, __LINE__, #c, strerror(errno)); \
			exit(1);                                               \
		}                                                              \
	} while (0)
/* supervised says that the program's system calls are held, and not its calls of
 * libc. */
static inline int supervised(void) { return getenv("PROGRAMS_SUPERVISED") != NULL; }

#define FAILS(call, number) CHECK((call) == -1 && errno == (number))
