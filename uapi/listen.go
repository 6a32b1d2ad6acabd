package uapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/uapi/internal/admission"
	"github.com/rdmashim/rdmashim/uapi/internal/device"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// DefaultPending is how many requests are being accepted at a time when
// ListenConfig.Pending says nothing.
const DefaultPending = 256

// Listener takes requests for connections to an address. It is safe for
// concurrent use.
type Listener struct {
	addr      netip.AddrPort
	keepAlive time.Duration
	requests  *admission.Queue[*Request]
	parts     []*listenPart

	life   context.Context // ends with Close
	cut    context.CancelFunc
	ended  chan struct{} // closed when no part hears any more
	closed sync.Once
}

// listenPart is a listener on one kernel: each soft device has its own, the
// real kernel's devices share one.
type listenPart struct {
	cm      *rdmacm.Listener
	devices []*Device // on that kernel's devices
}

// ListenConfig says how to listen. The zero value of every field means the
// default in parentheses.
type ListenConfig struct {
	// Backlog is how many requests wait for Accept (1024, as Linux permits),
	// three quarters of them from one address; more are rejected. A soft device
	// drops requests beyond 1024 without an answer, and their senders ask
	// again.
	Backlog int
	// Pending is how many requests the program accepts at a time
	// (DefaultPending, 256), three quarters of them from one address, at least
	// 1: Accept gives no more until Request.Accept or Reject has returned for
	// one of them, and the rest waits in the backlog.
	//
	// An attacker can ask in the name of a made-up address, which never
	// confirms. So while all places are taken and other requests wait for one,
	// an accepted request that is not confirmed after 250 ms is given up, the
	// oldest first (ErrUnreachable); after 1 s when only requests of its own
	// address wait and that confirms none. An honest client cannot be told from
	// an attacker that uses its address; other clients can.
	Pending int
	// KeepAlive is DialConfig.KeepAlive for the connections that are accepted.
	KeepAlive time.Duration
}

// Listen listens for connections to addr, HOST:PORT, on this device:
// from Dial, and from programs that use librdmacm, RDMA_PS_TCP. HOST is an
// address or a name, of whose addresses the first is taken that the device has,
// IPv4 first. An empty host is any of the device's addresses, port 0 a free
// one.
//
// Errors: EADDRINUSE; EADDRNOTAVAIL or ENODEV when the device does not have the
// address; ENOENT when the kernel has no connection manager.
func (d *Device) Listen(addr string, config ListenConfig) (*Listener, error) {
	at, err := resolveListen(addr)
	var l *Listener
	if err == nil {
		has := slices.IndexFunc(at, func(a netip.AddrPort) bool { return a.Addr().IsUnspecified() || d.hasAddr(a.Addr()) })
		l, err = listen(at[max(has, 0)], []*Device{d}, config)
	}
	return l, opError("Listen", addr, err)
}

// resolveListen reads an address of this host, to listen on or to open.
func resolveListen(addr string) ([]netip.AddrPort, error) {
	ctx, cancel := context.WithTimeout(context.Background(), DefaultConnectTimeout)
	defer cancel()
	return resolve(ctx, addr)
}

// listen listens on the kernels of the devices.
func listen(addr netip.AddrPort, devices []*Device, config ListenConfig) (*Listener, error) {
	if config.Backlog <= 0 {
		config.Backlog = rdmacm.DefaultBacklog
	}
	if config.Pending <= 0 {
		config.Pending = DefaultPending
	}
	var err error
	l := &Listener{requests: admission.New[*Request](config.Pending, config.Backlog, errSqueezed), addr: addr, keepAlive: config.KeepAlive, ended: make(chan struct{})}
	for _, group := range byKernel(devices) {
		p := &listenPart{devices: group}
		if !addr.Addr().IsUnspecified() && !slices.ContainsFunc(group, func(d *Device) bool { return d.hasAddr(addr.Addr()) }) {
			err = errs.Explain(syscall.EADDRNOTAVAIL, "the device has the address %v, not %v", group[0].chosen.addr.Addr(), addr.Addr())
		} else if p.cm, err = group[0].listenCM(l.addr, config.Backlog); err != nil {
			err = group[0].where.Taken(l.addr, err)
		}
		if err != nil {
			for _, other := range l.parts {
				_ = other.cm.Close()
			}
			return nil, fmt.Errorf("on %s: %w", group[0].where.OpenName(), err)
		}
		l.parts = append(l.parts, p)
		l.addr = netip.AddrPortFrom(l.addr.Addr(), p.cm.Addr().Port())
	}
	l.life, l.cut = context.WithCancel(context.Background())
	var hearing sync.WaitGroup
	for _, p := range l.parts {
		hearing.Go(func() { l.takeRequests(p) })
	}
	go func() {
		hearing.Wait()
		close(l.ended)
	}()
	return l, nil
}

