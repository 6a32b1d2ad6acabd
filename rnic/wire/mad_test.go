package wire_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// ff is n bytes that belong to a field, in hex.
func ff(n int) string { return strings.Repeat("ff", n) }

// full fills an array of bytes with ones.
func full(b []byte) {
	for i := range b {
		b[i] = 0xff
	}
}

// madCases are the headers of management datagrams and the messages of the
// communication manager, after the tables of IBA 12.6, 12.11, 13.4.3 and A11.
func madCases() []headerCase {
	path := wire.CMPath{LocalLID: 0xffff, RemoteLID: 0xffff, FlowLabel: 1<<20 - 1, PacketRate: 63, TrafficClass: 255, HopLimit: 255,
		SL: 15, SubnetLocal: true, AckTimeout: 31}
	full(path.LocalGID[:])
	full(path.RemoteGID[:])
	ids := wire.CommIDs{LocalCommID: 1<<32 - 1, RemoteCommID: 1<<32 - 1}
	req := &wire.REQ{LocalCommID: 1<<32 - 1, ServiceID: 1<<64 - 1, LocalCAGUID: 1<<64 - 1, LocalQKey: 1<<32 - 1, LocalQPN: wire.MulticastQPN,
		ResponderResources: 255, LocalEECN: wire.MulticastQPN, InitiatorDepth: 255, RemoteEECN: wire.MulticastQPN, RemoteTimeout: 31,
		TransportService: 3, FlowControl: true, StartingPSN: wire.MaxPSN, LocalTimeout: 31, RetryCount: 7, PKey: 0xffff, MTU: 15,
		RDCExists: true, RNRRetryCount: 7, MaxCMRetries: 15, SRQ: true, ExtendedTransport: 7, Primary: path, Alternate: path}
	mra := &wire.MRA{CommIDs: ids, About: 3, Timeout: 31}
	rej := &wire.REJ{CommIDs: ids, About: 3, InfoLen: 127, Reason: 0xffff}
	rep := &wire.REP{CommIDs: ids, LocalQKey: 1<<32 - 1, LocalQPN: wire.MulticastQPN, LocalEECN: wire.MulticastQPN, StartingPSN: wire.MaxPSN,
		ResponderResources: 255, InitiatorDepth: 255, TargetAckDelay: 31, Failover: 3, FlowControl: true, RNRRetryCount: 7, SRQ: true,
		LocalCAGUID: 1<<64 - 1}
	rtu, drep := &wire.RTU{CommIDs: ids}, &wire.DREP{CommIDs: ids}
	dreq := &wire.DREQ{CommIDs: ids, RemoteQPN: wire.MulticastQPN}
	sidrReq := &wire.SIDRREQ{RequestID: 1<<32 - 1, PKey: 0xffff, Reserved: 0xffff, ServiceID: 1<<64 - 1}
	sidrRep := &wire.SIDRREP{RequestID: 1<<32 - 1, Status: 255, InfoLen: 255, QPN: wire.MulticastQPN, ServiceID: 1<<64 - 1, QKey: 1<<32 - 1}
	ipcm := &wire.IPCM{Major: 15, Minor: 15, IPVersion: 15, SrcPort: 0xffff}
	info := &wire.ClassPortInfo{BaseVersion: 255, ClassVersion: 255, CapabilityMask: 0xffff, CapabilityMask2: 1<<27 - 1, RespTime: 31,
		RedirectTC: 255, RedirectSL: 15, RedirectFlow: 1<<20 - 1, RedirectLID: 0xffff, RedirectPKey: 0xffff, RedirectQPN: wire.MulticastQPN,
		RedirectQKey: 1<<32 - 1}
	for _, b := range [][]byte{req.Private[:], mra.Private[:], rej.Info[:], rej.Private[:], rep.Private[:], rtu.Private[:],
		drep.Private[:], dreq.Private[:], sidrReq.Private[:], sidrRep.Info[:], sidrRep.Private[:], ipcm.RawSrc[:], ipcm.RawDst[:], info.RedirectGID[:], info.Trap[:]} {
		full(b)
	}
	onPath := ff(36) + "fffff03f ffff f8 f8"
	return []headerCase{
		{"MAD", func() header { return new(wire.MAD) }, &wire.MAD{BaseVersion: 255, Class: 255, ClassVersion: 255, Method: 255,
			Status: 0xffff, ClassSpecific: 0xffff, TID: 1<<64 - 1, Attribute: 0xffff, Modifier: 1<<32 - 1},
			ff(18) + "0000" + ff(4)},
		{"REQ", func() header { return new(wire.REQ) }, req,
			ff(4) + "00000000" + ff(16) + "00000000" + ff(24) + onPath + onPath + ff(92)},
		{"MRA", func() header { return new(wire.MRA) }, mra, ff(8) + "c0 f8" + ff(222)},
		{"REJ", func() header { return new(wire.REJ) }, rej, ff(8) + "c0 fe" + ff(2+72+148)},
		{"REP", func() header { return new(wire.REP) }, rep, ff(8+4) + "ffffff00 ffffff00 ffffff00 ffffff f0" + ff(8+196)},
		{"RTU", func() header { return new(wire.RTU) }, rtu, ff(8 + 224)},
		{"DREQ", func() header { return new(wire.DREQ) }, dreq, ff(8) + "ffffff00" + ff(220)},
		{"DREP", func() header { return new(wire.DREP) }, drep, ff(8 + 224)},
		{"SIDRREQ", func() header { return new(wire.SIDRREQ) }, sidrReq, ff(8 + 8 + 216)},
		{"SIDRREP", func() header { return new(wire.SIDRREP) }, sidrRep, ff(6) + "0000 ffffff00" + ff(8+4+72+136)},
		{"IPCM", func() header { return new(wire.IPCM) }, ipcm, "ff f0" + ff(2+32)},
		{"ClassPortInfo", func() header { return new(wire.ClassPortInfo) }, info, ff(4+4+16+4+4) + "00ffffff" + ff(4+32)},
	}
}

