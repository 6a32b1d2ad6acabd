/* A device file that goes to another process over a socket, and on to other
 * numbers: commands by ioctl reach it there, and it outlives its first owner. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { ACTIVE = 4 };

/* state is the port's: EINVAL without a context. */
static int state(int fd)
{
	struct ib_uverbs_query_port_resp_ex port = { .port_cap_flags2 = 0 };
	struct { struct ib_uverbs_ioctl_hdr h; struct ib_uverbs_attr a[2]; } c = {
		{ .length = sizeof c, .object_id = UVERBS_OBJECT_DEVICE, .method_id = UVERBS_METHOD_QUERY_PORT, .num_attrs = 2, .driver_id = RDMA_DRIVER_RXE },
		{ { .attr_id = UVERBS_ATTR_QUERY_PORT_PORT_NUM, .len = 8, .flags = UVERBS_ATTR_F_MANDATORY, .data = 1 },
		  { .attr_id = UVERBS_ATTR_QUERY_PORT_RESP, .len = sizeof port, .flags = UVERBS_ATTR_F_MANDATORY, .data = (uintptr_t)&port } } };
	return ioctl(fd, RDMA_VERBS_IOCTL, &c) ? -1 : port.legacy_resp.state;
}

static int device(void)
{
	struct { uint32_t async, vectors; } answer;
	struct { uint32_t number; uint16_t in, out; uint64_t response; } get = { 0, 4, 2, (uintptr_t)&answer };
	int fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	FAILS(state(fd), EINVAL);
	CHECK(write(fd, &get, sizeof get) == sizeof get && state(fd) == ACTIVE);
	return fd;
}

union room { char buf[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; };

static void give(int socket, int fd)
{
	char byte = 0;
	union room room = { "" };
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = room.buf, .msg_controllen = sizeof room.buf };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	*h = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd) };
	memcpy(CMSG_DATA(h), &fd, sizeof fd);
	CHECK(sendmsg(socket, &m, 0) == 1);
}

static int take(int socket)
{
	char byte;
	int fd;
	union room room;
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = room.buf, .msg_controllen = sizeof room.buf };
	CHECK(recvmsg(socket, &m, 0) == 1 && CMSG_FIRSTHDR(&m));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	return fd;
}

int main(void)
{
	struct stat st;
	char byte;
	int pair[2], fd, status;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	if (!fork()) {
		int other;
		fd = take(pair[1]);
		CHECK(state(fd) == ACTIVE && write(pair[1], "", 1) == 1);
		CHECK(read(pair[1], &byte, 1) == 1); /* the first owner has closed it */
		CHECK((other = fcntl(fd, F_DUPFD, 10)) >= 10 && dup2(other, 9) == 9 && !close(fd) && !close(other));
		CHECK(state(9) == ACTIVE && !fstat(9, &st) && !close(9));
		FAILS(state(9), EBADF);
		_exit(0);
	}
	give(pair[0], fd = device());
	CHECK(read(pair[0], &byte, 1) == 1 && state(fd) == ACTIVE && !close(fd) && write(pair[0], "", 1) == 1);
	CHECK(wait(&status) > 0 && !status);
	puts("the file was passed");
	return 0;
}
