package netpath

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math/bits"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/bump"
)

// patience bounds every wait on a busy machine.
const patience = time.Minute

// size of a test's datagrams, in bytes of UDP payload: some hundred of them fit
// a socket's default buffer.
const size = 200

// Bytes of headers.
const ethernetLen, ip4Len, udpLen = 14, 20, 8

// socket is a UDP socket in an end's namespace.
func socket(t *testing.T, e *End, at netip.Addr) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	require.NoError(t, e.Do(func() (err error) {
		c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, 0)))
		return err
	}))
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetReadBuffer(1<<20))
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	return c
}

// sink is a socket in B.
type sink struct {
	*net.UDPConn
	net  *Net
	took int // packets that were delivered and not stopped by their checksum
}

// pair is a socket in A and one in B, of one family. Nothing is on its way.
func pair(t *testing.T, n *Net, four bool) (a *net.UDPConn, b *sink) {
	c, _ := n.Counts()
	took := int(c.Delivered - c.Corrupted)
	if four {
		return socket(t, n.A, n.A.Addr4), &sink{socket(t, n.B, n.B.Addr4), n, took}
	}
	return socket(t, n.A, n.A.Addr6), &sink{socket(t, n.B, n.B.Addr6), n, took}
}

// datagram is the i-th of a test.
func datagram(i int) []byte {
	return bytes.Repeat(binary.BigEndian.AppendUint32(nil, uint32(i)), size/4)
}

func send(t *testing.T, from *net.UDPConn, to *sink, first, count int) {
	t.Helper()
	for i := range count {
		must.Get(from.WriteTo(datagram(first+i), to.LocalAddr()))(t)
	}
}

// arrivals are the datagrams that reached the sink since the last call, when
// the path was given so many packets in all and none is on its way.
func (s *sink) arrivals(t *testing.T, packets int) (got [][]byte, c bump.Counts) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := s.net.Await(ctx, func(ab, _ bump.Counts) bool {
		c = ab
		return c.Packets >= uint64(packets) && c.Waiting == 0
	})
	require.NoError(t, err, "%+v", c)
	require.EqualValues(t, packets, c.Packets)
	balanced(t, c)
	buf := make([]byte, 1<<16)
	for s.took < int(c.Delivered-c.Corrupted) {
		n, err := s.Read(buf)
		require.NoError(t, err, "%d of %+v", s.took, c)
		s.took++
		got = append(got, bytes.Clone(buf[:n]))
	}
	raw := must.Get(s.SyscallConn())(t)
	require.NoError(t, raw.Control(func(fd uintptr) {
		must.Fail(unix.Read(int(fd), buf))(t, unix.EAGAIN, "more than was delivered")
	}))
	return got, c
}

// numbers of datagrams, which are whole.
func numbers(t *testing.T, got [][]byte) (list []int) {
	t.Helper()
	for _, d := range got {
		i := int(binary.BigEndian.Uint32(d))
		require.Equal(t, datagram(i), d)
		list = append(list, i)
	}
	return list
}

func upTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// A path without faults delivers all, in order, in both directions and
// families.
func TestClean(t *testing.T) {
	t.Parallel()
	n := newNet(t, Options{})
	for _, family := range []struct{ a, b netip.Addr }{{n.A.Addr4, n.B.Addr4}, {n.A.Addr6, n.B.Addr6}} {
		a, b := socket(t, n.A, family.a), socket(t, n.B, family.b)
		for range 2 {
			for i := range 50 {
				must.Get(a.WriteTo(datagram(i), b.LocalAddr()))(t)
				buf := make([]byte, 2000)
				k, from, err := b.ReadFrom(buf)
				require.NoError(t, err)
				require.Equal(t, a.LocalAddr().String(), from.String())
				require.Equal(t, datagram(i), buf[:k])
			}
			a, b = b, a
		}
	}
	ab, ba := n.Counts()
	want := bump.Counts{Packets: 100, Delivered: 100}
	require.Equal(t, want, ab)
	require.Equal(t, want, ba)
}

// Datagrams sent with GSO travel as packets.
func TestSegments(t *testing.T) {
	t.Parallel()
	n := newNet(t, Options{})
	a, b := pair(t, n, true)
	raw := must.Get(a.SyscallConn())(t)
	require.NoError(t, raw.Control(func(fd uintptr) {
		require.NoError(t, unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, size))
	}))
	var all []byte
	for i := range 30 {
		all = append(all, datagram(i)...)
	}
	must.Get(a.WriteTo(all, b.LocalAddr()))(t)
	got, counts := b.arrivals(t, 30)
	require.Equal(t, upTo(30), numbers(t, got))
	require.Equal(t, bump.Counts{Packets: 30, Delivered: 30}, counts)
}

