/*
 * One of two programs that write into each other's memory until one of them is
 * gone: peer PORT waits for the other, peer PORT ADDRESS FILE looks for it, and
 * makes the file when it begins to write. It tells how its last write ended, or
 * that it never had a peer.
 */
#include "loop.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

struct end {
	union ibv_gid gid;
	uint64_t addr;
	uint32_t rkey, qpn;
};

static void alone(void)
{
	puts("it has no peer");
	exit(0);
}

static int meet(int port, const char *addr)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int s = socket(AF_INET, SOCK_STREAM, 0), on = 1, c;
	if (addr) {
		CHECK(inet_pton(AF_INET, addr, &a.sin_addr) == 1);
		if (connect(s, (struct sockaddr *)&a, sizeof a))
			alone();
		return s;
	}
	CHECK(!setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
	CHECK(!bind(s, (struct sockaddr *)&a, sizeof a) && !listen(s, 1) && (c = accept(s, NULL, NULL)) >= 0);
	close(s);
	return c;
}

static void join(struct ibv_qp *qp, struct end *peer)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qpn,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.dgid = peer->gid }, .min_rnr_timer = 1 };
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 13, .retry_cnt = 3, .rnr_retry = 3 }; /* 34 ms */
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		IBV_QP_MAX_QP_RD_ATOMIC));
}

static enum ibv_wc_status write_on(struct ibv_qp *qp, struct ibv_mr *mr, struct end *peer)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, mr->length, mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { peer->addr, peer->rkey } };
	struct ibv_wc wc;
	int n;
	do {
		CHECK(!ibv_post_send(qp, &wr, &bad));
		while ((n = ibv_poll_cq(qp->send_cq, 1, &wc)) == 0)
			;
		CHECK(n == 1);
	} while (wc.status == IBV_WC_SUCCESS);
	return wc.status;
}

int main(int argc, char **argv)
{
	static char mem[1 << 16];
	struct ibv_context *ctx = device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, sizeof mem, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_cq *cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct end self, peer;
	FILE *f;
	int s;
	CHECK(argc > 1 && qp && mr && !ibv_query_gid(ctx, 1, 0, &self.gid));
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	self.addr = (uintptr_t)mem;
	self.rkey = mr->rkey;
	self.qpn = qp->qp_num;
	signal(SIGPIPE, SIG_IGN);
	s = meet(atoi(argv[1]), argv[2]);
	if (write(s, &self, sizeof self) != sizeof self || read(s, &peer, sizeof peer) != sizeof peer)
		alone();
	join(qp, &peer);
	if (write(s, "", 1) != 1 || read(s, mem, 1) != 1) /* the other is ready, too */
		alone();
	CHECK(argc < 4 || (f = fopen(argv[3], "w")));
	puts(ibv_wc_status_str(write_on(qp, mr, &peer)));
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
	return 0;
}
