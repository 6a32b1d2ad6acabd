package rdmanet_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// oneWay are programs of two ends whose calls are not answered by the other
// end's: it has gone, says last words, or never reads. A line is a call of end
// a or b. What follows "~" is its answer over RDMA where that is another one
// than TCP's, and one of these is the reason:
//
//   - early: TCP learns that the peer has gone from what comes back for a Write
//   - stays: TCP tells of a reset once, RDMA at every call
//   - unsaid: TCP's kernel closes for a process that has died; a soft device
//     dies with it
//   - drops: CloseRead drops data that has not been read
//
// A read of 0 bytes and a write of 0 are calls with an empty slice; drain reads
// until an error.
var oneWay = []struct{ name, script string }{
	{"the peer closes, and this end writes", `
		b write 9
		b close
		a write 1 ~ write EPIPE (early)
		a write 1
		a write 0
		a read 0
		a drain
		a drain
		a linger 3
		a deadline none
		a closewrite ~ ok (early)
		a close`},
	{"the peer closes, and this end has ended its data", `
		b write 9
		b close
		a drain
		a closewrite
		a closewrite
		a closeread
		a write 1
		a write 0
		a linger 0
		a close`},
	{"the peer's last words, read first", `
		a write 20
		b read 1
		b write 9
		b close
		a read 0
		a drain
		a drain ~ 0 bytes, read ECONNRESET (stays)
		a write 1 ~ write ECONNRESET (stays)
		a write 0 ~ write ECONNRESET (stays)
		a closewrite
		a closeread
		a linger 3
		a deadline none
		a close`},
	{"the peer's last words, after a Write", `
		a write 20
		b read 1
		b write 9
		b close
		a write 1
		a write 1 ~ write ECONNRESET (stays)
		a drain ~ 9 bytes, read ECONNRESET (stays)
		a closewrite`},
	{"the peer's last words, after a Write of nothing", `
		a write 20
		b write 9
		b close
		a write 0
		a drain ~ 9 bytes, read ECONNRESET (stays)`},
	{"the peer closes and has read nothing", `
		a write 20
		b close
		a drain
		a closewrite`},
	{"both close with unread data", `
		a write 20
		b write 9
		b close
		a close`},
	{"the peer ends its data, and reads", `
		b write 3
		b closewrite
		b write 1
		b write 0
		a drain
		a write 5
		b read 5
		a closewrite
		b drain
		a closewrite
		b closewrite
		a closeread
		b close
		a close`},
	{"the peer ends its data, and closes with unread data", `
		b closewrite
		a write 5
		b close
		a write 1
		a drain
		a write 0
		a closewrite
		a closeread`},
	{"the peer breaks off", `
		a write 20
		b read 20
		b write 9
		b linger 0
		b close
		a drain
		a closewrite`},
	{"the peer dies", `
		b write 9
		b die
		a write 1 ~ write ECONNRESET (unsaid)
		a write 1 ~ write ECONNRESET (unsaid)
		a write 0 ~ write ECONNRESET (unsaid)
		a read 0
		a drain ~ 9 bytes, read ECONNRESET (unsaid)
		a closewrite
		a close`},
	{"the peer dies, and this end has ended its data", `
		a closewrite
		b die
		a drain ~ 0 bytes, read ECONNRESET (unsaid)
		a closewrite
		a closeread
		a linger 3`},
	{"CloseRead", `
		a closeread
		a closeread
		a read 0
		b write 5
		a drain ~ 0 bytes, EOF (drops)
		a write 5
		b read 5
		a closewrite
		a closewrite
		b close
		a closeread`},
	{"deadlines come before all else", `
		a write 20
		b write 9
		b close
		a deadline past
		a read 0
		a read 1
		a write 0
		a write 1
		a deadline none
		a read 9`},
	{"every call after Close", `
		a closeread
		a close
		a read 0
		a read 1
		a write 0
		a write 1
		a closewrite
		a closeread
		a linger 3
		a deadline none
		a close`},
}

// end is what the programs use, of *net.TCPConn and *rdmanet.Conn.
type end interface {
	net.Conn
	CloseWrite() error
	CloseRead() error
	SetLinger(sec int) error
}

// say names an error that the ends of both transports share.
func say(err error) string {
	if err == nil || err == io.EOF {
		return map[error]string{nil: "ok", io.EOF: "EOF"}[err]
	}
	op := &net.OpError{Op: "no *net.OpError:"}
	_ = errors.As(err, &op)
	for name, known := range map[string]error{
		"EPIPE": syscall.EPIPE, "ECONNRESET": syscall.ECONNRESET, "ENOTCONN": syscall.ENOTCONN,
		"closed": net.ErrClosed, "late": os.ErrDeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return op.Op + " " + name
		}
	}
	return err.Error()
}

// call makes a call and returns its answer.
func call(c end, name string, n int, word string, die func()) string {
	switch name {
	case "write":
		_, err := c.Write(make([]byte, n))
		return say(err)
	case "read":
		k, err := c.Read(make([]byte, n))
		for k < n && err == nil {
			var more int
			more, err = c.Read(make([]byte, n-k))
			k += more
		}
		return fmt.Sprintf("%d bytes, %s", k, say(err))
	case "drain":
		k, err := 0, error(nil)
		for err == nil {
			var more int
			more, err = c.Read(make([]byte, 64))
			k += more
		}
		return fmt.Sprintf("%d bytes, %s", k, say(err))
	case "close":
		return say(c.Close())
	case "closewrite":
		return say(c.CloseWrite())
	case "closeread":
		return say(c.CloseRead())
	case "linger":
		return say(c.SetLinger(n))
	case "deadline":
		return say(c.SetDeadline(map[string]time.Time{"past": time.Unix(1, 0)}[word]))
	case "die":
		die()
		return "ok"
	}
	panic(name)
}

