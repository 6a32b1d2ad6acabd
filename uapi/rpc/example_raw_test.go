package rpc_test

import (
	"context"
	"fmt"
	"log"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rpc"
)

func init() { encoding.RegisterCodecV2(rpc.Raw{}) }

// blocks is a service whose one method answers a name with a block of bytes.
var blocks = grpc.ServiceDesc{
	ServiceName: "example.Blocks", HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{{StreamName: "Get", Handler: get, ServerStreams: true}},
}

func get(_ any, stream grpc.ServerStream) error {
	var name mem.BufferSlice
	if err := stream.RecvMsg(&name); err != nil {
		return err
	}
	defer name.Free()
	pool := rpc.Buffers(stream.Context())
	block := pool.Get(1 << 20) // of memory that the client READs
	copy(*block, "block "+string(name.Materialize()))
	return stream.SendMsg(&mem.BufferSlice{mem.NewBuffer(block, pool)})
}

// A block of 1 MiB goes from the memory that the handler filled to memory that
// the caller reads, and neither end copies it.
func ExampleRaw() {
	device := must(uapi.Open("soft", uapi.OpenConfig{}))
	defer device.Close()
	l := must(device.Listen(must(device.QueryDevice()).Address.Addr().String()+":0", uapi.ListenConfig{}))
	server := rpc.NewServer(rpc.ServerConfig{})
	server.RegisterService(&blocks, nil)
	go server.Serve(l)

	conn := must(rpc.Dial(context.Background(), l.Addr().String(), rpc.ClientConfig{
		Device: device, CallOptions: []grpc.CallOption{grpc.CallContentSubtype("raw")},
	}))
	stream := must(conn.NewStream(context.Background(), &blocks.Streams[0], "/example.Blocks/Get"))
	err := stream.SendMsg(&mem.BufferSlice{mem.SliceBuffer("7")})
	var block mem.BufferSlice
	if err == nil {
		err = stream.RecvMsg(&block)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, %d bytes\n", block[0].ReadOnlyData()[:7], block.Len())
	block.Free()

	if err := conn.Close(); err != nil {
		log.Fatal(err)
	}
	server.GracefulStop()
	// Output: block 7, 1048576 bytes
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