// The seed says which packets are lost.
func TestLoss(t *testing.T) {
	t.Parallel()
	var lists [2][]int
	for i := range lists {
		n := newNet(t, Options{AB: Path{Loss: 0.2, Seed: 7}})
		a, b := pair(t, n, true)
		send(t, a, b, 0, 300)
		got, counts := b.arrivals(t, 300)
		lists[i] = numbers(t, got)
		require.InDelta(t, 60, counts.Lost, 30)
		require.Len(t, got, 300-int(counts.Lost))
		require.True(t, slices.IsSorted(lists[i]))
	}
	require.Equal(t, lists[0], lists[1])
}

// Nothing arrives sooner than said, and something soon after.
func TestDelay(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond} {
		n := newNet(t, Options{AB: Path{Delay: delay}, BA: Path{Delay: delay / 5}})
		a, b := pair(t, n, true)
		trip := delay + delay/5
		least := time.Hour
		for i := range 20 {
			began := time.Now()
			send(t, a, b, i, 1)
			buf := make([]byte, size)
			_, from, err := b.ReadFrom(buf)
			require.NoError(t, err)
			require.GreaterOrEqual(t, time.Since(began), delay)
			must.Get(b.WriteTo(buf, from))(t)
			_, _, err = a.ReadFrom(buf)
			require.NoError(t, err)
			took := time.Since(began)
			require.GreaterOrEqual(t, took, trip)
			least = min(least, took)
		}
		t.Logf("delay %v: the quickest of 20 round trips takes %v more than the path", trip, least-trip)
		require.Less(t, least-trip, 50*time.Millisecond, "the best of many, on a busy machine")
	}
}

// A corrupted datagram is stopped by its checksum, unless that was corrected:
// then it arrives with one bit inverted.
func TestCorrupt(t *testing.T) {
	t.Parallel()
	n := newNet(t, Options{AB: Path{Corrupt: 0.5, Seed: 1}})
	for _, four := range []bool{true, false} {
		before, _ := n.Counts()
		a, b := pair(t, n, four)
		send(t, a, b, 0, 200)
		got, counts := b.arrivals(t, int(before.Packets)+200)
		plain, disguised := counts.Corrupted-before.Corrupted, counts.Disguised-before.Disguised
		require.InDelta(t, 50, plain, 25)
		require.InDelta(t, 50, disguised, 25)
		require.Len(t, got, 200-int(plain))
		damaged := 0
		for _, d := range got {
			require.Len(t, d, size)
			i := int(binary.BigEndian.Uint32(d[4:]))
			if binary.BigEndian.Uint32(d[8:]) != uint32(i) {
				i = int(binary.BigEndian.Uint32(d)) // the bit is in the second word or the third
			}
			flipped := 0
			for j, x := range datagram(i) {
				flipped += bits.OnesCount8(x ^ d[j])
			}
			require.LessOrEqual(t, flipped, 1)
			damaged += flipped
		}
		require.Equal(t, int(disguised), damaged)
	}
}

// A burst waits for the rate; packets beyond the queue's room are lost.
func TestRate(t *testing.T) {
	t.Parallel()
	const frame = ethernetLen + ip4Len + udpLen + size
	n := newNet(t, Options{AB: Path{Rate: 8 * frame * 10, Queue: 20 * frame}}) // 10 a second
	a, b := pair(t, n, true)
	began := time.Now()
	send(t, a, b, 0, 40)
	got, counts := b.arrivals(t, 40)
	took := time.Since(began)
	list := numbers(t, got)
	require.Positive(t, counts.Overflowed)
	require.GreaterOrEqual(t, len(list), 20)
	require.Equal(t, upTo(20), list[:20])
	require.GreaterOrEqual(t, took, time.Duration(len(list))*100*time.Millisecond)
}

