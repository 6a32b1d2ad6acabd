package verbs

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// QP is a queue pair.
type QP struct {
	ctx    *Context
	key    uint64 // user handle
	handle uint32
	num    uint32
	typ    abi.QPType
	sendCQ *CQ
	recvCQ *CQ
	srq    *SRQ // nil: it has receives of its own
	cap    QPCap
	gen    uint32 // written with both work queues' mu held; changes when the queue pair is reset

	modify sync.Mutex              // held through Modify, Query, kick and Destroy
	gone   bool                    // guarded by modify: destroyed
	groups map[netip.Addr]struct{} // guarded by modify: multicast groups it is in

	state   atomic.Uint32 // abi.QPState as far as the client knows; written with rq.mu held, and sq.mu too unless it goes to ERR
	suspect atomic.Bool   // counted in recvCQ.suspects

	sq   workQueue // its mu guards send, too
	send *sendQueue
	why  Failure // guarded by sq.mu

	rq      workQueue  // its mu guards recv and ringEnd, too
	recv    *recvQueue // nil with srq
	ringEnd uint32     // sequence number behind the last receive that was put into the ring; from there on the client flushes

	sendFull, sendState, recvFull, recvState error // made once: they come in busy loops
}

// CreateQP makes a queue pair in RESET. Depths and sizes outside the device's
// limits are EINVAL, as is a completion queue of another context.
func (pd *PD) CreateQP(init QPInit) (*QP, error) {
	c := pd.ctx
	var qp *QP
	err := pd.command("create QP", "", func() (err error) {
		if err := checkInit(c, &init); err != nil {
			return err
		}
		for _, cq := range init.cqs() {
			cq.use.RLock()
			defer cq.use.RUnlock()
			if cq.gone {
				return errDestroyed
			}
		}
		if s := init.SRQ; s != nil {
			s.use.RLock()
			defer s.use.RUnlock()
			if s.gone {
				return errDestroyed
			}
		}
		qp, err = pd.createQP(&init)
		return err
	})
	if err != nil {
		return nil, err
	}
	return qp, nil
}

func checkInit(c *Context, init *QPInit) error {
	if init.SendCQ == nil || init.RecvCQ == nil {
		return kshim.Reason("completion queue is missing", syscall.EINVAL)
	}
	if init.SendCQ.ctx != c || init.RecvCQ.ctx != c || init.SRQ != nil && init.SRQ.ctx != c {
		return errForeign
	}
	if init.SRQ != nil {
		init.MaxRecvWR, init.MaxRecvSGE = 0, 0
	}
	for _, n := range []int{init.MaxSendWR, init.MaxRecvWR, init.MaxSendSGE, init.MaxRecvSGE, init.MaxInline} {
		if n < 0 || n > maxQueued {
			return errArgument
		}
	}
	if init.Type == 0 {
		init.Type = abi.QPTRC
	}
	return nil
}

// cqs are the completion queues, each once, in the one order in which they are
// locked.
func (init *QPInit) cqs() []*CQ {
	first, second := init.SendCQ, init.RecvCQ
	switch {
	case first == second:
		return []*CQ{first}
	case first.key > second.key:
		first, second = second, first
	}
	return []*CQ{first, second}
}

