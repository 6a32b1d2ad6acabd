package perf

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rdmashim/rdmashim/uapi"
)

// longest is the longest time that a histogram tells from longer ones.
const longest = time.Minute

// newHistogram takes nanoseconds, to three digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(longest), 3) }

// Latency is a run of the side that asks: of WRITE and SEND half a round trip,
// of READ and atomics the time until the completion. With an error the result
// covers the turns before it.
func (s *Side) Latency(ctx context.Context) (Result, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	c := &s.Config
	cpu := CPUTime()
	half := time.Duration(1)
	turn := s.ask
	if c.Op == Write || c.Op == Send {
		half = 2
		turn = s.ping
	}
	clear(s.queues)
	s.flying = 0
	word, err := s.last(0)
	if err != nil {
		return Result{}, err
	}
	h := newHistogram()
	r := Result{Bytes: s.size}
	began := time.Now()
	warming := began
	for n := 0; n < c.Warmup && err == nil; n++ {
		if c.Duration > 0 && time.Since(warming) >= warmest {
			r.Unchecked = true // the other side counts the turns
			break
		}
		err = turn(ctx, word)
	}
	s.fill(1)
	u := startUsage()
	began = time.Now()
	at := began
	for err == nil && (c.Duration == 0 && r.Iterations < c.Iterations || c.Duration > 0 && (r.Iterations == 0 || at.Sub(began) < c.Duration)) {
		if err = turn(ctx, word); err != nil {
			break
		}
		now := time.Now()
		_ = h.RecordValue(int64(min(now.Sub(at)/half, longest)))
		at = now
		r.Iterations++
	}
	if r.Seconds = at.Sub(began).Seconds(); err != nil {
		r.Seconds = time.Since(warming).Seconds()
	}
	u.end(&r)
	for s.flying > 0 && err == nil {
		err = s.reap(ctx)
	}
	err = s.over(&r, err)
	r.Total = s.total
	r.ClientCPU = (CPUTime() - cpu).Seconds()
	r.Latency = newLatency(h)
	return r, err
}

// reap takes completions, at least one.
func (s *Side) reap(ctx context.Context) error {
	n, err := s.poll(ctx)
	if err != nil {
		return err
	}
	return s.take(n)
}

// signal posts one message, when there is room.
func (s *Side) signal(ctx context.Context) error {
	q := &s.queues[0]
	for q.posted-q.done >= s.Config.Depth {
		if err := s.reap(ctx); err != nil {
			return err
		}
	}
	q.posted++
	s.flying++
	w := &s.wrs[0]
	w.Flags, w.ID = uapi.Signaled, uapi.WRID(q.posted)<<indexBits
	s.request(w, 0)
	_, err := s.rdma.Post(s.qps[0], s.wrs[:1])
	return err
}

// ask is a turn of READ and atomics.
func (s *Side) ask(ctx context.Context, _ *atomic.Uint64) error {
	if err := s.signal(ctx); err != nil {
		return err
	}
	for s.flying > 0 {
		if err := s.reap(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ping is a turn of WRITE and SEND on the side that begins.
func (s *Side) ping(ctx context.Context, word *atomic.Uint64) error {
	s.seq++
	if err := s.sendTurn(ctx); err != nil {
		return err
	}
	return s.awaitTurn(ctx, word)
}

// sendTurn sends a message that ends with the number of the turn, if that is
// how the other side sees it.
func (s *Side) sendTurn(ctx context.Context) error {
	if !s.Config.takesReceives() {
		s.mem[s.out(0)+s.size-1] = s.seq
	}
	return s.signal(ctx)
}

// awaitTurn waits for the other side's message of this turn.
func (s *Side) awaitTurn(ctx context.Context, word *atomic.Uint64) error {
	if s.Config.takesReceives() {
		for was := s.arrived; s.arrived == was; {
			if err := s.reap(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	for spins := 1; lastByte(word.Load()) != s.seq; spins++ {
		if spins%s.glances != 0 {
			continue
		}
		n, err := s.rdma.PollQueue(s.cq, s.wc)
		if err == nil && n > 0 {
			err = s.take(n)
		}
		if err == nil {
			err = rest(ctx, spins)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lastByte is the byte that lies last in memory.
func lastByte(w uint64) byte {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], w)
	return b[7]
}

// pong is the side that answers, until ctx ends.
func (s *Side) pong(ctx context.Context) error {
	clear(s.queues)
	s.flying = 0
	word, err := s.last(0)
	if err != nil {
		return err
	}
	for turn := 0; ; turn++ {
		s.seq++
		if err = s.awaitTurn(ctx, word); err == nil {
			if turn == s.Config.Warmup {
				s.fill(1) // the earlier answer has arrived
			}
			err = s.sendTurn(ctx)
		}
		if err != nil {
			break
		}
	}
	if ctx.Err() == nil {
		return fmt.Errorf("answer turn %d: %w", s.total, err)
	}
	s.seq-- // the turn that did not come
	// Requests still under way would complete in the next run.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for s.flying > 0 {
		if err := s.reap(ctx); err != nil {
			return err
		}
	}
	return nil
}
