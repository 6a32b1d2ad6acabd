/*
 * Go's runtime preempts goroutines without signals. SIGURG, its signal, may come
 * to a thread that is back in the program, and ends there what no SA_RESTART
 * resumes: recv of a socket with SO_RCVTIMEO (signal(7)).
 */
#include "loop.h"
#include <signal.h>
#include <stdlib.h>

enum { SIZE = 32 << 20, WRITES = 16 }; /* a goroutine copies for so long that it is preempted */

static int came;

static void on_urgent(int sig)
{
	(void)sig;
	__atomic_add_fetch(&came, 1, __ATOMIC_RELAXED);
}

int main(void)
{
	struct sigaction a = { .sa_handler = on_urgent, .sa_flags = SA_RESTART | SA_ONSTACK };
	struct loop l;
	struct ibv_mr *mr;
	char *memory = malloc(2 * SIZE);
	loop_open(&l, device());
	CHECK(!sigaction(SIGURG, &a, NULL));
	CHECK(memory && (mr = ibv_reg_mr(l.pd, memory, 2 * SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)));
	for (int i = 0; i < WRITES; i++) {
		struct ibv_sge from = { (uintptr_t)memory, SIZE, mr->lkey };
		struct ibv_send_wr *bad, send = { .wr_id = 2, .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED, .wr.rdma = { (uintptr_t)memory + SIZE, mr->rkey } };
		CHECK(!ibv_post_send(l.qp, &send, &bad));
		loop_reap(&l, 1);
	}
	CHECK(!__atomic_load_n(&came, __ATOMIC_RELAXED));
	CHECK(!ibv_dereg_mr(mr));
	free(memory);
	loop_close(&l);
	CHECK(!ibv_close_device(l.ctx));
	puts("no signal came");
	return 0;
}
