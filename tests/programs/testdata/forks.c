/*
 * The device in processes that fork, as on Linux: a child opens it from a list
 * that its parent made, closes its parent's files without harm, and is killed
 * while it waits.
 */
#define _GNU_SOURCE
#include "loop.h"
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static struct ibv_device **list;
static struct loop l;

static void open_and_turn(struct loop *l)
{
	struct ibv_context *ctx = ibv_open_device(list[0]);
	CHECK(ctx);
	loop_open(l, ctx);
	for (int i = 0; i < 20; i++)
		loop_turn(l);
}

/* ends waits for a child, after which the parent's own goes on. */
static void ends(pid_t child, int with)
{
	int status;
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	if (status != with) {
		fprintf(stderr, "a child ended with %x, not %x\n", status, with);
		exit(1);
	}
	for (int i = 0; l.ctx && i < 20; i++)
		loop_turn(&l);
}

int main(int argc, char **argv)
{
	static struct loop own;
	char *again[] = { argv[0], "child", NULL }, byte;
	struct ibv_cq *cq;
	void *context;
	pid_t child;
	int pair[2];
	CHECK((list = ibv_get_device_list(NULL)) && list[0]);
	if (argc > 1) { /* one that was executed */
		open_and_turn(&own);
		return 7;
	}
	if (!(child = fork())) {
		open_and_turn(&own);
		_exit(3);
	}
	ends(child, 3 << 8);
	open_and_turn(&l);
	if (!(child = fork())) {
		open_and_turn(&own); /* beside its parent's */
		loop_close(&own);
		CHECK(!ibv_close_device(own.ctx));
		CHECK(!close(l.channel->fd) && !close(l.ctx->async_fd) && !close(l.ctx->cmd_fd));
		_exit(4);
	}
	ends(child, 4 << 8);
	if (!(child = fork()))
		exit(5); /* with what is to be done at the end */
	ends(child, 5 << 8);
	if (!(child = vfork())) { /* it makes a call in its parent's memory */
		access("/sys/class/infiniband", F_OK);
		execv(argv[0], again);
		_exit(1);
	}
	ends(child, 7 << 8);
	CHECK(!posix_spawn(&child, argv[0], NULL, NULL, again, environ));
	ends(child, 7 << 8);
	CHECK(!system("exit 0") && !pipe(pair));
	if (!(child = fork())) {
		open_and_turn(&own);
		CHECK(write(pair[1], "", 1) == 1);
		while (!ibv_get_cq_event(own.channel, &cq, &context))
			ibv_ack_cq_events(cq, 1); /* for what was reaped without */
		_exit(1);
	}
	CHECK(read(pair[0], &byte, 1) == 1 && !kill(child, SIGKILL));
	ends(child, SIGKILL);
	loop_close(&l);
	CHECK(!ibv_close_device(l.ctx));
	puts("parent and children went on");
	return 0;
}
