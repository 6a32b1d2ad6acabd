package capture

import (
	"bytes"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/linktest"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

// head encodes the headers of a WRITE ONLY that carries n bytes.
func head(psn wire.PSN, n int) []byte {
	p := wire.Packet{
		BTH:  wire.BTH{Opcode: wire.RCWriteOnly, MigReq: true, PKey: wire.DefaultPKey, DestQPN: 0x123456, PSN: psn, AckReq: true, Pad: wire.PadLen(n)},
		RETH: wire.RETH{VA: 0x1000, RKey: 7, DMALen: uint32(n)},
	}
	return p.AppendHeaders(nil)
}

func fill(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) * 7
	}
	return b
}

func counter(l link.Link, name string) uint64 {
	for _, c := range l.Counters(nil) {
		if c.Name == name {
			return c.Value
		}
	}
	panic("no counter " + name)
}

// packetsOn reads a capture's packets to or from a port back.
func packetsOn(t *testing.T, path string, port uint16) (list []dissect.Packet, missing uint64) {
	t.Helper()
	b := must.Get(os.ReadFile(path))(t)
	r := must.Get(dissect.NewReader(bytes.NewReader(b), port, dissect.MaxUnzipped))(t)
	for {
		var p dissect.Packet
		err := r.Next(&p)
		if err == io.EOF {
			return list, r.Missing()
		}
		require.NoError(t, err)
		p.Wire.Payload = bytes.Clone(p.Wire.Payload)
		list = append(list, p)
	}
}

// pair makes two connected links, the first one captured.
type pair func(t *testing.T, six bool) (a, b link.Link)

func simPair(t *testing.T, six bool) (a, b link.Link) {
	n := sim.NewNetwork(sim.Options{})
	at := []string{"10.0.0.1:4791", "10.0.0.2:4791"}
	if six {
		at = []string{"[fd00::1]:4791", "[fd00::2]:4791"}
	}
	a = must.Get(n.Attach(netip.MustParseAddrPort(at[0])))(t)
	b = must.Get(n.Attach(netip.MustParseAddrPort(at[1])))(t)
	return a, b
}

func udpPair(t *testing.T, six bool) (a, b link.Link) {
	l := linktest.UDP(t, map[bool]string{false: "127.0.0.1", true: "::1"}[six])
	return l[0], l[1]
}

// The sent packets, one with an inverted bit among them, and the received ones
// are in the file as they were on the wire.
func TestBothWays(t *testing.T) {
	for name, links := range map[string]pair{"sim": simPair, "udp": udpPair} {
		for _, six := range []bool{false, true} {
			t.Run(name+map[bool]string{false: " IPv4", true: " IPv6"}[six], func(t *testing.T) {
				a, b := links(t, six)
				path := filepath.Join(t.TempDir(), "x.pcapng")
				a = must.Get(Wrap(a, path, Options{Name: "test0"}))(t)
				sizes := []int{0, 1, 2, 3, 4, 255, 1024, 4096}
				exchange(t, a, b, sizes)
				exchange(t, b, a, sizes)
				require.EqualValues(t, 2*len(sizes)+2, counter(a, "pcap_pkts"))
				require.Zero(t, counter(a, "pcap_drop"))
				ca, cb := a.Caps().Local, b.Caps().Local
				require.NoError(t, a.Close())
				require.NoError(t, a.Close(), "idempotent")
				require.NoError(t, b.Close())

				got, missing := packetsOn(t, path, ca.Port())
				require.Zero(t, missing)
				require.Len(t, got, 2*len(sizes)+2)
				for i, p := range got {
					require.Equal(t, "test0", p.Interface)
					n := len(sizes) + 1
					want := []any{dissect.Outbound, ca, cb}
					if i >= n {
						want = []any{dissect.Inbound, cb, ca}
					}
					require.Equal(t, want, []any{p.Direction, p.Src, p.Dst})
					k := i % n
					switch k {
					case len(sizes) - 1:
						require.Equal(t, dissect.Bad, p.ICRC, "the inverted bit is in the file")
						continue
					case len(sizes):
						k--
					}
					require.Equal(t, dissect.OK, p.ICRC)
					require.NoError(t, p.Err)
					require.Equal(t, wire.PSN(k), p.Wire.PSN)
					require.Equal(t, string(fill(sizes[k])), string(p.Wire.Payload))
					require.False(t, i > 0 && p.Time.Before(got[i-1].Time), "in the order of time")
				}
				checksums(t, path, len(got))
			})
		}
	}
}

// exchange sends a packet of each size from a to b, one with an inverted bit
// before the last of them, and waits for all.
func exchange(t *testing.T, a, b link.Link, sizes []int) {
	t.Helper()
	var batch []link.Packet
	for i, n := range sizes {
		if i == len(sizes)-1 {
			batch = append(batch, link.Packet{Peer: b.Caps().Local, Head: head(99, 9), Payload: fill(9), Flip: 1 + 8*40 + 3})
		}
		batch = append(batch, link.Packet{Peer: b.Caps().Local, Head: head(wire.PSN(i), n), Payload: fill(n)})
	}
	require.NoError(t, a.Send(batch))
	in := make([]link.Packet, 64)
	for got := 0; got < len(sizes); {
		n := must.Get(link.Receive(b, in))(t)
		got += n
	}
	require.EqualValues(t, 1, counter(b, "drop_icrc"))
}

