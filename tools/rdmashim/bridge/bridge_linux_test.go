package bridge

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/tools/internal/bump"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

const recording = "../../../tests/testdata/rxe-6.1-rc-mtu1024.pcap"

// patience bounds every wait.
const patience = time.Minute

// veths makes two pairs, x0 and x1, y0 and y1: the bridge is to join x1 and y1.
func veths(t *testing.T) {
	t.Helper()
	for _, name := range []string{"x", "y"} {
		a := netlink.NewLinkAttrs()
		a.Name = name + "0"
		require.NoError(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: a, PeerName: name + "1"}))
		for _, end := range []string{"0", "1"} {
			l := must.Get(netlink.LinkByName(name + end))(t)
			require.NoError(t, netlink.LinkSetIP6AddrGenMode(l, 1)) // none: the kernel says nothing by itself
			require.NoError(t, netlink.LinkSetUp(l))
		}
	}
}

// begin starts the command, waits until it bridges, and returns how it is
// interrupted.
func begin(t *testing.T, args ...string) (cmd *exec.Cmd, stdout *bufio.Reader, end func() string) {
	t.Helper()
	cmd = clitest.Tool(t, append([]string{"bridge", "x1", "y1"}, args...)...)
	stderr := must.Get(cmd.StderrPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	told := bufio.NewReader(stderr)
	line := must.Get(told.ReadString('\n'))(t)
	require.Equal(t, "rdmashim: bridging x1 and y1; interrupt to end\n", line)
	return cmd, bufio.NewReader(out), func() string {
		rest := must.Get(io.ReadAll(told))(t)
		return string(rest)
	}
}

// peer is a raw socket on an interface, with struct virtio_net_hdr before each
// frame.
type peer struct{ fd int }

func open(t *testing.T, name string) peer {
	l := must.Get(netlink.LinkByName(name))(t)
	fd := must.Get(bump.Listen(l.Attrs().Index, true))(t)
	t.Cleanup(func() { unix.Close(fd) })
	return peer{fd}
}

func (e peer) send(t *testing.T, frame []byte) {
	must.Get(unix.Write(e.fd, append(make([]byte, 10), frame...)))(t)
}

// receive waits for a frame, with the VLAN's tag that it had.
func (e peer) receive(t *testing.T) []byte {
	t.Helper()
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(e.fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
	require.NoError(t, err)
	require.Equal(t, 1, n, "no frame came")
	buf, about := make([]byte, 1<<17), make([]byte, 100)
	n, k, _, _, err := unix.Recvmsg(e.fd, buf, about, 0)
	require.NoError(t, err)
	frame := buf[10:n]
	messages := must.Get(unix.ParseSocketControlMessage(about[:k]))(t)
	require.Len(t, messages, 1)
	if aux := messages[0].Data; binary.NativeEndian.Uint32(aux)&unix.TP_STATUS_VLAN_VALID != 0 {
		tag := binary.BigEndian.AppendUint16([]byte{0x81, 0}, binary.NativeEndian.Uint16(aux[16:]))
		frame = slices.Insert(frame, 12, tag...)
	}
	return frame
}

func frames(t *testing.T) (list [][]byte) {
	f := must.Get(os.Open(recording))(t)
	defer f.Close()
	r := must.Get(pcapgo.NewReader(f))(t)
	for {
		b, _, err := r.ReadPacketData()
		if err == io.EOF {
			return list
		}
		require.NoError(t, err)
		list = append(list, b)
	}
}

// TestBridge: recorded packets and other frames go through in both directions,
// all but the third READ response of each connection. The counters, the capture
// and the promiscuity are as they should be.
func TestBridge(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	veths(t)
	path := filepath.Join(t.TempDir(), "left.pcapng")
	cmd, stdout, end := begin(t, "--fault", "drop op=READ_RESPONSE_* nth=3", "--fault", "drop op=CNP", "--pcap", path, "-j")
	promiscuous := func() int {
		l := must.Get(netlink.LinkByName("x1"))(t)
		return l.Attrs().Promisc
	}
	require.Equal(t, 1, promiscuous())
	x, y := open(t, "x0"), open(t, "y0")
	other := append(bytes.Repeat([]byte{0xff}, 12), append([]byte{0x88, 0xb5}, bytes.Repeat([]byte{7}, 60)...)...)
	var report Report
	for _, way := range []struct{ from, to peer }{{x, y}, {y, x}} {
		responses, lost := map[wire.QPN]int{}, 0
		for _, f := range frames(t) {
			var p wire.Packet
			require.NoError(t, p.Parse(f[42:len(f)-4]))
			way.from.send(t, f)
			if wire.RCReadResponseFirst <= p.Opcode && p.Opcode <= wire.RCReadResponseOnly {
				if responses[p.DestQPN]++; responses[p.DestQPN] == 3 {
					lost++
					continue
				}
			}
			require.Equal(t, f, way.to.receive(t))
		}
		require.NotZero(t, lost)
		way.from.send(t, other)
		require.Equal(t, other, way.to.receive(t))
		require.NoError(t, cmd.Process.Signal(unix.SIGUSR1))
		line := must.Get(stdout.ReadBytes('\n'))(t)
		require.NoError(t, json.Unmarshal(line, &report))
		i := 0
		if way.from == y {
			i = 1
		}
		got := report.Ways[i]
		require.EqualValues(t, lost, got.Dropped)
		require.EqualValues(t, lost, got.Rules[0].Hits)
		require.EqualValues(t, len(frames(t)), got.RoCE)
		require.EqualValues(t, len(frames(t))-lost+1, got.Frames)
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	rest := must.Get(io.ReadAll(stdout))(t)
	require.NoError(t, json.Unmarshal(rest, &report))
	require.Equal(t, "rdmashim: a rule of faults never hit a packet: drop op=CNP\n", end())
	require.NoError(t, cmd.Wait())
	require.Zero(t, promiscuous())

	b := must.Get(os.ReadFile(path))(t)
	r, err := dissect.NewReader(bytes.NewReader(b), wire.Port, dissect.MaxUnzipped)
	require.NoError(t, err)
	left, bytesLeft := map[string]uint64{}, uint64(0)
	for {
		var p dissect.Packet
		if err = r.Next(&p); err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.Equal(t, dissect.OK, p.ICRC)
		left[p.Interface]++
		bytesLeft += uint64(p.Length)
	}
	require.Equal(t, map[string]uint64{"y1": report.Ways[0].Frames - 1, "x1": report.Ways[1].Frames - 1}, left)
	require.Equal(t, int(report.Ways[0].Frames+report.Ways[1].Frames), r.Records())
	require.NotZero(t, bytesLeft)
}

// TestOffloads: a VLAN's tag, which the kernel takes off, is put back;
// datagrams that are left to hardware to cut leave as packets; and those that
// are no RoCEv2 pass as they are.
func TestOffloads(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	veths(t)
	cmd, _, end := begin(t)
	defer func() {
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		require.Empty(t, end())
		require.NoError(t, cmd.Wait())
	}()
	x, y := open(t, "x0"), open(t, "y0")
	plain := frames(t)[0]
	tagged := append(append(bytes.Clone(plain[:12]), 0x81, 0, 0, 7), plain[12:]...)
	x.send(t, tagged)
	require.Equal(t, tagged, y.receive(t))

	// An address at x0, and a neighbour who is not there.
	from, to := netip.MustParseAddr("10.9.0.1"), net.IPv4(10, 9, 0, 2)
	l := must.Get(netlink.LinkByName("x0"))(t)
	address := must.Get(netlink.ParseAddr(from.String() + "/24"))(t)
	require.NoError(t, netlink.AddrAdd(l, address))
	require.NoError(t, netlink.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT, IP: to, HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 9}}))
	for _, port := range []int{wire.Port, 9} {
		c := must.Get(net.DialUDP("udp4", nil, &net.UDPAddr{IP: to, Port: port}))(t)
		raw := must.Get(c.SyscallConn())(t)
		require.NoError(t, raw.Control(func(fd uintptr) {
			require.NoError(t, unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, 1000))
		}))
		must.Get(c.Write(bytes.Repeat([]byte{5}, 2500)))(t)
		require.NoError(t, c.Close())
		var sizes []int
		for all := 0; all < 2500; {
			f := y.receive(t)
			if f[23] != 17 { // not UDP
				continue
			}
			sizes = append(sizes, len(f)-42)
			all += len(f) - 42
		}
		want := []int{1000, 1000, 500}
		if port != wire.Port {
			want = []int{2500}
		}
		require.Equal(t, want, sizes)
	}
}

