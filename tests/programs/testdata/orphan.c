/* Loses its kernel at the end of its input: commands are EIO, and ordinary
 * files open as before. */
#include "loop.h"
#include <fcntl.h>
#include <unistd.h>

int main(void)
{
	static struct loop l;
	char c;

	loop_open(&l, device());
	loop_turn(&l);
	puts("ready");
	fflush(stdout);
	CHECK(read(0, &c, 1) == 0);
	for (int i = 0; i < 100; i++) {
		int fd = open("/etc/passwd", O_RDONLY);
		CHECK(fd >= 0 && read(fd, &c, 1) == 1 && !close(fd));
		CHECK(!ibv_alloc_pd(l.ctx) && errno == EIO);
	}
	puts("EIO");
	return 6;
}
