package grpctest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/tests/child"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
	"github.com/rdmashim/rdmashim/uapi/rpc"
)

// ownAddr is an address for a server of this process alone: of two that open
// one at the same moment, one may fail.
func ownAddr() string {
	return fmt.Sprintf("127.102.%d.%d:0", os.Getpid()>>8&0xff, os.Getpid()&0xff)
}

// servers are those of a process, by their addresses.
type servers struct {
	RDMA, TCP   string // grpc-go
	Native      string // uapi/rpc
	UNIX        string // grpc-go, too; on Linux, as are the others
	TTRPC, DRPC string
	process     *exec.Cmd
}

// startServers runs serveProcess in a process.
func startServers(t testing.TB, at string) *servers {
	t.Helper()
	p := child.Start(t, serverAt+"="+at)
	s := &servers{process: p.Cmd}
	require.NoError(t, json.NewDecoder(p.Out).Decode(s))
	return s
}

// dialNative makes a client of uapi/rpc.
func (s *servers) dialNative(t testing.TB) *rpc.ClientConn {
	t.Helper()
	c := must.Get(rpc.Dial(t.Context(), s.Native, rpc.ClientConfig{}))(t)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// TestKilledServer: a call to a server whose process was killed ends with
// UNAVAILABLE, and the next one reaches a new server at the same address.
func TestKilledServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have one loopback address; run it on Linux")
	}
	first := startServers(t, ownAddr())
	var dialer rdmanet.Dialer
	c, err := grpc.NewClient("passthrough:///"+first.RDMA, grpc.WithContextDialer(dialer.GRPC), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		flushed(t)
	})
	require.NoError(t, call(t, c, 1000))
	stream := must.Get(testgrpc.NewTestServiceClient(c).FullDuplexCall(limited(t)))(t)
	require.NoError(t, stream.Send(&testgrpc.StreamingOutputCallRequest{ResponseParameters: []*testgrpc.ResponseParameters{{Size: 1}}}))
	must.Get(stream.Recv())(t)

	require.NoError(t, first.process.Process.Kill())
	_ = first.process.Wait()
	_ = stream.Send(&testgrpc.StreamingOutputCallRequest{ResponseParameters: []*testgrpc.ResponseParameters{{Size: 1}}})
	_, err = stream.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)

	require.Equal(t, first.RDMA, startServers(t, first.RDMA).RDMA)
	require.NoError(t, call(t, c, 1000, grpc.WaitForReady(true)))
}

// TestKilledNativeServer: calls to a server of uapi/rpc whose process is killed
// return within their deadlines, and the client closes.
func TestKilledNativeServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have one loopback address; run it on Linux")
	}
	s := startServers(t, ownAddr())
	c := s.dialNative(t)
	stub := testgrpc.NewTestServiceClient(c)
	must.Get(stub.EmptyCall(limited(t), &testgrpc.Empty{}))(t)
	const callers = 8
	calling, ended := make(chan struct{}, callers), make(chan error, callers)
	for range callers {
		go func() {
			for first := true; ; first = false {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				_, err := stub.EmptyCall(ctx, &testgrpc.Empty{})
				cancel()
				if first {
					calling <- struct{}{}
				}
				if err != nil {
					ended <- err
					return
				}
			}
		}()
	}
	for range callers {
		<-calling
	}
	require.NoError(t, s.process.Process.Kill())
	for range callers {
		err := <-ended
		require.Contains(t, []codes.Code{codes.Unavailable, codes.DeadlineExceeded}, status.Code(err), err)
	}
}
