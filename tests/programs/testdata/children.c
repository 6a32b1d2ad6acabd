/*
 * A program that starts others while it uses RDMA. The child of a fork has no
 * RDMA and does no harm to its parent's; a program that it executes has.
 */
#define _GNU_SOURCE
#include "loop.h"
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static struct loop l;

static void ends(pid_t child, int with)
{
	int status;
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != with) {
		fprintf(stderr, "a child ended with %x, not %d\n", status, with);
		exit(1);
	}
	for (int i = 0; i < 20; i++)
		loop_turn(&l); /* the parent's own goes on */
}

/* refused: each thing that a child does with its parent's objects, or with the
 * device, fails with ENODEV. Its end closes all of them. */
static void refused(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_async_event event;
	CHECK(list && list[0] && !ibv_open_device(list[0]) && errno == ENODEV);
	CHECK(!ibv_alloc_pd(l.ctx) && errno == ENODEV);
	CHECK(!ibv_reg_mr(l.pd, l.mem, sizeof l.mem, 0) && errno == ENODEV);
	CHECK(!ibv_create_comp_channel(l.ctx) && errno == ENODEV);
	CHECK(ibv_query_qp(l.qp, &attr, IBV_QP_STATE, &init) == ENODEV);
	CHECK(ibv_destroy_qp(l.qp) == ENODEV);
	CHECK(ibv_get_async_event(l.ctx, &event) == -1 && errno == ENODEV);
	CHECK(write(l.ctx->cmd_fd, l.mem, sizeof l.mem) == -1 && errno == ENODEV);
	CHECK(!close(l.channel->fd) && !close(l.ctx->cmd_fd));
}

/* shown: other programs can ask what this one holds. */
static void shown(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	char tree[PATH_MAX];
	CHECK(realpath("/sys/class/infiniband", tree));
	snprintf(a.sun_path, sizeof a.sun_path, "%.*s/netlink", (int)(strstr(tree, "/sys/class") - tree), tree);
	CHECK(!connect(s, (struct sockaddr *)&a, sizeof a) && !close(s));
}

static int done;

static void *traffic(void *other)
{
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED))
		loop_turn(other);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct loop other;
	char *again[] = { argv[0], "child", NULL }, *nothing[] = { "true", NULL };
	pthread_t t;
	pid_t child;
	loop_open(&l, device());
	loop_turn(&l);
	shown();
	if (argc > 1 && !strcmp(argv[1], "child"))
		return 7;
	if (argc > 1 && !strcmp(argv[1], "exec")) { /* it becomes another program of RDMA */
		execv(argv[0], again);
		return 1;
	}
	loop_open(&other, l.ctx);
	CHECK(!pthread_create(&t, NULL, traffic, &other));
	for (int i = 0; i < 20; i++) {
		if (!(child = fork()))
			_exit(3);
		ends(child, 3);
	}
	if (!(child = fork())) {
		refused();
		_exit(4);
	}
	ends(child, 4);
	if (!(child = fork()))
		exit(5); /* with what is to be done at the end */
	ends(child, 5);
	if (!(child = vfork())) {
		execv("/bin/true", nothing);
		_exit(1);
	}
	ends(child, 0);
	if (!(child = fork())) {
		execv(argv[0], again);
		_exit(1);
	}
	ends(child, 7);
	CHECK(!posix_spawn(&child, argv[0], NULL, NULL, again, environ));
	ends(child, 7);
	again[1] = "exec";
	CHECK(!posix_spawn(&child, argv[0], NULL, NULL, again, environ));
	ends(child, 7);
	CHECK(!system("exit 0"));
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	CHECK(!pthread_join(t, NULL));
	loop_close(&other);
	loop_close(&l);
	CHECK(!ibv_close_device(l.ctx));
	puts("the parent went on");
	return 0;
}
