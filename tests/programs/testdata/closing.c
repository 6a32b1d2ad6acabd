/*
 * What another thread waits on is closed: whoever closes goes on, and the
 * waiter, which holds the file as in Linux, waits until the device is closed,
 * until its time is up, or until it is cancelled. The number is the program's
 * again, and leads elsewhere.
 */
#define _GNU_SOURCE
#include "loop.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

enum way { EVENT, ASYNC, READ, POLL, EPOLL, WAYS, TOLD };
enum { SHORT = 20 }; /* ms */

struct waiter {
	struct loop l;
	enum way way;
	int epoll;
	sem_t ready;
	pid_t id;
	pthread_t thread;
};

static void *wait_for(void *p)
{
	struct waiter *w = p;
	struct pollfd f = { w->l.channel->fd, POLLIN, 0 };
	struct epoll_event e;
	struct ibv_async_event async;
	struct ibv_cq *cq;
	void *context;
	char event[16];
	long r = 0;
	w->id = gettid();
	sem_post(&w->ready);
	switch (w->way) {
	case TOLD:
		CHECK(!ibv_get_cq_event(w->l.channel, &cq, &context) && cq == w->l.cq);
		ibv_ack_cq_events(cq, 1);
		return NULL;
	case EVENT: r = ibv_get_cq_event(w->l.channel, &cq, &context); break;
	case ASYNC: r = ibv_get_async_event(w->l.ctx, &async); break;
	case READ: r = read(f.fd, event, sizeof event); break;
	case POLL: r = poll(&f, 1, SHORT); break;
	default: r = epoll_wait(w->epoll, &e, 1, SHORT);
	}
	CHECK(w->way >= POLL ? r >= 0 : supervised() ? r <= 0 : r == -1 && errno == EIO); /* or the end of the file */
	return NULL;
}

/* waits looks whether a thread of the program is in poll(2), or in read(2). */
static int waits(pid_t id)
{
	char path[64];
	long number;
	int n;
	FILE *f;
	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", id);
	CHECK((f = fopen(path, "r")));
	n = fscanf(f, "%ld", &number); /* else the thread is running */
	fclose(f);
#ifdef SYS_poll
	if (n == 1 && number == SYS_poll)
		return 1;
#endif
	return n == 1 && number == (supervised() ? SYS_read : SYS_ppoll);
}

static struct waiter *begin(enum way way)
{
	struct waiter *w = calloc(1, sizeof *w);
	struct epoll_event e = { .events = EPOLLIN };
	loop_open(&w->l, device());
	w->way = way;
	CHECK((w->epoll = epoll_create1(EPOLL_CLOEXEC)) >= 0 && !epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->l.channel->fd, &e));
	CHECK(!sem_init(&w->ready, 0, 0) && !pthread_create(&w->thread, NULL, wait_for, w) && !sem_wait(&w->ready));
	while ((way < POLL || way == TOLD) && !waits(w->id))
		sched_yield();
	return w;
}

/* end joins the waiter. Asynchronous events are waited for even when the device
 * was closed. */
static void end(struct waiter *w)
{
	CHECK(w->way != ASYNC || !pthread_cancel(w->thread));
	CHECK(!pthread_join(w->thread, NULL) && !close(w->epoll));
	free(w);
}

/* close_all leaves out some of the closing. */
static void close_all(struct loop *l, int left_out)
{
	CHECK(!ibv_destroy_qp(l->qp));
	if (left_out < 2)
		CHECK(!ibv_destroy_cq(l->cq));
	if (left_out == 0)
		CHECK(!ibv_destroy_comp_channel(l->channel));
	else if (left_out < 3)
		CHECK(!close(l->channel->fd));
	CHECK(!ibv_close_device(l->ctx));
}

/* cancelled: the waiter's hold of the channel goes with it. */
static void cancelled(void)
{
	struct waiter *w = begin(EVENT);
	CHECK(!close(w->l.channel->fd) && !pthread_cancel(w->thread));
	end(w);
}

/* elsewhere closes a number of the program's and leads it to a pipe, whose other
 * end says whether anything but the program wrote there. */
static int elsewhere(int number)
{
	int pair[2];
	CHECK(!pipe2(pair, O_NONBLOCK | O_CLOEXEC) && !close(number));
	CHECK(dup2(pair[1], number) == number && !close(pair[1]));
	return pair[0];
}

static void leads_there(int number, int end)
{
	char c[16];
	FAILS(read(end, c, sizeof c), EAGAIN);
	CHECK(write(number, "?", 1) == 1 && read(end, c, sizeof c) == 1 && *c == '?' && !close(number) && !close(end));
}

/* replaced: the number of what a waiter, or another descriptor, holds. */
static void replaced(void)
{
	struct waiter *w = begin(TOLD);
	int number = w->l.channel->fd, end_of, other;
	CHECK(!ibv_req_notify_cq(w->l.cq, 0));
	end_of = elsewhere(number);
	loop_post(&w->l, w->l.qp);
	CHECK(!pthread_join(w->thread, NULL));
	leads_there(number, end_of);
	close_all(&w->l, 3);
	CHECK(!close(w->epoll));
	free(w);

	w = calloc(1, sizeof *w);
	loop_open(&w->l, device());
	number = w->l.channel->fd;
	CHECK((other = dup(number)) >= 0);
	end_of = elsewhere(number);
	w->l.channel->fd = other;
	loop_turn(&w->l);
	leads_there(number, end_of);
	loop_close(&w->l);
	CHECK(!ibv_close_device(w->l.ctx));
	free(w);
}

int main(void)
{
	for (enum way way = 0; way < WAYS; way++)
		for (int left_out = 0; left_out < (supervised() ? 2 : 4); left_out++) { /* a mapped ring holds the device */
			struct waiter *w = begin(way);
			close_all(&w->l, left_out);
			end(w);
		}
	cancelled();
	replaced();
	begin(EVENT); /* this one waits when the program ends */
	puts("the program ends");
	return 0;
}
