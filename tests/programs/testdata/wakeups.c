/*
 * Each event of a file is one wake-up, whether earlier ones are read or not:
 * completion channels, asynchronous files and the connection manager's. An
 * argument is the address of the device. It ends so on rdma_rxe of Linux 6.1, too:
 *   rdmashim vm run --add wakeups:/bin/wakeups --add PROVIDER:PROVIDER
 *     --add /etc/libibverbs.d/rxe.driver:/etc/libibverbs.d/rxe.driver
 *     -- sh -c 'wakeups $RDMASHIM_ADDR'
 */
#define _GNU_SOURCE
#include "loop.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

/* post makes one event of a file, take reads one: -1 and EAGAIN if there is
 * none. */
struct file {
	const char *name;
	int fd;
	void (*post)(void);
	int (*take)(void);
};

static struct loop l;

static void reap(int n)
{
	struct ibv_wc wc;
	while (n) {
		int got = ibv_poll_cq(l.cq, 1, &wc);
		CHECK(got >= 0 && (!got || wc.status == IBV_WC_SUCCESS));
		n -= got;
	}
}

/* A completion channel: of a write's completion. */
static void write_to_self(void)
{
	struct ibv_sge from = { (uintptr_t)l.mem, 8, l.mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)&l.mem[8], l.mr->rkey } };
	CHECK(!ibv_req_notify_cq(l.cq, 0) && !ibv_post_send(l.qp, &wr, &bad));
	reap(1);
}

static int take_completion(void)
{
	struct ibv_cq *cq;
	void *context;
	if (ibv_get_cq_event(l.channel, &cq, &context))
		return -1;
	CHECK(cq == l.cq);
	ibv_ack_cq_events(cq, 1);
	return 0;
}

/* An asynchronous file: of a shared receive queue that falls below its limit. */
static struct ibv_srq *srq;
static struct ibv_qp *sharing;

static void share(void)
{
	struct ibv_srq_init_attr s = { .attr = { .max_wr = 2, .max_sge = 1 } };
	struct ibv_qp_init_attr q = { .send_cq = l.cq, .recv_cq = l.cq, .cap = { 4, 0, 1, 0, 0 }, .qp_type = IBV_QPT_RC };
	CHECK((srq = ibv_create_srq(l.pd, &s)));
	q.srq = srq;
	CHECK((sharing = ibv_create_qp(l.pd, &q)));
	loop_connect(sharing);
}

static void fall_below(void)
{
	struct ibv_srq_attr limit = { .srq_limit = 1 };
	struct ibv_sge mem = { (uintptr_t)&l.mem[8], 8, l.mr->lkey };
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = &mem, .num_sge = 1 };
	struct ibv_send_wr *bad, send = { .sg_list = &mem, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	CHECK(!ibv_post_srq_recv(srq, &recv, &bad_recv) && !ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	CHECK(!ibv_post_send(sharing, &send, &bad));
	reap(2);
}

static int take_async(void)
{
	struct ibv_async_event e;
	if (ibv_get_async_event(l.ctx, &e))
		return -1;
	CHECK(e.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && e.element.srq == srq);
	ibv_ack_async_event(&e);
	return 0;
}

/* The connection manager: of an address that is resolved. */
static struct rdma_event_channel *manager;
static struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = 7000 };

static void resolve(void)
{
	struct rdma_cm_id *id;
	CHECK(!rdma_create_id(manager, &id, NULL, RDMA_PS_TCP));
	CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000));
}

static int take_resolved(void)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	if (rdma_get_cm_event(manager, &e))
		return -1;
	CHECK(e->event == RDMA_CM_EVENT_ADDR_RESOLVED);
	id = e->id;
	CHECK(!rdma_ack_cm_event(e) && !rdma_destroy_id(id));
	return 0;
}

static int epoll(int fd, uint32_t events)
{
	struct epoll_event e = { .events = events };
	int ep = epoll_create1(EPOLL_CLOEXEC);
	CHECK(ep >= 0 && !epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
	return ep;
}

static void again(int ep, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events };
	CHECK(!epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e));
}

/* wakes waits for a report, after which there is no other. */
static void wakes(int ep)
{
	struct epoll_event e;
	CHECK(epoll_wait(ep, &e, 1, -1) == 1 && e.events == EPOLLIN);
	CHECK(epoll_wait(ep, &e, 1, 0) == 0);
}

static int waiting(int ep)
{
	struct epoll_event e;
	int n = epoll_wait(ep, &e, 1, 0);
	CHECK(n == 0 || (n == 1 && e.events == EPOLLIN));
	return n;
}

/* readable asks in all other ways, which agree. None can wait to write. */
static int readable(int fd)
{
	struct pollfd p = { fd, POLLIN | POLLOUT, 0 };
	struct timeval tv = { 0, 0 };
	struct timespec ts = { 0, 0 };
	fd_set in, out;
	int n = poll(&p, 1, 0);
	CHECK(n >= 0 && n <= 1 && (!n || p.revents == POLLIN));
	CHECK(ppoll(&p, 1, &ts, NULL) == n);
	FD_ZERO(&in);
	FD_SET(fd, &in);
	out = in;
	CHECK(select(fd + 1, &in, &out, NULL, &tv) == n && !FD_ISSET(fd, &out) && !FD_ISSET(fd, &in) == !n);
	return n;
}

