/*
 * A storm of alarms while messages are waited for: a wait ends with EINTR only
 * where the handler is to end it, and no event, message or alarm is lost. A
 * handler need not return to the wait.
 */
#include "loop.h"
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

enum { TURNS = 500, ALARMS = 50, LEAVES = 50 };

static int alarms;
static pthread_t waiter;

static void on_alarm(int sig)
{
	(void)sig;
	if (!pthread_equal(pthread_self(), waiter))
		_exit(2); /* it has come to a thread of the library */
	__atomic_add_fetch(&alarms, 1, __ATOMIC_RELAXED);
}

static int passed(void) { return __atomic_load_n(&alarms, __ATOMIC_RELAXED); }

static struct loop l;
static int posts; /* the message is posted */

/* later posts a message when alarms have met the waiter. */
static void *later(void *until)
{
	while (passed() < (int)(intptr_t)until)
		sched_yield();
	__atomic_store_n(&posts, 1, __ATOMIC_RELAXED);
	loop_post(&l, l.qp);
	return NULL;
}

static void storm(int flags)
{
	struct sigaction a = { .sa_handler = on_alarm, .sa_flags = flags };
	struct itimerval every = { { 0, 200 }, { 0, 200 } }, none = { { 0, 0 }, { 0, 0 } };
	unsigned turns = l.turns, before = l.interrupted;
	sigset_t set;
	pthread_t t;
	CHECK(!sigaction(SIGALRM, &a, NULL) && !setitimer(ITIMER_REAL, &every, NULL));
	/* A command that is held can end with EINTR, too, before it is looked at. */
	while (l.turns < turns + TURNS && (flags & SA_RESTART || !supervised()))
		loop_turn(&l);
	CHECK(passed() > 0 || supervised());

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	__atomic_store_n(&posts, 0, __ATOMIC_RELAXED);
	CHECK(!ibv_req_notify_cq(l.cq, 0));
	CHECK(!pthread_create(&t, NULL, later, (void *)(intptr_t)(passed() + ALARMS)));
	CHECK(!pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	do /* an event of what was reaped without may come first */
		loop_wait(&l);
	while (!__atomic_load_n(&posts, __ATOMIC_RELAXED));
	CHECK(!pthread_join(t, NULL) && !setitimer(ITIMER_REAL, &none, NULL));
	loop_reap(&l, 2);
	CHECK(flags & SA_RESTART ? l.interrupted == before : l.interrupted > before);
}

static sigjmp_buf timeout;

static void on_timeout(int sig)
{
	(void)sig;
	siglongjmp(timeout, 1);
}

/* leave gives up waits behind messages by a handler. */
static void leave(void)
{
	struct sigaction a = { .sa_handler = on_timeout };
	struct itimerval once = { .it_value = { 0, 1000 } };
	volatile int left;
	CHECK(!sigaction(SIGALRM, &a, NULL));
	for (left = 0; left < LEAVES; left++) {
		loop_turn(&l);
		if (!sigsetjmp(timeout, 1)) {
			CHECK(!setitimer(ITIMER_REAL, &once, NULL));
			for (;;) /* events of what was reaped without may come first */
				loop_wait(&l);
		}
	}
}

int main(void)
{
	waiter = pthread_self();
	loop_open(&l, device());
	storm(SA_RESTART);
	storm(0);
	leave();
	loop_close(&l);
	CHECK(!ibv_close_device(l.ctx));
	puts("no message was lost");
	return 0;
}
