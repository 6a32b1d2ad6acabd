package capi

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// hello is the page's program.
func hello(t *testing.T) string { return filepath.Join(installed(t), "src", "hello") }

// freePort is a TCP port for a program to listen on.
func freePort(t *testing.T) string {
	l := must.Get(net.Listen("tcp", ":0"))(t)
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// hears runs the page's program as a sender until the receiver hears it.
func (p *process) hears(program, port string) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; { // until the receiver listens
		sender := start(p.t, newDevice(), program, port, "127.0.0.1")
		if err := sender.Wait(); err == nil {
			require.Equal(p.t, "sent\n", sender.out.String())
			break
		}
		require.True(p.t, time.Now().Before(deadline), "%s; %s", &sender.out, &p.out)
	}
	p.prints("hello from C\n")
}

// TestHello runs the page's program against itself.
func TestHello(t *testing.T) {
	program, port := hello(t), freePort(t)
	start(t, newDevice(), program, port).hears(program, port)
}

// TestValgrind: the page's program receives under valgrind, which does not know
// Go's stacks and says so.
func TestValgrind(t *testing.T) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "%v", err)
		t.Skip(err, ": apt-get install valgrind libc6-dbg")
	}
	program, port, log := hello(t), freePort(t), filepath.Join(t.TempDir(), "log")
	// valgrind tells of RDTSCP, and has it only where the processor does.
	// Beside Go's runtime, x/sys/cpu reads the variable and says what it does
	// not know.
	const run = `GODEBUG=cpu.rdtscp=off exec valgrind "$@" 2>/dev/null`
	start(t, newDevice(), "sh", "-c", run, "sh", "--log-file="+log, program, port).hears(program, port)
	text := must.Get(os.ReadFile(log))(t)
	require.Contains(t, string(text), "client switching stacks?")
}

// peer is a Go program's side: a region and a queue pair.
func peer(t *testing.T) (d *uapi.Device, mem []byte, mr uapi.MR, qp uapi.QP) {
	t.Helper()
	d = must.Get(uapi.Open(newDevice(), uapi.OpenConfig{}))(t)
	t.Cleanup(func() { _ = d.Close() })
	mem = make([]byte, 4096)
	mr = must.Get(d.RegMR(mem, uapi.AccessLocalWrite|uapi.AccessRemoteWrite))(t)
	qp = must.Get(d.CreateQP(4, 4))(t)
	return d, mem, mr, qp
}

// done waits for one completion.
func done(t *testing.T, d *uapi.Device, qp uapi.QP) {
	t.Helper()
	var wc [1]uapi.WC
	must.Get(d.WaitCQ(t.Context(), qp, wc[:]))(t)
	require.NoError(t, wc[0].Err())
}

// TestGoReceives: the page's program sends to a Go program.
func TestGoReceives(t *testing.T) {
	program := hello(t)
	d, mem, mr, qp := peer(t)
	must.Get(d.LocalEndpoint(qp))(t)
	must.Get(d.PostRecv(qp, mr, 4000, 1))(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	require.NoError(t, l.(*net.TCPListener).SetDeadline(time.Now().Add(patience)))
	sender := start(t, newDevice(), program, strconv.Itoa(l.Addr().(*net.TCPAddr).Port), "127.0.0.1")
	conn := must.Get(l.Accept())(t)
	defer conn.Close()
	must.Get(d.ConnectOver(t.Context(), conn, qp, []uapi.MR{mr}, nil))(t)
	done(t, d, qp)
	require.Equal(t, "hello from C", string(mem[:12]))
	sender.prints("sent\n")
}

// TestGoSends: a Go program sends to the page's program.
func TestGoSends(t *testing.T) {
	program, port := hello(t), freePort(t)
	receiver := start(t, newDevice(), program, port)
	d, mem, mr, qp := peer(t)
	var conn net.Conn
	require.Eventually(t, func() (ok bool) {
		var err error
		conn, err = net.Dial("tcp", "127.0.0.1:"+port)
		return err == nil
	}, patience, time.Millisecond)
	defer conn.Close()
	introduction := must.Get(d.ConnectOver(t.Context(), conn, qp, []uapi.MR{mr}, nil))(t)
	require.Len(t, introduction.Regions, 1)
	there := introduction.Regions[0]
	copy(mem, "hello from Go\x00")
	must.Get(d.PostWrite(qp, mr, 0, there.Addr, there.RKey, 14))(t)
	must.Get(d.PostSend(qp, mr, 1))(t)
	done(t, d, qp)
	done(t, d, qp)
	receiver.prints("hello from Go\n")
}
