package uapi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// connection is the state of a queue pair that was connected by address.
type connection struct {
	q    *queuePair
	id   *rdmacm.ID
	info ConnInfo

	life  context.Context // ends with the connection; its cause is why
	cut   context.CancelCauseFunc
	stop  func() bool // no longer hear the id's end
	once  sync.Once
	probe prober
}

// ConnInfo describes a connection made by Dial or Request.Accept.
type ConnInfo struct {
	LocalAddr, RemoteAddr netip.AddrPort
	// PrivateData is the peer's private data, of its answer to Dial (196 bytes)
	// or of its request (56 bytes), padded with zeroes: its length is not on
	// the wire.
	PrivateData []byte
}

// channel opens the connection manager on the device's kernel, once.
func (d *Device) channel() (*rdmacm.Channel, error) {
	d.cm.mu.Lock()
	defer d.cm.mu.Unlock()
	switch {
	case d.closed.Load():
		return nil, errDeviceClosed
	case d.cm.channel == nil:
		var err error
		d.cm.channel, err = rdmacm.Open(d.kernel)
		return d.cm.channel, err
	}
	return d.cm.channel, nil
}

// managed is a device's part of the connection manager.
type managed struct {
	mu      sync.Mutex
	channel *rdmacm.Channel // guarded by mu; nil until needed
}

// close ends all connections; their peers are told. Preconditions: the device
// is marked as closed.
func (m *managed) close(pairs map[QP]*queuePair) error {
	m.mu.Lock()
	ch := m.channel
	m.mu.Unlock()
	for _, q := range pairs {
		if conn := q.conn.Load(); conn != nil {
			conn.end(errDeviceClosed)
		}
	}
	if ch == nil {
		return nil
	}
	return ch.Close()
}

// begin makes the queue pair a connected one.
func (q *queuePair) begin(id *rdmacm.ID, info ConnInfo, keepAlive time.Duration) {
	conn := &connection{q: q, id: id, info: info}
	conn.life, conn.cut = context.WithCancelCause(context.Background())
	conn.probe.init(conn, keepAlive)
	conn.probe.start()
	conn.stop = context.AfterFunc(id.Context(), func() { conn.end(conn.verdict()) })
	q.conn.Store(conn)                           // from now on completions and DestroyQP can end it
	if q.device.closed.Load() || q.dead.Load() { // Close or DestroyQP may have missed it
		conn.end(errDeviceClosed)
		_ = id.Destroy()
	}
	if q.verbs.State() == abi.QPSErr { // a failed completion was polled before this
		conn.fail(conn.verdict())
	}
}

// failed ends the connections of completions that failed, and gives all the
// peer and flushed ones the cause.
func (d *Device) failed(list []WC) {
	var last *queuePair
	var flushed, other *failure // last's
	for i := range list {
		wc := &list[i]
		if wc.Status == WCSuccess {
			continue
		}
		q := d.qps.Get(uint32(wc.QP))
		if q == nil {
			continue
		}
		if q != last {
			last, other = q, &failure{peer: q.peer()}
			flushed = other
			if conn := q.conn.Load(); conn != nil {
				if conn.life.Err() == nil {
					conn.fail(conn.verdict())
				}
				if why := context.Cause(conn.life); !errors.Is(why, ErrQPFailed) {
					flushed = &failure{why, other.peer}
				}
			}
		}
		if wc.failure = other; wc.Status == WCWRFlushErr {
			wc.failure = flushed
		}
	}
}

// peer is the peer's end of a connected queue pair, else zero. It takes no
// lock: remote stays as it is once connected is set.
func (q *queuePair) peer() Endpoint {
	if !q.connected.Load() {
		return Endpoint{}
	}
	return q.remote
}

