package diskload

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Disk is read and written in whole blocks. Its methods may be called at the
// same time.
type Disk interface {
	ReadAt(ctx context.Context, p []byte, off int64) error
	WriteAt(ctx context.Context, p []byte, off int64) error
}

// Load is what is done with a disk.
type Load struct {
	Disk    Disk
	Bytes   int64       // from the disk's start; whole blocks
	Block   int         // bytes of a block, at most 4096
	Most    int         // bytes of a command
	Workers int         // commands outstanding
	Seed    uint64      // of the bytes that Write writes
	Done    func(n int) // is called when n commands more have succeeded; may be nil
}

// A kind of command: its name and how it is carried out.
type kind struct {
	name string
	do   func(ctx context.Context, p []byte, off int64) error
}

// piece is a part of a disk, for one command.
type piece struct {
	off int64
	n   int
}

// Random reads blocks at random places, or writes them, for a time, in pieces
// of size bytes. EINVAL when the disk is smaller.
func (l *Load) Random(ctx context.Context, size int, write bool, d time.Duration) (*Step, error) {
	places := l.Bytes / int64(size)
	if places == 0 {
		return nil, fmt.Errorf("the disk has %d bytes, and is smaller than pieces of %d: %w", l.Bytes, size, syscall.EINVAL)
	}
	end := time.Now().Add(d)
	next := func() (piece, bool) {
		return piece{rand.Int64N(places) * int64(size), size}, time.Now().Before(end)
	}
	if write {
		return l.each(ctx, next, kind{"write", l.Disk.WriteAt})
	}
	return l.each(ctx, next, kind{"read", l.Disk.ReadAt})
}

// Write writes all.
func (l *Load) Write(ctx context.Context) (*Step, error) {
	const kib = 1 << 10
	return l.each(ctx, l.pieces(4*kib, 128*kib, l.Block, 8*kib, 64*kib, 8*kib+l.Block, 256*kib), kind{"write", func(ctx context.Context, p []byte, off int64) error {
		l.Fill(p, off)
		return l.Disk.WriteAt(ctx, p, off)
	}})
}

// Check reads all, and fails at bytes that Write would not have written.
func (l *Load) Check(ctx context.Context) (*Step, error) {
	return l.each(ctx, l.pieces(96<<10, 4<<10), kind{"read", func(ctx context.Context, p []byte, off int64) error {
		if err := l.Disk.ReadAt(ctx, p, off); err != nil {
			return err
		}
		want := make([]byte, len(p))
		if l.Fill(want, off); !bytes.Equal(p, want) {
			return fmt.Errorf("wrong bytes in the %d at %d", len(p), off)
		}
		return nil
	}})
}

// Fill makes the bytes that belong at off: each 512 of them depend on the seed
// and the place.
func (l *Load) Fill(b []byte, off int64) {
	for i := 0; i < len(b); i += 512 {
		r := rand.New(rand.NewPCG(l.Seed, uint64(off)+uint64(i)))
		for at := i; at < i+512; at += 8 {
			binary.LittleEndian.PutUint64(b[at:], r.Uint64())
		}
	}
}

// pieces gives the disk in pieces of several sizes in turn, each once. Rounds
// of all sizes follow each other by a stride: neighbours are apart in time.
func (l *Load) pieces(sizes ...int) func() (piece, bool) {
	round := int64(0)
	for i := range sizes {
		sizes[i] = min(sizes[i], l.Most)
		round += int64(sizes[i])
	}
	rounds := (l.Bytes + round - 1) / round
	left, at, k, off := rounds, int64(0), 0, int64(0)
	return func() (piece, bool) {
		for left > 0 {
			if k == len(sizes) {
				left, k, off = left-1, 0, 0
				at = (at + stride(rounds)) % rounds
				continue
			}
			p := piece{at*round + off, sizes[k]}
			off, k = off+int64(sizes[k]), k+1
			if p.n = int(min(int64(p.n), l.Bytes-p.off)); p.n > 0 {
				return p, true
			}
		}
		return piece{}, false
	}
}

// stride is a number that has no divisor in common with n, and is about five
// eighths of it.
func stride(n int64) int64 {
	for s := n*5/8 + 1; ; s++ {
		a, b := n, s
		for b != 0 {
			a, b = b, a%b
		}
		if a == 1 {
			return s
		}
	}
}

// each has the workers carry out a command for each piece, until next says that
// there are no more or one has failed.
func (l *Load) each(ctx context.Context, next func() (piece, bool), k kind) (*Step, error) {
	s := &Step{Name: k.name, Latency: hdrhistogram.New(1, int64(time.Minute), 3)}
	var mu sync.Mutex
	var first error
	began := time.Now()
	var workers sync.WaitGroup
	for range l.Workers {
		workers.Go(func() {
			buf := make([]byte, l.Most)
			for {
				mu.Lock()
				p, ok := next()
				stop := !ok || first != nil || ctx.Err() != nil
				mu.Unlock()
				if stop {
					return
				}
				at := time.Now()
				err := k.do(ctx, buf[:p.n], p.off)
				took := time.Since(at)
				mu.Lock()
				if err != nil {
					s.Errors++
					first = errors.Join(first, err)
				} else {
					s.Commands++
					s.Bytes += int64(p.n)
					_ = s.Latency.RecordValue(int64(min(took, time.Minute)))
					if l.Done != nil {
						l.Done(1)
					}
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	s.Took = time.Since(began)
	return s, errors.Join(first, ctx.Err())
}
