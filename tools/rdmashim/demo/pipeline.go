package demo

import (
	"context"
	"fmt"
	"io"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi"
)

const (
	// chunk is the length of one work request of a transfer.
	chunk = 1 << 20
	// depth is how many are outstanding at once, each with a buffer. Together
	// they stay below what an ordinary user may lock for a device of the
	// kernel, 8 MiB on most systems.
	depth = 4
)

// pipeline keeps up to depth chunks in flight between local buffers and the
// server's memory, in order.
type pipeline struct {
	rdma   *uapi.Device
	qp     uapi.QP
	mr     uapi.MR
	buf    []byte // depth chunks, registered as mr
	remote uapi.Region
	bar    *cli.Progress
}

// at is where chunk i lies: its local bytes, the same as a piece, and where it
// begins in the server's memory.
func (p *pipeline) at(i, total int64) (local []byte, piece uapi.SGE, remoteOff uint64) {
	off, n := i%depth*chunk, min(chunk, total-i*chunk)
	return p.buf[off : off+n], uapi.SGE{MR: p.mr, Offset: uint64(off), Length: uint64(n)}, uint64(i * chunk)
}

// run moves total bytes: post issues chunk i, whose buffer is free, and done
// is called in order as chunks complete.
func (p *pipeline) run(ctx context.Context, what string, total int64, post func(i int64) error, done func(i int64) error) (int, error) {
	chunks := (total + chunk - 1) / chunk
	var next, completed int64
	wc := make([]uapi.WC, depth)
	for completed < chunks {
		for next < chunks && next-completed < depth {
			if err := post(next); err != nil {
				return 0, fmt.Errorf("%s: %w", lost(what, completed*chunk, total), err)
			}
			next++
		}
		n, err := p.rdma.WaitCQ(ctx, p.qp, wc)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", lost(what, completed*chunk, total), err)
		}
		for _, c := range wc[:n] {
			if c.Status != uapi.WCSuccess {
				return 0, fmt.Errorf("%s: %w", lost(what, completed*chunk, total), c.Err())
			}
			if c.Opcode == uapi.WCOpRecv {
				return 0, fmt.Errorf("%s: the server sent a message it was not asked for", what)
			}
			if err := done(completed); err != nil {
				return 0, err
			}
			local, _, _ := p.at(completed, total)
			p.bar.Add(len(local))
			completed++
		}
	}
	return int(chunks), nil
}

// lost describes the part that a failed transfer leaves undone.
func lost(what string, done, total int64) string {
	return fmt.Sprintf("%s stopped: %s of %s done, %s lost", what, cli.Size(done), cli.Size(total), cli.Size(total-done))
}

// write reads total bytes from src and writes them into the server's memory.
func (p *pipeline) write(ctx context.Context, src io.Reader, total int64) (int, error) {
	return p.run(ctx, "RDMA WRITE", total, func(i int64) error {
		local, piece, remoteOff := p.at(i, total)
		if _, err := io.ReadFull(src, local); err != nil {
			return fmt.Errorf("read the source: %w", err)
		}
		there, err := p.remote.Slice(remoteOff, piece.Length)
		if err == nil {
			_, err = p.rdma.Write(p.qp, piece, there)
		}
		return err
	}, func(int64) error { return nil })
}

// read reads total bytes of the server's memory back and hands them to dst.
func (p *pipeline) read(ctx context.Context, dst io.Writer, total int64) (int, error) {
	return p.run(ctx, "RDMA READ", total, func(i int64) error {
		_, piece, remoteOff := p.at(i, total)
		there, err := p.remote.Slice(remoteOff, piece.Length)
		if err == nil {
			_, err = p.rdma.Read(p.qp, piece, there)
		}
		return err
	}, func(i int64) error {
		local, _, _ := p.at(i, total)
		_, err := dst.Write(local)
		return err
	})
}
