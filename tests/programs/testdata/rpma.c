/* librpma's calls between two ends, "rpma ADDR PORT" and "rpma ADDR PORT
 * client": the client writes the server's mebibyte in pieces, flushes, writes
 * eight bytes at once, reads all of it back, and leaves; the server then finds
 * the bytes, too, and a message that came by SEND. */
#include "check.h"
#include <infiniband/verbs.h>
#include <librpma.h>

enum { SIZE = 1 << 20, PIECE = 1 << 16, LAST = 8 };
static unsigned char area[SIZE + LAST], copy[SIZE + LAST];

static unsigned char byte(int i) { return i * 7 + i / 251; }

static void compare(const unsigned char *got)
{
	for (int i = 0; i < SIZE + LAST; i++)
		CHECK(got[i] == byte(i));
}

static void done(struct rpma_cq *cq, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;
	CHECK(rpma_cq_wait(cq) == 0 && rpma_cq_get_wc(cq, 1, &wc, NULL) == 0);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == opcode);
}

static void event(struct rpma_conn *conn, enum rpma_conn_event expected)
{
	enum rpma_conn_event got;
	CHECK(rpma_conn_next_event(conn, &got) == 0 && got == expected);
}

static struct rpma_peer *peer(const char *addr, enum rpma_util_ibv_context_type type)
{
	struct ibv_context *device;
	struct rpma_peer *p;
	CHECK(rpma_utils_get_ibv_context(addr, type, &device) == 0);
	CHECK(rpma_peer_new(device, &p) == 0);
	return p;
}

static void serve(const char *addr, const char *port)
{
	char descriptor[64], message[PIECE];
	struct rpma_conn_private_data data = { .ptr = descriptor };
	struct rpma_mr_local *mr, *inbox;
	struct rpma_ep *ep;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	size_t size;
	struct rpma_peer *p = peer(addr, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	CHECK(rpma_mr_reg(p, area, sizeof area, RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, &mr) == 0);
	CHECK(rpma_mr_reg(p, message, sizeof message, RPMA_MR_USAGE_RECV, &inbox) == 0);
	CHECK(rpma_mr_get_descriptor_size(mr, &size) == 0 && size <= sizeof descriptor && rpma_mr_get_descriptor(mr, descriptor) == 0);
	data.len = size;
	CHECK(rpma_ep_listen(p, addr, port, &ep) == 0 && rpma_ep_next_conn_req(ep, NULL, &req) == 0);
	CHECK(rpma_conn_req_recv(req, inbox, 0, sizeof message, NULL) == 0);
	CHECK(rpma_conn_req_connect(&req, &data, &conn) == 0 && rpma_conn_get_cq(conn, &cq) == 0);
	event(conn, RPMA_CONN_ESTABLISHED);
	done(cq, IBV_WC_RECV);
	CHECK(memcmp(message, area, sizeof message) == 0);
	event(conn, RPMA_CONN_CLOSED);
	compare(area);
	CHECK(rpma_conn_disconnect(conn) == 0 && rpma_conn_delete(&conn) == 0 && rpma_ep_shutdown(&ep) == 0);
	CHECK(rpma_mr_dereg(&mr) == 0 && rpma_mr_dereg(&inbox) == 0 && rpma_peer_delete(&p) == 0);
}

static void write_all(const char *addr, const char *port)
{
	struct rpma_conn_private_data data;
	struct rpma_mr_local *src, *dst;
	struct rpma_mr_remote *far;
	struct rpma_conn_cfg *cfg;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct rpma_peer *p = peer(addr, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	for (int i = 0; i < SIZE + LAST; i++)
		area[i] = byte(i);
	CHECK(rpma_mr_reg(p, area, sizeof area, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_SEND, &src) == 0);
	CHECK(rpma_mr_reg(p, copy, sizeof copy, RPMA_MR_USAGE_READ_DST, &dst) == 0);
	CHECK(rpma_conn_cfg_new(&cfg) == 0 && rpma_conn_cfg_set_sq_size(cfg, SIZE / PIECE + 1) == 0);
	CHECK(rpma_conn_req_new(p, addr, port, cfg, &req) == 0 && rpma_conn_req_connect(&req, NULL, &conn) == 0);
	event(conn, RPMA_CONN_ESTABLISHED);
	CHECK(rpma_conn_get_cq(conn, &cq) == 0 && rpma_conn_get_private_data(conn, &data) == 0);
	CHECK(rpma_mr_remote_from_descriptor(data.ptr, data.len, &far) == 0);
	for (int i = 0; i < SIZE; i += PIECE)
		CHECK(rpma_write(conn, far, i, src, i, PIECE, RPMA_F_COMPLETION_ON_ERROR, NULL) == 0);
	CHECK(rpma_flush(conn, far, 0, SIZE, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, NULL) == 0);
	done(cq, IBV_WC_RDMA_READ);
	CHECK(rpma_atomic_write(conn, far, SIZE, (char *)area + SIZE, RPMA_F_COMPLETION_ALWAYS, NULL) == 0);
	done(cq, IBV_WC_RDMA_WRITE);
	CHECK(rpma_read(conn, dst, 0, far, 0, SIZE + LAST, RPMA_F_COMPLETION_ALWAYS, NULL) == 0);
	done(cq, IBV_WC_RDMA_READ);
	compare(copy);
	CHECK(rpma_send(conn, src, 0, PIECE, RPMA_F_COMPLETION_ALWAYS, NULL) == 0);
	done(cq, IBV_WC_SEND);
	CHECK(rpma_conn_disconnect(conn) == 0);
	event(conn, RPMA_CONN_CLOSED);
	CHECK(rpma_conn_cfg_delete(&cfg) == 0 && rpma_mr_remote_delete(&far) == 0 && rpma_conn_delete(&conn) == 0);
	CHECK(rpma_mr_dereg(&src) == 0 && rpma_mr_dereg(&dst) == 0 && rpma_peer_delete(&p) == 0);
}

int main(int argc, char **argv)
{
	CHECK(argc > 2);
	(argc > 3 ? write_all : serve)(argv[1], argv[2]);
	printf("the bytes are right\n");
	return 0;
}
