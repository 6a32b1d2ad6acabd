package quicudp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/quic-go/quic-go"

	"github.com/rdmashim/rdmashim/kshim/parties"
)

// A listener has so many places for handshakes, and answers the first
// packet of a client by Retry while so many are taken.
const (
	handshakes = 128
	believed   = 32
)

var errCrowded = errors.New("udp: the handshakes of its address, or of others, take all places")

// places are those of handshakes, from a client's first packet until its
// connection is accepted or ends. quic-go has no bound of its own.
//
// Invariants: taken is the sum of held, at most handshakes; no party is held 0
// times.
type places struct {
	mu    sync.Mutex
	taken int
	held  map[netip.Prefix]int
}

// doubt says whether a client shall prove that it hears what is sent to its
// address: one that only claims addresses takes no more than believed places.
func (p *places) doubt(net.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken >= believed
}

// leaveKey is the context key of what gives a handshake's place back.
type leaveKey struct{}

// take gives a handshake a place until its connection ends, or leave is called
// with the connection's context. An address gets one while it has no more than
// are then left.
func (p *places) take(ctx context.Context, client *quic.ClientInfo) (context.Context, error) {
	at, _ := client.RemoteAddr.(*net.UDPAddr)
	party := parties.Of(at.AddrPort().Addr())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[party] >= handshakes-p.taken {
		return nil, errCrowded
	}
	if p.held == nil {
		p.held = map[netip.Prefix]int{}
	}
	p.taken++
	p.held[party]++
	once := sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken--
		if p.held[party]--; p.held[party] == 0 {
			delete(p.held, party)
		}
	})
	context.AfterFunc(ctx, once)
	return context.WithValue(ctx, leaveKey{}, once), nil
}

// leave gives the place of a connection's handshake back.
func leave(connection context.Context) { connection.Value(leaveKey{}).(func())() }