// checksums verifies the IPv4 header's checksum and IPv6's UDP checksum by
// gopacket's own arithmetic.
func checksums(t *testing.T, path string, want int) {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	r := must.Get(pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions))(t)
	require.EqualValues(t, linkTypeRaw, r.LinkType())
	require.Equal(t, "rdmashim", r.SectionInfo().Application)
	for n := 0; ; n++ {
		raw, _, err := r.ReadPacketData()
		if err == io.EOF {
			require.Equal(t, want, n)
			return
		}
		require.NoError(t, err)
		first := layers.LayerTypeIPv4
		if raw[0]>>4 == 6 {
			first = layers.LayerTypeIPv6
		}
		p := gopacket.NewPacket(raw, first, gopacket.NoCopy)
		udp := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
		require.NoError(t, udp.SetNetworkLayerForChecksum(p.NetworkLayer()))
		err, bad := p.VerifyChecksums()
		require.NoError(t, err)
		require.Empty(t, bad)
	}
}

// The faults of a link are above the tap: lost packets are not in the file.
func TestBelowFaults(t *testing.T) {
	a, b := simPair(t, false)
	path := filepath.Join(t.TempDir(), "x.pcapng")
	w := must.Get(Wrap(a, path, Options{}))(t)
	f := link.WithFaults(w, link.Faults{Loss: 0.2, Dup: 0.1, Corrupt: 0.1, Seed: 7})
	const n = 1000
	for i := range n {
		require.NoError(t, f.Send([]link.Packet{{Peer: b.Caps().Local, Head: head(wire.PSN(i), 5), Payload: fill(5)}}))
	}
	lost, dup, corrupt := counter(f, "fault_loss"), counter(f, "fault_dup"), counter(f, "fault_corrupt")
	require.NotZero(t, lost*dup*corrupt)
	require.NoError(t, f.Close())
	require.NoError(t, b.Close())
	got, _ := packetsOn(t, path, 0)
	require.EqualValues(t, n-lost+dup, len(got))
	bad := 0
	for _, p := range got {
		if p.ICRC != dissect.OK {
			bad++
		}
	}
	// An inverted bit of FECN, BECN and the bits beside them is outside the
	// ICRC.
	require.InDelta(t, corrupt, bad, float64(corrupt)/8)
}

// A capture holds programs' data: it is made for its user alone, and never
// where a symbolic link leads.
func TestPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows has neither modes nor O_NOFOLLOW; run it on a Unix")
	}
	a, b := simPair(t, false)
	defer b.Close()
	defer a.Close()
	path := filepath.Join(t.TempDir(), "x.pcapng")
	w := must.Get(Wrap(a, path, Options{}))(t)
	require.NoError(t, w.Close())
	info := must.Get(os.Stat(path))(t)
	require.Zero(t, info.Mode().Perm()&0o077, info.Mode())

	require.NoError(t, os.Symlink(path, path+".link"))
	_, err := Wrap(b, path+".link", Options{})
	require.ErrorIs(t, err, syscall.ELOOP)
	require.ErrorContains(t, err, path+".link")
	after := must.Get(os.Stat(path))(t)
	require.Equal(t, info.Size(), after.Size())
}

// broken is a file that fails after some bytes, or when it is closed.
type broken struct {
	room    int64
	closing error
	closed  bool
}

func (b *broken) Write(p []byte) (int, error) {
	if b.room -= int64(len(p)); b.room < 0 {
		return 0, syscall.ENOSPC
	}
	return len(p), nil
}
func (b *broken) Close() error { b.closed = true; return b.closing }

var (
	addrA = netip.MustParseAddrPort("10.0.0.1:4791")
	addrB = netip.MustParseAddrPort("10.0.0.2:4791")
)

// A file that fails is told once, and every packet that is not in it counted.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &broken{room: 1000}
		var told []error
		f := begin(out, "x", "", func(err error) { told = append(told, err) })
		for range 100 {
			f.Datagram(link.Outbound, addrA, addrB, 0, make([]byte, 72), nil, nil)
			synctest.Wait()
		}
		c := f.counters(nil)
		require.Equal(t, link.Counter{Name: "pcap_pkts", Value: 100}, c[0])
		// 100 bytes of packet in a block of 100 + 28 + 12 + 4.
		header := len(appendHeader(nil, "x", ""))
		require.Equal(t, link.Counter{Name: "pcap_drop", Value: 100 - uint64((1000-header)/144)}, c[1])
		f.close()
		f.close()
		require.True(t, out.closed)
		require.Len(t, told, 1)
		require.ErrorIs(t, told[0], syscall.ENOSPC)
	})
}

