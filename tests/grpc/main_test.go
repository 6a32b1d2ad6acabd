package grpctest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"

	"google.golang.org/grpc"

	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
	"github.com/rdmashim/rdmashim/uapi/rpc"
)

// serverAt in the environment makes the test binary a server at that address,
// which ends with its standard input.
const serverAt = "GRPCTEST_SERVER"

// spinner in the environment makes the test binary spin until it is killed.
const spinner = "GRPCTEST_SPINNER"

func TestMain(m *testing.M) {
	for os.Getenv(spinner) != "" {
	}
	if at := os.Getenv(serverAt); at != "" {
		fmt.Println(serveProcess(at))
		return
	}
	leak.Main(m)
}

// serveProcess serves gRPC at an address of RDMA and, for comparison, by TCP,
// and what else the system allows. It prints the addresses as JSON.
func serveProcess(at string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	l, err := rdmanet.Listen(at, rdmanet.Config{})
	if err != nil {
		return err
	}
	native, err := uapi.Listen(netip.AddrPortFrom(l.Addr().(rdmanet.Addr).Addr(), 0).String(), uapi.ListenConfig{})
	if err != nil {
		return err
	}
	tcp, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return err
	}
	ours := rpc.NewServer(rpc.ServerConfig{})
	registerBulk(ours)
	s := grpc.NewServer()
	registerBulk(s)
	all := servers{RDMA: l.Addr().String(), Native: native.Addr().String(), TCP: tcp.Addr().String()}
	if err := serveReferences(s, &all); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		return err
	}
	go s.Serve(tcp)
	go ours.Serve(native)
	return s.Serve(l)
}
