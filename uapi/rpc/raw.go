package rpc

import (
	"bytes"
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// Raw is a codec of grpc's for messages that are bytes: *mem.BufferSlice. A
// program registers it by encoding.RegisterCodecV2(rpc.Raw{}), and calls ask
// for it by grpc.CallContentSubtype("raw").
//
// A buffer of Buffers is sent from where it lies. SendMsg and Invoke free the
// buffers that they send: a program that needs them again calls Ref before. A
// received message lies in the memory that it came in until the program calls
// Free.
type Raw struct{}

// Name is "raw".
func (Raw) Name() string { return "raw" }

// Marshal is the buffers of v, a *mem.BufferSlice.
func (Raw) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.(*mem.BufferSlice); ok {
		return *b, nil
	}
	return nil, fmt.Errorf("rpc: %T is not *mem.BufferSlice", v)
}

// Unmarshal sets v, a *mem.BufferSlice, to the buffers.
func (Raw) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*mem.BufferSlice)
	if !ok {
		return fmt.Errorf("rpc: %T is not *mem.BufferSlice", v)
	}
	data.Ref()
	*b = data
	return nil
}

// Buffers is memory that the server READs: a codec that makes a message of one
// of these buffers, by mem.NewBuffer, has it sent without a copy. Buffers of up
// to 32 KiB, and those beyond session.ClientConfig.Loans bytes at a time, are
// memory like any other.
func (c *ClientConn) Buffers() mem.BufferPool {
	return buffers{c.session.Memory()}
}

// Buffers is ClientConn.Buffers for a handler that answers: memory that the
// client of the context's call READs. It is grpc's default pool where the call
// came another way.
func Buffers(ctx context.Context) mem.BufferPool {
	x, ok := grpc.ServerTransportStreamFromContext(ctx).(*exchange)
	if !ok {
		return mem.DefaultBufferPool()
	}
	return buffers{x.memory}
}

// buffers is a session's memory as grpc's pool of buffers.
type buffers struct{ session.Memory }

func (b buffers) Get(n int) *[]byte {
	lent := b.Lend(n)
	if lent == nil {
		lent = make([]byte, n)
	}
	return &lent
}

func (b buffers) Put(lent *[]byte) { b.Release(*lent) }

// buffer is bytes that m has lent until the caller returns as a buffer that a
// codec may keep: they themselves, or a copy.
func buffer(m session.Memory, b []byte) mem.Buffer {
	if m.Hold(b) {
		return mem.NewBuffer(&b, buffers{m})
	}
	return mem.SliceBuffer(bytes.Clone(b))
}