// A file system that tells only at the end that it had no room is heard.
func TestFullDiskAtTheEnd(t *testing.T) {
	out := &broken{room: 1000, closing: syscall.EDQUOT}
	var told []error
	f := begin(out, "x", "", func(err error) { told = append(told, err) })
	f.close()
	require.Equal(t, []error{syscall.EDQUOT}, told)
}

// stuck is a file that takes nothing until it is closed.
type stuck struct {
	open chan struct{}
	bytes.Buffer
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.open
	return s.Buffer.Write(p)
}
func (s *stuck) Close() error { return nil }

// A slow file never stops the device: packets that do not fit are counted, in
// the file as well.
func TestSlowFile(t *testing.T) {
	out := &stuck{open: make(chan struct{})}
	f := begin(out, "x", "", nil)
	payload := make([]byte, 60000)
	const n = 1000
	for range n {
		f.Datagram(link.Outbound, addrA, addrB, 0, payload, nil, nil)
	}
	missing := f.counters(nil)[1].Value
	require.Greater(t, missing, uint64(n-2*BufferLimit/len(payload)))
	require.Less(t, missing, uint64(n-BufferLimit/len(payload)/2))
	close(out.open)
	f.close()
	f.Datagram(link.Outbound, addrA, addrB, 0, payload, nil, nil)
	require.Equal(t, missing+1, f.counters(nil)[1].Value, "after the end")

	r, err := dissect.NewReader(&out.Buffer, 0, dissect.MaxUnzipped)
	require.NoError(t, err)
	var p dissect.Packet
	for err = r.Next(&p); err == nil; err = r.Next(&p) {
	}
	require.Equal(t, io.EOF, err)
	require.EqualValues(t, n-missing, r.Records())
	require.Equal(t, missing, r.Missing())
}

func TestCannotOpen(t *testing.T) {
	dir := t.TempDir()
	a, b := simPair(t, false)
	defer a.Close()
	defer b.Close()
	must.Fail(Wrap(a, filepath.Join(dir, "no", "x"), Options{}))(t, syscall.ENOENT)
	_, err := Wrap(a, dir, Options{})
	require.Error(t, err)

	path := filepath.Join(dir, "x")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("old", 1000)), 0o600))
	w := must.Get(Wrap(a, path, Options{}))(t)
	if openFlags != 0 { // where there are locks
		_, err = Wrap(b, path, Options{})
		require.ErrorIs(t, err, syscall.EBUSY)
		require.ErrorContains(t, err, path)
	}
	require.NoError(t, w.Close())
	got, _ := packetsOn(t, path, 0)
	require.Empty(t, got, "the old content is gone")
	w, err = Wrap(b, path, Options{})
	require.NoError(t, err, "free again")
	require.NoError(t, w.Close())
}

// A packet that cannot be framed is counted.
func TestNoFrame(t *testing.T) {
	f := begin(&broken{room: 1 << 20}, "x", "", nil)
	f.Datagram(link.Inbound, addrA, netip.MustParseAddrPort("[::1]:4791"), 0, make([]byte, 16), nil, nil)
	f.Datagram(link.Inbound, netip.AddrPort{}, addrB, 0, make([]byte, 16), nil, nil)
	f.Datagram(link.Inbound, addrA, addrB, 0, make([]byte, 65536), nil, nil)
	require.EqualValues(t, 3, f.counters(nil)[1].Value)
	mapped := netip.AddrPortFrom(netip.AddrFrom16(addrA.Addr().As16()), 4791)
	f.Datagram(link.Inbound, mapped, addrB, 0, make([]byte, 16), nil, nil)
	require.EqualValues(t, 3, f.counters(nil)[1].Value)
	f.close()
}

func TestNoAllocation(t *testing.T) {
	f := begin(&broken{room: 1 << 40}, "x", "", nil)
	defer f.close()
	h, payload, tail := head(1, 4096), fill(4096), make([]byte, 4)
	for range 10000 { // until the buffers have their size
		f.Datagram(link.Outbound, addrA, addrB, 0, h, payload, tail)
		if f.counters(nil)[0].Value%32 == 0 {
			runtime.Gosched()
		}
	}
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		f.Datagram(link.Outbound, addrA, addrB, 0, h, payload, tail)
	}), 0.0)
}

// Any parts in any lengths have the checksum of the whole.
func TestChecksumOfOddParts(t *testing.T) {
	six := netip.MustParseAddrPort("[fd00::1]:1")
	whole := fill(301)
	want := appendFrame(nil, six, six, 0, whole, nil, nil)
	for i := range 301 {
		got := appendFrame(nil, six, six, 0, whole[:i/2], whole[i/2:i], whole[i:])
		require.Equal(t, want, got)
	}
	require.Len(t, want, frameLen(six.Addr(), six.Addr(), 301))
}

// A pipe without a reader does not keep the link from closing.
func TestPipeWithoutReader(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	f := begin(w, "x", "", nil)
	for range 100 {
		f.Datagram(link.Outbound, addrA, addrB, 0, make([]byte, 4000), nil, nil)
	}
	f.close()
	require.NotZero(t, f.counters(nil)[1].Value)
}
