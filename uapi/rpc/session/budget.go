package session

import (
	"context"
	"slices"
	"sync"

	"github.com/rdmashim/rdmashim/uapi/rpc/session/core"
)

// use is what a slab holds.
type use uint8

const (
	useSpare use = iota // nothing: it is kept for the next body
	useRead             // a client's body, from before its READ until its handler lets it go
	useSend             // an answer, or a stream's message, until the client has READ it
	uses
)

// spareBytes are kept by all sessions of a server.
const spareBytes = 256 << 20

// budget bounds the bytes of a server's slabs by their use, and shares them
// among addresses. Beyond it bodies are not READ, and senders wait.
//
// Memory for READs is apart from that for sending: its users may wait for the
// latter, which is given back by the clients' messages alone.
type budget struct {
	mu      sync.Mutex // taken behind all others
	shares  [uses]*core.Shares
	readers map[*link]struct{} // have bodies that are not READ for want of room
	senders []*sender          // the oldest first
}

// sender waits for memory.
type sender struct {
	share *core.Share
	bytes int64
	room  chan struct{} // closed when it has been given them
}

func newBudget(bodies int64) *budget {
	b := &budget{readers: map[*link]struct{}{}}
	for u, total := range [uses]int64{spareBytes, bodies, bodies} {
		b.shares[u] = core.NewShares(total)
	}
	return b
}

// account is a session's part of a budget; a client's has none, and no bounds.
type account struct {
	budget *budget
	shares [uses]*core.Share
}

// open returns the account of a session that began from an address.
func (b *budget) open(from core.Address) account {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := account{budget: b}
	for u, s := range b.shares {
		a.shares[u] = s.Join(from)
	}
	return a
}

// close ends the account. Memory in use is given back later.
func (a *account) close() {
	if a.budget == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	for u, s := range a.budget.shares {
		s.Leave(a.shares[u])
	}
}

// take takes so many bytes, if there is room.
func (a *account) take(u use, bytes int) bool {
	if a.budget == nil {
		return true
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	return a.budget.shares[u].Take(a.shares[u], int64(bytes))
}

// takeRead is take; if there is no room, the link is told when to try again.
func (a *account) takeRead(x *link, bytes int) bool {
	if a.budget == nil {
		return true
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	ok := a.budget.shares[useRead].Take(a.shares[useRead], int64(bytes))
	if !ok {
		a.budget.readers[x] = struct{}{}
	}
	return ok
}

// takeSend is take, but waits for room until ctx ends.
func (a *account) takeSend(ctx context.Context, bytes int) error {
	if a.take(useSend, bytes) {
		return nil
	}
	b, w := a.budget, &sender{a.shares[useSend], int64(bytes), make(chan struct{})}
	b.mu.Lock()
	b.senders = append(b.senders, w)
	b.serve()
	b.mu.Unlock()
	select {
	case <-w.room:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.senders, w)
	if i < 0 { // meanwhile it was given them
		return nil
	}
	b.senders = slices.Delete(b.senders, i, i+1)
	return ctx.Err()
}

// serve gives room to senders that wait. Preconditions: mu is held.
func (b *budget) serve() {
	b.senders = slices.DeleteFunc(b.senders, func(w *sender) bool {
		ok := b.shares[useSend].Take(w.share, w.bytes)
		if ok {
			close(w.room)
		}
		return ok
	})
}

// give gives so many bytes back.
func (a *account) give(u use, bytes int) {
	b := a.budget
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shares[u].Give(a.shares[u], int64(bytes))
	switch u {
	case useSend:
		b.serve()
	case useRead:
		for x := range b.readers {
			x.hungry.Store(true)
			x.wake()
		}
		clear(b.readers)
	}
}

// forget no longer tells a link.
func (a *account) forget(x *link) {
	if b := a.budget; b != nil {
		b.mu.Lock()
		delete(b.readers, x)
		b.mu.Unlock()
	}
}
