/*
 * A peer written against librdmacm, for the tests of connection management:
 *
 *	cmpeer server FLOW ADDRESS PORT
 *	cmpeer client FLOW ADDRESS PORT
 *
 * FLOW is write-read (the client writes 18 bytes and reads the page back), write-imm (the client writes 22 bytes with an
 * immediate value, which completes a receive of the server) or reject (the server refuses). The server's reply carries 12
 * bytes: address and key of its page, big-endian. A server serves one client. Exit status 0 means that every byte was right.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>

#define PAGE 4096
#define WROTE "client-wrote-this"
#define WROTE_IMM "client-wrote-with-imm"
#define REFUSAL "C says no"
#define GREETING "hello from C"

static struct rdma_event_channel *channel;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char *page;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void wrong(const char *what)
{
	fprintf(stderr, "wrong: %s\n", what);
	exit(1);
}

/* expect waits for one event, which the caller acknowledges. */
static struct rdma_cm_event *expect(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev;

	if (rdma_get_cm_event(channel, &ev))
		die("rdma_get_cm_event");
	if (ev->event != type) {
		fprintf(stderr, "event %s with status %d, wanted %s\n", rdma_event_str(ev->event), ev->status, rdma_event_str(type));
		exit(1);
	}
	return ev;
}

static void pass(enum rdma_cm_event_type type)
{
	rdma_ack_cm_event(expect(type));
}

/* build makes what a connection needs on the id's device. */
static void build(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);

	if (!pd)
		die("ibv_alloc_pd");
	cq = ibv_create_cq(id->verbs, 64, NULL, NULL, 0);
	if (!cq)
		die("ibv_create_cq");
	attr.send_cq = attr.recv_cq = cq;
	if (rdma_create_qp(id, pd, &attr))
		die("rdma_create_qp");
	if (posix_memalign((void **)&page, PAGE, PAGE))
		die("posix_memalign");
	memset(page, 0, PAGE);
	mr = ibv_reg_mr(pd, page, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	if (!mr)
		die("ibv_reg_mr");
}

static struct ibv_wc completion(void)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		usleep(100);
	if (n < 0)
		die("ibv_poll_cq");
	if (wc.status != IBV_WC_SUCCESS)
		wrong(ibv_wc_status_str(wc.status));
	return wc;
}

static void post(struct rdma_cm_id *id, enum ibv_wr_opcode op, unsigned length, uint32_t imm, uint64_t addr, uint32_t key)
{
	struct ibv_sge sge = { .addr = (uintptr_t)page, .length = length, .lkey = mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED, .imm_data = imm,
		.wr.rdma = { .remote_addr = addr, .rkey = key },
	};

	if (ibv_post_send(id->qp, &wr, &bad))
		die("ibv_post_send");
	completion();
}

