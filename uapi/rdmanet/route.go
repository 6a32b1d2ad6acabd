package rdmanet

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/loopback"
)

// route is the way to a peer: the address of this host that packets to it leave
// from, and the peer's.
type route struct{ local, remote netip.Addr }

// noRouteError is that a name has no address of an IP version, or the system no
// route to it.
type noRouteError struct{ error }

func (e *noRouteError) Unwrap() error { return e.error }

// routeTable keeps the routes to numeric addresses for a moment: of many dials
// one looks. Names are looked up each time.
type routeTable struct {
	mu    sync.Mutex
	known map[string]route // guarded by mu, by the host's text; routeMost at most
	since time.Time        // guarded by mu: when known was begun
}

const (
	routeFor  = 100 * time.Millisecond // as rnic/link/udp keeps its ways
	routeMost = 256
)

var routes routeTable

// find finds the way to a host, in the IP version of way, udp4 or udp6.
func (t *routeTable) find(ctx context.Context, way, host string) (r route, err error) {
	ip, err := netip.ParseAddr(host)
	numeric := err == nil && ip.Is4() == (way == "udp4")
	if numeric {
		if r, ok := t.recent(host); ok {
			return r, ctx.Err()
		}
	}
	if r, err = look(ctx, way, host); err == nil && numeric {
		t.mu.Lock()
		t.known[host] = r
		t.mu.Unlock()
	}
	return r, err
}

// recent is the route that was found a moment ago. Others of that age are
// forgotten when it is over.
func (t *routeTable) recent(host string) (route, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if age := time.Since(t.since); age < 0 || age > routeFor || len(t.known) >= routeMost {
		t.known, t.since = map[string]route{}, time.Now()
	}
	r, ok := t.known[host]
	return r, ok
}

// look asks the system, by a socket that sends nothing.
func look(ctx context.Context, way, host string) (r route, err error) {
	var udp net.Dialer
	c, err := udp.DialContext(ctx, way, net.JoinHostPort(host, strconv.Itoa(uapi.RoCEPort)))
	if err != nil {
		return r, &noRouteError{loopback.Explain(err)}
	}
	r.local = c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	r.remote = c.RemoteAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	return r, c.Close()
}