// A packet longer than the path's MTU vanishes; one longer than the interface's
// is refused.
func TestMTU(t *testing.T) {
	t.Parallel()
	n := newNet(t, Options{AB: Path{MTU: size + ip4Len + udpLen}})
	a, b := pair(t, n, true)
	raw := must.Get(a.SyscallConn())(t)
	require.NoError(t, raw.Control(func(fd uintptr) {
		require.NoError(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO))
	}))
	send(t, a, b, 0, 1)
	for _, length := range []int{size + 1, bump.DefaultMTU - ip4Len - udpLen} {
		must.Get(a.WriteTo(make([]byte, length), b.LocalAddr()))(t)
	}
	_, err := a.WriteTo(make([]byte, bump.DefaultMTU-ip4Len-udpLen+1), b.LocalAddr())
	require.ErrorIs(t, err, unix.EMSGSIZE)
	got, counts := b.arrivals(t, 3)
	require.Equal(t, []int{0}, numbers(t, got))
	require.Equal(t, bump.Counts{Packets: 3, TooLong: 2, Delivered: 1}, counts)
}

// A path can break and mend while it is used.
func TestSetPaths(t *testing.T) {
	t.Parallel()
	n := newNet(t, Options{})
	a, b := pair(t, n, true)
	send(t, a, b, 0, 5)
	arrived, _ := b.arrivals(t, 5)
	n.SetPaths(Path{Loss: 1}, Path{})
	send(t, a, b, 5, 5)
	lost, _ := b.arrivals(t, 10)
	n.SetPaths(Path{}, Path{})
	send(t, a, b, 10, 5)
	mended, _ := b.arrivals(t, 15)
	require.Equal(t, []int{0, 1, 2, 3, 4}, numbers(t, arrived))
	require.Empty(t, lost)
	require.Equal(t, []int{10, 11, 12, 13, 14}, numbers(t, mended))
}

// TCP, whose segments the kernel makes as large as it can, comes whole over a
// path that does everything.
func TestStream(t *testing.T) {
	t.Parallel()
	bad := Path{Loss: 0.01, Delay: time.Millisecond, Reorder: 0.02, Duplicate: 0.02, Corrupt: 0.01, Seed: 3}
	n := newNet(t, Options{AB: bad, BA: bad})
	var l net.Listener
	require.NoError(t, n.B.Do(func() (err error) {
		l, err = net.Listen("tcp", netip.AddrPortFrom(n.B.Addr4, 0).String())
		return err
	}))
	defer l.Close()
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	var sender sync.WaitGroup
	defer sender.Wait()
	sender.Go(func() {
		err := n.A.Do(func() error {
			c, err := net.DialTimeout("tcp", l.Addr().String(), patience)
			if err != nil {
				return err
			}
			_, err = c.Write(data)
			return errors.Join(err, c.Close())
		})
		if err != nil {
			t.Error(err)
		}
	})
	c := must.Get(l.Accept())(t)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	got := must.Get(io.ReadAll(c))(t)
	require.True(t, bytes.Equal(data, got), "%d bytes of %d", len(got), len(data))
	ab, _ := n.Counts()
	require.Greater(t, ab.Packets, uint64(len(data)/bump.DefaultMTU))
	require.Zero(t, ab.TooLong)
}

// A process that Do starts is in the end's namespace.
func TestProcess(t *testing.T) {
	t.Parallel()
	n := newNet(t, Options{})
	cmd := exec.Command("cat", "/proc/self/net/if_inet6")
	var out bytes.Buffer
	cmd.Stdout = &out
	require.NoError(t, n.B.Do(cmd.Start))
	require.NoError(t, cmd.Wait())
	b6 := n.B.Addr6.As16()
	require.Contains(t, out.String(), hex.EncodeToString(b6[:]))
	require.NotEqual(t, n.A.Addr4, newNet(t, Options{}).A.Addr4)
}

// The tests need no root: they pass for another user too.
func TestUnprivileged(t *testing.T) {
	if os.Getuid() != 0 || os.Getenv(entered) != "" {
		return // then all of them show it
	}
	dir, err := os.MkdirTemp("", "netpath") // unlike t.TempDir, which only root enters
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	self := must.Get(os.Executable())(t)
	program := must.Get(os.ReadFile(self))(t)
	copied := filepath.Join(dir, "netpath.test")
	require.NoError(t, os.WriteFile(copied, program, 0o755))
	cmd := exec.Command(copied, "-test.run=^(TestClean|TestLoss|TestSegments)$", "-test.v")
	cmd.Dir = dir
	const nobody = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if bytes.Contains(out, []byte("--- SKIP")) && os.Getenv("CI") != "true" {
		t.Skip("this machine gives other users than root no network namespaces; see sysctl user.max_user_namespaces, " +
			"kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns")
	}
	require.NoError(t, err, "%s", out)
	for _, name := range []string{"TestClean", "TestLoss", "TestSegments"} {
		require.Contains(t, string(out), "--- PASS: "+name)
	}
}
