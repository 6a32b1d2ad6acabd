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

// Load describes commands to a disk.
type Load struct {
	Disk    Disk
	Bytes   int64       // from the disk's start; whole blocks
	Block   int         // bytes of a block, at most 4096
	Most    int         // bytes of a command
	Workers int         // commands outstanding
	Seed    uint64      // of the bytes that Write writes
	Done    func(n int) // is called when n commands more have succeeded; may be nil
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
		return l.each(ctx, "write", next, l.Disk.WriteAt)
	}
	return l.each(ctx, "read", next, l.Disk.ReadAt)
}

// Write writes each byte once.
func (l *Load) Write(ctx context.Context) (*Step, error) {
	const kib = 1 << 10
	next := l.pieces(4*kib, 128*kib, l.Block, 8*kib, 64*kib, 8*kib+l.Block, 256*kib)
	return l.each(ctx, "write", next, func(ctx context.Context, p []byte, off int64) error {
		l.Fill(p, off)
		return l.Disk.WriteAt(ctx, p, off)
	})
}

// Check reads each byte once, and fails at bytes that are not those of Write.
func (l *Load) Check(ctx context.Context) (*Step, error) {
	return l.each(ctx, "read", l.pieces(96<<10, 4<<10), func(ctx context.Context, p []byte, off int64) error {
		if err := l.Disk.ReadAt(ctx, p, off); err != nil {
			return err
		}
		want := make([]byte, len(p))
		if l.Fill(want, off); !bytes.Equal(p, want) {
			return fmt.Errorf("wrong bytes in the %d at %d", len(p), off)
		}
		return nil
	})
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

// pieces gives the disk in pieces of several sizes in turn, each once. A round
// has all sizes; the odd rounds follow the even ones.
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
				if at += 2; at >= rounds {
					at = 1
				}
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

// each has the workers do a command for each piece, until next has no more or a
// command has failed.
func (l *Load) each(ctx context.Context, name string, next func() (piece, bool), do func(ctx context.Context, p []byte, off int64) error) (*Step, error) {
	s := &Step{Name: name, Latency: hdrhistogram.New(1, int64(time.Minute), 3)}
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
				err := do(ctx, buf[:p.n], p.off)
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
