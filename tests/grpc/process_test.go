package grpctest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// ownAddr is an address for a server of this process alone: of two that open
// one at the same moment, one may fail.
func ownAddr() string {
	return fmt.Sprintf("127.102.%d.%d:0", os.Getpid()>>8&0xff, os.Getpid()&0xff)
}

// startServer runs serveProcess in a process and returns its addresses.
func startServer(t testing.TB, at string) (addr, tcp string, process *exec.Cmd) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	process = exec.Command(self)
	process.Env = append(os.Environ(), serverAt+"="+at)
	_, err = process.StdinPipe() // whose end ends the server
	require.NoError(t, err)
	out, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	addr, tcp, both := strings.Cut(strings.TrimSpace(line), " ")
	require.True(t, both, line)
	return addr, tcp, process
}

// TestKilledServer: a call to a server whose process was killed ends with
// UNAVAILABLE, and the next one reaches a new server at the same address.
func TestKilledServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have one loopback address; run it on Linux")
	}
	addr, _, process := startServer(t, ownAddr())
	var dialer rdmanet.Dialer
	c, err := grpc.NewClient("passthrough:///"+addr, grpc.WithContextDialer(dialer.GRPC), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		require.NoError(t, rdmanet.Flush(limited(t)))
	})
	require.NoError(t, call(t, c, 1000))
	stream, err := testgrpc.NewTestServiceClient(c).FullDuplexCall(limited(t))
	require.NoError(t, err)
	require.NoError(t, stream.Send(&testgrpc.StreamingOutputCallRequest{ResponseParameters: []*testgrpc.ResponseParameters{{Size: 1}}}))
	_, err = stream.Recv()
	require.NoError(t, err)

	require.NoError(t, process.Process.Kill())
	_ = process.Wait()
	_ = stream.Send(&testgrpc.StreamingOutputCallRequest{ResponseParameters: []*testgrpc.ResponseParameters{{Size: 1}}})
	_, err = stream.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)

	again, _, _ := startServer(t, addr)
	require.Equal(t, addr, again)
	require.NoError(t, call(t, c, 1000, grpc.WaitForReady(true)))
}
