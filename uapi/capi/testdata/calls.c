/* Makes each call of rdma.h rightly and wrongly, on whatever device there is,
 * and says so. A check that fails ends the program. */
#define _GNU_SOURCE
#include "kernel/types.h"
#include "user/user.h"
#include "user/rdma.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define CHECK(what) check(what, #what, __LINE__)

/* REFUSED checks that a call fails with an errno and says why. */
#define REFUSED(number, call)                                                                                \
	do {                                                                                                 \
		errno = 0;                                                                                   \
		CHECK((call) == -1);                                                                         \
		CHECK(errno == (number));                                                                    \
		CHECK(strncmp(rdma_error(), "rdma", 4) == 0);                                                \
	} while (0)

static void check(int ok, const char *what, int line)
{
	if (ok)
		return;
	printf("line %d: %s; errno %d; %s\n", line, what, errno, rdma_error());
	exit(1);
}

enum { ALL = RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_READ, PAGE = 4096, LONG = 30000 };

/* completes waits for one completion. */
static struct rdma_wc completes(int qp, int id, int status)
{
	struct rdma_wc wc = { 0 };
	CHECK(rdma_wait_cq(qp, &wc, 1, LONG) == 1);
	CHECK(wc.wr_id == id);
	CHECK(wc.status == status);
	return wc;
}

/* pair makes two queue pairs that are connected to each other. */
static void pair(int depth, int *a, int *b)
{
	struct rdma_endpoint here, there;
	CHECK((*a = rdma_create_qp(depth, depth)) > 0);
	CHECK((*b = rdma_create_qp(depth, depth)) > 0);
	CHECK(rdma_local_endpoint(*a, &here) == 0);
	CHECK(rdma_local_endpoint(*b, &there) == 0);
	CHECK(rdma_connect_qp(*a, &there) == 0);
	CHECK(rdma_connect_qp(*b, &here) == 0);
}

static void destroy(int a, int b)
{
	CHECK(rdma_destroy_qp(a) == 0);
	CHECK(rdma_destroy_qp(b) == 0);
}

static void transfers(void)
{
	char here[PAGE] = "a message", there[PAGE] = "";
	struct rdma_region region;
	struct rdma_wc wc;
	int a, b, id, mr = rdma_reg_mr(here, PAGE, ALL), remote = rdma_reg_mr(there, PAGE, ALL);
	CHECK(mr > 0 && remote > 0);
	pair(8, &a, &b);
	CHECK(rdma_query_mr(remote, &region) == 0);
	CHECK(region.addr == (uintptr_t)there && region.length == PAGE && region.access == ALL);

	CHECK((id = rdma_post_write(a, mr, 0, region.addr, region.rkey, 10)) == 0);
	CHECK(completes(a, id, RDMA_WC_SUCCESS).opcode == RDMA_WC_WRITE);
	CHECK(strcmp(there, "a message") == 0);
	CHECK((id = rdma_post_read(a, mr, 100, region.addr + 2, region.rkey, 8)) == 1);
	wc = completes(a, id, RDMA_WC_SUCCESS);
	CHECK(wc.opcode == RDMA_WC_READ && wc.byte_len == 8);
	CHECK(strcmp(here + 100, "message") == 0);

	CHECK((id = rdma_post_recv(b, remote, 200, 100)) >= 0);
	CHECK(rdma_poll_cq(b, &wc, 1) == 0);
	CHECK(rdma_wait_cq(b, &wc, 1, 1) == 0);
	CHECK(rdma_post_send(a, mr, 10) == 2);
	wc = completes(b, id, RDMA_WC_SUCCESS);
	CHECK(wc.opcode == RDMA_WC_RECV && wc.byte_len == 10);
	CHECK(strcmp(there + 200, "a message") == 0);
	CHECK(completes(a, 2, RDMA_WC_SUCCESS).opcode == RDMA_WC_SEND);

	/* The peer refuses, and the queue pair has failed. */
	CHECK((id = rdma_post_write(a, mr, 0, region.addr, region.rkey + 1, 10)) == 3);
	completes(a, id, RDMA_WC_REM_ACCESS_ERR);
	CHECK((id = rdma_post_send(a, mr, 1)) == 4);
	completes(a, id, RDMA_WC_WR_FLUSH_ERR);
	destroy(a, b);
	CHECK(rdma_dereg_mr(mr) == 0);
	CHECK(rdma_dereg_mr(remote) == 0);
}

