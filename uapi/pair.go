package uapi

import (
	"crypto/rand"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// queuePair is a queue pair.
type queuePair struct {
	device     *Device
	num        QP
	verbs      *verbs.QP
	send, recv *completionQueue
	srq        *sharedQueue // nil: it has receives of its own
	private    bool         // its completion queue is its own
	config     QPConfig
	psn        uint32 // first packet it sends
	made       origin
	dead       atomic.Bool
	inited     atomic.Bool                // it has left RESET
	connected  atomic.Bool                // ConnectQP succeeded
	refused    atomic.Bool                // a send was, because it was not connected
	conn       atomic.Pointer[connection] // nil unless it was connected by address

	windows map[MW]*window // guarded by the device's mu

	modify sync.Mutex // held through LocalEndpoint, ConnectQP, Disconnect
	remote Endpoint   // guarded by modify; zero until RTR

	ids   atomic.Uint64 // ids taken by PostWrite and its siblings
	sends lane[verbs.SendWR]
	recvs lane[verbs.RecvWR]
}

// lane is one direction of a queue pair's posts. Its lock is held while the
// doorbell rings, which lasts milliseconds on rdma_rxe. So each direction has
// its own: a reader that posts receives does not wait for a writer.
type lane[T any] struct {
	mu     sync.Mutex  // orders posts
	wrs    []T         // guarded by mu, as the fields below: requests being translated
	sges   []verbs.SGE // their pieces
	inline []byte      // their data
}

// empty drops the translated requests of the post before, and makes room for n
// of a piece each. Preconditions: mu is held.
func (l *lane[T]) empty(n int) {
	l.wrs, l.sges, l.inline = slices.Grow(l.wrs[:0], n), slices.Grow(l.sges[:0], n), l.inline[:0]
}

// CreateQP creates a reliable-connection queue pair and returns its number.
// sendDepth and recvDepth are the depths of its send and receive queue, and the
// sizes of their completion queues, by which the founding document calls them
// (send_cq_size, recv_cq_size): exactly so many requests may
// be outstanding, which a request is from its post until its completion has
// been polled. 0 means none at all. The completions of both lie in one queue,
// so that PollCQ gives them in the order in which they came.
//
// The queue pair is not connected: ConnectQP does that, and posting before it
// is EINVAL. Errors: EINVAL for sizes that are negative or more than the
// device can; ENOMEM when the device has no room.
func (d *Device) CreateQP(sendDepth, recvDepth int) (QP, error) {
	return d.createQP("CreateQP", QPConfig{SendDepth: sendDepth, RecvDepth: recvDepth})
}

// CreateQPWith creates a queue pair as configured; see QPConfig. A queue pair
// of TypeUD can send and receive when it is made; its peers need its number and
// LocalEndpoint's Addr, for CreateAH. Errors are those of CreateQP, EBADF for a
// bad completion queue or protection domain, and EINVAL for a queue that is too
// small: CreateCQ says what it must hold.
func (d *Device) CreateQPWith(config QPConfig) (QP, error) {
	return d.createQP("CreateQPWith", config)
}

func (d *Device) createQP(op string, config QPConfig) (QP, error) {
	q, err := d.newPair(config)
	if err != nil {
		return -1, opError(op, "", err)
	}
	return q.num, nil
}

// firstPSN draws the PSN with which a queue pair begins to send. It is secret:
// a packet that is forged in this side's name needs it.
func firstPSN() uint32 {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint32(b[:]) & max24
}

func (d *Device) newPair(config QPConfig) (*queuePair, error) {
	if d.closed.Load() {
		return nil, errDeviceClosed
	}
	config, err := d.resolve(config)
	if err != nil {
		return nil, err
	}
	pd, err := d.domain(config.PD)
	if err != nil {
		return nil, err
	}
	q := &queuePair{device: d, config: config, psn: firstPSN(), made: caller()}
	var srq *verbs.SRQ
	if config.SRQ != 0 {
		if q.srq, err = d.sharing(&config); err != nil {
			return nil, err
		}
		srq = q.srq.verbs
	}
	if err := q.attachCQs(); err != nil {
		return nil, err
	}
	q.verbs, err = pd.CreateQP(verbs.QPInit{
		SendCQ:     q.send.verbs,
		RecvCQ:     q.recv.verbs,
		SRQ:        srq,
		MaxSendWR:  config.SendDepth,
		MaxRecvWR:  config.RecvDepth,
		MaxSendSGE: config.SendSGE,
		MaxRecvSGE: config.RecvSGE,
		MaxInline:  config.Inline,
		SigAll:     config.SignalAll && !config.managed, // probes are never signaled
		Probes:     q.probes(),
		Type:       abi.QPType(config.Type),
	})
	if err != nil {
		q.detachCQs()
		return nil, d.ended(err, &d.closed, "")
	}
	q.num = QP(q.verbs.Num())
	if config.Type == TypeUD {
		if err := q.startDatagrams(); err != nil {
			q.verbs.Destroy()
			q.detachCQs()
			return nil, d.ended(err, &d.closed, "")
		}
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return nil, errDeviceClosed
	}
	d.pairs[q.num] = q
	d.qps.Set(uint32(q.num), q)
	return q, nil
}

// attachCQs finds the queue pair's completion queues, or makes one.
func (q *queuePair) attachCQs() error {
	d := q.device
	send, recv := q.config.SendCQ, q.config.RecvCQ
	if send == 0 {
		send = recv
	}
	if recv == 0 {
		recv = send
	}
	if send == 0 {
		size := max(1, q.config.SendDepth+q.config.RecvDepth)
		if q.probes() {
			size++
		}
		if q.srq != nil {
			size += q.srq.config.Depth
		}
		if size > d.limits.cqe {
			return errs.Explain(syscall.EINVAL, "one completion queue for its sends and receives needs %d entries, and the device makes %d: use CreateQPWith with two",
				size, d.limits.cqe)
		}
		cq, err := d.createCQ(size, true)
		if err != nil {
			return err
		}
		q.private = true
		send, recv = cq, cq
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	if q.send, err = d.queue(send); err != nil {
		return err
	}
	if q.recv, err = d.queue(recv); err != nil {
		return err
	}
	sends, recvs := q.claims()
	if err = q.send.claim(sends); err != nil {
		return err
	}
	if err = q.recv.claim(recvs); err != nil {
		q.send.claimed -= sends
		return err
	}
	if q.srq != nil {
		if err = q.srq.take(q.recv); err != nil {
			q.send.claimed -= sends
			q.recv.claimed -= recvs
			return err
		}
	}
	q.send.users++
	q.recv.users++
	return nil
}

// probes reports whether there is room for keepalives beside the program's own
// requests.
func (q *queuePair) probes() bool {
	c := &q.config
	return c.managed && c.SendDepth < q.device.limits.depth && c.SendDepth+c.RecvDepth < q.device.limits.cqe
}

// claims is how many entries it can fill in the two completion queues, all in
// send if they are one.
func (q *queuePair) claims() (send, recv int) {
	send, recv = q.config.SendDepth, q.config.RecvDepth
	if q.probes() {
		send++
	}
	if q.send == q.recv {
		return send + recv, 0
	}
	return send, recv
}

func (q *queuePair) detachCQs() error {
	sends, recvs := q.claims()
	q.device.mu.Lock()
	q.send.claimed -= sends
	q.recv.claimed -= recvs
	if q.srq != nil {
		q.srq.give(q.recv)
	}
	q.send.users--
	q.recv.users--
	q.device.mu.Unlock()
	if q.private {
		return q.device.destroyCQ(q.send)
	}
	return nil
}

// onlyCQ is a queue pair and the completion queue of both its directions.
func (d *Device) onlyCQ(qp QP) (*queuePair, *completionQueue, error) {
	q, err := d.pair(qp)
	if err == nil && q.send != q.recv {
		err = errs.Explain(syscall.EINVAL, "it has two completion queues; use PollQueue and WaitQueue on %s and %s",
			cqName(q.send.handle), cqName(q.recv.handle))
	}
	if err != nil {
		return nil, nil, err
	}
	return q, q.send, nil
}

// noneCanCome says why no completion can come; nil: one may.
func (q *queuePair) noneCanCome() error {
	q.device.mu.Lock()
	shared := q.send.users > 2 // its two directions
	q.device.mu.Unlock()
	if shared || q.config.managed || !q.modify.TryLock() {
		return nil // of another, or it is being connected
	}
	defer q.modify.Unlock()
	if q.connected.Load() || q.inited.Load() && !q.refused.Load() || !q.verbs.Idle() {
		return nil
	}
	return errs.Explain(syscall.EINVAL, "no completion can come: it was never connected, and nothing is outstanding; call ConnectQP, then post")
}

// DestroyQP destroys a queue pair and its memory windows. Requests that are
// outstanding end without a completion; when it returns the device touches no
// memory on their behalf. The peer is not told: its next request fails with
// WCRetryExcErr. It wakes waiters in WaitCQ with net.ErrClosed.
func (d *Device) DestroyQP(qp QP) error { return opError("DestroyQP", qpName(qp), d.destroyQP(qp)) }

func (d *Device) destroyQP(qp QP) error {
	q, err := d.pair(qp)
	if err != nil {
		return err
	}
	d.mu.Lock()
	won := !d.closed.Load() && d.qps.Get(uint32(qp)) == q
	var windows []*window
	if won {
		d.qps.Set(uint32(qp), nil)
		delete(d.pairs, qp)
		q.dead.Store(true)
		windows = q.takeWindows()
	}
	d.mu.Unlock()
	if !won {
		_, err := d.pair(qp)
		return err
	}
	if conn := q.conn.Load(); conn != nil {
		conn.destroy()
	}
	for _, w := range windows {
		_ = w.verbs.Dealloc()
	}
	_ = q.verbs.LeaveGroups() // Destroy tells if it has not
	err = q.verbs.Destroy()
	if e := q.detachCQs(); err == nil {
		err = e
	}
	return d.ended(err, &d.closed, "")
}

// Defaults of QPConfig.
const (
	defaultTimeout     = 4096 << 16 * time.Nanosecond
	defaultRetry       = 6 // 7 is for ever with rdma_rxe (rxe_comp.c:rxe_completer)
	defaultRNRRetry    = 7 // for ever
	defaultMinRNRTimer = 640 * time.Microsecond
	defaultMaxRdAtomic = 16
)

// resolve fills in defaults and checks ranges.
func (d *Device) resolve(q QPConfig) (QPConfig, error) {
	switch q.Type {
	case 0:
		q.Type = TypeRC
	case TypeRC, TypeUC, TypeUD:
	default:
		return q, errs.Explain(syscall.EINVAL, "Type %v is none of TypeRC, TypeUC and TypeUD", q.Type)
	}
	if q.managed && q.Type != TypeRC {
		return q, errs.Explain(syscall.EINVAL, "connections are of TypeRC; queue pairs of %v are not connected by address", q.Type)
	}
	if q.Type != TypeUD && q.QKey != 0 {
		return q, errs.Explain(syscall.EINVAL, "a Q_Key is of datagrams: set Type to TypeUD")
	}
	var err error
	number := func(name string, v *int, standard, least, most int) {
		switch {
		case *v == 0:
			*v = standard
		case *v == -1 && least == 0:
			*v = 0
		case (*v < max(least, 1) || *v > most) && err == nil:
			err = errs.Explain(syscall.EINVAL, "%s %d is not in %d … %d", name, *v, max(least, 1), most)
		}
	}
	period := func(name string, v *time.Duration, standard, least, most time.Duration) {
		switch {
		case *v == 0:
			*v = standard
		case *v == None:
			*v = 0
		case (*v < least || *v > most) && err == nil:
			err = errs.Explain(syscall.EINVAL, "%s %v is not in %v … %v", name, *v, least, most)
		}
	}
	if q.SendDepth < 0 || q.SendDepth > d.limits.depth || q.RecvDepth < 0 || q.RecvDepth > d.limits.depth {
		return q, errs.Explain(syscall.EINVAL, "%d sends and %d receives: the device's queues hold 0 … %d", q.SendDepth, q.RecvDepth, d.limits.depth)
	}
	number("SendSGE", &q.SendSGE, 1, 1, d.limits.sge)
	number("RecvSGE", &q.RecvSGE, 1, 1, d.limits.sge)
	number("Inline", &q.Inline, 0, 1, maxInline)
	period("Timeout", &q.Timeout, defaultTimeout, ackTime(1), ackTime(31))
	number("Retry", &q.Retry, defaultRetry, 0, 7)
	number("RNRRetry", &q.RNRRetry, defaultRNRRetry, 0, 7)
	period("MinRNRTimer", &q.MinRNRTimer, defaultMinRNRTimer, rnrTime(1), rnrTime(0))
	number("MaxRdAtomic", &q.MaxRdAtomic, min(defaultMaxRdAtomic, d.limits.rdAtomic), 0, d.limits.rdAtomic)
	switch {
	case err != nil:
	case q.MTU == 0:
		q.MTU = d.chosen.mtu
	case !abi.IsPathMTU(q.MTU) || q.MTU > d.chosen.mtu:
		err = errs.Explain(syscall.EINVAL, "MTU %d is not a path MTU up to the port's %d", q.MTU, d.chosen.mtu)
	}
	const remote = AccessRemoteWrite | AccessRemoteRead | AccessRemoteAtomic
	switch {
	case err != nil:
	case q.Access == 0:
		q.Access = remote
	case q.Access == None:
		q.Access = 0
	case q.Access&^(remote|AccessLocalWrite) != 0:
		err = errs.Explain(syscall.EINVAL, "access %v has flags that a queue pair does not know", q.Access)
	}
	return q, err
}

// maxInline bounds QPConfig.Inline, in bytes: rxe's largest send slot holds no
// more.
const maxInline = 512
