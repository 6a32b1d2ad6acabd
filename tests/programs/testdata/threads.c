/*
 * Threads that make a queue pair, post, and end, one after another and many at
 * a time: their messages arrive, and nothing of the threads is left.
 */
#include "loop.h"
#include <dirent.h>
#include <pthread.h>

enum { THREADS = 100, TOGETHER = 10 };

static struct loop l;
static int done;

static void *post_and_end(void *at)
{
	struct ibv_qp *qp = loop_qp(&l);
	loop_post(&l, qp);
	*(struct ibv_qp **)at = qp;
	pthread_exit(NULL);
}

static void *traffic(void *other)
{
	do
		loop_turn(other);
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED));
	return NULL;
}

/* one_by_one has n threads come and go, of which some live at a time. */
static void one_by_one(int n, int together)
{
	struct ibv_qp *qp[TOGETHER];
	pthread_t t[TOGETHER];
	for (int first = 0; first < n; first += together) {
		for (int i = 0; i < together; i++)
			CHECK(!pthread_create(&t[i], NULL, post_and_end, &qp[i]));
		for (int i = 0; i < together; i++)
			CHECK(!pthread_join(t[i], NULL));
		loop_reap(&l, 2 * together);
		for (int i = 0; i < together; i++)
			CHECK(!ibv_destroy_qp(qp[i]));
	}
}

/* count_maps counts the mappings of the process but for the queues', which the
 * library's garbage collector unmaps in its own time. */
static int count_maps(void)
{
	char line[512];
	int n = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	CHECK(f);
	while (fgets(line, sizeof line, f))
		n += !strstr(line, "memfd:rdma-rings");
	fclose(f);
	return n;
}

static int count_threads(void)
{
	struct dirent *e;
	int n = 0;
	DIR *d = opendir("/proc/self/task");
	CHECK(d);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

int main(void)
{
	static struct loop other;
	int maps, threads;
	pthread_t t;
	loop_open(&l, device());
	loop_open(&other, l.ctx);
	CHECK(!pthread_create(&t, NULL, traffic, &other));
	one_by_one(THREADS, TOGETHER);
	maps = count_maps();
	threads = count_threads();
	one_by_one(THREADS, TOGETHER);
	one_by_one(THREADS, 1);
	CHECK(count_maps() < maps + THREADS / 2);
	CHECK(count_threads() < threads + THREADS / 4);
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	CHECK(!pthread_join(t, NULL));
	loop_close(&other);
	loop_close(&l);
	CHECK(!ibv_close_device(l.ctx));
	puts("the threads have gone");
	return 0;
}