/* many has more completions than the library takes at a time. */
static void many(void)
{
	enum { N = 100 };
	static char mem[PAGE];
	struct rdma_wc wc[N];
	struct rdma_region region;
	int a, b, mr = rdma_reg_mr(mem, PAGE, ALL);
	pair(N, &a, &b);
	CHECK(rdma_query_mr(mr, &region) == 0);
	for (int i = 0; i < N; i++)
		CHECK(rdma_post_write(a, mr, 0, region.addr + 8, region.rkey, 8) == i);
	REFUSED(ENOMEM, rdma_post_write(a, mr, 0, region.addr + 8, region.rkey, 8));
	for (int i = 0, n; i < N; i += n) {
		CHECK((n = rdma_wait_cq(a, wc, N, -1)) > 0);
		for (int j = 0; j < n; j++)
			CHECK(wc[j].wr_id == i + j && wc[j].status == RDMA_WC_SUCCESS);
	}
	destroy(a, b);
	CHECK(rdma_dereg_mr(mr) == 0);
}

/* handles are numbers of C, however many there have been. */
static void handles(void)
{
	static char mem[PAGE];
	for (int i = 0, last = 0, mr; i < 20000; i++, last = mr) {
		CHECK((mr = rdma_reg_mr(mem, PAGE, ALL)) > last);
		CHECK(rdma_dereg_mr(mr) == 0);
	}
}