// byKernel puts devices together that have a kernel in common, each device
// once.
func byKernel(devices []*Device) (groups [][]*Device) {
	for _, d := range devices {
		i := slices.IndexFunc(groups, func(g []*Device) bool {
			return g[0].where == d.where || g[0].where.Spec.Kind == device.Host && d.where.Spec.Kind == device.Host
		})
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], d)
	}
	return groups
}

func (d *Device) listenCM(addr netip.AddrPort, backlog int) (*rdmacm.Listener, error) {
	ch, err := d.channel()
	if err != nil {
		return nil, err
	}
	l, err := ch.Listen(addr, backlog, rdmacm.Options{})
	for tries := 0; addr.Port() == 0 && errors.Is(err, syscall.EADDRINUSE) && tries < 8; tries++ {
		l, err = ch.Listen(addr, backlog, rdmacm.Options{}) // another process on the address had the free one
	}
	taken := errors.Is(err, syscall.EADDRNOTAVAIL) // how Linux says it of a wildcard
	if addr.Addr() == netip.IPv6Unspecified() && (taken || errors.Is(err, syscall.EAFNOSUPPORT)) {
		// Or there is no IPv6.
		if v4, e := ch.Listen(netip.AddrPortFrom(netip.IPv4Unspecified(), addr.Port()), backlog, rdmacm.Options{}); e == nil {
			return v4, nil
		}
	}
	return l, err
}

// takeRequests takes a part's requests until the listener or the part's kernel
// is closed.
func (l *Listener) takeRequests(p *listenPart) {
	for {
		req, err := p.cm.Accept(l.life)
		if err != nil {
			return
		}
		r, err := l.request(p, req)
		if err != nil {
			_ = req.Destroy()
			continue
		}
		if !l.requests.Put(r.place) {
			_ = req.Destroy()
		}
	}
}

// request finds out which device a request is for.
func (l *Listener) request(p *listenPart, req *rdmacm.Request) (*Request, error) {
	route, err := req.Route()
	if err != nil {
		return nil, err
	}
	d := p.devices[0]
	if len(p.devices) > 1 || d.where.Spec.Kind == device.Host {
		name, err := req.Device()
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(p.devices, func(d *Device) bool { return d.where.Name == name && !d.closed.Load() })
		if i < 0 {
			p.devices[0].log.Debug("a request was refused: it is for a device that is not open", "device", name, "from", route.Remote)
			return nil, errs.Explain(syscall.ENODEV, "the request is for device %s, which is not open", name)
		}
		d = p.devices[i]
	}
	r := &Request{Device: d, LocalAddr: route.Local, RemoteAddr: route.Remote, PrivateData: req.Peer.Private,
		req: req, keepAlive: l.keepAlive, queue: l.requests}
	r.place = &admission.Place[*Request]{Request: r, From: route.Remote.Addr()}
	return r, nil
}

// Addr is the address that is listened on, with the port that was chosen.
func (l *Listener) Addr() netip.AddrPort { return l.addr }

// Accept gives the next request, which Request.Accept or Request.Reject must
// answer. Request.Accept waits for the peer, which may not exist: to withstand
// that, a program answers each request in a goroutine of its own.
// ListenConfig.Pending bounds their number.
//
// It returns ctx.Err() when ctx ends and an error that Is net.ErrClosed when
// the listener or its devices are closed.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	for l.listens() {
		if p := l.requests.Take(); p != nil {
			return p.Request, nil
		}
		select {
		case <-l.requests.Wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.life.Done():
		case <-l.ended:
		}
	}
	return nil, opError("Accept", l.addr.String(), kshim.ClosedError("the listener is closed"))
}

func (l *Listener) listens() bool {
	select {
	case <-l.ended:
		return false
	default:
		return l.life.Err() == nil
	}
}

// Close ends listening and rejects the requests that no Accept took.
// Connections stay. A second Close does nothing.
func (l *Listener) Close() error {
	var err error
	l.closed.Do(func() {
		l.cut()
		for _, p := range l.parts {
			if e := p.cm.Close(); err == nil && !errors.Is(e, net.ErrClosed) {
				err = e
			}
		}
		<-l.ended
		for _, p := range l.requests.Close() {
			_ = p.Request.req.Destroy()
		}
	})
	return opError("Close", l.addr.String(), err)
}