// message returns an empty message of an attribute, nil where there is no
// codec.
func message(a wire.CMAttribute) header {
	return map[wire.CMAttribute]header{
		wire.AttrREQ: new(wire.REQ), wire.AttrMRA: new(wire.MRA), wire.AttrREJ: new(wire.REJ), wire.AttrREP: new(wire.REP),
		wire.AttrRTU: new(wire.RTU), wire.AttrDREQ: new(wire.DREQ), wire.AttrDREP: new(wire.DREP),
		wire.AttrSIDRREQ: new(wire.SIDRREQ), wire.AttrSIDRREP: new(wire.SIDRREP),
	}[a]
}

// recordedMAD is a management datagram of a recording.
type recordedMAD struct {
	file   string
	number int
	src    netip.Addr
	mad    []byte
}

func recordedMADs(t testing.TB) (list []recordedMAD) {
	t.Helper()
	for _, c := range captures {
		for _, f := range frames(t, c.name) {
			var p wire.Packet
			if p.Parse(f.UDP[:len(f.UDP)-wire.ICRCLen]) == nil && p.DestQPN == wire.GSIQPN {
				require.Equal(t, uint32(wire.GSIQKey), p.DETH.QKey)
				require.Len(t, p.Payload, wire.MADLen)
				list = append(list, recordedMAD{c.name, f.Number, f.Src.Addr(), bytes.Clone(p.Payload)})
			}
		}
	}
	return list
}

// Every message that Linux sent is read and written again byte by byte, so the
// codecs know all bits that it sets.
func TestRecordedMADs(t *testing.T) {
	counts := map[wire.CMAttribute]int{}
	for _, r := range recordedMADs(t) {
		var h wire.MAD
		require.NoError(t, h.Parse(r.mad))
		require.True(t, h.IsCM())
		counts[h.Attribute]++
		require.Equal(t, wire.CMHeader(h.TID, h.Attribute), h)
		out := h.Append(dirty(wire.MADLen))
		if m := message(h.Attribute); m != nil {
			require.NoError(t, m.Parse(r.mad[wire.MADHeaderLen:]))
			require.Equal(t, r.mad, m.Append(out), "%s %d", r.file, r.number)
		} else {
			require.Equal(t, r.mad[:wire.MADHeaderLen], out)
		}
	}
	require.Equal(t, map[wire.CMAttribute]int{wire.AttrREQ: 12, wire.AttrMRA: 2, wire.AttrREJ: 5, wire.AttrREP: 8, wire.AttrRTU: 6,
		wire.AttrDREQ: 6, wire.AttrDREP: 6, wire.AttrSIDRREQ: 3, wire.AttrSIDRREP: 3}, counts)
}

var fieldHead = regexp.MustCompile(`^ {1,3}(\d+) CM (\w+)$`)

