package soak

import (
	"fmt"
	"slices"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// counted are the counters that an end's observed actions determine.
var counted = []string{
	"sent_pkts", "sent_bytes", "retransmitted_pkts", "rdma_sends", "rdma_writes", "rdma_reads", "rdma_atomics", "rdma_recvs",
	"retry_exceeded_err", "retry_rnr_exceeded_err", "send_err", "flushed",
}

// see counts a completion as the queue pair is to count it.
func (e *end) see(c *engine.Completion) {
	s := &e.seen
	switch c.Status {
	case abi.WCWRFlushErr:
		s.Flushed++
	case abi.WCRetryExcErr:
		s.RetryExceeded++
	case abi.WCRNRRetryExcErr:
		s.RNRRetryExceeded++
	case abi.WCLocProtErr, abi.WCLocQPOpErr, abi.WCLocLenErr:
		if !c.Recv {
			s.LocalErrors++
		}
	case abi.WCSuccess:
		switch c.Opcode {
		case abi.WCSend:
			s.Sends++
		case abi.WCRDMAWrite:
			s.Writes++
		case abi.WCRDMARead:
			s.Reads++
		case abi.WCCompSwap, abi.WCFetchAdd:
			s.Atomics++
		case abi.WCRecv, abi.WCRecvRDMAWithImm:
			s.Recvs++
		}
	}
}

// checkCounters compares the queue pair's counters with what was seen.
func (e *end) checkCounters() (err error) {
	want, now := e.before, map[string]uint64{}
	want.Add(&e.seen)
	e.qp.Counters().Each(func(name string, n uint64) { now[name] = n })
	want.Each(func(name string, n uint64) {
		if err == nil && slices.Contains(counted, name) && now[name] != n {
			err = fmt.Errorf("%s counts %s=%d, must be %d", e, name, now[name], n)
		}
	})
	return err
}
