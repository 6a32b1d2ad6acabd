package xprt

import (
	"context"
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi"
)

// call puts a call together from what was sent and what is in its read chunks.
func (c *conn) call(ctx context.Context, h *header, sent []byte) ([]byte, error) {
	if h.proc == procNoMsg {
		sent = nil
	}
	var msg []byte
	for reads := h.reads; len(reads) > 0; {
		at, n := int(reads[0].at), 0
		var parts []segment
		for ; len(reads) > 0 && int(reads[0].at) == at; reads = reads[1:] {
			parts = append(parts, reads[0].segment)
			n += int(reads[0].length)
		}
		before := at - len(msg)
		if before < 0 || before > len(sent) || len(msg)+n > longest {
			return nil, badChunk("read chunk of %d bytes at %d", n, at)
		}
		msg, sent = append(msg, sent[:before]...), sent[before:]
		if err := c.move(ctx, uapi.OpRead, 0, n, parts); err != nil {
			return nil, err
		}
		msg = append(msg, c.data[:n]...)
		msg = append(msg, make([]byte, padded(n)-n)...) // which clients leave out
	}
	return append(msg, sent...), nil
}

// answer sends a reply: its data to the write chunk, and itself inline if it
// fits, else to the reply chunk.
func (c *conn) answer(ctx context.Context, h *header, reply []byte) error {
	if len(reply) > longest {
		return fmt.Errorf("reply of %d bytes: %w", len(reply), syscall.EMSGSIZE)
	}
	used := 0 // bytes of c.data, which the device still reads
	if len(h.writes) > 0 {
		if at, n := readData(reply); n > 0 {
			used = copy(c.data, reply[at+4:][:n])
			if err := c.move(ctx, uapi.OpWrite, 0, n, h.writes[0]); err != nil {
				return err
			}
			reply = append(reply[:at+4:at+4], reply[min(at+4+padded(n), len(reply)):]...)
		}
	}
	head := h.answer(used, 0)
	if len(head)+len(reply) > c.inline {
		if h.reply == nil {
			return badChunk("reply of %d bytes, and no chunk for it", len(reply))
		}
		n := copy(c.data[used:], reply)
		if err := c.move(ctx, uapi.OpWrite, used, n, h.reply); err != nil {
			return err
		}
		head, reply = h.answer(used, n), nil
	}
	if len(head) > inline {
		return badChunk("chunks of %d bytes", len(head))
	}
	return c.send(ctx, head, reply)
}

// send sends a message, and returns when it has arrived.
func (c *conn) send(ctx context.Context, head, rest []byte) error {
	n := copy(c.data[headAt:], head)
	n += copy(c.data[headAt+n:], rest)
	return c.post(ctx, uapi.WR{Op: uapi.OpSend, SGE: c.piece(headAt, n)})
}

// move does READs to data[at:], or WRITEs from there, of n bytes in all, and
// waits for READs.
func (c *conn) move(ctx context.Context, op uapi.Op, at, n int, parts []segment) error {
	var wrs []uapi.WR
	for _, p := range parts {
		k := int(min(uint64(n), uint64(p.length)))
		if k == 0 {
			continue
		}
		wrs = append(wrs, uapi.WR{ID: silent, Op: op, SGE: c.piece(at, k), RemoteAddr: p.addr, RKey: p.key})
		at, n = at+k, n-k
	}
	switch {
	case n > 0:
		return badChunk("chunk is %d bytes short", n)
	case len(wrs) == 0:
		return nil
	case op == uapi.OpRead:
		return c.post(ctx, wrs...)
	}
	_, err := c.device.Post(c.qp, wrs)
	return err
}

// piece is a part of data.
func (c *conn) piece(at, n int) []uapi.SGE {
	return []uapi.SGE{{MR: c.dataMR, Offset: uint64(at), Length: uint64(n)}}
}
