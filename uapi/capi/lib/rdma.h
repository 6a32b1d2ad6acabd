/*
 * RDMA for C programs, with or without an RDMA device: memory regions and
 * queue pairs as plain numbers.
 *
 * A call that fails returns -1, sets errno, and leaves a sentence for
 * rdma_error. EBADF: no such handle, or not any more. EINVAL: an argument or
 * the queue pair's state is wrong. EFAULT: the memory is not there. ENOMEM: the
 * queue is full. ENODEV: no such device, or this is the child of a fork.
 *
 * Every call may be made by any thread at any time.
 */
#ifndef RDMASHIM_RDMA_H
#define RDMASHIM_RDMA_H

#ifdef RDMA_CMA_H
#error "librdmacm has functions of the same names: include it in another source file"
#endif

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library's symbols begin with rdmashim_, so that librdmacm may be in the
 * same program. */
#define RDMASHIM(name) __asm__("rdmashim_" #name)

/* Access flags of memory regions. The device may always read. */
enum {
	RDMA_ACCESS_LOCAL_WRITE = 1,  /* receives and reads may be placed there */
	RDMA_ACCESS_REMOTE_WRITE = 2, /* needs local write */
	RDMA_ACCESS_REMOTE_READ = 4,
};

/* Statuses of completions, numbered as ibv_wc_status. */
enum {
	RDMA_WC_SUCCESS = 0,
	RDMA_WC_LOC_LEN_ERR = 1,     /* a message longer than the receive */
	RDMA_WC_LOC_PROT_ERR = 4,    /* a region that is gone or forbids it */
	RDMA_WC_WR_FLUSH_ERR = 5,    /* after another one had failed */
	RDMA_WC_REM_INV_REQ_ERR = 9, /* longer than the peer's receive */
	RDMA_WC_REM_ACCESS_ERR = 10, /* the peer's memory, or its key */
	RDMA_WC_RETRY_EXC_ERR = 12,  /* the peer does not answer */
	RDMA_WC_GENERAL_ERR = 21,    /* rdma_poll_cq failed */
};

/* Operations of completions, numbered as ibv_wc_opcode; of a completion that
 * failed it means nothing. */
enum {
	RDMA_WC_SEND = 0,
	RDMA_WC_WRITE = 1,
	RDMA_WC_READ = 2,
	RDMA_WC_RECV = 128,
};

/* A completion. */
struct rdma_wc {
	int wr_id;	   /* what the post returned */
	int status;	   /* RDMA_WC_SUCCESS, or why it failed */
	int opcode;	   /* what was done */
	uint64_t byte_len; /* bytes transferred */
};

/* A memory region as its owner tells a peer of it. */
struct rdma_region {
	uint64_t addr;	 /* of the first byte, for remote_addr */
	uint64_t length; /* bytes */
	uint32_t rkey;
	uint32_t access; /* RDMA_ACCESS_ */
};

/* One side of a connection, to be brought to the peer by any means: the bytes
 * are the same on each machine, and those of uapi.Endpoint.MarshalBinary. */
struct rdma_endpoint {
	unsigned char bytes[40];
};

/* rdma_open opens a device by name, such as "soft", "soft:10.0.0.1?loss=1%" or
 * "rxe0"; NULL is what RDMASHIM_DEVICE names, else "soft". The first other call
 * does it too. EBUSY: one is open. */
int rdma_open(const char *device) RDMASHIM(open);

/* rdma_close closes the device, and with it all that was made on it. The end
 * of the program does it too. */
int rdma_close(void) RDMASHIM(close);

/* rdma_reg_mr registers length bytes at addr and returns their handle, above
 * 0. The memory stays the caller's, and must be there until rdma_dereg_mr. */
int rdma_reg_mr(void *addr, uint64_t length, int access_flags) RDMASHIM(reg_mr);

/* rdma_dereg_mr ends a registration: then no device touches the memory. */
int rdma_dereg_mr(int mr_handle) RDMASHIM(dereg_mr);

/* rdma_query_mr tells what a peer must know of a region to reach it. */
int rdma_query_mr(int mr_handle, struct rdma_region *region) RDMASHIM(query_mr);

/* rdma_create_qp makes a queue pair on which so many sends (with writes and
 * reads) and receives can be outstanding, and returns its number, above 0. A
 * request is outstanding until its completion was polled. */
int rdma_create_qp(int send_cq_size, int recv_cq_size) RDMASHIM(create_qp);

/* rdma_destroy_qp destroys a queue pair and what is outstanding on it. */
int rdma_destroy_qp(int qp_num) RDMASHIM(destroy_qp);

/* rdma_local_endpoint tells this side's endpoint. */
int rdma_local_endpoint(int qp_num, struct rdma_endpoint *local) RDMASHIM(local_endpoint);

/* rdma_connect_qp connects a queue pair to the peer's endpoint, whose side
 * calls it with this one's. */
int rdma_connect_qp(int qp_num, const struct rdma_endpoint *remote) RDMASHIM(connect_qp);

/* rdma_connect_over connects a queue pair to the peer's that calls the same at
 * the other end of a connected stream socket; in Go, Device.ConnectOver. It
 * tells the peer of the region local_mr (-1: none), and remote (or NULL) of the
 * peer's, which is zero if there is none. It returns when both sides are
 * connected, or after 30 seconds with ETIMEDOUT. Meanwhile the socket is the
 * call's; EPROTO when something else than a peer is at its end. */
int rdma_connect_over(int qp_num, int socket, int local_mr, struct rdma_region *remote) RDMASHIM(connect_over);

/* rdma_post_write writes length bytes at local_offset of a region to the
 * peer's memory. This call and the next return the request's id, which counts
 * from 0 for each queue pair. What lies in the region must not change until
 * the request has completed. */
int rdma_post_write(int qp_num, int local_mr, uint64_t local_offset, uint64_t remote_addr, uint32_t rkey,
		    uint64_t length) RDMASHIM(post_write);

/* rdma_post_read reads length bytes of the peer's memory to local_offset. */
int rdma_post_read(int qp_num, int local_mr, uint64_t local_offset, uint64_t remote_addr, uint32_t rkey,
		   uint64_t length) RDMASHIM(post_read);

/* rdma_post_send sends the first length bytes of a region as a message, into
 * the peer's next receive, for which it waits. */
int rdma_post_send(int qp_num, int local_mr, uint64_t length) RDMASHIM(post_send);

/* rdma_post_recv has the peer's next message, of at most length bytes, placed
 * at local_offset of a region, which needs local write. Receives may be posted
 * before the queue pair is connected. */
int rdma_post_recv(int qp_num, int local_mr, uint64_t local_offset, uint64_t length) RDMASHIM(post_recv);

/* rdma_poll_cq takes up to max_entries completions and returns how many, 0 if
 * there are none. After an error wc[0] has RDMA_WC_GENERAL_ERR. EINVAL: none
 * can come, since the queue pair is not connected. */
int rdma_poll_cq(int qp_num, struct rdma_wc *wc, int max_entries) RDMASHIM(poll_cq);

/* rdma_wait_cq is rdma_poll_cq that sleeps until there is one, for at most
 * timeout_ms milliseconds, and then returns 0; below 0 means for ever. */
int rdma_wait_cq(int qp_num, struct rdma_wc *wc, int max_entries, int timeout_ms) RDMASHIM(wait_cq);

/* rdma_error says why the thread's last call that failed did. It stays until
 * the next one fails. */
const char *rdma_error(void) RDMASHIM(error);

#undef RDMASHIM

#ifdef __cplusplus
}
#endif

#endif
