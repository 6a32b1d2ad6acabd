//go:build guest && linux

package interop

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

const programDir = "/c"

// program is a C program that runs.
type program struct {
	*exec.Cmd
	out output
}

// start starts a C program of the distribution on rxe.
func start(t *testing.T, name string, args ...string) *program {
	return startOn(t, "", name, args...)
}

// startOn starts a C program of the distribution: on rxe, or on the soft device
// of that name, as rdmashim run does.
func startOn(t *testing.T, device, name string, args ...string) *program {
	if why := os.Getenv("INTEROP_NO_PROGRAMS"); why != "" {
		t.Skip("the host could not bring perftest and rdma-core to the guest: ", why)
	}
	file := filepath.Join(programDir, name)
	require.NoError(t, os.Chmod(file, 0o755))
	p := command(t, file, args...)
	p.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(programDir, "lib"))
	if device != "" {
		p.run(t, device)
	}
	startTool(t, device != "", p)
	return p
}

// command is a program that is to be started. It ends with the test, which
// shows its output if it fails.
func command(t *testing.T, file string, args ...string) *program {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	p := &program{Cmd: exec.CommandContext(ctx, file, args...)}
	p.Stdout, p.Stderr = &p.out, &p.out
	t.Cleanup(func() {
		cancel()
		_ = p.Wait() // its second call says so only
		if t.Failed() {
			t.Logf("%s %s:\n%s", filepath.Base(file), strings.Join(args, " "), p.out.String())
		}
	})
	return p
}

// endsAfter waits for the end of a program that said what it should. Its exit
// status does not count: when one end of rping disconnects, either end's event
// thread may find the channel closed already, and exits with 255.
func (p *program) endsAfter(t *testing.T, said string) string {
	err := p.Wait()
	require.Contains(t, p.out.String(), said, "%v", err)
	lab.sums.programs.Add(1)
	return p.out.String()
}

// says waits until the program has printed a text.
func (p *program) says(t *testing.T, text string) {
	require.Eventually(t, func() bool { return strings.Contains(p.out.String(), text) }, patience, 10*time.Millisecond, "%q", text)
}

// ends waits for the program's end, which must be a good one.
func (p *program) ends(t *testing.T) string {
	require.NoError(t, p.Wait(), "%s", p.out.String())
	lab.sums.programs.Add(1)
	return p.out.String()
}

// dial connects to a program that is a server, as soon as it listens.
func dial(t *testing.T, port int) net.Conn {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp4", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			return bounded(t, c)
		}
		require.True(t, time.Now().Before(deadline), "the program does not listen: %v", err)
	}
}

// listen makes a socket for a program that is a client, and returns its port.
func listen(t *testing.T) (accept func() net.Conn, port int) {
	l := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	require.NoError(t, l.(*net.TCPListener).SetDeadline(time.Now().Add(patience)))
	return func() net.Conn {
		c, err := l.Accept()
		require.NoError(t, err, "the program does not connect")
		return bounded(t, c)
	}, l.Addr().(*net.TCPAddr).Port
}

// bounded is a connection with a program that ends with the test.
func bounded(t *testing.T, c net.Conn) net.Conn {
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(2*patience)))
	return c
}

// freePort finds a TCP port for a program that is a server.
func freePort(t *testing.T) int {
	l := must.Get(net.Listen("tcp4", "0.0.0.0:0"))(t)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// partner makes the soft end of a connection with a program.
func partner(t *testing.T, f family, mtu, max int) *end {
	d := newDevice(t, "soft", openSoft(t, softName(f, 0, "")), max)
	return d.newEnd(t, uapi.QPConfig{MTU: mtu, SendDepth: 128, RecvDepth: 512})
}

// output is a program's output so far.
type output struct {
	mu   sync.Mutex
	said bytes.Buffer // guarded by mu
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.said.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.said.String()
}
