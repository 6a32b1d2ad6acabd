package explain

import (
	"fmt"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// naks says what the codes of a NAK mean (IBA 9.7.5.2).
var naks = map[wire.NAKCode]struct {
	means string
	advice
}{
	wire.NAKPSNSequence: {"the responder got a packet with a later number than it expected, so one before it was lost or is late; the requester begins again with the PSN that the NAK names",
		advice{causes: []string{"a packet was lost on the way, or in a receive buffer that was full", "packets overtook each other", "a packet was damaged and dropped for its ICRC"},
			look: []string{"rdmashim dump --summary: the share of retransmissions", "rdmashim statistic show link, counters of drops and of ICRC errors", "net.core.rmem_max and UDP receive errors (nstat -az UdpRcvbufErrors) of soft devices"}}},
	wire.NAKInvalidRequest: {"the responder cannot take such a request; both queue pairs go to the error state and the requester completes with REM_INV_REQ_ERR",
		advice{causes: []string{"a SEND longer than the receive", "the queue pair's access flags lack remote READ, WRITE or atomic", "an atomic that is not aligned", "packets of another path MTU than the responder was told", "First, Middle and Last out of order"},
			look: []string{"rdmashim explain REM_INV_REQ_ERR"}}},
	wire.NAKRemoteAccess: {"the responder refuses key, address range or right; the requester completes with REM_ACCESS_ERR",
		advice{causes: []string{"the rkey is wrong or stale", "the range leaves the region", "the region lacks the remote right"},
			look: []string{"va, rkey and dmalen of the request with this PSN, or of the First before it", "rdmashim explain REM_ACCESS_ERR"}}},
	wire.NAKRemoteOperational: {"the responder failed for a reason of its own; the requester completes with REM_OP_ERR",
		advice{causes: []string{"the responder's receive has a bad local key or range", "its queue pair failed at the same time", "rdma_rxe: a SEND longer than the receive"},
			look: []string{"completions at the responder", "rdmashim explain REM_OP_ERR"}}},
	wire.NAKInvalidRD: {"of reliable datagrams, which no device of today has",
		advice{causes: []string{"the responder's implementation is wrong"}, look: []string{"what device answers"}}},
}

func syndromeList() (list []Entry) {
	for n := range 256 {
		s := wire.Syndrome(n)
		e := Entry{Kind: Syndrome, Name: s.String(), Number: n, Also: []string{fmt.Sprintf("0x%02x", n)}, Causes: []string{}, Look: []string{}}
		switch {
		case s.IsReserved():
			continue
		case s.IsACK():
			e.ack(s)
		case s.IsRNR():
			e.rnr(s)
		default:
			a := naks[s.NAK()]
			e.Also = append(e.Also, s.NAK().String())
			e.Means, e.Causes, e.Look = a.means, a.causes, a.look
		}
		list = append(list, e)
	}
	return list
}

func (e *Entry) ack(s wire.Syndrome) {
	e.Means = "a positive acknowledgement of every request up to its PSN"
	e.Causes = []string{"nothing is wrong"}
	if n, limited := wire.CreditCount(s.Credits()); limited {
		e.Means += fmt.Sprintf("; %d more requests that use up a receive may be sent", n)
		e.Look = []string{"a requester that heeds credits waits at 0 until an ACK brings more"}
		return
	}
	e.Means += ", without credits: the requester is not limited by them"
}

func (e *Entry) rnr(s wire.Syndrome) {
	t := s.RNRTimer()
	ms := float64(t.Nanoseconds()) / 1e6
	e.Milliseconds = &ms
	e.Means = fmt.Sprintf("receiver not ready: no receive was posted for this request; the requester waits %v and sends it again", t)
	e.Also = append(e.Also, fmt.Sprintf("RNR %d", uint8(t)), fmt.Sprintf("RNR NAK %d", uint8(t)))
	e.Causes = []string{"the peer posts receives later than SENDs, or WRITEs with immediate, arrive", "it posts fewer than may be under way"}
	e.Look = []string{"the peer's posting of receives", "rnr_retry of the requester: when it is used up the completion says RNR_RETRY_EXC_ERR", "the time is min_rnr_timer of the queue pair that answers"}
}
