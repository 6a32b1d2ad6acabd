package bump

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link/rules"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

const testdata = "../../../tests/testdata/"

// recorded are the frames of rxe, over IPv4 and IPv6.
func recorded(t testing.TB) (frames [][]byte) {
	for _, name := range []string{"rxe-6.1-rc-mtu1024.pcap", "rxe-6.1-ipv6.pcap", "rxe-6.1-cm.pcap"} {
		f := must.Get(os.Open(testdata + name))(t)
		defer f.Close()
		r := must.Get(pcapgo.NewReader(f))(t)
		for {
			b, _, err := r.ReadPacketData()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			frames = append(frames, b)
		}
	}
	return frames
}

// tagged is a frame with two VLAN tags.
func tagged(frame []byte) []byte {
	b := append([]byte(nil), frame[:12]...)
	b = append(b, 0x88, 0xa8, 0, 7, 0x81, 0, 0, 8)
	return append(b, frame[12:]...)
}

func ruled(t testing.TB, text string) Path {
	set := must.Get(rules.Parse(text))(t)
	return Path{MTU: AnyMTU, Rules: set}
}

// through is what becomes of frames.
func through(l *lane, now time.Duration, frames ...[]byte) (left [][]byte) {
	for _, f := range frames {
		l.admit(now, f)
	}
	for f := l.take(now); f != nil; f = l.take(now) {
		left = append(left, bytes.Clone(f))
		l.done(f, true)
	}
	return left
}

// checked parses the packet of a frame, all of whose lengths and checksums but
// the ICRC must be right, and reports whether that is.
func checked(t testing.TB, frame []byte) (p wire.Packet, icrc bool) {
	t.Helper()
	at, ok := find(frame)
	require.True(t, ok)
	ip, udp := frame[at.ip:at.udp], frame[at.udp:at.end]
	id, whole := uint16(0), false
	if !at.v6 {
		require.EqualValues(t, 0xffff, wire.Fold(wire.Sum(0, ip)), "the header's checksum")
		id, whole = binary.BigEndian.Uint16(ip[4:]), ip[6]&0x40 != 0
	}
	if binary.BigEndian.Uint16(udp[udpChecksum:]) != 0 {
		require.EqualValues(t, 0xffff, wire.Fold(wire.Sum(pseudo(udp, at.addressBytes(frame)), udp)), "UDP's checksum")
	}
	from, to := at.addresses(frame)
	ports := binary.BigEndian.Uint16(udp)
	flow, err := wire.NewFlow(netip.AddrPortFrom(from, ports), netip.AddrPortFrom(to, wire.Port), whole)
	require.NoError(t, err)
	body := udp[udpLen:]
	require.NoError(t, p.Parse(body[:len(body)-wire.ICRCLen]))
	return p, flow.Check(body, id)
}

// withSum gives a packet a UDP checksum, as sockets do.
func withSum(frame []byte) []byte {
	at, _ := find(frame)
	b := bytes.Clone(frame)
	b[at.udp+udpChecksum] = 1
	at.complete(b)
	return b
}

// TestRulesOnRecordings: each action changes of a recorded packet what it says
// and nothing else, with VLAN tags and a UDP checksum as well.
func TestRulesOnRecordings(t *testing.T) {
	var alone Counts
	for _, plain := range recorded(t) {
		for _, frame := range [][]byte{plain, tagged(plain), withSum(plain), withSum(tagged(plain))} {
			before, icrc := checked(t, frame)
			require.True(t, icrc)
			do := func(text string) [][]byte {
				l := newLane(ruled(t, text))
				left := through(l, 0, frame)
				balanced(t, l.counts)
				require.EqualValues(t, 1, l.counts.RoCE)
				alone.Lost += l.counts.Lost
				return left
			}
			require.Equal(t, [][]byte{frame}, do(""))
			require.Empty(t, do("drop"))
			require.Equal(t, [][]byte{frame, frame}, do("dup"))

			marked := do("ecn")[0]
			p, icrc := checked(t, marked)
			require.True(t, icrc && p.FECN, "ICRC and FECN")
			p.FECN = before.FECN
			require.Equal(t, before, p)
			at, _ := find(frame)
			want := bytes.Clone(frame[at.body():])
			want[4] |= 0x80
			require.Equal(t, want, marked[at.body():], "FECN alone")
			require.Equal(t, frame[:at.ip+1], marked[:at.ip+1])
			require.Equal(t, frame[at.ip+1]|map[bool]byte{true: congested6, false: congested4}[at.v6], marked[at.ip+1], "CE alone")

			for offset, text := range map[int]string{0: "corrupt=0", 12: "corrupt=12", -1: "corrupt"} {
				spoilt := do(text)[0]
				at, _ := find(spoilt)
				// The opcode of byte 0 may have become one of longer headers.
				if offset == 12 {
					_, icrc = checked(t, spoilt)
					require.False(t, icrc, "packets with an inverted bit have no right ICRC")
				}
				flipped := 0
				for i := at.body(); i < at.end; i++ {
					if d := frame[i] ^ spoilt[i]; d != 0 {
						require.Zero(t, d&(d-1))
						require.True(t, offset < 0 || i-at.body() == offset)
						flipped++
					}
				}
				require.Equal(t, 1, flipped)
			}
			if before.Opcode.IsResponse() {
				refused := do("nak=ACCESS op=ACK|NAK|READ_RESPONSE_*|ATOMIC_ACKNOWLEDGE")[0]
				p, icrc := checked(t, refused)
				require.True(t, icrc)
				require.Equal(t, []any{wire.RCAck, before.DestQPN, before.PSN, wire.SyndromeNAK(wire.NAKRemoteAccess)},
					[]any{p.Opcode, p.DestQPN, p.PSN, p.AETH.Syndrome})
			}
		}
	}
	require.NotZero(t, alone.Lost)
}