// perform runs a script and returns a line for each call. settled waits until
// what end i did is known to the other end. Where it cannot, a call that is to
// fail by one of the late lines is made until it does.
func perform(script string, ends [2]end, settled func(i int, name string), die func(), late []string) (lines []string) {
	for line := range strings.SplitSeq(strings.TrimSpace(script), "\n") {
		said, _, _ := strings.Cut(strings.TrimSpace(line), " ~ ")
		var who, name, word string
		_, _ = fmt.Sscan(said, &who, &name, &word)
		n := 0
		_, _ = fmt.Sscan(word, &n)
		i := int(who[0] - 'a')
		got := said + ": " + call(ends[i], name, n, word, die)
		for k, end := len(lines), time.Now().Add(patience); late != nil && got != late[k] && strings.HasSuffix(got, ": ok") && time.Now().Before(end); {
			got = said + ": " + call(ends[i], name, n, word, die)
		}
		lines = append(lines, got)
		settled(i, name)
	}
	return lines
}

// declared returns the lines over RDMA by those of TCP and the script. A
// difference that is none is a fault of the script's.
func declared(t *testing.T, script string, tcp []string) (lines []string) {
	t.Helper()
	for i, line := range strings.Split(strings.TrimSpace(script), "\n") {
		said, other, differs := strings.Cut(strings.TrimSpace(line), " ~ ")
		expected := tcp[i]
		if differs {
			answer, _, ok := strings.Cut(other, " (")
			require.True(t, ok, "a difference without a reason: %s", line)
			expected = said + ": " + answer
			require.NotEqual(t, tcp[i], expected, "no difference")
		}
		lines = append(lines, expected)
	}
	return lines
}

// overTCPSockets is what net.TCPConn of this kernel answers.
func overTCPSockets(t *testing.T, script string) []string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	a := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	b := must.Get(l.Accept())(t)
	ends := [2]end{a.(end), b.(end)}
	for _, c := range ends {
		defer c.Close()
	}
	var over [2]bool // closed
	return perform(script, ends, func(i int, name string) {
		peer := 1 - i
		switch name {
		case "close", "die":
			over[i] = true
			fallthrough
		case "closewrite":
			if !over[peer] {
				await(t, ends[peer], func(state uint8, _ int) bool {
					return state != unix.BPF_TCP_ESTABLISHED && state != unix.BPF_TCP_FIN_WAIT1 && state != unix.BPF_TCP_FIN_WAIT2
				})
			}
			if !over[i] && over[peer] {
				await(t, ends[i], func(state uint8, _ int) bool { return state == unix.BPF_TCP_CLOSE })
			}
		case "write":
			if !over[i] {
				await(t, ends[i], func(state uint8, unsent int) bool {
					return state == unix.BPF_TCP_CLOSE || unsent == 0 && !over[peer]
				})
			}
		}
	}, func() { _ = b.Close() }, nil)
}

// await waits until a socket's state and the bytes that its peer has not
// acknowledged are as they shall be.
func await(t *testing.T, c end, is func(state uint8, unsent int) bool) {
	t.Helper()
	raw := must.Get(c.(*net.TCPConn).SyscallConn())(t)
	require.Eventually(t, func() (ok bool) {
		require.NoError(t, raw.Control(func(fd uintptr) {
			info := must.Get(unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO))(t)
			var unsent int32
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, unix.SIOCOUTQ, uintptr(unsafe.Pointer(&unsent)))
			ok = errno == 0 && is(info.State, int(unsent)) || errno == syscall.EINVAL && is(info.State, 0)
		}))
		return ok
	}, patience, time.Millisecond)
}

// TestOneWay runs the programs over TCP and over RDMA on a network in memory,
// through shared memory and UDP, and compares their lines.
func TestOneWay(t *testing.T) {
	for _, p := range oneWay {
		t.Run(p.name, func(t *testing.T) {
			expected := declared(t, p.script, overTCPSockets(t, p.script))
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t, rdmanet.Config{})
				x, y := h.join(t)
				got := perform(p.script, [2]end{x, y}, func(int, string) {
					time.Sleep(time.Second) // virtual
				}, func() { _ = h.server.Close() }, nil)
				require.Equal(t, strings.Join(expected, "\n"), strings.Join(got, "\n"))
			})
			if strings.Contains(p.script, "die") {
				return // with processes in TestRival09DeadPeer: each way has its own news of it
			}
			for _, device := range []string{"soft", "soft?shm=off"} {
				h := hostOn(t, open(t, device), open(t, device), rdmanet.Config{})
				x, y := h.join(t)
				conns := [2]*rdmanet.Conn{x, y}
				got := perform(p.script, [2]end{x, y}, func(i int, name string) {
					switch name {
					case "write", "closewrite":
						require.Eventually(t, func() bool { return acknowledged(t, conns[i]) }, patience, time.Millisecond)
					case "close":
						givenBack(t, conns[i].CloseContext(limited(t)))
					}
				}, func() { _ = h.server.Close() }, expected)
				require.Equal(t, strings.Join(expected, "\n"), strings.Join(got, "\n"), device)
			}
		})
	}
}

// acknowledged reports whether the peer's device has all that was posted.
func acknowledged(t *testing.T, c *rdmanet.Conn) bool {
	t.Helper()
	all, err := c.Device().Stats()
	if errors.Is(err, net.ErrClosed) {
		return true
	}
	require.NoError(t, err)
	for _, pair := range all.QueuePairs {
		if pair.QPN == uint32(c.Info().QP) {
			return pair.Requester == nil || pair.Requester.Outstanding == 0
		}
	}
	return true
}
