package udp

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// wayFresh is how long the system's answer about the way to a peer holds.
	// A connection asks seven times, with a new socket each time. A route that
	// has changed since shows when packets leave.
	wayFresh = 100 * time.Millisecond
	// maxWays bounds the answers that a link keeps.
	maxWays = 256
)

// ways are the system's latest answers about ways to peers.
type ways struct {
	mu    sync.Mutex
	peers map[netip.Addr]answers // guarded by mu; at most maxWays
}

// answers are the latest of the way to a peer. Refusals are not kept: the next
// caller may find that a route or a neighbour has come.
type answers struct {
	mtuSince   time.Time
	mtu        int
	reachSince time.Time
	patience   time.Duration // how long the next hop was waited for, at most
}

// get returns what is known of the way to a peer.
func (w *ways) get(peer netip.Addr) answers {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.peers[peer]
}

// put changes what is known.
func (w *ways) put(peer netip.Addr, change func(*answers)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.peers == nil || len(w.peers) >= maxWays {
		w.peers = map[netip.Addr]answers{}
	}
	known := w.peers[peer]
	change(&known)
	w.peers[peer] = known
}

// mtu is ask's answer for a peer, or the latest one while it is fresh.
func (w *ways) mtu(peer netip.Addr, now time.Time, ask func() (int, error)) (int, error) {
	if known := w.get(peer); now.Sub(known.mtuSince) < wayFresh {
		return known.mtu, nil
	}
	mtu, err := ask()
	if err == nil {
		w.put(peer, func(k *answers) { k.mtu, k.mtuSince = mtu, now })
	}
	return mtu, err
}

// reach is ask's answer for a peer, or the latest one while it is fresh and
// the caller waits no longer for it.
func (w *ways) reach(peer netip.Addr, now time.Time, patience time.Duration, ask func() error) error {
	if known := w.get(peer); now.Sub(known.reachSince) < wayFresh && patience <= known.patience {
		return nil
	}
	err := ask()
	if err == nil {
		w.put(peer, func(k *answers) { k.patience, k.reachSince = patience, now })
	}
	return err
}