// recordedFields returns the fields of the messages of a recording as tshark
// wrote them into the text beside it, by frame.
func recordedFields(t *testing.T, name string) map[int][]string {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join(testdata, name+".txt")))(t)
	_, text, ok := strings.Cut(string(b), "Fields of the CM messages")
	require.True(t, ok)
	all, frame := map[int][]string{}, 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch m := fieldHead.FindStringSubmatch(line); {
		case m != nil:
			frame = must.Get(strconv.Atoi(m[1]))(t)
			all[frame] = append(all[frame], "")
		case frame != 0 && strings.HasPrefix(line, "       "):
			all[frame][0] += " " + strings.TrimSpace(line)
		}
	}
	for n, one := range all {
		all[n] = strings.Split(strings.TrimSpace(one[0]), "; ")
	}
	return all
}

// TestRecordedCMFields compares each field with what tshark read.
func TestRecordedCMFields(t *testing.T) {
	seen := 0
	for _, name := range []string{"rxe-6.1-cm"} {
		fields := recordedFields(t, name)
		for _, r := range recordedMADs(t) {
			want, ok := fields[r.number]
			if !ok || r.file != name {
				continue
			}
			var h wire.MAD
			require.NoError(t, h.Parse(r.mad))
			m := message(h.Attribute)
			require.NoError(t, m.Parse(r.mad[wire.MADHeaderLen:]))
			got := described(m)
			for _, w := range want {
				label, value, ok := strings.Cut(w, ": ")
				if !ok {
					continue // a heading
				}
				have, ok := got[label]
				require.True(t, ok, "frame %d: %q is not known", r.number, label)
				checkField(t, fmt.Sprintf("frame %d %s", r.number, label), value, have)
				seen++
			}
		}
	}
	require.GreaterOrEqual(t, seen, 400)
}

func checkField(t *testing.T, what, want string, have any) {
	t.Helper()
	switch v := have.(type) {
	case []byte:
		cut, isCut := strings.CutSuffix(want, "…")
		b, err := hex.DecodeString(cut)
		require.NoError(t, err, what)
		if isCut {
			v = v[:len(b)]
		}
		require.Equal(t, b, v, what)
	case netip.Addr:
		require.Equal(t, want, v.String(), what)
	case bool:
		n, err := strconv.ParseUint(want, 0, 64)
		require.NoError(t, err, what)
		require.Equal(t, n != 0, v, what)
	default:
		n, err := strconv.ParseUint(want, 0, 64)
		require.NoError(t, err, what)
		require.EqualValues(t, n, v, what)
	}
}

// described names the fields of a message as tshark does.
func described(m header) map[string]any {
	ids := func(c wire.CommIDs, f map[string]any) map[string]any {
		f["Local Communication ID"], f["Remote Communication ID"] = c.LocalCommID, c.RemoteCommID
		return f
	}
	switch m := m.(type) {
	case *wire.REQ:
		return describedREQ(m)
	case *wire.MRA:
		return ids(m.CommIDs, map[string]any{})
	case *wire.REJ:
		return ids(m.CommIDs, map[string]any{"Message REJected": m.About, "Reject Info Length": m.InfoLen, "Reason": m.Reason,
			"Additional Reject Information (ARI)": m.Info[:], "PrivateData": m.Private[:]})
	case *wire.REP:
		return ids(m.CommIDs, map[string]any{"Local Q_Key": m.LocalQKey, "Local QPN": m.LocalQPN, "Local EE Context Number": m.LocalEECN,
			"Starting PSN": m.StartingPSN, "Responder Resources": m.ResponderResources, "Initiator Depth": m.InitiatorDepth,
			"Target ACK Delay": m.TargetAckDelay, "Failover Accepted": m.Failover, "End-To-End Flow Control": m.FlowControl,
			"RNR Retry Count": m.RNRRetryCount, "SRQ": m.SRQ, "Local CA GUID": m.LocalCAGUID, "PrivateData": m.Private[:]})
	case *wire.RTU:
		return ids(m.CommIDs, map[string]any{"PrivateData": m.Private[:]})
	case *wire.DREQ:
		return ids(m.CommIDs, map[string]any{"Remote QPN/EECN": m.RemoteQPN, "PrivateData": m.Private[:]})
	case *wire.DREP:
		return ids(m.CommIDs, map[string]any{"PrivateData": m.Private[:]})
	}
	return nil
}

