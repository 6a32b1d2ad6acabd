package registration

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// handshakes is how many connections of a listener shake hands or wait for
// Accept at a time; more wait in the carrier's backlog.
const handshakes = 128

// stands is how long a handshake takes, at most, that is not held to stand
// still.
const stands = time.Second

var (
	errCrowded = errors.New("refused: the handshakes of its address stand still, and take all places")
	errGivenUp = errors.New("TLS handshake stood still: its place was given to another address")
)

// places are those of a listener's connections. When all are taken, the address
// with the most handshakes gives one up to an address with fewer, and an
// address whose handshakes stand still gets no more: a host whose connections
// say nothing does not keep the others out.
type places struct {
	taken chan struct{} // has a token for each

	mu     sync.Mutex
	shakes map[*handshake]struct{} // that are under way; guarded by mu
}

// handshake is one under way.
type handshake struct {
	from  netip.Addr
	began time.Time
	life  context.Context
	end   context.CancelCauseFunc
}

func newPlaces() *places {
	return &places{taken: make(chan struct{}, handshakes), shakes: map[*handshake]struct{}{}}
}

// take waits for a place for a connection of a host. The handshake ends with
// life, or when its place is given to another host's.
func (p *places) take(life context.Context, remote net.Addr) (*handshake, error) {
	at, _ := netip.ParseAddrPort(remote.String())
	for {
		select {
		case p.taken <- struct{}{}:
			return p.begin(life, at.Addr()), nil
		default:
		}
		wait := p.press(at.Addr(), time.Now())
		if wait <= 0 {
			return nil, errCrowded
		}
		select {
		case p.taken <- struct{}{}:
			return p.begin(life, at.Addr()), nil
		case <-life.Done():
			return nil, net.ErrClosed
		case <-time.After(wait):
		}
	}
}

func (p *places) begin(life context.Context, from netip.Addr) *handshake {
	h := &handshake{from: from, began: time.Now()}
	h.life, h.end = context.WithCancelCause(life)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shakes[h] = struct{}{}
	return h
}

// press ends the oldest handshake of the address with the most, if from has
// fewer. It returns how long to wait then: not at all if from's own stand
// still.
func (p *places) press(from netip.Addr, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	count, oldest := map[netip.Addr]int{}, map[netip.Addr]*handshake{}
	most := from
	for h := range p.shakes {
		count[h.from]++
		if first := oldest[h.from]; first == nil || h.began.Before(first.began) {
			oldest[h.from] = h
		}
		if count[h.from] > count[most] {
			most = h.from
		}
	}
	if count[most] > count[from]+1 {
		oldest[most].end(errGivenUp)
	} else if own := oldest[from]; own != nil {
		return stands - now.Sub(own.began)
	}
	return stands
}

// done ends a handshake. Its connection keeps the place until leave.
func (p *places) done(h *handshake) {
	p.mu.Lock()
	delete(p.shakes, h)
	p.mu.Unlock()
	h.end(nil)
}

func (p *places) leave() { <-p.taken }
