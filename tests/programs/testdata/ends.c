/*
 * Queue pairs that end, as a program sees them that polls without a system
 * call: receives that are posted in ERR, and the last event of a queue pair
 * with a shared receive queue.
 */
#include "loop.h"
#include <sched.h>

static void to_err(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
}

/* flushed posts n receives and takes them from the completion queue. */
static void flushed(struct loop *l, uint64_t n)
{
	struct ibv_recv_wr *bad;
	struct ibv_wc wc;
	for (uint64_t id = 0; id < n; id++)
		CHECK(!ibv_post_recv(l->qp, &(struct ibv_recv_wr){ .wr_id = id }, &bad));
	for (uint64_t id = 0; id < n;) {
		int got = ibv_poll_cq(l->cq, 1, &wc);
		CHECK(got >= 0);
		if (got == 0)
			sched_yield();
		else
			CHECK(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == id++);
	}
}

int main(void)
{
	static struct loop l;
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .cap = { .max_send_wr = 4, .max_send_sge = 1 }, .qp_type = IBV_QPT_RC };
	struct ibv_async_event event;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	loop_open(&l, device());
	to_err(l.qp);
	flushed(&l, 3);
	flushed(&l, 1); /* the device looks again */
	puts("receives posted in ERR: flushed");

	CHECK((srq = ibv_create_srq(l.pd, &shared)));
	init.send_cq = init.recv_cq = l.cq;
	init.srq = srq;
	CHECK((qp = ibv_create_qp(l.pd, &init)));
	loop_connect(qp);
	to_err(qp);
	CHECK(!ibv_get_async_event(l.ctx, &event));
	CHECK(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED && event.element.qp == qp);
	ibv_ack_async_event(&event);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq));
	puts("shared receive queue: the last request is told of");

	loop_close(&l);
	CHECK(!ibv_close_device(l.ctx));
	return 0;
}