func describedREQ(m *wire.REQ) map[string]any {
	protocol, port, _ := m.ServiceID.IP()
	var ip wire.IPCM
	_ = ip.Parse(m.Private[:])
	p := &m.Primary
	// tshark 4.0 reads these two from a part of their word only: of the flow
	// label the first 12 bits, and as packet rate the last 6 of its first byte.
	label, rate := p.FlowLabel>>8, p.FlowLabel>>12&0x3f
	return map[string]any{"Local Communication ID": m.LocalCommID, "Prefix": uint64(m.ServiceID) >> 24, "Protocol": protocol,
		"Destination Port": port, "Local CA GUID": m.LocalCAGUID, "Local Q_Key": m.LocalQKey, "Local QPN": m.LocalQPN,
		"Responder Resources": m.ResponderResources, "Local EECN": m.LocalEECN, "Initiator Depth": m.InitiatorDepth,
		"Remote EECN": m.RemoteEECN, "Remote CM Response Timeout": m.RemoteTimeout, "Transport Service Type": m.TransportService,
		"End-to-End Flow Control": m.FlowControl, "Starting PSN": m.StartingPSN, "Local CM Response Timeout": m.LocalTimeout,
		"Retry Count": m.RetryCount, "Partition Key": m.PKey, "Path Packet Payload MTU": m.MTU, "RDC Exists": m.RDCExists,
		"RNR Retry Count": m.RNRRetryCount, "Max CM Retries": m.MaxCMRetries, "SRQ": m.SRQ, "Extended Transport": m.ExtendedTransport,
		"Primary Local Port LID": p.LocalLID, "Primary Remote Port LID": p.RemoteLID, "Primary Local Port GID": p.LocalGID.Addr(),
		"Primary Remote Port GID": p.RemoteGID.Addr(), "Primary Flow Label": label, "Primary Packet Rate": rate,
		"Primary Traffic Class": p.TrafficClass, "Primary Hop Limit": p.HopLimit, "Primary SL": p.SL, "Primary Subnet Local": p.SubnetLocal,
		"Primary Local ACK Timeout": p.AckTimeout, "IP CM Major Version": ip.Major, "IP CM Minor Version": ip.Minor,
		"IP CM IP Version": ip.IPVersion, "IP CM Source Port": ip.SrcPort, "IP CM Source IP": ip.Src().Addr(),
		"IP CM Destination IP": ip.Dst(), "IP CM Consumer PrivateData": m.Private[wire.IPCMLen:]}
}

// The MRAs are not in tshark's list; the recording's text says why they were
// sent.
func TestRecordedMRA(t *testing.T) {
	var got []wire.MRA
	for _, r := range recordedMADs(t) {
		var m wire.MRA
		var h wire.MAD
		if require.NoError(t, h.Parse(r.mad)); h.Attribute == wire.AttrMRA {
			require.NoError(t, m.Parse(r.mad[wire.MADHeaderLen:]))
			got = append(got, m)
		}
	}
	require.Len(t, got, 2)
	require.Equal(t, wire.MRA{CommIDs: wire.CommIDs{LocalCommID: 0xabd9fa88, RemoteCommID: 0xa8d9fa88}, About: wire.AboutREQ, Timeout: 24}, got[0])
	require.Equal(t, wire.MRA{CommIDs: wire.CommIDs{LocalCommID: 0xa8d9fa88, RemoteCommID: 0xabd9fa88}, About: wire.AboutREP, Timeout: 24}, got[1])
}

// The IPCM header of every recorded REQ is what we would write.
func TestRecordedIPCM(t *testing.T) {
	versions := map[uint8]int{}
	for _, r := range recordedMADs(t) {
		var h wire.MAD
		if require.NoError(t, h.Parse(r.mad)); h.Attribute != wire.AttrREQ {
			continue
		}
		var m wire.REQ
		var ip wire.IPCM
		require.NoError(t, m.Parse(r.mad[wire.MADHeaderLen:]))
		require.NoError(t, ip.Parse(m.Private[:]))
		versions[ip.IPVersion]++
		require.Equal(t, r.src, ip.Src().Addr())
		require.NotZero(t, ip.Src().Port())
		require.Equal(t, m.Primary.LocalGID.Addr(), ip.Src().Addr())
		require.Equal(t, m.Primary.RemoteGID.Addr(), ip.Dst())
		require.Equal(t, ip, wire.NewIPCM(ip.Src(), ip.Dst()))
		port, ok := m.ServiceID.TCPPort()
		require.True(t, ok)
		require.Equal(t, m.ServiceID, wire.TCPService(port))
	}
	require.Equal(t, map[uint8]int{4: 10, 6: 2}, versions)
}