// verdict says why the connection is over: the peer or the device ended it, or
// the queue pair is in the error state. A peer that disconnects after a request
// of this side's failed does so for that reason.
func (conn *connection) verdict() error {
	why := ErrQPFailed
	if cause := context.Cause(conn.id.Context()); cause != nil {
		if why = endError(cause); why != ErrPeerDisconnected {
			return why
		}
	}
	f := conn.q.verbs.Failure()
	switch {
	case f.WC.Status == abi.WCSuccess, f.Probe && why == ErrPeerDisconnected:
		return why
	case f.Probe && f.WC.Status == abi.WCRetryExcErr:
		return ErrPeerSilent
	case f.Probe:
		return fmt.Errorf("%w: a keepalive: %v", ErrQPFailed, Status(f.WC.Status))
	}
	var wc [1]WC
	conn.q.device.convert(wc[:], []verbs.WC{f.WC})
	wc[0].failure = &failure{peer: conn.q.peer()}
	return fmt.Errorf("%w: %w", ErrQPFailed, wc[0].Err())
}

// fail ends the connection and tells the peer.
func (conn *connection) fail(why error) {
	if conn.end(why) {
		_ = conn.id.Disconnect()
	}
}

// end records the end, the first time, and reports that it was. Outstanding
// requests are flushed after that, so that waiters for completions see the end
// too, and why.
func (conn *connection) end(why error) (first bool) {
	conn.once.Do(func() {
		first = true
		conn.probe.stop()
		conn.cut(why)
		if !conn.q.dead.Load() {
			_ = conn.q.disconnect()
		}
	})
	return first
}

// destroy ends the connection with its queue pair. The peer is told.
func (conn *connection) destroy() {
	conn.end(kshim.ClosedError("the queue pair is closed"))
	conn.stop()
	_ = conn.id.Destroy()
}

// connectionOf is the connection of a queue pair, or ENOTCONN.
func (d *Device) connectionOf(qp QP) (*connection, error) {
	q, err := d.pair(qp)
	if err != nil {
		return nil, err
	}
	conn := q.conn.Load()
	if conn == nil {
		return nil, errs.Explain(syscall.ENOTCONN, "it was not connected by Dial or Request.Accept")
	}
	return conn, nil
}

// QueryConn describes the connection that Dial or Request.Accept made. ENOTCONN
// for another queue pair.
func (d *Device) QueryConn(qp QP) (ConnInfo, error) {
	conn, err := d.connectionOf(qp)
	if err != nil {
		return ConnInfo{}, opError("QueryConn", qpName(qp), err)
	}
	return conn.info, nil
}

func (conn *connection) disconnect() error {
	if !conn.end(ErrDisconnected) { // before the peer is told, so that its flushed requests have the cause
		return nil
	}
	err := conn.id.Disconnect()
	if conn.id.Context().Err() != nil {
		return nil // the peer was faster
	}
	return err
}

// Done is closed when the connection that Dial or Request.Accept made has
// ended; Cause says why. A completion with an error ends it before PollCQ or
// WaitCQ returns the completion; a completion that the program does not poll
// ends it when a keepalive looks. For a queue pair without such a connection,
// of which Cause returns an error, the channel is closed already.
func (d *Device) Done(qp QP) <-chan struct{} {
	conn, err := d.connectionOf(qp)
	if err != nil {
		return alreadyDone
	}
	return conn.life.Done()
}

var alreadyDone = func() <-chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

// OnDone has f called, once, when the connection that Dial or Request.Accept
// made has ended, with its Cause, or net.ErrClosed if DestroyQP or Close ended
// it: at once if it has. f runs in a goroutine of its own and may call
// anything. An idle connection costs no goroutine that way, where waiting for
// Done costs one. Each call adds a function. stop takes it back, as that of
// context.AfterFunc: it returns false when f was called, or is about to be.
//
// ENOTCONN for a queue pair that was not connected by address, EBADF after
// DestroyQP, net.ErrClosed after Close; then f is not called, and stop is nil.
func (d *Device) OnDone(qp QP, f func(cause error)) (stop func() bool, err error) {
	conn, err := d.connectionOf(qp)
	if err != nil {
		return nil, opError("OnDone", qpName(qp), err)
	}
	return context.AfterFunc(conn.life, func() { f(context.Cause(conn.life)) }), nil
}

