package grpctest

import (
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// serverAt in the environment makes the test binary a server at that address,
// which ends with its standard input.
const serverAt = "GRPCTEST_SERVER"

func TestMain(m *testing.M) {
	if at := os.Getenv(serverAt); at != "" {
		fmt.Println(serveProcess(at))
		return
	}
	leak.Main(m)
}

// serveProcess serves gRPC at an address and, for comparison, by TCP at another
// one. It prints both on a line.
func serveProcess(at string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	l, err := rdmanet.Listen(at, rdmanet.Config{})
	if err != nil {
		return err
	}
	tcp, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr(), tcp.Addr())
	s := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(s, interop.NewTestServer())
	go s.Serve(tcp)
	return s.Serve(l)
}