/* each: with up to three unread events every one wakes, in every way to wait. */
static void each(struct file *f)
{
	int other = dup(f->fd), edge = epoll(f->fd, EPOLLIN | EPOLLOUT | EPOLLET), second = epoll(f->fd, EPOLLIN | EPOLLET);
	int of_other = epoll(other, EPOLLIN | EPOLLET), level = epoll(f->fd, EPOLLIN | EPOLLOUT);
	int once = epoll(f->fd, EPOLLIN | EPOLLONESHOT), alone = epoll(f->fd, EPOLLIN | EPOLLEXCLUSIVE);
	CHECK(!readable(f->fd) && !waiting(level) && !waiting(edge));
	FAILS(f->take(), EAGAIN);
	for (int i = 0; i < 3; i++) {
		f->post();
		wakes(edge), wakes(second), wakes(of_other);
		CHECK(waiting(once) == (i == 0));
	}
	again(once, f->fd, EPOLLIN | EPOLLONESHOT);
	wakes(once);
	for (int i = 0; i < 3; i++) {
		CHECK(readable(f->fd) && readable(other) && waiting(level) && waiting(alone));
		CHECK(!f->take());
		CHECK(!waiting(edge) && !waiting(second) && !waiting(of_other));
	}
	CHECK(!readable(f->fd) && !readable(other) && !waiting(level) && !waiting(alone));
	FAILS(f->take(), EAGAIN);
	again(once, f->fd, EPOLLIN | EPOLLONESHOT);
	CHECK(!waiting(once));
	f->post();
	wakes(once), wakes(edge);
	CHECK(!f->take() && !readable(f->fd));
	close(edge), close(second), close(of_other), close(level), close(once), close(alone), close(other);
}

/* behind reads one event a wake-up, behind one that stays unread. */
static void behind(struct file *f, int n)
{
	int ep = epoll(f->fd, EPOLLIN | EPOLLET);
	f->post();
	wakes(ep);
	for (int i = 0; i < n; i++) {
		f->post();
		wakes(ep);
		CHECK(!f->take());
	}
	CHECK(!f->take() && !readable(f->fd));
	close(ep);
}

enum { MANY = 2000 };

static void *post_many(void *f)
{
	for (int i = 0; i < MANY; i++)
		((struct file *)f)->post();
	return NULL;
}

/* beside drains the file at each wake-up while another thread posts. */
static void beside(struct file *f)
{
	int ep = epoll(f->fd, EPOLLIN | EPOLLET), n = 0;
	struct epoll_event e;
	pthread_t t;
	CHECK(!pthread_create(&t, NULL, post_many, f));
	while (n < MANY) {
		CHECK(epoll_wait(ep, &e, 1, -1) == 1);
		while (!f->take())
			n++;
		CHECK(errno == EAGAIN);
	}
	CHECK(!pthread_join(t, NULL) && n == MANY && !readable(f->fd));
	close(ep);
}

/* signals: each event is a SIGIO. The connection manager's file has none. */
static void signals(struct file *f)
{
	sigset_t io;
	siginfo_t info;
	sigemptyset(&io), sigaddset(&io, SIGIO);
	CHECK(!fcntl(f->fd, F_SETOWN, getpid()) && !fcntl(f->fd, F_SETFL, O_NONBLOCK | O_ASYNC));
	for (int i = 0; i < 3; i++) {
		f->post();
		CHECK(sigwaitinfo(&io, &info) == SIGIO);
	}
	CHECK(!fcntl(f->fd, F_SETFL, O_NONBLOCK));
	for (int i = 0; i < 3; i++)
		CHECK(!f->take());
}

int main(int argc, char **argv)
{
	struct file files[] = { { "completion channel", 0, write_to_self, take_completion },
		{ "asynchronous file", 0, fall_below, take_async }, { "connection manager", 0, resolve, take_resolved } };
	sigset_t io;
	CHECK(argc == 2 && inet_pton(AF_INET, argv[1], &address.sin_addr) == 1);
	sigemptyset(&io), sigaddset(&io, SIGIO);
	CHECK(!pthread_sigmask(SIG_BLOCK, &io, NULL));
	loop_open(&l, device());
	share();
	CHECK((manager = rdma_create_event_channel()));
	files[0].fd = l.channel->fd, files[1].fd = l.ctx->async_fd, files[2].fd = manager->fd;
	for (struct file *f = files; f < files + 3; f++) {
		CHECK(!fcntl(f->fd, F_SETFL, O_NONBLOCK));
		each(f);
		behind(f, MANY);
		if (f > files) /* a queue is armed when its event has come, as no thread beside knows */
			beside(f);
		if (f < files + 2)
			signals(f);
		printf("%s: one wake-up an event\n", f->name);
	}
	return 0;
}
