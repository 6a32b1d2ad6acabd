package grpctest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	grpcencoding "google.golang.org/grpc/encoding"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/mem"

	"github.com/rdmashim/rdmashim/uapi/rpc"
)

func init() { grpcencoding.RegisterCodecV2(rpc.Raw{}) }

// bulk is the length of the messages whose rate is measured, in bytes.
const bulk = 1 << 20

// pattern is a message.
var pattern = bytes.Repeat([]byte("0123456789abcde\n"), bulk/16)

// registerBulk registers what streamOf and rawStreamOf read: messages that were
// made before, so that the way is measured and not their making.
func registerBulk(s grpc.ServiceRegistrar) {
	testgrpc.RegisterTestServiceServer(s, prepared{interop.NewTestServer()})
	s.RegisterService(&rawService, nil)
}

// prepared is the interoperability suite's service, but streams one message.
type prepared struct{ testgrpc.TestServiceServer }

func (prepared) StreamingOutputCall(in *testgrpc.StreamingOutputCallRequest, s testgrpc.TestService_StreamingOutputCallServer) error {
	out := &testgrpc.StreamingOutputCallResponse{Payload: &testgrpc.Payload{Body: pattern}}
	for range in.ResponseParameters {
		if err := s.Send(out); err != nil {
			return err
		}
	}
	return nil
}

// streamOf reads messages from a stream.
func streamOf(c grpc.ClientConnInterface) move {
	stub := testgrpc.NewTestServiceClient(c)
	return func(ctx context.Context, n int) ([]float64, error) {
		s, err := stub.StreamingOutputCall(ctx, &testgrpc.StreamingOutputCallRequest{
			ResponseParameters: slices.Repeat([]*testgrpc.ResponseParameters{{Size: bulk}}, n),
		})
		for err == nil {
			_, err = s.Recv()
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return nil, err
	}
}

// rawService streams one message of bytes, as often as it is asked to, out of
// memory that the client READs.
var rawService = grpc.ServiceDesc{
	ServiceName: "grpctest.Raw", HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{{StreamName: "Read", ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
		var in mem.BufferSlice
		if err := s.RecvMsg(&in); err != nil {
			return err
		}
		n := binary.BigEndian.Uint64(in.Materialize())
		in.Free()
		pool := rpc.Buffers(s.Context())
		lent := pool.Get(bulk)
		copy(*lent, pattern)
		out := mem.BufferSlice{mem.NewBuffer(lent, pool)}
		defer out.Free()
		for range n {
			out.Ref()
			if err := s.SendMsg(&out); err != nil {
				return err
			}
		}
		return nil
	}}},
}

// rawStreamOf is streamOf for messages of bytes, which it gives back unread.
func rawStreamOf(c grpc.ClientConnInterface) move {
	return func(ctx context.Context, n int) ([]float64, error) {
		return nil, readRaw(ctx, c, n, mem.BufferSlice.Free)
	}
}

// readRaw has each message taken, which owns it.
func readRaw(ctx context.Context, c grpc.ClientConnInterface, n int, take func(m mem.BufferSlice)) error {
	s, err := c.NewStream(ctx, &rawService.Streams[0], "/grpctest.Raw/Read", grpc.CallContentSubtype(rpc.Raw{}.Name()))
	if err == nil {
		err = s.SendMsg(&mem.BufferSlice{mem.SliceBuffer(binary.BigEndian.AppendUint64(nil, uint64(n)))})
	}
	if err == nil {
		err = s.CloseSend()
	}
	for err == nil {
		var m mem.BufferSlice
		if err = s.RecvMsg(&m); err == nil {
			take(m)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// TestRawStream: messages of bytes arrive whole by uapi/rpc and by grpc-go over
// TCP, also those that are kept while others come.
func TestRawStream(t *testing.T) {
	ours, theirs := rpc.NewServer(rpc.ServerConfig{}), grpc.NewServer(grpc.WaitForHandlers(true))
	registerBulk(ours)
	registerBulk(theirs)
	native, _ := nativeClient(t, ours, softPair, rpc.ClientConfig{})
	for name, c := range map[string]grpc.ClientConnInterface{"uapi/rpc": native, "grpc-go": overTCP(t, theirs)} {
		const all = 100 // more bytes than are lent at a time
		var kept []mem.BufferSlice
		require.NoError(t, readRaw(limited(t), c, all, func(m mem.BufferSlice) { kept = append(kept, m) }), name)
		require.Len(t, kept, all, name)
		for _, m := range kept {
			require.True(t, bytes.Equal(pattern, m.Materialize()), name)
			m.Free()
		}
	}
}
