/* A queue pair that is its own peer, and turns of it: a message that arrives in
 * order, waited for by events. */
#include <infiniband/verbs.h>

#include "check.h"

struct loop {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	unsigned turns, events, interrupted; /* turns made, events fetched, waits that ended with EINTR */
	uint64_t mem[16];		     /* the first is sent, the ninth received */
};

static inline struct ibv_context *device(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *ctx;
	CHECK(list && n > 0 && (ctx = ibv_open_device(list[0])));
	ibv_free_device_list(list);
	return ctx;
}

/* loop_join connects a queue pair to one of the same device. */
static inline void loop_join(struct ibv_qp *qp, uint32_t qpn, uint32_t psn)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qpn, .rq_psn = psn,
		.ah_attr = { .is_global = 1, .port_num = 1 }, .min_rnr_timer = 1 };
	CHECK(!ibv_query_gid(qp->context, 1, 0, &a.ah_attr.grh.dgid));
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		IBV_QP_MAX_QP_RD_ATOMIC));
}

static inline void loop_connect(struct ibv_qp *qp) { loop_join(qp, qp->qp_num, 0); }

static inline struct ibv_qp *loop_new(struct loop *l)
{
	struct ibv_qp_init_attr init = { .send_cq = l->cq, .recv_cq = l->cq, .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(l->pd, &init);
	CHECK(qp);
	return qp;
}

static inline struct ibv_qp *loop_qp(struct loop *l)
{
	struct ibv_qp *qp = loop_new(l);
	loop_connect(qp);
	return qp;
}

static inline void loop_open(struct loop *l, struct ibv_context *ctx)
{
	memset(l, 0, sizeof *l);
	l->ctx = ctx;
	CHECK((l->pd = ibv_alloc_pd(ctx)));
	CHECK((l->mr = ibv_reg_mr(l->pd, l->mem, sizeof l->mem, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)));
	CHECK((l->channel = ibv_create_comp_channel(ctx)));
	CHECK((l->cq = ibv_create_cq(ctx, 512, NULL, l->channel, 0)));
	l->qp = loop_qp(l);
}

static inline void loop_post(struct loop *l, struct ibv_qp *qp)
{
	struct ibv_sge to = { (uintptr_t)&l->mem[8], 8, l->mr->lkey }, from = { (uintptr_t)l->mem, 8, l->mr->lkey };
	struct ibv_recv_wr *bad_recv, recv = { .wr_id = 1, .sg_list = &to, .num_sge = 1 };
	struct ibv_send_wr *bad, send = { .wr_id = 2, .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	CHECK(!ibv_post_recv(qp, &recv, &bad_recv) && !ibv_post_send(qp, &send, &bad));
}

/* loop_wait fetches an event, however often a signal interrupts. */
static inline void loop_wait(struct loop *l)
{
	struct ibv_cq *cq;
	void *context;
	while (ibv_get_cq_event(l->channel, &cq, &context)) {
		CHECK(errno == EINTR);
		l->interrupted++;
	}
	CHECK(cq == l->cq);
	ibv_ack_cq_events(cq, 1);
	l->events++;
}

/* loop_reap takes n completions of success. */
static inline void loop_reap(struct loop *l, int n)
{
	struct ibv_wc wc;
	for (;;) {
		int got;
		CHECK(!ibv_req_notify_cq(l->cq, 0));
		while ((got = ibv_poll_cq(l->cq, 1, &wc)) == 1) {
			CHECK(wc.status == IBV_WC_SUCCESS);
			if (--n == 0)
				return;
		}
		CHECK(got == 0);
		loop_wait(l);
	}
}

static inline void loop_turn(struct loop *l)
{
	l->mem[0] = ++l->turns;
	loop_post(l, l->qp);
	loop_reap(l, 2);
	CHECK(l->mem[8] == l->turns);
}

/* loop_close destroys all but the context. */
static inline void loop_close(struct loop *l)
{
	CHECK(!ibv_destroy_qp(l->qp) && !ibv_destroy_cq(l->cq) && !ibv_destroy_comp_channel(l->channel));
	CHECK(!ibv_dereg_mr(l->mr) && !ibv_dealloc_pd(l->pd));
}
