package rdmacm

import (
	"context"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

// QP is the queue pair of a connection; *verbs.QP is one. It must be of the
// device that the id is bound to.
type QP interface {
	Num() uint32
	Modify(attr *verbs.QPAttr, mask abi.QPAttrMask) error
}

// ConnParam holds the parameters that a side sends of its end (struct
// rdma_conn_param).
type ConnParam struct {
	// Private is up to abi.UCMConnectData bytes in Connect and
	// abi.UCMAcceptData in Accept.
	Private []byte

	ResponderResources uint8 // READs and atomics of the peer taken at a time
	InitiatorDepth     uint8 // READs and atomics issued at a time
	FlowControl        bool
	RetryCount         uint8 // 3 bits; in Connect only, and for both sides
	RNRRetryCount      uint8 // 3 bits, 7 for ever: how often the peer tries again when there is no receive

	// KeepAccess says that Modify gave the queue pair its accesses in INIT.
	// Else Connect has it give the kernel's, which are known when the peer has
	// answered only, by INIT once more.
	KeepAccess bool

	// MinRNRTimer is how long the peer waits when this side has no receive, in
	// the 5-bit code of IBA table 45. 0 leaves it to the kernel, which takes 0
	// too: 655.36 ms. It is not sent until a receive is missing.
	MinRNRTimer uint8
}

// setRTR puts in the attributes that the kernel does not know.
func (p *ConnParam) setRTR(a *verbs.QPAttr) {
	if p.MinRNRTimer != 0 {
		a.MinRNRTimer = p.MinRNRTimer & 31
	}
}

func (p *ConnParam) encode(qp QP) abi.UCMConnParam {
	c := abi.UCMConnParam{
		QPNum: qp.Num(), PrivateDataLen: uint8(len(p.Private)), FlowControl: flag(p.FlowControl),
		ResponderResources: p.ResponderResources, InitiatorDepth: p.InitiatorDepth,
		RetryCount: min(p.RetryCount, 7), RNRRetryCount: min(p.RNRRetryCount, 7), Valid: 1,
	}
	copy(c.PrivateData[:], p.Private)
	return c
}

func flag(on bool) uint8 {
	if on {
		return 1
	}
	return 0
}

// QPAttr asks for the attributes that move the id's queue pair to a state,
// INIT, RTR or RTS, and which of them count.
func (id *ID) QPAttr(state abi.QPState) (attr verbs.QPAttr, mask abi.QPAttrMask, err error) {
	err = id.call("ask for the queue pair's attributes of", func() error {
		req := abi.UCMInitQPAttr{ID: id.num, QPState: uint32(state)}
		var a abi.QPAttr
		if err := id.ch.do(&request{abi.UCMCmdInitQPAttr, &req, &req.Response, &a}); err != nil {
			return err
		}
		attr, mask = convert(&a), a.QPAttrMask
		return nil
	})
	return attr, mask, err
}

func convert(a *abi.QPAttr) verbs.QPAttr {
	return verbs.QPAttr{
		State: abi.QPState(a.QPState), CurState: abi.QPState(a.CurQPState), PathMTU: abi.MTU(a.PathMTU),
		PathMigState: abi.MigState(a.PathMigState), QKey: a.QKey, RQPSN: a.RQPSN, SQPSN: a.SQPSN, DestQPNum: a.DestQPNum,
		AccessFlags: a.QPAccessFlags, AV: a.AHAttr.QPDest(), AltAV: a.AltAHAttr.QPDest(), PkeyIndex: a.PkeyIndex,
		AltPkeyIndex: a.AltPkeyIndex, EnSQDAsyncNotify: a.EnSQDAsyncNotify, MaxRdAtomic: a.MaxRdAtomic,
		MaxDestRdAtomic: a.MaxDestRdAtomic, MinRNRTimer: a.MinRNRTimer, PortNum: a.PortNum, Timeout: a.Timeout,
		RetryCnt: a.RetryCnt, RNRRetry: a.RNRRetry, AltPortNum: a.AltPortNum, AltTimeout: a.AltTimeout,
	}
}

// move moves the queue pair to a state with the id's attributes, which change
// may correct.
func (id *ID) move(qp QP, state abi.QPState, change func(*verbs.QPAttr)) error {
	attr, mask, err := id.QPAttr(state)
	if err != nil {
		return err
	}
	if change != nil {
		change(&attr)
	}
	return qp.Modify(&attr, mask|abi.QPMaskState)
}

// Init moves the queue pair to INIT with the id's device port and P_Key, so
// that receives can be posted before the connection is made. Connect and Accept
// do it when it was not done.
func (id *ID) Init(qp QP) error {
	if err := id.move(qp, abi.QPSInit, nil); err != nil {
		return err
	}
	id.mu.Lock()
	id.inited = true
	id.mu.Unlock()
	return nil
}

func (id *ID) ensureInit(qp QP) error {
	id.mu.Lock()
	done := id.inited
	id.mu.Unlock()
	if done {
		return nil
	}
	return id.Init(qp)
}

// Connect connects the queue pair to the peer that the id was resolved to, and
// returns the peer's answer. A refusal is a *RejectedError. How long the kernel
// goes on asking a host that is silent is its own matter, a minute and more
// (UNREACHABLE, ETIMEDOUT): let ctx have a deadline. After an error the id can
// only be destroyed, and the queue pair is in some state on the way.
func (id *ID) Connect(ctx context.Context, qp QP, p ConnParam) (Peer, error) {
	const op = "connect to"
	if err := ctx.Err(); err != nil {
		return Peer{}, &Error{op, id.name(), err}
	}
	if len(p.Private) > abi.UCMConnectData {
		return Peer{}, &Error{op, id.name(), errPrivate}
	}
	if err := id.ensureInit(qp); err != nil {
		return Peer{}, err
	}
	err := id.call(op, func() error {
		req := abi.UCMConnect{ID: id.num, ConnParam: p.encode(qp)}
		return id.ch.command(abi.UCMCmdConnect, &req)
	})
	if err != nil {
		return Peer{}, err
	}
	ev, err := id.await(ctx, op, abi.UCMEventConnectResponse)
	if err != nil {
		return Peer{}, err
	}
	if err := id.complete(qp, &p); err != nil {
		// The peer believes in the connection. Let it know.
		_ = id.call(op, func() error { return id.ch.reject(id.num, abi.UCMRejConsumerDefined, nil) })
		err = wrongState(err, &DisconnectedError{}) // or it has given it up meanwhile
		return Peer{}, outer(op, id.name(), err)
	}
	return ev.Peer, nil
}

// complete is the active side's part after the peer's reply.
func (id *ID) complete(qp QP, p *ConnParam) error {
	if !p.KeepAccess {
		if err := id.move(qp, abi.QPSInit, nil); err != nil {
			return err
		}
	}
	if err := id.move(qp, abi.QPSRTR, p.setRTR); err != nil {
		return err
	}
	if err := id.move(qp, abi.QPSRTS, nil); err != nil {
		return err
	}
	// Without a parameter ACCEPT says that the queue pair is ready. There is no
	// ESTABLISHED on this side.
	return id.call("accept", func() error {
		return id.ch.command(abi.UCMCmdAccept, &abi.UCMAccept{UID: id.uid, ID: id.num})
	})
}

// Disconnect asks the peer to end the connection; DISCONNECTED, and the end of
// Context, tell that it has answered or was given up. It does not wait. The
// queue pair should be moved to ERR. EINVAL for an id that was never connected.
func (id *ID) Disconnect() error {
	return id.call("disconnect", func() error {
		id.mu.Lock()
		id.local = true
		id.mu.Unlock()
		return id.ch.disconnect(id.num)
	})
}