func (pd *PD) createQP(init *QPInit) (*QP, error) {
	c := pd.ctx
	qp := &QP{ctx: c, key: c.nextKey.Add(1), typ: init.Type, sendCQ: init.SendCQ, recvCQ: init.RecvCQ, srq: init.SRQ}
	req := abi.CreateQP{
		UserHandle: qp.key, PDHandle: pd.handle, SendCQHandle: init.SendCQ.handle, RecvCQHandle: init.RecvCQ.handle,
		// A queue of no slots is no use to rxe's rings: ask for one, and count
		// to zero here.
		MaxSendWR: atLeastOne(init.MaxSendWR), MaxRecvWR: atLeastOne(init.MaxRecvWR),
		MaxSendSGE: atLeastOne(init.MaxSendSGE), MaxRecvSGE: atLeastOne(init.MaxRecvSGE),
		MaxInlineData: uint32(init.MaxInline), QPType: init.Type,
	}
	if init.Probes {
		req.MaxSendWR = uint32(init.MaxSendWR) + 1
	}
	if init.SRQ != nil {
		req.IsSRQ, req.SRQHandle = 1, init.SRQ.handle
	}
	if init.SigAll {
		req.SQSigAll = 1
	}
	resp, sq, rq, err := c.cmd.createQP(&req)
	if err != nil {
		return nil, err
	}
	qp.handle, qp.num, qp.send, qp.recv = resp.QPHandle, resp.QPN, sq, rq
	qp.cap = QPCap{
		MaxSendWR: init.MaxSendWR, MaxRecvWR: init.MaxRecvWR,
		MaxSendSGE: int(resp.MaxSendSGE), MaxRecvSGE: int(resp.MaxRecvSGE), MaxInline: int(resp.MaxInlineData),
	}
	qp.sq.init(init.MaxSendWR)
	qp.sq.entries = make([]entry, len(qp.sq.ids))
	qp.rq.init(init.MaxRecvWR)
	name := qp.name()
	qp.sendFull = &Error{"post send", name, errSendFull}
	qp.sendState = &Error{"post send", name, errSendState}
	qp.recvFull = &Error{"post receive", name, errRecvFull}
	qp.recvState = &Error{"post receive", name, errRecvState}
	qp.attach()
	if qp.srq != nil {
		qp.srq.share(qp)
	}
	c.mu.Lock()
	c.qps[qp.key] = qp
	c.mu.Unlock()
	return qp, nil
}

func atLeastOne(n int) uint32 { return uint32(max(n, 1)) }

// attach gives the queue pair a generation that its completion queues do not
// know yet.
func (qp *QP) attach() {
	for {
		gen := uint32(qp.ctx.nextKey.Add(1)) & genMask
		if !qp.sendCQ.attach(qp, gen) {
			continue
		}
		if !qp.recvCQ.attach(qp, gen) {
			qp.sendCQ.detach(gen)
			continue
		}
		qp.sq.mu.Lock()
		qp.rq.mu.Lock()
		qp.gen = gen
		qp.rq.mu.Unlock()
		qp.sq.mu.Unlock()
		return
	}
}

func (qp *QP) name() string { return fmt.Sprintf("QP %d", qp.num) }

// Num is the queue pair's number, 24 bits.
func (qp *QP) Num() uint32 { return qp.num }

// Cap is the room of the queue pair: the depths that were asked for, the sizes
// as granted.
func (qp *QP) Cap() QPCap { return qp.cap }

// State is the state as far as the client knows without asking: an error that
// no completion told of is missing.
func (qp *QP) State() abi.QPState { return abi.QPState(qp.state.Load()) }

// Idle reports whether nothing is outstanding: every request's completion was
// polled.
func (qp *QP) Idle() bool {
	qp.sq.mu.Lock()
	defer qp.sq.mu.Unlock()
	qp.rq.mu.Lock()
	defer qp.rq.mu.Unlock()
	return qp.sq.outstanding() == 0 && qp.rq.outstanding() == 0
}

// Query asks the kernel for the queue pair's attributes. EBADF after Destroy.
func (qp *QP) Query() (attr QPAttr, err error) {
	var resp abi.QueryQPResp
	err = qp.ctx.call("query", qp.name(), func() (err error) {
		resp, err = qp.query()
		return err
	})
	if err != nil {
		return QPAttr{}, err
	}
	return QPAttr{
		State: resp.QPState, CurState: resp.CurQPState, PathMTU: resp.PathMTU, PathMigState: resp.PathMigState,
		QKey: resp.QKey, RQPSN: resp.RQPSN, SQPSN: resp.SQPSN, DestQPNum: resp.DestQPNum, AccessFlags: resp.QPAccessFlags,
		AV: resp.Dest, AltAV: resp.AltDest, PkeyIndex: resp.PkeyIndex, AltPkeyIndex: resp.AltPkeyIndex,
		SQDraining: resp.SQDraining, MaxRdAtomic: resp.MaxRdAtomic, MaxDestRdAtomic: resp.MaxDestRdAtomic,
		MinRNRTimer: resp.MinRNRTimer, PortNum: resp.PortNum, Timeout: resp.Timeout, RetryCnt: resp.RetryCnt,
		RNRRetry: resp.RNRRetry, AltPortNum: resp.AltPortNum, AltTimeout: resp.AltTimeout,
		Cap: qp.cap, SigAll: resp.SQSigAll != 0,
	}, nil
}

