package nvme

import (
	"context"
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/tools/internal/nvme/wire"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/diskload"
	"github.com/rdmashim/rdmashim/uapi"
)

// Namespace is a target's disk. Its methods may be called at the same time.
type Namespace struct {
	wire.Namespace
	host *Host
	id   uint32
}

// Size is the disk's bytes, and MaxTransfer the most of one ReadAt or WriteAt.
func (n *Namespace) Size() int64 { return int64(n.Blocks) << n.Shift }

func (n *Namespace) MaxTransfer() int {
	if shift := n.host.Controller.MaxTransfer; shift > 0 && shift < maxTransfer {
		return 4096 << shift
	}
	return dataSize
}

// ReadAt reads whole blocks, at most MaxTransfer bytes, from off. Errors:
// EINVAL for others, *StatusError, and why the connection has ended.
func (n *Namespace) ReadAt(ctx context.Context, p []byte, off int64) error {
	return n.transfer(ctx, wire.OpRead, fromTarget, p, off)
}

// WriteAt writes whole blocks. Errors are those of ReadAt.
func (n *Namespace) WriteAt(ctx context.Context, p []byte, off int64) error {
	return n.transfer(ctx, wire.OpWrite, toTarget, p, off)
}

// transfer reads or writes whole blocks.
func (n *Namespace) transfer(ctx context.Context, op wire.Opcode, access uapi.Access, p []byte, off int64) error {
	block := int64(1) << n.Shift
	if len(p) == 0 || len(p) > n.MaxTransfer() || int64(len(p))%block != 0 || off%block != 0 {
		return fmt.Errorf("%d bytes at %d of namespace %d: not 1 … %d bytes in blocks of %d: %w", len(p), off, n.id, n.MaxTransfer(), block, syscall.EINVAL)
	}
	c := &wire.Command{Opcode: op, Namespace: n.id}
	c.SetBlocks(uint64(off)>>n.Shift, len(p)>>n.Shift)
	_, err := n.queue().do(ctx, c, access, p)
	return err
}

// Flush returns when what was written before is on stable storage.
func (n *Namespace) Flush(ctx context.Context) error {
	_, err := n.queue().do(ctx, &wire.Command{Opcode: wire.OpFlush, Namespace: n.id}, toTarget, nil)
	return err
}

// queue takes the queues for reading and writing in turn.
func (n *Namespace) queue() *hostQueue {
	h := n.host
	return h.queues[1+int(h.next.Add(1))%(len(h.queues)-1)]
}

// Load is a load on all of the disk, by as many commands as may be outstanding.
func (n *Namespace) Load() *diskload.Load {
	return &diskload.Load{Disk: n, Bytes: n.Size(), Block: 1 << n.Shift, Most: n.MaxTransfer(), Workers: (len(n.host.queues) - 1) * n.host.config.Depth}
}