// TestThirdOfRecording: of each connection exactly the third READ response of
// the middle is missing, as counted without the rules.
func TestThirdOfRecording(t *testing.T) {
	type place struct {
		from, to netip.Addr
		qpn      wire.QPN
	}
	var want [][]byte
	seen, last := map[place]int{}, map[place]wire.PSN{}
	frames := recorded(t)
	for _, f := range frames {
		p, _ := checked(t, f)
		at, _ := find(f)
		from, to := at.addresses(f)
		key := place{from, to, p.DestQPN}
		if wire.RCReadResponseFirst <= p.Opcode && p.Opcode <= wire.RCReadResponseOnly {
			if psn, ok := last[key]; !ok || p.PSN.After(psn) {
				if seen[key]++; seen[key] == 3 {
					continue
				}
			}
		}
		if p.Opcode.IsResponse() && p.Opcode != wire.RCAck {
			last[key] = p.PSN
		}
		want = append(want, f)
	}
	l := newLane(ruled(t, "drop op=READ_RESPONSE_* nth=3"))
	require.Equal(t, want, through(l, 0, frames...))
	require.Less(t, len(want), len(frames))
	require.EqualValues(t, len(frames)-len(want), l.counts.Lost)
}

// TestRuleTimes: packets that are held back or late go when they should, and
// frames that are no RoCEv2 overtake nothing.
func TestRuleTimes(t *testing.T) {
	f := recorded(t)[:6]
	l := newLane(ruled(t, "reorder=2 once qp=first"))
	require.Empty(t, through(l, 0, f[0], numbered(0))[1:])
	require.Equal(t, [][]byte{f[1]}, through(l, 0, f[1]))
	require.Equal(t, [][]byte{f[2], f[0]}, through(l, 0, f[2]))
	l = newLane(ruled(t, "reorder=9 once qp=first"))
	require.Equal(t, [][]byte{f[1]}, through(l, 0, f[0], f[1]))
	require.Equal(t, [][]byte{f[0]}, through(l, behindTime))
	l = newLane(ruled(t, "delay=3ms once qp=first"))
	require.Equal(t, [][]byte{f[1]}, through(l, 0, f[0], f[1]))
	require.Equal(t, [][]byte{f[2]}, through(l, 3*time.Millisecond-1, f[2]))
	require.Equal(t, [][]byte{f[0]}, through(l, 3*time.Millisecond))
}

// TestCut: packets out of what hardware should have cut have numbers and
// checksums of their own.
func TestCut(t *testing.T) {
	for name, frame := range map[string][]byte{"IPv4": udp4(make([]byte, 1100)), "IPv6": udp6(make([]byte, 1100))} {
		t.Run(name, func(t *testing.T) {
			at := ethernetLen + ip4Len
			if name == "IPv6" {
				at = ethernetLen + ip6Len
			}
			binary.BigEndian.PutUint16(frame[at+2:], wire.Port)
			for i := range 1100 {
				frame[at+udpLen+i] = byte(i)
			}
			frame = tagged(frame)
			p, ok := find(frame)
			require.True(t, ok)
			var payload []byte
			var sizes []int
			p.cut(frame, 500, func(f []byte) {
				q, ok := find(f)
				require.True(t, ok)
				ip, udp := f[q.ip:q.udp], f[q.udp:]
				require.EqualValues(t, 0xffff, wire.Fold(wire.Sum(pseudo(udp, q.addressBytes(f)), udp)))
				if !q.v6 {
					require.EqualValues(t, 0xffff, wire.Fold(wire.Sum(0, ip)))
					require.EqualValues(t, len(sizes), binary.BigEndian.Uint16(ip[4:]))
				}
				payload = append(payload, udp[udpLen:]...)
				sizes = append(sizes, len(udp)-udpLen)
			})
			require.Equal(t, []int{500, 500, 100}, sizes)
			require.True(t, bytes.Equal(frame[p.body():], payload))
		})
	}
}

// FuzzFrame: no frame makes a lane fail, and one that is no RoCEv2 passes.
func FuzzFrame(f *testing.F) {
	for i, frame := range recorded(f) {
		if i%10 == 0 {
			f.Add(frame)
			f.Add(tagged(frame)[:40])
		}
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) > AnyMTU {
			return
		}
		l := newLane(ruled(t, "ecn; corrupt=70; nak=PSN op=ACK|READ_RESPONSE_*; dup; reorder=2 every=2"))
		left := through(l, 0, frame, frame)
		if l.counts.RoCE == 0 {
			require.Equal(t, [][]byte{frame, frame}, left)
		}
	})
}
