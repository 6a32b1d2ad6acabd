package dissect

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/wiretest"
)

func TestMain(m *testing.M) { leak.Main(m) }

const testdata = "../../../../tests/testdata"

// all reads a whole capture.
func all(b []byte, port uint16) (list []Packet, r *Reader, err error) {
	if r, err = NewReader(bytes.NewReader(b), port, MaxUnzipped); err != nil {
		return nil, nil, err
	}
	for {
		var p Packet
		if err := r.Next(&p); err == io.EOF {
			return list, r, nil
		} else if err != nil {
			return list, r, err
		}
		p.Wire.Payload = bytes.Clone(p.Wire.Payload)
		list = append(list, p)
	}
}

func recordings(t testing.TB) []string {
	t.Helper()
	names := must.Get(filepath.Glob(filepath.Join(testdata, "*.pcap")))(t)
	require.NotEmpty(t, names)
	return names
}

// Every recorded packet is found, whole, and its ICRC right.
func TestRecordings(t *testing.T) {
	mads := map[string]int{}
	for _, name := range recordings(t) {
		b := must.Get(os.ReadFile(name))(t)
		frames := must.Get(wiretest.Read(b))(t)
		got, r, err := all(b, 0)
		require.NoError(t, err, name)
		require.Len(t, got, len(frames), name)
		require.Equal(t, len(frames), r.Records())
		for i, p := range got {
			f := frames[i]
			require.NoError(t, p.Err, "%s %d", name, i)
			require.Equal(t, OK, p.ICRC, "%s %d", name, i)
			require.Equal(t, f.Number, p.Number)
			require.True(t, f.Time.Equal(p.Time))
			require.Equal(t, []any{f.Src, f.Dst, f.Class, f.TTL, f.ID, f.DF, len(f.UDP)}, []any{p.Src, p.Dst, p.TrafficClass, p.HopLimit, p.ID, p.DF, p.Length})
			var w wire.Packet
			require.NoError(t, w.Parse(f.UDP[:len(f.UDP)-wire.ICRCLen]))
			w.Payload = bytes.Clone(w.Payload)
			require.Equal(t, w, p.Wire)
			require.Equal(t, len(w.Payload), p.PayloadLen)
			require.Equal(t, w.DestQPN == wire.GSIQPN, p.MAD != nil, "%s %d", name, i)
			if p.MAD != nil {
				mads[p.MAD.Name()]++
			}
		}
	}
	for _, m := range []string{"ConnectRequest", "ConnectReply", "ReadyToUse", "DisconnectRequest", "DisconnectReply",
		"ConnectReject", "MsgRcptAck", "ServiceIDResReq", "ServiceIDResReqResp"} {
		require.NotZero(t, mads["CM "+m], m)
	}
	require.Len(t, mads, 9)
}

// ipPacket is the IP packet of the first frame of a recording.
func ipPacket(t testing.TB, name string) []byte {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join(testdata, name)))(t)
	n := binary.LittleEndian.Uint32(b[24+8:])
	return bytes.Clone(b[24+16+14:][:n-14])
}

// pcap makes a file of one record.
func pcap(t testing.TB, linkType int, record []byte, captured int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := pcapgo.NewWriterNanos(&out)
	require.NoError(t, w.WriteFileHeader(262144, layers.LinkType(linkType)))
	info := gopacket.CaptureInfo{Timestamp: time.Unix(1700000000, 123456789), CaptureLength: captured, Length: len(record)}
	require.NoError(t, w.WritePacket(info, record[:captured]))
	return out.Bytes()
}