static void refusals(void)
{
	static char mem[PAGE];
	void *bad[] = { NULL, (void *)8, (void *)70000, (void *)-8, (void *)(1ull << 63), (void *)0xc000000000 };
	char *readable = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rdma_endpoint e = { { 0 } };
	struct rdma_region region;
	struct rdma_wc wc = { 0 };
	int handles[] = { -1, 0, 12345, INT_MAX, INT_MIN };
	int a, b, mr, qp = rdma_create_qp(4, 4);
	CHECK(qp > 0);

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		REFUSED(EFAULT, rdma_reg_mr(bad[i], PAGE, ALL));
		REFUSED(EFAULT, rdma_local_endpoint(qp, bad[i]));
		REFUSED(EFAULT, rdma_connect_qp(qp, bad[i]));
		if (bad[i])
			REFUSED(EFAULT, rdma_open(bad[i]));
	}
	REFUSED(EFAULT, rdma_reg_mr(readable, PAGE, ALL));
	REFUSED(EFAULT, rdma_reg_mr(mem, 1ull << 60, 0));
	REFUSED(EFAULT, rdma_reg_mr(mem, UINT64_MAX, 0));
	REFUSED(EINVAL, rdma_reg_mr(mem, 0, ALL));
	REFUSED(EINVAL, rdma_reg_mr(mem, PAGE, RDMA_ACCESS_REMOTE_WRITE));
	REFUSED(EINVAL, rdma_reg_mr(mem, PAGE, 1 << 20));
	CHECK((mr = rdma_reg_mr(readable, PAGE, RDMA_ACCESS_REMOTE_READ)) > 0);
	CHECK(rdma_dereg_mr(mr) == 0);
	REFUSED(EBADF, rdma_dereg_mr(mr));
	REFUSED(EBADF, rdma_query_mr(mr, &region));
	CHECK((mr = rdma_reg_mr(mem, PAGE, ALL)) > 0);
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
		REFUSED(EFAULT, rdma_query_mr(mr, bad[i]));

	for (unsigned i = 0; i < sizeof handles / sizeof *handles; i++) {
		int h = handles[i];
		REFUSED(EBADF, rdma_dereg_mr(h));
		REFUSED(EBADF, rdma_query_mr(h, &region));
		REFUSED(EBADF, rdma_destroy_qp(h));
		REFUSED(EBADF, rdma_local_endpoint(h, &e));
		REFUSED(EBADF, rdma_post_send(h, mr, 1));
		REFUSED(EBADF, rdma_post_recv(h, mr, 0, 1));
		REFUSED(EBADF, rdma_post_write(h, mr, 0, 0, 0, 1));
		REFUSED(EBADF, rdma_post_read(h, mr, 0, 0, 0, 1));
		wc.status = 0;
		REFUSED(EBADF, rdma_poll_cq(h, &wc, 1));
		CHECK(wc.status == RDMA_WC_GENERAL_ERR);
		REFUSED(EBADF, rdma_wait_cq(h, &wc, 1, LONG));
	}
	REFUSED(EINVAL, rdma_create_qp(-1, 4));
	REFUSED(EINVAL, rdma_create_qp(4, INT_MAX));
	REFUSED(EINVAL, rdma_connect_qp(qp, &e));
	REFUSED(EINVAL, rdma_post_write(qp, mr, 0, 0, 0, 1));
	wc.status = 0;
	REFUSED(EINVAL, rdma_poll_cq(qp, &wc, 1));
	CHECK(wc.status == RDMA_WC_GENERAL_ERR);
	REFUSED(EBADF, rdma_connect_over(qp, -1, mr, NULL));
	REFUSED(ENOTSOCK, rdma_connect_over(qp, open("/dev/null", O_RDWR), mr, NULL));
	REFUSED(EPROTOTYPE, rdma_connect_over(qp, socket(AF_INET, SOCK_DGRAM, 0), mr, NULL));
	REFUSED(EBUSY, rdma_open("sim"));

	pair(4, &a, &b);
	REFUSED(EBADF, rdma_post_send(a, 12345, 1));
	REFUSED(EINVAL, rdma_post_send(a, mr, PAGE + 1));
	REFUSED(EINVAL, rdma_post_recv(a, mr, PAGE, 1));
	REFUSED(EINVAL, rdma_post_write(a, mr, UINT64_MAX, 0, 0, 2));
	REFUSED(EINVAL, rdma_poll_cq(a, &wc, 0));
	REFUSED(EINVAL, rdma_poll_cq(a, &wc, -1));
	CHECK(rdma_post_send(a, mr, 4) == 0);
	CHECK(rdma_post_recv(b, mr, 8, 4) == 0);
	completes(a, 0, RDMA_WC_SUCCESS);
	REFUSED(EFAULT, rdma_poll_cq(b, NULL, 1));
	destroy(a, b);
	REFUSED(EBADF, rdma_destroy_qp(a));
	REFUSED(EINVAL, rdma_post_recv(qp, mr, PAGE, 1));
	CHECK(rdma_post_recv(qp, mr, 0, 1) == 0);
	CHECK(rdma_poll_cq(qp, &wc, 1) == 0);
	CHECK(rdma_destroy_qp(qp) == 0);
	REFUSED(EBADF, rdma_poll_cq(qp, &wc, 1));
	CHECK(rdma_dereg_mr(mr) == 0);
	munmap(readable, PAGE);
}

/* unmapped takes the memory away under the region. */
static void unmapped(void)
{
	char *mem = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int a, b, mr = rdma_reg_mr(mem, PAGE, ALL);
	pair(4, &a, &b);
	munmap(mem, PAGE);
	CHECK(rdma_post_send(a, mr, 4) == 0);
	completes(a, 0, RDMA_WC_LOC_PROT_ERR);
	destroy(a, b);
	CHECK(rdma_dereg_mr(mr) == 0);
}

