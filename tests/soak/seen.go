package soak

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// seen counts an end's observed actions, to compare with its queue pair's
// counters.
type seen struct {
	packets, bytes, repeated              uint64
	sends, writes, reads, atomics, recvs  uint64
	retryExceeded, rnrExceeded, localErrs uint64
	flushed                               uint64
}

// completed counts a completion.
func (s *seen) completed(c *engine.Completion) {
	switch c.Status {
	case abi.WCSuccess:
	case abi.WCWRFlushErr:
		s.flushed++
		return
	case abi.WCRetryExcErr:
		s.retryExceeded++
		return
	case abi.WCRNRRetryExcErr:
		s.rnrExceeded++
		return
	case abi.WCLocProtErr, abi.WCLocQPOpErr, abi.WCLocLenErr:
		if !c.Recv {
			s.localErrs++
		}
		return
	default:
		return
	}
	switch c.Opcode {
	case abi.WCSend:
		s.sends++
	case abi.WCRDMAWrite:
		s.writes++
	case abi.WCRDMARead:
		s.reads++
	case abi.WCCompSwap, abi.WCFetchAdd:
		s.atomics++
	case abi.WCRecv, abi.WCRecvRDMAWithImm:
		s.recvs++
	}
}

// checkCounters compares the queue pair's counters with what was seen.
func (e *end) checkCounters() error {
	c, was, s := e.qp.Counters(), &e.counted, &e.seen
	for _, x := range []struct {
		name      string
		now, then uint64
		want      uint64
	}{
		{"sent_pkts", c.SentPkts, was.SentPkts, s.packets},
		{"sent_bytes", c.SentBytes, was.SentBytes, s.bytes},
		{"retransmitted_pkts", c.RetransmittedPkts, was.RetransmittedPkts, s.repeated},
		{"rdma_sends", c.Sends, was.Sends, s.sends},
		{"rdma_writes", c.Writes, was.Writes, s.writes},
		{"rdma_reads", c.Reads, was.Reads, s.reads},
		{"rdma_atomics", c.Atomics, was.Atomics, s.atomics},
		{"rdma_recvs", c.Recvs, was.Recvs, s.recvs},
		{"retry_exceeded_err", c.RetryExceeded, was.RetryExceeded, s.retryExceeded},
		{"retry_rnr_exceeded_err", c.RNRRetryExceeded, was.RNRRetryExceeded, s.rnrExceeded},
		{"send_err", c.LocalErrors, was.LocalErrors, s.localErrs},
		{"flushed", c.Flushed, was.Flushed, s.flushed},
	} {
		if x.now-x.then != x.want {
			return fmt.Errorf("%s counts %s=%d, seen were %d", e, x.name, x.now-x.then, x.want)
		}
	}
	return nil
}
