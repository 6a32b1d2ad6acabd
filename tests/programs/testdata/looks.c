/* A program that looks at a device, opens it, and closes it, behind a title of
 * its own. Only one that was opened has its address, ADDRESS, at RoCEv2's port.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

/* address takes the address: a descriptor, or -1. */
static int address(const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(4791) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(fd >= 0 && inet_pton(AF_INET, text, &a.sin_addr) == 1);
	if (!bind(fd, (struct sockaddr *)&a, sizeof a))
		return fd;
	CHECK(!close(fd));
	errno = EADDRINUSE;
	return -1;
}

static void attribute(const char *name, char text[64])
{
	char path[256];
	FILE *f;
	snprintf(path, sizeof path, "/sys/class/infiniband/rxe0/%s", name);
	CHECK((f = fopen(path, "r")) && fgets(text, 64, f) && !fclose(f));
}

/* title writes over the arguments and the environment, where the kernel has put
 * them, as setproctitle does. The program keeps copies. */
static void title(char **argv)
{
	char *first = argv[0], **old = environ;
	CHECK((argv[1] = strdup(argv[1])) && !clearenv());
	for (; *old; old++)
		CHECK(!putenv(strdup(*old)));
	memset(first, 'x', old[-1] + strlen(old[-1]) - first);
}

int main(int argc, char **argv)
{
	static const char *names[] = { "node_guid", "ports/1/gids/0", "ports/1/lid", "ports/1/state", "ports/1/gid_attrs/ndevs/0" };
	enum { N = sizeof names / sizeof *names };
	char before[N][64], after[64];
	int held, fd;
	title(argv);
	CHECK(argc == 2 && opendir("/sys/class/infiniband"));
	for (int i = 0; i < N; i++)
		attribute(names[i], before[i]);
	CHECK((held = address(argv[1])) >= 0);
	FAILS(open("/dev/infiniband/uverbs0", O_RDWR), EADDRINUSE);
	FAILS(open("/dev/infiniband/rdma_cm", O_RDWR), EADDRINUSE);
	CHECK(!close(held));
	CHECK((fd = open("/dev/infiniband/uverbs0", O_RDWR)) >= 0);
	FAILS(address(argv[1]), EADDRINUSE);
	for (int i = 0; i < N; i++) {
		attribute(names[i], after);
		CHECK(!strcmp(before[i], after));
	}
	CHECK(!close(fd));
	puts("it was opened");
	return 0;
}
