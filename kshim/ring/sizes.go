package ring

import "github.com/rdmashim/rdmashim/kshim/abi"

// Limits of rxe's elements (rxe_param.h).
const (
	MaxSGE    = 32          // RXE_MAX_SGE
	MaxInline = MaxSGE * 16 // RXE_MAX_INLINE_DATA: 512 bytes
)

// CQElemSize is the size of a completion queue's slot on Linux 6.1: the kernel
// keeps its own, larger form of a completion in the same slot, of which user
// space sees the first 48 bytes.
const CQElemSize = 128

// SendCap returns rxe's grant for the requested maximum of scatter/gather
// elements and inline bytes, which share the space behind the work request, and
// how large an element that needs before rounding (rxe_qp.c:rxe_qp_init_req).
// The caller has checked the arguments against MaxSGE and MaxInline.
func SendCap(maxSGE, maxInline int) (elemSize, grantedSGE, grantedInline int) {
	n := max(maxSGE*abi.RXESGESize, maxInline)
	return abi.SendWQESize + n, n / abi.RXESGESize, n
}

// RecvElemSize is the size, before rounding, of a receive queue's element with
// that many scatter elements (rxe_queue.h:rcv_wqe_size).
func RecvElemSize(maxSGE int) int { return abi.RecvWQESize + maxSGE*abi.RXESGESize }
