//go:build linux || darwin

package conform

import (
	"slices"
	"strings"
)

// difference is one that is meant: on these kernels the lines on the left come
// out as those on the right.
type difference struct {
	test    string
	kernels string // a prefix of their names
	reason  string // the kernel's source function or the specification's clause
	lines   []replacement
}

// replacement is a line as it was recorded and as it is seen instead; an empty
// one is a line that is not there. Behind … it is a part of lines.
type replacement struct{ recorded, seen string }

// mostDeclared is how many differences there may be.
const mostDeclared = 26

// differences are all that are declared: where rxe departs from the InfiniBand
// specification the soft RNIC does not follow it, and some things only a kernel
// can do.
var differences = []difference{
	{"device/port", "emulator", "2^31 bytes (IBA vol. 1, 9.3.3), which later ones of rxe have (rxe_param.h: RXE_PORT_MAX_MSG_SZ)", []replacement{
		{"state ACTIVE, max_mtu 4096, active_mtu 1024, max_msg_sz 8388608", "state ACTIVE, max_mtu 4096, active_mtu 1024, max_msg_sz 2147483648"},
	}},
	{"uapi/device", "emulator", "as device/port", []replacement{
		{"max message 8388608, pieces 32, rd_atomic 128, cqe 32767, depth 1048576", "max message 2147483648, pieces 32, rd_atomic 128, cqe 32767, depth 1048576"},
	}},
	{"attr/path-mtu", "emulator", "rxe_qp.c:rxe_qp_chk_attr compares with the port's largest MTU only, and takes 0; the soft RNIC refuses what its port cannot send", []replacement{
		{"path-mtu to RTR with 0x0: ok", "path-mtu to RTR with 0x0: EINVAL"},
		{"path-mtu to RTR with 0x4: ok", "path-mtu to RTR with 0x4: EINVAL"},
		{"path-mtu to RTR with 0x5: ok", "path-mtu to RTR with 0x5: EINVAL"},
	}},
	{"attr/max-dest-rd-atomic", "emulator", "rxe_qp.c:rxe_qp_from_attr rounds up to a power of two, and so takes more than the device's limit and makes 0 of it", []replacement{
		{"0x3 is not what Query gives", ""},
		{"max-dest-rd-atomic to RTR with 0x81: ok", "max-dest-rd-atomic to RTR with 0x81: EINVAL"},
		{"0x81 is not what Query gives", ""},
		{"max-dest-rd-atomic to RTR with 0xff: ok", "max-dest-rd-atomic to RTR with 0xff: EINVAL"},
		{"0xff is not what Query gives", ""},
	}},
	{"attr/retry-counts", "emulator", "rxe_qp.c:rxe_qp_chk_attr does not look; both counts have 3 bits (IBA vol. 1, 9.7.5.2.8 and 12.7)", []replacement{
		{"retry-counts to RTS with 0x78: ok", "retry-counts to RTS with 0x78: EINVAL"},
		{"retry-counts to RTS with 0x87: ok", "retry-counts to RTS with 0x87: EINVAL"},
	}},
	{"mr/memory-without-access", "emulator", "umem.c:ib_umem_get pins with FOLL_FORCE, so that a page which the program itself may not read can be registered for reading", []replacement{
		{"to read: ok", "to read: EFAULT"},
	}},
	{"error/write-imm-bad-key", "emulator", "rxe_resp.c:check_resource takes the receive before check_rkey, and completes it with the requester's status; the soft RNIC checks the key first", []replacement{
		{"b recv 1: REM_ACCESS_ERR RECV", "b recv 1: WR_FLUSH_ERR RECV"},
	}},
	{"error/send-longer-than-the-receive", "emulator", "IBA vol. 1, 9.9.6: LOC_LEN_ERR and a NAK for an invalid request; rxe_resp.c:send_data_in says MALFORMED_WQE", []replacement{
		{"a send 1: REM_OP_ERR SEND", "a send 1: REM_INV_REQ_ERR SEND"},
		{"b recv 1: LOC_QP_OP_ERR RECV", "b recv 1: LOC_LEN_ERR RECV"},
	}},
	{"error/local-key", "emulator", "IBA vol. 1, 11.6.2: LOC_PROT_ERR; rxe_req.c:rxe_requester says LOC_QP_OP_ERR when the region is not found", []replacement{
		{"a send 1: LOC_QP_OP_ERR SEND", "a send 1: LOC_PROT_ERR SEND"},
		{"a send 1: LOC_QP_OP_ERR RDMA_WRITE", "a send 1: LOC_PROT_ERR RDMA_WRITE"},
	}},
	{"uc/send-longer-than-the-receive", "emulator", "as error/send-longer-than-the-receive", []replacement{
		{"b recv 1: LOC_QP_OP_ERR RECV", "b recv 1: LOC_LEN_ERR RECV"},
	}},
	{"uc/local-key", "emulator", "as error/local-key", []replacement{
		{"a send 1: LOC_QP_OP_ERR SEND", "a send 1: LOC_PROT_ERR SEND"},
	}},
	{"error/receive-buffer", "emulator", "IBA vol. 1, 11.6.2: LOC_PROT_ERR; rxe_resp.c:send_data_in says MALFORMED_WQE, which is LOC_QP_OP_ERR", []replacement{
		{"b recv 77: LOC_QP_OP_ERR RECV", "b recv 77: LOC_PROT_ERR RECV"},
	}},
	{"ud/short-receive-or-a-controlled-q-key", "emulator", "IBA vol. 1, 11.6.2: LOC_LEN_ERR, and 10.2.5: a Q_Key with the highest bit set stands for the queue pair's own; rxe_resp.c:send_data_in says MALFORMED_WQE, and rxe_req.c:init_req_packet sends the key as it is", []replacement{
		{"b recv 1: LOC_QP_OP_ERR RECV", "b recv 1: LOC_LEN_ERR RECV"},
		{"b recv 1: SUCCESS RECV 49 bytes GRH", "b recv 1: SUCCESS RECV 48 bytes GRH"},
	}},
	{"mr/rereg", "emulator", "as command/REREG_MR", []replacement{
		{"nothing: EOPNOTSUPP", "nothing: EINVAL"},
		{"access: EOPNOTSUPP", "access: ok"},
		{"REMOTE_WRITE alone: EOPNOTSUPP", "REMOTE_WRITE alone: EINVAL"},
		{"access now: LOCAL_WRITE", "access now: LOCAL_WRITE|REMOTE_WRITE|REMOTE_READ|REMOTE_ATOMIC"},
		{"memory: EOPNOTSUPP", "memory: ok"},
		{"length now: 65536", "length now: 4096"},
		{"a send 1: REM_ACCESS_ERR RDMA_WRITE", "a send 1: SUCCESS RDMA_WRITE 64 bytes"},
		{"domain: EOPNOTSUPP", "domain: ok"},
		{"Dealloc of the new domain: ok", "Dealloc of the new domain: EBUSY"},
	}},
	{"command/REREG_MR", "emulator", "rdma_rxe of Linux 6.1 has no rereg_user_mr (later ones change access and domain); the soft RNIC changes all", []replacement{
		{"by write, as it should be: EOPNOTSUPP", "by write, as it should be: ok"},
		{"by ioctl, as it should be: EOPNOTSUPP", "by ioctl, as it should be: ok"},
	}},
	{"event/solicited-on-a-failure", "emulator", "IBA vol. 1, 11.4.2.2: a failed request counts as solicited; rxe_comp.c posts its completion as one that is not", []replacement{
		{"a failed one is told of: false", "a failed one is told of: true"},
	}},
	{"srq/last-request", "emulator", "IBA o11-5.2.5; rxe_qp.c:rxe_qp_error is silent", []replacement{
		{"no event", "QP_LAST_WQE_REACHED, of the queue pair: true"},
	}},
	{"srq/first-packet", "emulator", "IBA vol. 1, 11.6.3.1; rxe_resp.c:check_req is silent", []replacement{
		{"no event", "COMM_EST, of the queue pair: true"},
	}},
	{"event/none-on-a-failure", "emulator", "IBA vol. 1, 11.6.3.2: a responder whose memory was asked for with a wrong key raises QP_ACCESS_ERR; rxe_resp.c:rxe_responder is silent", []replacement{
		{"event: none, deadline exceeded", "event: QP_ACCESS_ERR of 0xcafe0003"},
	}},
	{"event/small-buffer", "emulator+supervisor", "an event file is a pipe of packets, of which Linux gives what fits", []replacement{
		{"reading 4 bytes: EINVAL", "reading 4 bytes: ok"},
	}},
	{"event/after-the-device-file", "emulator+supervisor", "as event/small-buffer; its end is that of a file", []replacement{
		{"reading the channel: EIO", "reading the channel: ok"},
	}},
	{"abi/read-the-device-file", "emulator+supervisor", "a device file is one of memory, which Linux maps and reads", []replacement{
		{"read: EINVAL", "read: EOF"},
	}},
	{"abi/before-the-context", "emulator+supervisor", "as abi/read-the-device-file", []replacement{{"mmap: EINVAL", "mmap: ok"}}},
	{"abi/mmap-of-what-is-gone", "emulator+supervisor", "as abi/read-the-device-file", []replacement{{"mmap: EINVAL", "mmap: ok"}}},
	{"abi/mmap", "emulator+supervisor", "as abi/read-the-device-file", []replacement{
		{"an offset of nothing: EINVAL", "an offset of nothing: ok"}, {"too long: EINVAL", "too long: ok"}, {"again: EINVAL", "again: ok"},
	}},
	{"abi/resize-rings", "emulator+supervisor", "as abi/read-the-device-file", []replacement{
		{"mapping the first then: EINVAL", "mapping the first then: ok"}, {"mapping it twice: EINVAL", "mapping it twice: ok"},
	}},
}

// declaredFor finds the difference of a test on a kernel, or nil.
func declaredFor(test, kernel string) *difference {
	all := slices.Concat(differences, newerDifferences)
	for i := range all {
		if d := &all[i]; d.test == test && strings.HasPrefix(kernel, d.kernels) {
			return d
		}
	}
	return nil
}

// apply makes of a record what is seen on the kernel that differs. ok is false
// if a line to replace is not there: then the declaration is out of date.
func (d *difference) apply(record []string) (lines []string, ok bool) {
	used := make([]bool, len(d.lines))
	for _, line := range record {
		for i, r := range d.lines {
			if part, ok := strings.CutPrefix(r.recorded, "…"); ok && strings.Contains(line, part) {
				used[i] = true
				line = strings.ReplaceAll(line, part, r.seen)
			} else if r.recorded == line {
				used[i] = true
				line = r.seen
				break
			}
		}
		if line != "" {
			lines = append(lines, strings.Split(line, "\n")...)
		}
	}
	return lines, !slices.Contains(used, false)
}