struct side {
	int socket, qp, mr;
	struct rdma_region remote;
};

static void *connects(void *arg)
{
	struct side *s = arg;
	CHECK(rdma_connect_over(s->qp, s->socket, s->mr, &s->remote) == 0);
	return NULL;
}

static void over_socket(void)
{
	static char mem[PAGE] = "over";
	int sockets[2], mr = rdma_reg_mr(mem, PAGE, ALL);
	pthread_t t;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	struct side a = { .socket = sockets[0], .qp = rdma_create_qp(4, 4), .mr = mr };
	struct side b = { .socket = sockets[1], .qp = rdma_create_qp(4, 4), .mr = -1 };
	CHECK(pthread_create(&t, NULL, connects, &b) == 0);
	connects(&a);
	pthread_join(t, NULL);
	CHECK(a.remote.addr == 0 && b.remote.addr == (uintptr_t)mem);
	CHECK(!(fcntl(sockets[0], F_GETFL) & O_NONBLOCK) && !(fcntl(sockets[1], F_GETFL) & O_NONBLOCK));
	CHECK(rdma_post_write(b.qp, mr, 0, b.remote.addr + 8, b.remote.rkey, 5) == 0);
	completes(b.qp, 0, RDMA_WC_SUCCESS);
	CHECK(strcmp(mem + 8, "over") == 0);
	destroy(a.qp, b.qp);
	a.qp = rdma_create_qp(4, 4);
	close(sockets[1]);
	REFUSED(ECONNRESET, rdma_connect_over(a.qp, sockets[0], -1, NULL));
	close(sockets[0]);
	CHECK(rdma_destroy_qp(a.qp) == 0);
	CHECK(rdma_dereg_mr(mr) == 0);
}

static void *works(void *arg)
{
	char text[32];
	(void)arg;
	for (int i = 0; i < 3; i++)
		transfers();
	REFUSED(EBADF, rdma_destroy_qp(INT_MAX));
	snprintf(text, sizeof text, "%s", rdma_error());
	transfers();
	CHECK(strncmp(text, rdma_error(), sizeof text - 1) == 0);
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, works, NULL) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static void forks(void)
{
	char mem[8];
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		REFUSED(ENODEV, rdma_reg_mr(mem, 8, 0));
		REFUSED(ENODEV, rdma_close());
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void *waits(void *qp)
{
	struct rdma_wc wc;
	REFUSED(EBADF, rdma_wait_cq(*(int *)qp, &wc, 1, -1));
	return NULL;
}

static void closes(void)
{
	static char mem[8];
	struct rdma_wc wc;
	pthread_t t;
	int mr = rdma_reg_mr(mem, 8, 0), qp = rdma_create_qp(1, 1);
	CHECK(mr > 0 && qp > 0);
	CHECK(pthread_create(&t, NULL, waits, &qp) == 0);
	CHECK(rdma_close() == 0);
	pthread_join(t, NULL); /* it may have opened the device again */
	CHECK(rdma_close() == 0);
	CHECK(rdma_close() == 0);
	REFUSED(EINVAL, rdma_open("soft:nowhere"));
	REFUSED(ENODEV, rdma_open("nosuch0"));
	CHECK(rdma_open(NULL) == 0);
	REFUSED(EBADF, rdma_dereg_mr(mr));
	REFUSED(EBADF, rdma_poll_cq(qp, &wc, 1));
	transfers();
}

int main(void)
{
	CHECK(strcmp(rdma_error(), "") == 0);
	transfers();
	many();
	handles();
	refusals();
	unmapped();
	over_socket();
	threads();
	forks();
	closes();
	static int qp;
	pthread_t t;
	CHECK((qp = rdma_create_qp(1, 1)) > 0);
	CHECK(pthread_create(&t, NULL, waits, &qp) == 0); /* the program's end ends it, too */
	printf("all calls are as they should be\n");
	return 0;
}
