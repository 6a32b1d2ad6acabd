package nvme

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// Work is what a host does with a disk.
type Work struct {
	Namespace uint32
	Size      int           // bytes of a command
	Time      time.Duration // of Run
	Write     bool          // Run writes, where it reads else
	Bytes     int64         // of Verify, from the disk's start; 0: all
	Seed      uint64        // of Verify's bytes
	Done      func(n int)   // is called when n commands more have succeeded; may be nil
}

// check checks the numbers of a command line.
func (w *Work) check(c *HostConfig) error {
	switch {
	case c.Queues < 1 || c.Queues > 64:
		return cli.Usagef("--queues %d: a host has 1 … 64", c.Queues)
	case c.Depth < 2 || c.Depth > 1024:
		return cli.Usagef("--depth %d: a queue has 2 … 1024 commands", c.Depth)
	case w.Size < 512 || w.Size > dataSize || w.Size%512 != 0:
		return cli.Usagef("--size %d: want 512 … %d bytes in blocks", w.Size, dataSize)
	case w.Bytes < 0:
		return cli.Usagef("--bytes %d: want some", w.Bytes)
	}
	return nil
}

// Step is what commands of one kind came to.
type Step struct {
	Name     string
	Commands int64
	Bytes    int64
	Errors   int64
	Took     time.Duration
	Latency  *hdrhistogram.Histogram // ns
}

// IOPS is commands a second, and MBps megabytes.
func (s *Step) IOPS() float64 { return float64(s.Commands) / s.Took.Seconds() }
func (s *Step) MBps() float64 { return float64(s.Bytes) / 1e6 / s.Took.Seconds() }

// String is a line of text.
func (s *Step) String() string {
	us := func(q float64) float64 { return float64(s.Latency.ValueAtQuantile(q)) / 1e3 }
	return fmt.Sprintf("%-6s %.0f IOPS, %.1f MB/s, latency 50 %% %.0f µs, 99 %% %.0f µs, longest %.0f µs; %d commands, %d errors",
		s.Name, s.IOPS(), s.MBps(), us(50), us(99), float64(s.Latency.Max())/1e3, s.Commands, s.Errors)
}

// command is one that a worker is to carry out on n bytes at off.
type command struct {
	off int64
	n   int
}

// each has as many workers as commands may be outstanding carry out commands,
// until next says that there are no more or one has failed.
func (w *Work) each(ctx context.Context, h *Host, name string, next func() (command, bool), do func(ctx context.Context, nsid uint32, p []byte, off int64) error) ([]*Step, error) {
	s := &Step{Name: name, Latency: hdrhistogram.New(1, int64(time.Minute), 3)}
	var mu sync.Mutex
	var first error
	began := time.Now()
	var workers sync.WaitGroup
	for range (len(h.queues) - 1) * h.config.Depth {
		workers.Go(func() {
			buf := make([]byte, h.MaxTransfer())
			for ctx.Err() == nil {
				mu.Lock()
				c, ok := next()
				stop := !ok || first != nil
				mu.Unlock()
				if stop {
					return
				}
				at := time.Now()
				err := do(ctx, w.Namespace, buf[:c.n], c.off)
				took := time.Since(at)
				mu.Lock()
				if err != nil {
					s.Errors++
					first = errors.Join(first, err)
				} else {
					s.Commands++
					s.Bytes += int64(c.n)
					_ = s.Latency.RecordValue(int64(min(took, time.Minute)))
					if w.Done != nil {
						w.Done(1)
					}
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	s.Took = time.Since(began)
	return []*Step{s}, errors.Join(first, ctx.Err())
}

// Run reads, or writes, blocks at random places for a time, which is one step.
func (w *Work) Run(ctx context.Context, h *Host) ([]*Step, error) {
	ns := h.Namespaces[w.Namespace]
	places := int64(ns.Blocks) << ns.Shift / int64(w.Size)
	if places == 0 {
		return nil, cli.Usagef("--size %d: the disk is smaller", w.Size)
	}
	var over atomic.Bool
	timer := time.AfterFunc(w.Time, func() { over.Store(true) })
	defer timer.Stop()
	next := func() (command, bool) {
		return command{rand.Int64N(places) * int64(w.Size), w.Size}, !over.Load()
	}
	name, do := "read", h.ReadAt
	if w.Write {
		name, do = "write", h.WriteAt
	}
	return w.each(ctx, h, name, next, do)
}

// pieces gives the first n bytes of a disk in pieces of several sizes, in turn,
// of at most max bytes.
func pieces(n int64, most int, sizes ...int) func() (command, bool) {
	off, k := int64(0), 0
	return func() (command, bool) {
		c := command{off, int(min(int64(min(sizes[k%len(sizes)], most)), n-off))}
		off, k = off+int64(c.n), k+1
		return c, c.n > 0
	}
}

// fill makes the bytes that Verify writes at off: each 512 of them depend on
// the seed and the place.
func (w *Work) fill(b []byte, off int64) {
	for i := 0; i < len(b); i += 512 {
		r := rand.New(rand.NewPCG(w.Seed, uint64(off)+uint64(i)))
		for at := i; at < i+512; at += 8 {
			binary.LittleEndian.PutUint64(b[at:], r.Uint64())
		}
	}
}

// Verify writes the start of the disk, flushes it, reads it and compares. It
// returns both steps, or that which failed.
func (w *Work) Verify(ctx context.Context, h *Host) ([]*Step, error) {
	ns := h.Namespaces[w.Namespace]
	n := int64(ns.Blocks) << ns.Shift
	if w.Bytes > 0 {
		n = min(n, w.Bytes>>ns.Shift<<ns.Shift)
	}
	const kib = 1 << 10
	block := 1 << ns.Shift
	wrote, err := w.each(ctx, h, "write", pieces(n, h.MaxTransfer(), 4*kib, 128*kib, block, 8*kib, 64*kib), func(ctx context.Context, nsid uint32, b []byte, off int64) error {
		w.fill(b, off)
		return h.WriteAt(ctx, nsid, b, off)
	})
	if err == nil {
		err = h.Flush(ctx, w.Namespace)
	}
	if err != nil {
		return wrote, err
	}
	read, err := w.each(ctx, h, "read", pieces(n, h.MaxTransfer(), 96*kib, 4*kib), func(ctx context.Context, nsid uint32, b []byte, off int64) error {
		if err := h.ReadAt(ctx, nsid, b, off); err != nil {
			return err
		}
		want := make([]byte, len(b))
		if w.fill(want, off); !bytes.Equal(b, want) {
			return fmt.Errorf("wrong bytes in the %d at %d", len(b), off)
		}
		return nil
	})
	return append(wrote, read...), err
}