// query is Query for callers that Close may wait for. It learns of an error
// before the queue pair can be reset.
func (qp *QP) query() (resp abi.QueryQPResp, err error) {
	qp.modify.Lock() // the kernel gives a destroyed queue pair's handle to the next object
	defer qp.modify.Unlock()
	if qp.gone {
		return resp, errDestroyed
	}
	err = qp.ctx.cmd.invoke(abi.CmdQueryQP, &abi.QueryQP{QPHandle: qp.handle, AttrMask: queryMask}, &resp, nil)
	if err == nil && resp.QPState == abi.QPSErr && qp.learnError() {
		qp.flushRing()
	}
	return resp, err
}

// queryMask asks for everything.
const queryMask = abi.QPMaskDestQPN<<1 - 1

// Destroy frees the queue pair. Outstanding requests get no completion, and
// completions that were not polled yet are dropped. EBADF the second time.
func (qp *QP) Destroy() error {
	return qp.ctx.call("destroy", qp.name(), func() error { return qp.destroy(errDestroyed) })
}

func (qp *QP) destroy(why error) error {
	qp.modify.Lock()
	defer qp.modify.Unlock()
	if qp.gone {
		return errDestroyed
	}
	if err := qp.send.bell.end(); err != nil {
		return err
	}
	qp.gone = true
	qp.discard(why)
	return nil
}

// drop lets go of a queue pair that the kernel freed with its file.
func (qp *QP) drop(why error) {
	qp.modify.Lock()
	defer qp.modify.Unlock()
	if !qp.gone {
		qp.gone = true
		qp.discard(why)
	}
}

// discard lets go of the client's memory. modify is held.
func (qp *QP) discard(why error) {
	leave(qp.ctx, qp.ctx.qps, qp.key)
	qp.detach()
	if qp.srq != nil {
		qp.srq.unshare(qp)
	}
	qp.sq.mu.Lock()
	qp.rq.mu.Lock()
	qp.sq.dead, qp.rq.dead = why, why
	qp.closeQueues()
	qp.rq.mu.Unlock()
	qp.sq.mu.Unlock()
}

// detach makes the completion queues forget the generation, and with it all
// that is outstanding.
func (qp *QP) detach() {
	qp.sendCQ.detach(qp.gen)
	qp.recvCQ.detach(qp.gen)
	qp.sq.mu.Lock()
	qp.sq.forget()
	qp.why = Failure{}
	qp.sq.mu.Unlock()
	qp.rq.mu.Lock()
	qp.recvCQ.soft.Add(-int32(qp.softCount()))
	qp.rq.forget()
	qp.ringEnd = qp.rq.head
	qp.rq.mu.Unlock()
	if qp.suspect.Swap(false) {
		qp.recvCQ.suspects.Add(-1)
	}
	qp.sq.failed.Store(false)
	qp.rq.failed.Store(false)
}

func (qp *QP) closeQueues() {
	qp.send.close()
	if qp.recv != nil {
		qp.recv.close()
	}
}

// wcOpcodes gives the opcode of a request's completion, by abi.WROpcode.
var wcOpcodes = [...]abi.WCOpcode{
	abi.WRRDMAWrite:         abi.WCRDMAWrite,
	abi.WRRDMAWriteWithImm:  abi.WCRDMAWrite,
	abi.WRSend:              abi.WCSend,
	abi.WRSendWithImm:       abi.WCSend,
	abi.WRRDMARead:          abi.WCRDMARead,
	abi.WRAtomicCmpAndSwp:   abi.WCCompSwap,
	abi.WRAtomicFetchAndAdd: abi.WCFetchAdd,
	abi.WRLocalInv:          abi.WCLocalInv,
	abi.WRBindMW:            abi.WCBindMW,
	abi.WRSendWithInv:       abi.WCSend,
}