// Cause returns why the connection that Dial or Request.Accept made has ended:
// ErrPeerDisconnected, ErrPeerSilent, ErrDisconnected, ErrQPFailed or
// ErrDeviceGone. The cause is nil while the connection stands.
//
// err is of the call alone: ENOTCONN for a queue pair that was not connected by
// address, EBADF after DestroyQP, net.ErrClosed after Close.
func (d *Device) Cause(qp QP) (cause, err error) {
	conn, err := d.connectionOf(qp)
	if err != nil {
		return nil, opError("Cause", qpName(qp), err)
	}
	return context.Cause(conn.life), nil
}

// managedPair is a queue pair as kshim/rdmacm moves it, with QPConfig's values
// where they are this side's own matter.
type managedPair struct{ *queuePair }

func (q managedPair) Num() uint32 { return uint32(q.num) }

// Modify implements rdmacm.QP.
func (q managedPair) Modify(attr *verbs.QPAttr, mask abi.QPAttrMask) error {
	q.modify.Lock()
	defer q.modify.Unlock()
	switch attr.State {
	case abi.QPSInit:
		attr.AccessFlags = abi.AccessFlags(q.config.Access)
		mask |= abi.QPMaskAccessFlags
	case abi.QPSRTR:
		attr.MinRNRTimer = timeCode(q.config.MinRNRTimer, rnrTime)
		if err := q.fitsRoute(q.peerOf(attr), attr.PathMTU.Bytes()); err != nil { // the side that asked chose by its own route
			return err
		}
	case abi.QPSRTS:
		attr.Timeout, attr.RetryCnt, attr.RNRRetry = timeCode(q.config.Timeout, ackTime), uint8(q.config.Retry), uint8(q.config.RNRRetry)
	}
	if err := q.move(*attr, mask); err != nil {
		return err
	}
	switch attr.State {
	case abi.QPSInit:
		q.inited.Store(true)
	case abi.QPSRTR:
		q.remote = q.peerOf(attr)
	case abi.QPSRTS:
		q.psn = attr.SQPSN
		q.remote.MaxRdAtomic = int(attr.MaxRdAtomic)
		q.connected.Store(true)
	}
	return nil
}

// peerOf is the peer's endpoint as the connection manager tells of it.
func (q managedPair) peerOf(attr *verbs.QPAttr) Endpoint {
	port := uint16(RoCEPort)
	if named := attr.AV.UDPPort(); named != 0 {
		port = named
	}
	return Endpoint{Addr: netip.AddrPortFrom(netip.AddrFrom16(attr.AV.DGID).Unmap(), port), QPN: attr.DestQPNum,
		PSN: attr.RQPSN, MTU: attr.PathMTU.Bytes(), MaxRdAtomic: q.config.MaxRdAtomic}
}

// param returns the connection parameters that this side sends.
func (q managedPair) param(private []byte) rdmacm.ConnParam {
	return rdmacm.ConnParam{
		Private:            private,
		ResponderResources: uint8(q.config.MaxRdAtomic),
		InitiatorDepth:     uint8(q.config.MaxRdAtomic),
		FlowControl:        true,
		RetryCount:         uint8(q.config.Retry),
		RNRRetryCount:      uint8(q.config.RNRRetry),
		MinRNRTimer:        timeCode(q.config.MinRNRTimer, rnrTime),
		KeepAccess:         true, // by Modify
	}
}

// defaultDepth is how many sends and receives a connection's queue pair takes
// when its QPConfig says neither.
const defaultDepth = 64

// newManaged makes a queue pair for a connection.
func (d *Device) newManaged(config QPConfig) (managedPair, error) {
	if config.SendDepth == 0 && config.RecvDepth == 0 {
		config.SendDepth = defaultDepth
		if config.SRQ == 0 {
			config.RecvDepth = defaultDepth
		}
	}
	config.managed = true
	q, err := d.newPair(config)
	return managedPair{q}, err
}
