/* Calls of RDMA's files at the system-call line, without rdma-core. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { GET_CONTEXT = 0, ALLOC_PD = 3, DEALLOC_PD = 4, REG_MR = 9, CREATE_COMP_CHANNEL = 17, CREATE_CQ = 18, UCM_GET_EVENT = 12 };

static int context = 300, async;

static int command(int fd, uint32_t number, const void *in, size_t n, size_t out)
{
	struct { uint32_t number; uint16_t in, out; char body[64]; } c = { number, (8 + n) / 4, out / 4, "" };
	memcpy(c.body, in, n);
	return write(fd, &c, 8 + n) == (ssize_t)(8 + n) ? 0 : -1;
}

static int alloc_pd(uint32_t *pd)
{
	uint64_t response = (uintptr_t)pd;
	return command(context, ALLOC_PD, &response, 8, 4);
}

static int dealloc_pd(uint32_t pd) { return command(context, DEALLOC_PD, &pd, 4, 0); }

static int reg_mr(uint32_t pd, void *at, uint64_t n, uint32_t access)
{
	uint32_t answer[3];
	struct { uint64_t response, start, length, virt; uint32_t pd, access; } c =
		{ (uintptr_t)answer, (uintptr_t)at, n, (uintptr_t)at, pd, access };
	return command(context, REG_MR, &c, sizeof c, sizeof answer);
}

static sigjmp_buf back;
static void on_fault(int sig) { siglongjmp(back, sig); }

static int faults(void)
{
	int sig = sigsetjmp(back, 1);
	if (!sig)
		*(volatile int *)8 = 1;
	return sig == SIGSEGV;
}

static void paths(void)
{
	struct stat st;
	struct dirent *e;
	char text[8] = "";
	int found = 0;
	FILE *f;
	DIR *d = opendir("/dev/infiniband");
	CHECK(d);
	while ((e = readdir(d)))
		found += !strcmp(e->d_name, "uverbs0") || !strcmp(e->d_name, "rdma_cm");
	CHECK(found == 2);
	closedir(d);
	CHECK(!stat("/dev/infiniband/uverbs0", &st) && S_ISCHR(st.st_mode) && st.st_rdev == makedev(231, 192));
#ifdef __GLIBC__
	struct statx sx;
	CHECK(!statx(AT_FDCWD, "/dev//infiniband/rdma_cm", 0, STATX_BASIC_STATS, &sx) && S_ISCHR(sx.stx_mode) && sx.stx_rdev_major == 10);
#endif
	CHECK(!access("/sys/class/infiniband/rxe0/", R_OK));
	FAILS(access("/sys/class/infiniband/rxe9", R_OK), ENOENT);
	FAILS(open("/dev/infiniband/uverbs9", O_RDWR), ENOENT);
	CHECK((f = fopen("/sys/class/infiniband_verbs/abi_version", "r")) && fgets(text, sizeof text, f) && !strcmp(text, "6\n"));
	fclose(f);
	CHECK((f = fopen("/sys/class/infiniband/rxe0/ports/1/gids/1023", "r")));
	fclose(f);
	CHECK(!access("/sys/class", R_OK) && !stat("/sys", &st)); /* the machine's own */
}

static void descriptors(void)
{
	struct { uint32_t async, vectors; } answer;
	uint64_t response = (uintptr_t)&answer, nowhere = 16;
	struct pollfd p;
	struct stat st, at;
	char event[16];
	int first = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC), second;
	CHECK(first >= 0 && !fstat(first, &st) && S_ISCHR(st.st_mode) && st.st_rdev == makedev(231, 192));
	CHECK(!fstatat(first, "", &at, AT_EMPTY_PATH) && at.st_rdev == st.st_rdev && at.st_ino == st.st_ino);
#ifdef STATX_BASIC_STATS /* musl has it since 1.2.5 */
	struct statx x;
	CHECK(!statx(first, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &x) && S_ISCHR(x.stx_mode) && x.stx_rdev_minor == 192);
#endif
	second = fcntl(first, F_DUPFD_CLOEXEC, 0);
	CHECK(second >= 0 && second != first && !close(first));
	if (supervised()) /* a number whose writes are held */
		context = (sysconf(_SC_OPEN_MAX) < 1024 ? sysconf(_SC_OPEN_MAX) : 1024) - 1;
	CHECK(dup2(second, context) == context && !close(second));
	FAILS(command(context, GET_CONTEXT, &nowhere, 8, 8), EFAULT);
	CHECK(!command(context, GET_CONTEXT, &response, 8, 8));
	async = answer.async;
	p = (struct pollfd){ async, POLLIN, 0 };
	CHECK(!poll(&p, 1, 0));
	CHECK(!fcntl(async, F_SETFL, O_NONBLOCK));
	FAILS(read(async, event, sizeof event), EAGAIN);
	FAILS(command(async, ALLOC_PD, &response, 8, 4), EBADF);
	CHECK((first = open("/dev/infiniband/uverbs0", O_RDWR)) >= 0);
#ifdef __GLIBC__ /* musl has no close_range */
	CHECK(!close_range(first, first, 0));
#else
	CHECK(!close(first));
#endif
	FAILS(command(first, GET_CONTEXT, &response, 8, 8), EBADF);
}

static int create_cq(int channel)
{
	char answer[24];
	struct { uint64_t response, user; uint32_t entries, vector; int channel, reserved; } cq =
		{ (uintptr_t)answer, 0, 4, 0, channel, 0 };
	return command(context, CREATE_CQ, &cq, sizeof cq, sizeof answer);
}

