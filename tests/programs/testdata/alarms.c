/*
 * A storm of alarms while messages are waited for: a wait ends with EINTR only
 * where the handler is to end it, and no event, message or alarm is lost.
 */
#include "loop.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

enum { TURNS = 500, ALARMS = 50 };

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

/* later posts a message when alarms have met the waiter. */
static void *later(void *until)
{
	while (passed() < (int)(intptr_t)until)
		sched_yield();
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
	while (l.turns < turns + TURNS)
		loop_turn(&l);
	CHECK(passed() > 0);

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	CHECK(!ibv_req_notify_cq(l.cq, 0));
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK(!pthread_create(&t, NULL, later, (void *)(intptr_t)(passed() + ALARMS)));
	CHECK(!pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	loop_wait(&l);
	CHECK(!pthread_join(t, NULL));
	loop_reap(&l, 2);
	CHECK(!setitimer(ITIMER_REAL, &none, NULL));
	CHECK(flags & SA_RESTART ? l.interrupted == before : l.interrupted > before);
}

int main(void)
{
	waiter = pthread_self();
	loop_open(&l, device());
	storm(SA_RESTART);
	storm(0);
	loop_close(&l);
	CHECK(!ibv_close_device(l.ctx));
	puts("no message was lost");
	return 0;
}