func TestIPCMAddresses(t *testing.T) {
	four, six := netip.MustParseAddrPort("10.1.2.3:4"), netip.MustParseAddrPort("[2001:db8::1]:4")
	mapped := netip.MustParseAddrPort("[::ffff:10.1.2.3]:4")
	require.Equal(t, four, ptr(wire.NewIPCM(mapped, four.Addr())).Src())
	require.Equal(t, six, ptr(wire.NewIPCM(six, six.Addr())).Src())
	require.EqualValues(t, 6, wire.NewIPCM(six, four.Addr()).IPVersion)
	zoned := netip.MustParseAddrPort("[fe80::1%eth0]:4")
	require.Equal(t, zoned.Addr().WithZone(""), ptr(wire.NewIPCM(zoned, zoned.Addr())).Dst())
	for v := range uint8(16) {
		h := wire.IPCM{IPVersion: v}
		require.Equal(t, v == 4 || v == 6, h.Dst().IsValid(), "version %d", v)
	}
}

func ptr[T any](v T) *T { return &v }

func TestServiceID(t *testing.T) {
	require.EqualValues(t, 0x0000000001061d2f, wire.TCPService(7471))
	require.EqualValues(t, 0x0000000001111d42, wire.UDPService(0x1d42))
	for id, want := range map[wire.ServiceID]struct{ tcp, udp bool }{
		0x0000000001060000: {tcp: true}, 0x000000000106ffff: {tcp: true}, 0x0000000001110000: {udp: true}, 0x000000000111ffff: {udp: true},
		0x0000000101060001: {}, 0x0000000101110001: {}, 0x0000000002060001: {}, 0x0000000000060001: {}, 0x8000000001060001: {},
	} {
		port, tcp := id.TCPPort()
		_, udp := id.UDPPort()
		require.Equal(t, want, struct{ tcp, udp bool }{tcp, udp}, "%v", id)
		require.Equal(t, uint16(id), port)
	}
	protocol, port, ok := wire.ServiceID(0x0000000001110002).IP()
	require.Equal(t, []any{uint8(0x11), uint16(2), true}, []any{protocol, port, ok})
}

func TestCMTimeout(t *testing.T) {
	for code, ns := range map[wire.CMTimeout]int64{0: 4096, 1: 8192, 20: 4_294_967_296, 24: 68_719_476_736, 31: 4096 << 31, 32: 4096} {
		require.Equal(t, ns, code.Nanoseconds())
	}
}

func TestMADNames(t *testing.T) {
	require.Equal(t, "ConnectRequest", wire.AttrREQ.String())
	require.Equal(t, "attribute 0x0020", wire.CMAttribute(0x20).String())
	require.Equal(t, "stale connection", wire.RejStaleConn.String())
	require.Equal(t, "reason 34", wire.RejectReason(34).String())
	require.Equal(t, "reason 0", wire.RejectReason(0).String())
	require.Equal(t, "reason 65535", wire.RejectReason(65535).String())
	require.Equal(t, "REP", wire.AboutREP.String())
	seen := map[string]bool{}
	for r := wire.RejectReason(1); r <= 35; r++ {
		require.False(t, seen[r.String()], "%v", r)
		seen[r.String()] = true
	}
}

// Every field that is too wide is cut and does not reach its neighbours.
func TestMADWidths(t *testing.T) {
	path := wire.CMPath{FlowLabel: 0xfff00000, PacketRate: 0xc0, SL: 0xf0, AckTimeout: 0xe0}
	wide := []header{
		&wire.REQ{LocalQPN: 0xff000000, LocalEECN: 0xff000000, RemoteEECN: 0xff000000, RemoteTimeout: 0xe0, TransportService: 0xfc,
			StartingPSN: 0xff000000, LocalTimeout: 0xe0, RetryCount: 0xf8, MTU: 0xf0, RNRRetryCount: 0xf8, MaxCMRetries: 0xf0,
			ExtendedTransport: 0xf8, Primary: path, Alternate: path},
		&wire.MRA{About: 0xfc, Timeout: 0xe0}, &wire.REJ{About: 0xfc, InfoLen: 0x80},
		&wire.REP{LocalQPN: 0xff000000, LocalEECN: 0xff000000, StartingPSN: 0xff000000, TargetAckDelay: 0xe0, Failover: 0xfc, RNRRetryCount: 0xf8},
		&wire.DREQ{RemoteQPN: 0xff000000}, &wire.SIDRREP{QPN: 0xff000000}, &wire.IPCM{Major: 0xf0, Minor: 0xf0, IPVersion: 0xf0},
	}
	for _, m := range wide {
		b := m.Append(dirty(wire.CMLen))
		require.Equal(t, make([]byte, len(b)), b, "%T", m)
	}
}