/* channels: a command names a completion channel by any of its descriptors. */
static void channels(void)
{
	int channel, second, other;
	uint64_t response = (uintptr_t)&channel;
	CHECK(!command(context, CREATE_COMP_CHANNEL, &response, 8, 4));
	second = fcntl(channel, F_DUPFD_CLOEXEC, 0);
	CHECK(!create_cq(channel) && !create_cq(second));
	CHECK(!close(channel) && !create_cq(second));
	other = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, channel);
	CHECK(other == channel);
	FAILS(create_cq(other), EBADF);
	FAILS(create_cq(async), EBADF);
	CHECK(!close(other) && !create_cq(second));
	CHECK(!close(second));
	FAILS(create_cq(second), EBADF);
}

/* memory: what cannot be pinned is EFAULT and no fault, and the program's own
 * faults remain its own, whether its handler came before the library or after. */
static void memory(void)
{
	uint32_t pd;
	char *page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(faults());
	CHECK(signal(SIGSEGV, on_fault) == on_fault);
	CHECK(!alloc_pd(&pd));
	CHECK(!munmap(page + 4096, 4096));
	CHECK(!reg_mr(pd, page, 4096, 0));
	FAILS(reg_mr(pd, page, 8192, 0), EFAULT);
	FAILS(reg_mr(pd, page, 4096, 1), EFAULT);
	FAILS(reg_mr(pd, (void *)0xffff800000000000, 4096, 0), EFAULT);
	FAILS(reg_mr(pd, (void *)0xc000000000, 4096, 0), EFAULT);
	FAILS(alloc_pd((uint32_t *)(page + 4096)), EFAULT);
	CHECK(faults());
}

static volatile sig_atomic_t alarms;
static void on_alarm(int sig) { alarms += sig == SIGALRM; }

static void *work(void *n)
{
	uint32_t pd;
	for (int i = 0; i < (int)(intptr_t)n; i++)
		CHECK(!alloc_pd(&pd) && !dealloc_pd(pd));
	return NULL;
}

static void threads_and_signals(void)
{
	/* A call that is held can be interrupted, too, before it is looked at. */
	struct sigaction a = { .sa_handler = on_alarm, .sa_flags = supervised() ? SA_RESTART : 0 };
	struct itimerval every = { { 0, 500 }, { 0, 500 } }, none = { { 0, 0 }, { 0, 0 } };
	pthread_t t[4];
	CHECK(!sigaction(SIGALRM, &a, NULL) && !setitimer(ITIMER_REAL, &every, NULL));
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 4; i++)
			CHECK(!pthread_create(&t[i], NULL, work, (void *)500));
		for (int i = 0; i < 4; i++)
			CHECK(!pthread_join(t[i], NULL));
	}
	while (!alarms)
		work((void *)10);
	CHECK(!setitimer(ITIMER_REAL, &none, NULL));
}

static volatile int interrupted;
static void on_interrupt(int sig) { (void)sig; }

/* interrupt ends what a thread waits in, when alarms have come to it. */
static void *interrupt(void *thread)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	while (!interrupted)
		if (alarms >= 5)
			pthread_kill(*(pthread_t *)thread, SIGUSR1);
	return NULL;
}

/* events: fetching one waits, also over signals whose handlers restart calls,
 * until one whose handler does not. */
static void events(void)
{
	char answer[512];
	struct { uint32_t cmd; uint16_t in, out; uint64_t response; } get = { UCM_GET_EVENT, 8, sizeof answer, (uintptr_t)answer };
	struct sigaction end = { .sa_handler = on_interrupt }, again = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 5000 }, { 0, 5000 } }, none = { { 0, 0 }, { 0, 0 } };
	pthread_t t, self = pthread_self();
	int cm = open("/dev/infiniband/rdma_cm", O_RDWR | O_NONBLOCK);
	CHECK(cm >= 0);
	FAILS(write(cm, &get, sizeof get), EAGAIN);
	CHECK(!fcntl(cm, F_SETFL, 0));
	alarms = 0;
	CHECK(!sigaction(SIGUSR1, &end, NULL) && !sigaction(SIGALRM, &again, NULL) && !setitimer(ITIMER_REAL, &every, NULL));
	CHECK(!pthread_create(&t, NULL, interrupt, &self));
	FAILS(write(cm, &get, sizeof get), EINTR);
	interrupted = 1;
	CHECK(alarms >= 5 || !supervised()); /* the library does not know which signal came */
	CHECK(!pthread_join(t, NULL) && !setitimer(ITIMER_REAL, &none, NULL) && !close(cm));
}

static void children(void)
{
	int status;
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child) {
		CHECK(!close(async));
		if (supervised())
			_exit(open("/dev/infiniband/uverbs0", O_RDWR) < 0 || open("/dev/infiniband/rdma_cm", O_RDWR) < 0);
		FAILS(open("/dev/infiniband/uverbs0", O_RDWR), ENODEV);
		FAILS(open("/dev/infiniband/rdma_cm", O_RDWR), ENODEV);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
	work((void *)10);
	CHECK(!system("exit 0"));
	work((void *)10);
}

int main(void)
{
	CHECK(signal(SIGSEGV, on_fault) == SIG_DFL);
	paths();
	descriptors();
	channels();
	memory();
	threads_and_signals();
	events();
	children();
	puts("all calls are as they should be");
	return 0;
}
