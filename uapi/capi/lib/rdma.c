//go:build linux

/*
 * The calls of rdma.h. Each calls Go's function of its name, which returns a
 * negative errno on failure and leaves a sentence in text.
 */
#include "rdma.h"
#include "_cgo_export.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>

static __thread char text[RDMASHIM_TEXT];

/* Go does not live on in the child of a fork. */
static int child;

static void in_child(void) { child = 1; }

__attribute__((constructor)) static void begin(void) { pthread_atfork(NULL, NULL, in_child); }

__attribute__((destructor)) static void end(void)
{
	if (!child)
		rdmashimExit();
}

static int result(int r)
{
	if (r >= 0)
		return r;
	errno = -r;
	return -1;
}

static int in_fork(void)
{
	strcpy(text, "rdma: the child of a fork has no RDMA; execute a program");
	return result(-ENODEV);
}

#define CALL(function, ...) return child ? in_fork() : result(function(__VA_ARGS__, text))

int rdma_open(const char *device) { CALL(rdmashimOpen, (char *)device); }

int rdma_close(void) { return child ? in_fork() : result(rdmashimClose(text)); }

int rdma_reg_mr(void *addr, uint64_t length, int access) { CALL(rdmashimRegMR, addr, length, access); }

int rdma_dereg_mr(int mr) { CALL(rdmashimDeregMR, mr); }

int rdma_query_mr(int mr, struct rdma_region *region) { CALL(rdmashimQueryMR, mr, region); }

int rdma_create_qp(int sends, int receives) { CALL(rdmashimCreateQP, sends, receives); }

int rdma_destroy_qp(int qp) { CALL(rdmashimDestroyQP, qp); }

int rdma_local_endpoint(int qp, struct rdma_endpoint *local) { CALL(rdmashimLocalEndpoint, qp, local); }

int rdma_connect_qp(int qp, const struct rdma_endpoint *remote)
{
	CALL(rdmashimConnectQP, qp, (struct rdma_endpoint *)remote);
}

int rdma_connect_over(int qp, int socket, int mr, struct rdma_region *remote)
{
	CALL(rdmashimConnectOver, qp, socket, mr, remote);
}

int rdma_post_write(int qp, int mr, uint64_t offset, uint64_t addr, uint32_t rkey, uint64_t length)
{
	CALL(rdmashimPostWrite, qp, mr, offset, addr, rkey, length);
}

int rdma_post_read(int qp, int mr, uint64_t offset, uint64_t addr, uint32_t rkey, uint64_t length)
{
	CALL(rdmashimPostRead, qp, mr, offset, addr, rkey, length);
}

int rdma_post_send(int qp, int mr, uint64_t length) { CALL(rdmashimPostSend, qp, mr, length); }

int rdma_post_recv(int qp, int mr, uint64_t offset, uint64_t length) { CALL(rdmashimPostRecv, qp, mr, offset, length); }

int rdma_poll_cq(int qp, struct rdma_wc *wc, int max) { CALL(rdmashimWaitCQ, qp, wc, max, 0); }

int rdma_wait_cq(int qp, struct rdma_wc *wc, int max, int timeout) { CALL(rdmashimWaitCQ, qp, wc, max, timeout); }

const char *rdma_error(void) { return text; }