func TestLinkTypes(t *testing.T) {
	v4, v6 := ipPacket(t, "rxe-6.1-uc-ud.pcap"), ipPacket(t, "rxe-6.1-ipv6.pcap")
	macs, sll, sll2 := make([]byte, 12), make([]byte, 14), make([]byte, 18)
	for _, c := range []struct {
		name     string
		linkType int
		record   []byte
		vlans    []uint16
	}{
		{"ethernet", 1, cat(macs, []byte{8, 0}, v4), nil},
		{"ethernet, padded", 1, cat(macs, []byte{8, 0}, v4, make([]byte, 7)), nil},
		{"ethernet IPv6", 1, cat(macs, []byte{0x86, 0xdd}, v6), nil},
		{"VLAN", 1, cat(macs, []byte{0x81, 0, 0x60, 0x05, 8, 0}, v4), []uint16{5}},
		{"two VLANs", 1, cat(macs, []byte{0x88, 0xa8, 0x00, 0x07, 0x81, 0, 0xff, 0xff, 0x86, 0xdd}, v6), []uint16{7, 0xfff}},
		{"cooked", 113, cat(sll, []byte{8, 0}, v4), nil},
		{"cooked with VLAN", 113, cat(sll, []byte{0x81, 0, 0, 9, 0x86, 0xdd}, v6), []uint16{9}},
		{"cooked 2", 276, cat([]byte{0x86, 0xdd}, sll2, v6), nil},
		{"raw", 101, v4, nil},
		{"raw IPv6", 101, v6, nil},
		{"raw of BSD", 12, v4, nil},
		{"IPv4", 228, v4, nil},
		{"IPv6", 229, v6, nil},
		{"null", 0, cat([]byte{2, 0, 0, 0}, v4), nil},
		{"loop", 108, cat([]byte{0, 0, 0, 30}, v6), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := all(pcap(t, c.linkType, c.record, len(c.record)), 0)
			require.NoError(t, err)
			require.Len(t, got, 1)
			p := got[0]
			require.NoError(t, p.Err)
			require.Equal(t, OK, p.ICRC)
			require.Equal(t, c.vlans, p.VLANs)
			require.Equal(t, 123456789, p.Time.Nanosecond())
			// Not one of the shorter records panics, and none is whole.
			for n := range c.record {
				got, _, err := all(pcap(t, c.linkType, c.record, n), 0)
				require.NoError(t, err)
				if c.name != "ethernet, padded" {
					require.True(t, len(got) == 0 || got[0].ICRC == Cut, "%d bytes", n)
				}
			}
		})
	}
}

func TestPassedOver(t *testing.T) {
	good := ipPacket(t, "rxe-6.1-uc-ud.pcap")
	change := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		b[at] = v
		return b
	}
	for name, b := range map[string][]byte{
		"TCP":             change(9, 6),
		"later fragment":  change(7, 1),
		"version":         change(0, 0x55),
		"short header":    change(0, 0x44),
		"other port":      change(23, 0xb8),
		"UDP length":      change(25, 7),
		"total too small": append(change(3, 19)[:2:2], append([]byte{0, 19}, good[4:]...)...),
	} {
		got, r, err := all(pcap(t, linkRaw, b, len(b)), 0)
		require.NoError(t, err)
		require.Empty(t, got, name)
		require.Equal(t, 1, r.Records())
	}
	got, _, err := all(pcap(t, 147, good, len(good)), 0)
	require.NoError(t, err)
	require.Empty(t, got, "unknown link type")
}

func TestPort(t *testing.T) {
	b := ipPacket(t, "rxe-6.1-uc-ud.pcap")
	src := netip.AddrPortFrom(netip.Addr{}, binary.BigEndian.Uint16(b[20:])).Port()
	file := pcap(t, linkRaw, b, len(b))
	for port, n := range map[uint16]int{0: 1, 4791: 1, src: 1, src ^ 1: 0} {
		got, _, err := all(file, port)
		require.NoError(t, err)
		require.Len(t, got, n, "port %d", port)
	}
}

func TestICRC(t *testing.T) {
	good := ipPacket(t, "rxe-6.1-uc-ud.pcap")
	require.Equal(t, OK, one(t, good)[0].ICRC)
	require.Equal(t, binary.LittleEndian.Uint32(good[len(good)-4:]), one(t, good)[0].ICRCValue)
	for _, at := range []int{4, 5, 12, 16, 28, 30, 32 + 1, len(good) - 1} { // identification, addresses, BTH, ICRC
		b := bytes.Clone(good)
		b[at] ^= 1
		require.Equal(t, Bad, one(t, b)[0].ICRC, "byte %d", at)
	}
	for _, at := range []int{1, 8, 10, 26, 32} { // type of service, time to live, checksums, FECN
		b := bytes.Clone(good)
		b[at] ^= 1
		require.Equal(t, OK, one(t, b)[0].ICRC, "byte %d", at)
	}
	fragment := bytes.Clone(good)
	fragment[6] |= 0x20
	require.Equal(t, Unchecked, one(t, fragment)[0].ICRC)
}

// A packet's fault is told, and its readable parts are there.
func TestMalformed(t *testing.T) {
	good := ipPacket(t, "rxe-6.1-uc-ud.pcap")
	for want, at := range map[wire.Error]int{wire.ErrOpcode: 28, wire.ErrVersion: 29} {
		b := bytes.Clone(good)
		b[at] = 0x5f
		got := one(t, b)
		require.ErrorIs(t, got[0].Err, want)
		require.Equal(t, Bad, got[0].ICRC)
		require.True(t, got[0].HasBTH)
		require.Zero(t, got[0].PayloadLen)
	}
}

func zipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	must.Get(w.Write(b))(t)
	require.NoError(t, w.Close())
	return z.Bytes()
}

