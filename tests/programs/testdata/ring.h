/* One of a ring of programs: each sends to its right and receives from its left. */
#include "loop.h"

struct ring {
	struct loop l;
	struct ibv_qp *left, *right;
};

static inline void ring_open(struct ring *r)
{
	loop_open(&r->l, device());
	r->left = loop_new(&r->l);
	r->right = loop_new(&r->l);
}

/* ring_turn sends the text, and replaces it by the one that comes. */
static inline void ring_turn(struct ring *r, char text[64])
{
	struct ibv_sge to = { (uintptr_t)&r->l.mem[8], 64, r->l.mr->lkey }, from = { (uintptr_t)r->l.mem, 64, r->l.mr->lkey };
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = &to, .num_sge = 1 };
	struct ibv_send_wr *bad, send = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	memcpy(r->l.mem, text, 64);
	CHECK(!ibv_post_recv(r->left, &recv, &bad_recv) && !ibv_post_send(r->right, &send, &bad));
	loop_reap(&r->l, 2);
	memcpy(text, &r->l.mem[8], 64);
}

static inline void ring_close(struct ring *r)
{
	CHECK(!ibv_destroy_qp(r->left) && !ibv_destroy_qp(r->right));
	loop_close(&r->l);
	CHECK(!ibv_close_device(r->l.ctx));
}
