//go:build linux || darwin

package conform

// newer are the kernels of Linux later than the recorded 6.1, as they were seen
// in 6.12.
const newer = "rxe-6."

// mostNewer is how many differences of newer kernels there may be.
const mostNewer = 28

// newerDifferences are what Linux changed since the recording, in the order of
// their causes.
var newerDifferences = []difference{
	{"device/port", newer, "rxe_param.h: RXE_PORT_MAX_MSG_SZ, as the soft RNIC's", []replacement{{"…max_msg_sz 8388608", "max_msg_sz 2147483648"}}},
	{"uapi/device", newer, "as device/port", []replacement{{"…max message 8388608", "max message 2147483648"}}},
	{"mr/rereg", newer, "rxe_verbs.c:rxe_rereg_user_mr changes access and domain, and not the memory", []replacement{
		{"nothing: EOPNOTSUPP", "nothing: EINVAL"},
		{"access: EOPNOTSUPP", "access: ok"},
		{"REMOTE_WRITE alone: EOPNOTSUPP", "REMOTE_WRITE alone: EINVAL"},
		{"access now: LOCAL_WRITE", "access now: LOCAL_WRITE|REMOTE_WRITE|REMOTE_READ|REMOTE_ATOMIC"},
		{"a send 1: REM_ACCESS_ERR RDMA_WRITE", "a send 1: SUCCESS RDMA_WRITE 64 bytes"},
		{"the old memory: untouched", "the old memory: byte 0 was changed"},
		{"domain: EOPNOTSUPP", "domain: ok"},
		{"Dealloc of the new domain: ok", "Dealloc of the new domain: EBUSY"},
	}},
	{"mr/memory-without-access", newer, "umem.c:ib_umem_get pins without FOLL_FORCE, as the soft RNIC refuses", []replacement{{"to read: ok", "to read: EFAULT"}}},
	{"mr/access-flags-rare", newer, "rxe_verbs.c:rxe_reg_user_mr refuses what RXE_ACCESS_SUPPORTED_MR lacks; 0x100 is for FLUSH, which it has", []replacement{
		{"ON_DEMAND: EINVAL", "ON_DEMAND: EOPNOTSUPP"}, {"0x100: EINVAL", "0x100: ok"},
	}},
	{"command/REG_MR", newer, "as mr/access-flags-rare", []replacement{{"…on demand: EINVAL", "on demand: EOPNOTSUPP"}}},
	{"attr/access", newer, "rxe_qp.c:rxe_qp_chk_attr refuses what RXE_ACCESS_SUPPORTED_QP lacks", []replacement{{"access to INIT with 0x7fffffff: ok", "access to INIT with 0x7fffffff: EINVAL"}}},
	{"abi/create-qp", newer, "rxe_qp.c:rxe_init_sq and rxe_init_rq tell of all places in the rings", []replacement{{"…sends 8", "sends 15"}, {"…receives 8", "receives 15"}}},
	{"state/without-state", newer, "rxe_qp.c:rxe_qp_from_attr looks at masks only where a state is given", []replacement{{"TIMEOUT alone in RTS: EINVAL", "TIMEOUT alone in RTS: ok"}}},
	{"ud/masks", newer, "as state/without-state", []replacement{{"a P_Key: EINVAL", "a P_Key: ok"}, {"SQD with a path: EINVAL", "SQD with a path: ok"}}},
	{"srq/last-request", newer, "rxe_resp.c:flush_recv_queue raises it, as the soft RNIC does", []replacement{{"no event", "QP_LAST_WQE_REACHED, of the queue pair: true"}}},
	{"ud/short-receive-or-a-controlled-q-key", newer, "rxe_resp.c:rxe_resp_check_length drops what does not fit and keeps the receive", []replacement{
		{"b recv 1: LOC_QP_OP_ERR RECV", "b recv: 0 of 1 completions, then deadline exceeded"}, {"b state: ERR", "b state: RTS"},
	}},
	{"ud/after-a-failure", newer, "as error/local-key and ud/short-receive-or-a-controlled-q-key", []replacement{
		{"…LOC_QP_OP_ERR", "WR_FLUSH_ERR"},
		{"b recv 2: WR_FLUSH_ERR RECV", "a message longer than the receive: [], deadline exceeded\nb recv: 0 of 1 completions, then deadline exceeded"},
		{"b send 3: WR_FLUSH_ERR SEND", "b send 3: SUCCESS SEND 8 bytes"},
	}},

	// A request that fails before it is sent: rxe_req.c:rxe_requester moves the
	// queue pair to ERR, where rxe_comp.c:flush_send_queue completes everything
	// that is outstanding alike, and the status that tells why is lost.
	{"error/local-key", newer, "rxe_comp.c:flush_send_queue completes also the request that failed here, and those before it", []replacement{{"…LOC_QP_OP_ERR", "WR_FLUSH_ERR"}, {"…LOC_PROT_ERR", "WR_FLUSH_ERR"}}},
	{"uc/local-key", newer, "as error/local-key", []replacement{{"a send 1: LOC_QP_OP_ERR SEND", "a send 1…2: WR_FLUSH_ERR SEND"}, {"a send 2: WR_FLUSH_ERR SEND", ""}}},
	{"uc/refused-here", newer, "as error/local-key", []replacement{{"…LOC_QP_OP_ERR", "WR_FLUSH_ERR"}}},
	{"ud/no-address-handle", newer, "as error/local-key", []replacement{{"…LOC_QP_OP_ERR", "WR_FLUSH_ERR"}}},
	{"ud/other-operations", newer, "as error/local-key", []replacement{{"…LOC_QP_OP_ERR", "WR_FLUSH_ERR"}}},
	{"mw/bind-refused", newer, "as error/local-key", []replacement{{"…MW_BIND_ERR", "WR_FLUSH_ERR"}}},
	{"mw/bind-to-a-region-without", newer, "as error/local-key", []replacement{{"…MW_BIND_ERR", "WR_FLUSH_ERR"}}},
	{"mw/bind-bound-type-2", newer, "as error/local-key", []replacement{{"…MW_BIND_ERR", "WR_FLUSH_ERR"}}},
	{"mw/invalidate-refused", newer, "as error/local-key", []replacement{{"…LOC_QP_OP_ERR", "WR_FLUSH_ERR"}}},

	{"cm/ack-timeout", newer, "cma.c: CMA_IBOE_PACKET_LIFETIME is 16, and was 18", []replacement{{"…timeout 19", "timeout 17"}}},
	{"cm/no-access", newer, "as cm/ack-timeout", []replacement{{"…timeout 19", "timeout 17"}}},
	{"cm/query-path", newer, "as cm/ack-timeout", []replacement{{"…life 0x92", "life 0x90"}}},
	{"cm/query-route", newer, "as cm/ack-timeout", []replacement{{"…life 2 18", "life 2 16"}}},
	{"cm/queue-pair-attributes", newer, "as cm/ack-timeout, and cm.c:cm_init_qp_init_attr permits FLUSH where the device has it", []replacement{
		{"…timeout 19", "timeout 17"}, {"…REMOTE_ATOMIC,", "REMOTE_ATOMIC|0x300,"},
	}},
}