func TestGzip(t *testing.T) {
	b := must.Get(os.ReadFile(filepath.Join(testdata, "rxe-6.1-uc-ud.pcap")))(t)
	z := zipped(t, b)
	got, _, err := all(z, 0)
	require.NoError(t, err)
	require.Len(t, got, 38)
	_, _, err = all(z[:len(z)-9], 0)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// ngFile is a file of two interfaces with different link types.
func ngFile(t testing.TB) []byte {
	t.Helper()
	v4, v6 := ipPacket(t, "rxe-6.1-uc-ud.pcap"), ipPacket(t, "rxe-6.1-ipv6.pcap")
	var out bytes.Buffer
	w, err := pcapgo.NewNgWriterInterface(&out, pcapgo.NgInterface{Name: "raw", LinkType: linkRaw, SnapLength: 0}, pcapgo.DefaultNgWriterOptions)
	require.NoError(t, err)
	id, err := w.AddInterface(pcapgo.NgInterface{Name: "eth0", LinkType: linkEthernet, SnapLength: 0})
	require.NoError(t, err)
	put := func(id int, b []byte, d pcapgo.NgEpbFlag) {
		info := gopacket.CaptureInfo{Timestamp: time.Unix(1700000000, 5000), CaptureLength: len(b), Length: len(b), InterfaceIndex: id}
		require.NoError(t, w.WritePacketWithOptions(info, b, pcapgo.NgPacketOptions{Flags: &pcapgo.NgEpbFlags{Direction: d}}))
	}
	put(0, v4, pcapgo.NgEpbFlagDirectionInbound)
	put(id, append(append(make([]byte, 12), 0x86, 0xdd), v6...), pcapgo.NgEpbFlagDirectionOutbound)
	require.NoError(t, w.WriteInterfaceStats(0, pcapgo.NgInterfaceStatistics{PacketsReceived: 9, PacketsDropped: 7}))
	require.NoError(t, w.Flush())
	return out.Bytes()
}

func TestNg(t *testing.T) {
	b := ngFile(t)
	got, r, err := all(b, 0)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, []any{"raw", Inbound, OK}, []any{got[0].Interface, got[0].Direction, got[0].ICRC})
	require.Equal(t, []any{"eth0", Outbound, OK}, []any{got[1].Interface, got[1].Direction, got[1].ICRC})
	require.EqualValues(t, 7, r.Missing())
}

// A file that is cut gives the packets before the cut, and an error unless it
// was between two records.
func TestCutFiles(t *testing.T) {
	for _, b := range [][]byte{ngFile(t), pcap(t, linkRaw, ipPacket(t, "rxe-6.1-uc-ud.pcap"), 44)} {
		clean := 0
		for n := range b {
			if _, _, err := all(b[:n], 0); err == nil {
				clean++
			}
		}
		require.LessOrEqual(t, clean, 6)
		require.Positive(t, clean)
	}
	for _, b := range [][]byte{nil, {1}, []byte("no capture at all, but long enough to be the beginning of one")} {
		_, err := NewReader(bytes.NewReader(b), 0, MaxUnzipped)
		require.Error(t, err)
		require.False(t, errors.Is(err, io.EOF), "%v", err)
	}
}

func FuzzFile(f *testing.F) {
	for _, name := range recordings(f) {
		b := must.Get(os.ReadFile(name))(f)
		f.Add(b[:min(len(b), 2000)])
	}
	f.Add(ngFile(f))
	payload, _ := packets(f, false, 7, 16, 3, 4)
	several := packed(false, 7, payload)
	f.Add(pcap(f, linkRaw, several, len(several)))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, _, _ := all(b, 0)
		for _, p := range list {
			if p.Err == nil && (!p.HasBTH || len(p.Wire.Payload) > p.PayloadLen) || p.Length < 0 {
				t.Fatalf("impossible packet %+v", p)
			}
		}
	})
}

func FuzzRecord(f *testing.F) {
	for _, name := range []string{"rxe-6.1-uc-ud.pcap", "rxe-6.1-ipv6.pcap", "rxe-6.1-cm.pcap"} {
		b := ipPacket(f, name)
		f.Add(uint16(linkRaw), b)
		f.Add(uint16(linkEthernet), append(append(make([]byte, 12), 0x81, 0, 0, 1, 8, 0), b...))
		f.Add(uint16(linkSLL2), append(append([]byte{8, 0}, make([]byte, 18)...), b...))
	}
	f.Fuzz(func(t *testing.T, kind uint16, b []byte) {
		var fr frame
		if !fr.parse(int(kind), b) {
			return
		}
		var p Packet
		p.fill(&fr)
		if len(fr.data) > fr.length || p.ICRC == OK && len(fr.data) < wire.BTHLen+wire.ICRCLen {
			t.Fatalf("impossible: %+v %+v", fr, p)
		}
		_, _, _ = p.ICRC.String(), p.Direction.String(), p.Wire.Opcode.String()
		if p.MAD != nil {
			_ = p.MAD.Name()
		}
	})
}
