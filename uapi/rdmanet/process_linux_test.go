package rdmanet_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// startPeer runs servePeer in a process and returns its address.
func startPeer(t *testing.T) (addr string, process *os.Process) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), asPeer+"=1")
	_, err = cmd.StdinPipe() // whose end ends the peer
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line), cmd.Process
}

// TestDeadPeer: the peer's process is killed, or stands still with its device.
// Close and CloseWrite do not wait for it, CloseContext ends, and a call that
// waits ends with an error that says so.
func TestDeadPeer(t *testing.T) {
	for name, signal := range map[string]os.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, process := startPeer(t)
			device, err := uapi.OpenRoute(t.Context(), addr, uapi.OpenConfig{})
			require.NoError(t, err)
			defer func() { require.NoError(t, device.Close()) }()
			d := rdmanet.Dialer{Context: device, Config: rdmanet.Config{Linger: time.Millisecond}}
			var conns [2]*rdmanet.Conn
			for i := range conns {
				c, err := d.DialContext(limited(t), "rdma", addr)
				require.NoError(t, err)
				conns[i] = c.(*rdmanet.Conn)
				_, err = c.Write([]byte{1})
				require.NoError(t, err)
				_, err = io.ReadFull(c, make([]byte, 1))
				require.NoError(t, err)
			}
			require.NoError(t, process.Signal(signal))
			_, _ = conns[0].Write([]byte("nobody takes this"))
			_ = conns[0].CloseWrite()
			require.NoError(t, conns[0].Close())
			require.NoError(t, conns[0].CloseContext(limited(t)))

			_, _ = conns[1].Write([]byte("nor this"))
			_, err = conns[1].Read(make([]byte, 1))
			requireOpError(t, err, "read", syscall.ETIMEDOUT)
			_, err = conns[1].Write([]byte("nor this"))
			requireOpError(t, err, "write", syscall.ETIMEDOUT)
			require.NoError(t, conns[1].CloseContext(limited(t)))
			require.Empty(t, device.OpenHandles())
		})
	}
}
