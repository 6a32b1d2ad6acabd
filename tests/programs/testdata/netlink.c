/* Sockets of NETLINK_RDMA at the system-call line, and that other sockets are
 * left alone. */
#define _GNU_SOURCE
#include <linux/netlink.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { NLDEV_GET = 5 << 10 | 1, SIZE = sizeof(struct nlmsghdr) };

static char big[1 << 17];

int main(void)
{
	struct nlmsghdr get = { SIZE, NLDEV_GET, NLM_F_REQUEST | NLM_F_DUMP, 7, 0 }, *h;
	struct iovec two[2] = { { &get, 5 }, { (char *)&get + 5, SIZE - 5 } }, much = { big, sizeof big };
	struct msghdr msg = { 0 };
	struct sockaddr_nl self;
	socklen_t n = sizeof self;
	char answer[4096];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA), pair[2], status;
	struct pollfd p = { fd, POLLIN, 0 };
	CHECK(fd >= 0);
	FAILS(sendto(fd, (void *)4096, SIZE, 0, NULL, 0), EFAULT);
	FAILS(sendto(fd, (void *)(1UL << 40), SIZE, 0, NULL, 0), EFAULT);
	FAILS(sendto(fd, big, sizeof big, 0, NULL, 0), EMSGSIZE);
	msg.msg_iov = &much, msg.msg_iovlen = 1;
	FAILS(sendmsg(fd, &msg, 0), EMSGSIZE);
	CHECK(send(fd, &get, SIZE - 1, 0) == SIZE - 1 && poll(&p, 1, 0) == 0);

	two[1].iov_base = (void *)4096;
	msg.msg_iov = two, msg.msg_iovlen = 2;
	FAILS(sendmsg(fd, &msg, 0), EFAULT);
	two[1].iov_base = (char *)&get + 5; /* a request in two pieces, as UCX sends it */
	CHECK(sendmsg(fd, &msg, 0) == SIZE && poll(&p, 1, 0) == 1);
	CHECK(getsockname(fd, (struct sockaddr *)&self, &n) == 0 && self.nl_pid != 0);
	h = (struct nlmsghdr *)answer;
	CHECK(recv(fd, answer, sizeof answer, 0) >= SIZE && h->nlmsg_type == NLDEV_GET && h->nlmsg_seq == 7 && h->nlmsg_pid == self.nl_pid);
	CHECK(recv(fd, answer, sizeof answer, 0) >= SIZE && h->nlmsg_type == NLMSG_DONE && poll(&p, 1, 0) == 0);

	if (!fork()) {
		if (supervised()) {
			CHECK(send(fd, &get, SIZE, 0) == SIZE && recv(fd, answer, sizeof answer, 0) >= SIZE);
			CHECK(socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA) >= 0);
			_exit(0);
		}
		FAILS(send(fd, &get, SIZE, 0), ENODEV);
		FAILS(socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA), EPROTONOSUPPORT);
		_exit(0);
	}
	CHECK(wait(&status) > 0 && status == 0);

	CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && dup2(pair[0], fd) == fd);
	CHECK(send(fd, "text", 5, 0) == 5 && recv(pair[1], answer, sizeof answer, 0) == 5 && !strcmp(answer, "text"));
	puts("netlink is as it should be");
	return 0;
}