// TestGone: the command ends when an interface goes.
func TestGone(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	veths(t)
	cmd, _, end := begin(t)
	l := must.Get(netlink.LinkByName("x1"))(t)
	require.NoError(t, netlink.LinkDel(l))
	require.Equal(t, "rdmashim: the interface x1 is gone: no such device\n", end())
	require.Error(t, cmd.Wait())
}

// TestRefused: what cannot be bridged is said in a line, with what to do.
func TestRefused(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	veths(t)
	br := netlink.NewLinkAttrs()
	br.Name = "br0"
	require.NoError(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: br}))
	b := must.Get(netlink.LinkByName("br0"))(t)
	l := must.Get(netlink.LinkByName("y0"))(t)
	require.NoError(t, netlink.LinkSetMaster(l, b))
	for args, want := range map[string]string{
		"x1":                          "two different interfaces",
		"x1 x1":                       "two different interfaces",
		"x1 nowhere":                  "ip link",
		"x1 lo":                       "no Ethernet",
		"x1 y0":                       "nomaster",
		"x1 br0":                      "br0 is down",
		"x1 y1 --fault drap":          "no word of a rule",
		"x1 y1 --fault @/nowhere":     "no such file",
		"x1 y1 --pcap /nowhere/a.dmp": "no such file",
	} {
		o := clitest.RunTool(t, strings.Fields("bridge "+args)...)
		require.NotZero(t, o.Code, args)
		require.Contains(t, o.Stderr, want, args)
		require.Equal(t, 1, strings.Count(o.Stderr, "\n"), o.Stderr)
	}
}

// TestUnprivileged: a user without the capability is told which.
func TestUnprivileged(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	veths(t)
	cmd := clitest.Tool(t, "bridge", "x1", "y1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER} // no capability in this namespace
	o := clitest.Finish(t, cmd)
	require.Equal(t, 1, o.Code, o.Stderr)
	require.Contains(t, o.Stderr, "CAP_NET_RAW")
	require.Equal(t, 1, strings.Count(o.Stderr, "\n"), o.Stderr)
}
