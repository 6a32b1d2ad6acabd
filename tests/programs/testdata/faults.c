/*
 * A program with its own handlers of SIGSEGV and SIGBUS: each fault comes to
 * them, with its address, on the stack that they asked for, in threads of the
 * program's and while others use RDMA. No call of RDMA makes a fault.
 */
#define _GNU_SOURCE
#include "loop.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, FAULTS = 300, STACK = 64 << 10 };

static __thread struct {
	char *want; /* where the next fault is to be; none: there is to be none */
	int mend;   /* the handler makes the page accessible, else it jumps */
	int sig, unblocked;
	char *stack; /* the thread's own signal stack */
	sigjmp_buf back;
} here;

static int handled;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	sigset_t blocked;
	char *top = (char *)&blocked;
	(void)context;
	if (!here.want || info->si_addr != here.want || info->si_code <= 0 || sig != here.sig) {
		fprintf(stderr, "signal %d, code %d at %p, not at %p\n", sig, info->si_code, info->si_addr, here.want);
		_exit(2);
	}
	if (here.stack && (top < here.stack || top >= here.stack + STACK)) {
		fprintf(stderr, "the handler is not on its stack\n");
		_exit(3);
	}
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	if (!sigismember(&blocked, SIGUSR2) || sigismember(&blocked, sig) == here.unblocked) {
		fprintf(stderr, "the handler's mask is wrong\n");
		_exit(4);
	}
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
	if (!here.mend)
		siglongjmp(here.back, 1);
	here.want = NULL;
	mprotect((void *)((uintptr_t)info->si_addr & ~(PAGE - 1UL)), PAGE, PROT_READ | PROT_WRITE);
}

static void install(int flags)
{
	struct sigaction a = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | flags }, old;
	sigaddset(&a.sa_mask, SIGUSR2);
	CHECK(!sigaction(SIGSEGV, &a, NULL) && !sigaction(SIGBUS, &a, NULL));
	CHECK(!sigaction(SIGSEGV, NULL, &old) && old.sa_sigaction == on_fault && sigismember(&old.sa_mask, SIGUSR2));
	here.unblocked = !!(flags & SA_NODEFER);
}

static void touch(char *at, int sig)
{
	volatile char *p = at;
	here.want = at;
	here.sig = sig;
	if (!sigsetjmp(here.back, 1)) {
		*p = 1;
		CHECK(here.mend && *p == 1);
	}
	CHECK(!here.mend || !here.want);
	here.want = NULL;
}

/* fault_on_purpose touches what is not there, what is protected, and what a
 * file is too short for. */
static void fault_on_purpose(int n)
{
	int before = __atomic_load_n(&handled, __ATOMIC_RELAXED), file = memfd_create("short", 0);
	char *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *beyond = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	CHECK(page != MAP_FAILED && beyond != MAP_FAILED);
	for (int i = 0; i < n; i++) {
		here.mend = 0;
		touch((char *)(uintptr_t)(8 * i + 8), SIGSEGV);
		touch(page + i, SIGSEGV);
		touch(beyond + i, SIGBUS);
		here.mend = 1;
		touch(page + 2 * i, SIGSEGV);
		CHECK(!mprotect(page, PAGE, PROT_NONE));
	}
	CHECK(__atomic_load_n(&handled, __ATOMIC_RELAXED) >= before + 4 * n);
	CHECK(!munmap(page, PAGE) && !munmap(beyond, PAGE) && !close(file));
}

static struct ibv_context *ctx;

/* no_fault registers memory that is not to be had, and lets the device read
 * memory that has gone. */
static void no_fault(void)
{
	static struct loop l;
	char *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_sge sge = { (uintptr_t)page, 64, 0 };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_mr *mr;
	struct ibv_wc wc;
	int n;
	loop_open(&l, ctx);
	CHECK(!mprotect(page + PAGE, PAGE, PROT_NONE));
	CHECK(!ibv_reg_mr(l.pd, page, 2 * PAGE, 0) && errno == EFAULT);
	CHECK(!ibv_reg_mr(l.pd, NULL, PAGE, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT);
	CHECK((mr = ibv_reg_mr(l.pd, page, PAGE, IBV_ACCESS_LOCAL_WRITE)));
	CHECK(!mprotect(page, PAGE, PROT_NONE));
	sge.lkey = mr->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)l.mem;
	wr.wr.rdma.rkey = l.mr->rkey;
	CHECK(!ibv_post_send(l.qp, &wr, &bad));
	while ((n = ibv_poll_cq(l.cq, 1, &wc)) == 0)
		;
	CHECK(n == 1 && wc.status == IBV_WC_LOC_PROT_ERR && !ibv_dereg_mr(mr));
	loop_close(&l);
}

static int done;

static void *traffic(void *flags)
{
	struct loop *l = calloc(1, sizeof *l);
	loop_open(l, ctx);
	here.unblocked = !!((intptr_t)flags & SA_NODEFER);
	do {
		loop_turn(l);
		fault_on_purpose(1); /* in a thread that the library has seen */
	} while (!__atomic_load_n(&done, __ATOMIC_RELAXED));
	loop_close(l);
	free(l);
	return NULL;
}

static void own_stack(void)
{
	stack_t s = { .ss_size = STACK };
	CHECK((here.stack = s.ss_sp = malloc(STACK)) && !sigaltstack(&s, NULL));
}

static void faults_amid_traffic(int flags)
{
	pthread_t t[2];
	done = 0;
	install(flags);
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&t[i], NULL, traffic, (void *)(intptr_t)flags));
	fault_on_purpose(FAULTS);
	no_fault();
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_join(t[i], NULL));
}

/* once: a handler that is asked for once is gone when it runs. */
static void once(void)
{
	struct sigaction old;
	install(SA_RESETHAND);
	fault_on_purpose(0);
	here.mend = 0;
	touch((char *)8, SIGSEGV);
	CHECK(!sigaction(SIGSEGV, NULL, &old) && old.sa_handler == SIG_DFL);
}

/* child: a fork's faults are its own handlers', too. */
static void child(void)
{
	int status;
	if (!fork()) {
		fault_on_purpose(1);
		install(SA_ONSTACK);
		fault_on_purpose(1);
		_exit(0);
	}
	CHECK(wait(&status) > 0 && !status);
}

int main(int argc, char **argv)
{
	int before = argc > 1 && !strcmp(argv[1], "before");
	if (before) { /* the handlers, and a stack for them, before the library */
		own_stack();
		install(SA_ONSTACK);
		fault_on_purpose(1);
	}
	ctx = device();
	if (before)
		fault_on_purpose(FAULTS);
	faults_amid_traffic(0);
	if (!before)
		own_stack();
	faults_amid_traffic(SA_ONSTACK);
	faults_amid_traffic(SA_ONSTACK | SA_NODEFER);
	child();
	once();
	CHECK(!ibv_close_device(ctx));
	printf("all faults were the program's\n");
	return 0;
}