static int serve(const char *flow, struct sockaddr *addr)
{
	struct rdma_cm_id *listener, *id;
	struct rdma_cm_event *ev;
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7 };
	unsigned char reply[12];
	uint64_t at;
	uint32_t key;

	if (rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	if (rdma_bind_addr(listener, addr))
		die("rdma_bind_addr");
	if (rdma_listen(listener, 1))
		die("rdma_listen");
	printf("listening %d\n", ntohs(rdma_get_src_port(listener)));
	fflush(stdout);
	ev = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	id = ev->id;
	printf("request '%.56s'\n", (const char *)ev->param.conn.private_data);
	rdma_ack_cm_event(ev);
	if (!strcmp(flow, "reject")) {
		if (rdma_reject(id, REFUSAL, sizeof(REFUSAL)))
			die("rdma_reject");
		rdma_destroy_id(id);
		rdma_destroy_id(listener);
		return 0;
	}
	build(id);
	strcpy(page, "server-initial");
	if (!strcmp(flow, "write-imm")) {
		struct ibv_recv_wr *bad, wr = { .wr_id = 100 };

		if (ibv_post_recv(id->qp, &wr, &bad))
			die("ibv_post_recv");
	}
	at = htobe64((uintptr_t)page);
	key = htobe32(mr->rkey);
	memcpy(reply, &at, 8);
	memcpy(reply + 8, &key, 4);
	param.private_data = reply;
	param.private_data_len = sizeof(reply);
	if (rdma_accept(id, &param))
		die("rdma_accept");
	pass(RDMA_CM_EVENT_ESTABLISHED);
	if (!strcmp(flow, "write-imm")) {
		struct ibv_wc wc = completion();

		if (wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM || !(wc.wc_flags & IBV_WC_WITH_IMM))
			wrong("completion is not of a write with immediate");
		if (ntohl(wc.imm_data) != sizeof(WROTE_IMM) || wc.byte_len != sizeof(WROTE_IMM))
			wrong("immediate value or length");
	}
	pass(RDMA_CM_EVENT_DISCONNECTED);
	rdma_disconnect(id);
	if (strcmp(page, strcmp(flow, "write-imm") ? WROTE : WROTE_IMM))
		wrong(page);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_destroy_id(listener);
	return 0;
}

static int call(const char *flow, struct sockaddr *addr)
{
	struct rdma_cm_id *id;
	struct rdma_cm_event *ev;
	struct rdma_conn_param param = {
		.private_data = GREETING, .private_data_len = sizeof(GREETING),
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7,
	};
	uint64_t at;
	uint32_t key;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	if (rdma_resolve_addr(id, NULL, addr, 5000))
		die("rdma_resolve_addr");
	pass(RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, 5000))
		die("rdma_resolve_route");
	pass(RDMA_CM_EVENT_ROUTE_RESOLVED);
	build(id);
	if (rdma_connect(id, &param))
		die("rdma_connect");
	if (!strcmp(flow, "reject")) {
		ev = expect(RDMA_CM_EVENT_REJECTED);
		printf("rejected %d '%.148s'\n", ev->status, (const char *)ev->param.conn.private_data);
		rdma_ack_cm_event(ev);
		rdma_destroy_qp(id);
		rdma_destroy_id(id);
		return 0;
	}
	ev = expect(RDMA_CM_EVENT_ESTABLISHED);
	if (ev->param.conn.private_data_len < 12)
		wrong("less than 12 bytes of private data");
	memcpy(&at, ev->param.conn.private_data, 8);
	memcpy(&key, (const char *)ev->param.conn.private_data + 8, 4);
	rdma_ack_cm_event(ev);
	at = be64toh(at);
	key = be32toh(key);
	if (!strcmp(flow, "write-imm")) {
		strcpy(page, WROTE_IMM);
		post(id, IBV_WR_RDMA_WRITE_WITH_IMM, sizeof(WROTE_IMM), htonl(sizeof(WROTE_IMM)), at, key);
	} else {
		strcpy(page, WROTE);
		post(id, IBV_WR_RDMA_WRITE, sizeof(WROTE), 0, at, key);
		memset(page, 0, PAGE);
		post(id, IBV_WR_RDMA_READ, PAGE, 0, at, key);
		if (strcmp(page, WROTE))
			wrong(page);
	}
	if (rdma_disconnect(id))
		die("rdma_disconnect");
	pass(RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	return 0;
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM }, *at;
	int server, status;

	if (argc != 5) {
		fprintf(stderr, "usage: cmpeer server|client write-read|write-imm|reject ADDRESS PORT\n");
		return 2;
	}
	server = !strcmp(argv[1], "server");
	if (getaddrinfo(argv[3], argv[4], &hints, &at))
		wrong("address");
	channel = rdma_create_event_channel();
	if (!channel)
		die("rdma_create_event_channel");
	status = server ? serve(argv[2], at->ai_addr) : call(argv[2], at->ai_addr);
	if (!status)
		printf("ok\n");
	return status;
}
