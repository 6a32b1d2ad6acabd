//go:build amd64 || arm64

package programs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ownRuns gives the test's runs a directory of their own, and returns what
// waits until nothing is left of them: no file, and no process, which alone
// would hold memory and sockets.
func ownRuns(t *testing.T) (gone func()) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	mark := []byte("XDG_RUNTIME_DIR=" + dir + "\x00")
	return func() {
		t.Helper()
		var left []string
		require.Eventually(t, func() bool {
			left, _ = filepath.Glob(filepath.Join(dir, "*", "*"))
			environs, _ := filepath.Glob("/proc/[0-9]*/environ")
			for _, file := range environs {
				if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, mark) {
					left = append(left, file)
				}
			}
			return len(left) == 0
		}, patience, 10*time.Millisecond, "%v", &left)
	}
}

// TestExit: the exit status is the program's, the signal that ends it, too, and
// nothing is left of it, however it ends.
func TestExit(t *testing.T) {
	needs(t, "ibv_devinfo")
	gone := ownRuns(t)
	device, _ := newDevice()
	start(t, device, "sh", "-c", "ibv_devices; exit 7").ends(7)
	gone()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL} {
		port := freePort(t)
		p := start(t, device, "ibv_rc_pingpong", "-g", "0", "-p", port)
		p.listens(port)
		require.NoError(t, p.Process.Signal(sig))
		p.ends(-1) // a shell says 128 and the signal's number
		require.Equal(t, sig, p.ProcessState.Sys().(syscall.WaitStatus).Signal())
		gone()
	}
	caught := start(t, device, "sh", "-c", "trap 'exit 5' TERM; ibv_devices; kill -TERM $$")
	caught.ends(5)
	gone()
}

// kills is how often TestKill kills, and killWithin when at the latest: a third
// of the programs write by then, others have not come so far.
const kills, killWithin = 30, 120 * time.Millisecond

// TestKill kills one or both of two programs at any moment. The other ends with
// an error of its own, the same two addresses can be had again at once, and
// nothing is left.
func TestKill(t *testing.T) {
	needs(t)
	verbsHeader(t)
	program := compile(t, "peer", "-libverbs")
	gone := ownRuns(t)
	there, at := newDevice()
	here, from := newDevice()
	r := rand.New(rand.NewPCG(7, 9))
	ends := map[string]int{}
	for i := range kills {
		port := freePort(t)
		server := start(t, there, program, port)
		if i%3 > 0 {
			server.listens(port)
		}
		writes := filepath.Join(t.TempDir(), "writes")
		client := start(t, here, program, port, at, writes)
		if i%3 > 1 {
			require.Eventually(t, func() bool { _, err := os.Stat(writes); return err == nil }, patience, time.Millisecond)
		}
		moment := r.Float64()
		<-time.After(time.Duration(moment * moment * float64(killWithin)))
		victims := [][]*process{{server}, {client}, {server, client}}[r.IntN(3)]
		for _, v := range victims {
			require.NoError(t, v.Process.Kill())
			_ = v.Wait() // it may have ended
		}
		ends[fmt.Sprint(len(victims))]++
		if len(victims) == 1 {
			survivor := map[*process]*process{server: client, client: server}[victims[0]]
			ends[survivor.outlives(port)]++
		}
	}
	t.Log(ends)
	require.Positive(t, ends["transport retry counter exceeded\n"])
	require.Positive(t, ends["it has no peer\n"])
	known := []string{"1", "2", "it has no peer\n", "transport retry counter exceeded\n"}
	if supervisor != "" { // a program's memory goes before its queue pairs do
		known = append(known, "remote operation error\n")
	}
	for e := range ends {
		require.Contains(t, known, e)
	}
	gone()
	sockets, err := os.ReadFile("/proc/net/unix")
	require.NoError(t, err)
	for _, addr := range []string{at, from} {
		require.NotContains(t, string(sockets), addr)
	}
}

// outlives returns how a program ends whose peer was killed. One that still
// waits for a peer gets one that says nothing.
func (p *process) outlives(port string) string {
	p.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	for {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = c.Close()
		}
		select {
		case err := <-ended:
			require.NoError(p.t, err, "%s", &p.out)
			return p.out.String()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
