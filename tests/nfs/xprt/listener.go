package xprt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi"
)

// Port is the port that NFS over RDMA is assigned (RFC 8267).
const Port = 20049

// Most is how many clients a listener serves at a time.
const Most = 64

// Listener is a net.Listener of RPC clients that come by RDMA.
type Listener struct {
	rdma     *uapi.Listener
	log      func(format string, args ...any)
	ctx      context.Context
	stop     context.CancelFunc
	all      sync.WaitGroup
	accepted chan net.Conn
	places   chan struct{}
}

// Listen listens at an address of a device, such as ":20049". log, which may be
// nil, receives a line about each client that fails or is refused.
func Listen(device *uapi.Device, addr string, log func(format string, args ...any)) (*Listener, error) {
	rdma, err := device.Listen(addr, uapi.ListenConfig{})
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = func(string, ...any) {}
	}
	l := &Listener{rdma: rdma, log: log, accepted: make(chan net.Conn), places: make(chan struct{}, Most)}
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.all.Go(l.listen)
	return l, nil
}

// Accept returns the next client's connection, which carries records with
// marks. After Close it returns net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Addr is where it listens.
func (l *Listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.rdma.Addr()) }

// Close ends the listener and its connections, and waits for them.
func (l *Listener) Close() error {
	l.stop()
	err := l.rdma.Close()
	l.all.Wait()
	return err
}

func (l *Listener) listen() {
	for {
		r, err := l.rdma.Accept(l.ctx)
		if err != nil {
			return
		}
		select {
		case l.places <- struct{}{}:
			l.all.Go(func() {
				defer func() { <-l.places }()
				if err := l.serve(r); err != nil && !errors.Is(err, uapi.ErrPeerDisconnected) && l.ctx.Err() == nil {
					l.log("%v: %v", r.RemoteAddr, err)
				}
			})
		default:
			l.log("%v: refused: %d clients are connected: %v", r.RemoteAddr, Most, r.Reject(0, nil))
		}
	}
}

// serve serves a client to its end.
func (l *Listener) serve(r *uapi.Request) error {
	c := &conn{}
	defer c.close()
	if err := c.open(r); err != nil {
		return errors.Join(fmt.Errorf("refused: %w", err), r.Reject(0, nil))
	}
	var theirs net.Conn
	c.records, theirs = net.Pipe()
	defer c.records.Close()
	if _, err := r.Accept(l.ctx, private()); err != nil {
		c.qp = 0 // it is destroyed
		return err
	}
	select {
	case l.accepted <- theirs:
	case <-l.ctx.Done():
		return syscall.ECANCELED
	}
	err := c.serve(l.ctx)
	if cause, _ := c.device.Cause(c.qp); errors.Is(cause, uapi.ErrPeerDisconnected) {
		return cause
	}
	return err
}
