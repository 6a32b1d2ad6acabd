package bump

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// udp4 is a frame with a UDP datagram over IPv4 and a right checksum.
func udp4(payload []byte) []byte {
	f := make([]byte, ethernetLen+ip4Len+udpLen, 2000)
	binary.BigEndian.PutUint16(f[12:], typeIP4)
	ip := f[ethernetLen:]
	ip[0], ip[9] = 0x45, protocolUDP
	binary.BigEndian.PutUint16(ip[2:], uint16(ip4Len+udpLen+len(payload)))
	copy(ip[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	f = append(f, payload...)
	seal(f, ethernetLen+ip4Len, ip[12:20])
	return f
}

// udp6 is udp4 over IPv6.
func udp6(payload []byte) []byte {
	f := make([]byte, ethernetLen+ip6Len+udpLen, 2000)
	binary.BigEndian.PutUint16(f[12:], typeIP6)
	ip := f[ethernetLen:]
	ip[0], ip[6] = 0x60, protocolUDP
	binary.BigEndian.PutUint16(ip[4:], uint16(udpLen+len(payload)))
	ip[8], ip[24], ip[39] = 0xfd, 0xfd, 1
	f = append(f, payload...)
	seal(f, ethernetLen+ip6Len, ip[8:40])
	return f
}

// seal completes a UDP header as a kernel and its card do it: the kernel stores
// the pseudo header's sum and leaves the rest.
func seal(f []byte, at int, addrs []byte) {
	udp := f[at:]
	binary.BigEndian.PutUint16(udp, 4791)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	binary.BigEndian.PutUint16(udp[udpChecksum:], wire.Fold(pseudo(udp, addrs)))
	finish(udp, udpChecksum)
}

// rightSum reports whether a receiver takes a datagram.
func rightSum(f []byte) bool {
	at, end, _ := transport(f)
	addrs := f[ethernetLen+12 : ethernetLen+20]
	if binary.BigEndian.Uint16(f[12:]) == typeIP6 {
		addrs = f[ethernetLen+8 : ethernetLen+40]
	}
	sum := pseudo(f[at:end], addrs)
	for i := 0; i < end-at; i += 2 {
		sum += uint64(word(f[at:end], i))
	}
	return wire.Fold(sum) == 0xffff
}

// A disguised flip leaves a right checksum, another one a wrong one; exactly
// one bit of the payload differs.
func TestFlip(t *testing.T) {
	for name, make := range map[string]func([]byte) []byte{"IPv4": udp4, "IPv6": udp6} {
		t.Run(name, func(t *testing.T) {
			for size := range 40 {
				for random := range uint64(2 * 8 * (size + 1)) {
					payload := []byte("the payload of a datagram, forty of them")[:size]
					f := append(make(payload), 0, 0, 0) // padding of a short frame
					whole := append([]byte(nil), f...)
					require.True(t, rightSum(f))
					disguised := flip(f, random)
					require.Equal(t, disguised, rightSum(f), "bit %d", random>>1)
					require.Equal(t, disguised, random&1 == 1 && size > 0)
					at, end, _ := transport(f)
					require.Equal(t, whole[end:], f[end:], "padding")
					flipped := 0
					for i := range f {
						if d := f[i] ^ whole[i]; d != 0 && (size == 0 || i >= at+udpLen) {
							require.Zero(t, d&(d-1))
							flipped++
						}
					}
					require.Equal(t, 1, flipped)
				}
			}
		})
	}
}

// Any header is answered without a panic; a frame without payload stays whole.
func TestFlipOddFrames(t *testing.T) {
	for length := range 80 {
		for _, kind := range []uint16{typeIP4, typeIP6} {
			for _, fill := range []byte{0, 0x45, 0xff, protocolUDP} {
				f := make([]byte, length)
				for i := range f {
					f[i] = fill &^ 1
				}
				if length >= ethernetLen {
					binary.BigEndian.PutUint16(f[12:], kind)
				}
				if carried(f) {
					flip(f, math.MaxUint64)
				}
			}
		}
	}
}

// drain takes what has arrived by now and returns the payloads' numbers.
func drain(l *lane, now time.Duration) (numbers []int) {
	for f := l.take(now); f != nil; f = l.take(now) {
		at, _, _ := transport(f)
		numbers = append(numbers, int(binary.BigEndian.Uint32(f[at+udpLen:])))
		l.done(f, true)
	}
	return numbers
}

// numbered is a frame with a number in 1,000 bytes of payload.
func numbered(i int) []byte {
	return udp4(binary.BigEndian.AppendUint32(make([]byte, 0, 1000), uint32(i))[:1000])
}

func newLane(p Path) *lane {
	l := &lane{}
	l.set(p)
	return l
}

// balanced: each packet is counted once.
func balanced(t *testing.T, c Counts) {
	t.Helper()
	require.Equal(t, c.Packets+c.Duplicated, c.TooLong+c.Lost+c.Overflowed+c.Refused+c.Delivered+c.Waiting, "%+v", c)
}

func TestLaneDelays(t *testing.T) {
	l := newLane(Path{Delay: 20 * time.Millisecond})
	for i := range 3 {
		l.admit(time.Duration(i)*time.Millisecond, numbered(i))
	}
	at, ok := l.next()
	require.True(t, ok)
	require.Equal(t, 20*time.Millisecond, at)
	require.Empty(t, drain(l, at-1))
	require.Equal(t, []int{0}, drain(l, at))
	require.Equal(t, uint64(2), l.counts.Waiting)
	require.Equal(t, []int{1, 2}, drain(l, time.Second))
	_, ok = l.next()
	require.False(t, ok)
	balanced(t, l.counts)
}

// Faults come as often as asked, from the seed and the packet's number alone:
// one more fault does not move another.
func TestLaneFaults(t *testing.T) {
	const n = 20000
	run := func(p Path) ([]int, Counts) {
		l := newLane(p)
		for i := range n {
			l.admit(0, numbered(i))
		}
		got := drain(l, time.Hour)
		balanced(t, l.counts)
		return got, l.counts
	}
	got, c := run(Path{Loss: 0.2, Corrupt: 0.1, Duplicate: 0.05, Reorder: 0.25, Seed: 1})
	again, _ := run(Path{Loss: 0.2, Corrupt: 0.1, Duplicate: 0.05, Reorder: 0.25, Seed: 1})
	require.Equal(t, got, again)
	other, _ := run(Path{Loss: 0.2, Corrupt: 0.1, Duplicate: 0.05, Reorder: 0.25, Seed: 2})
	require.NotEqual(t, got, other)
	_, alone := run(Path{Loss: 0.2, Seed: 1})
	require.Equal(t, c.Lost, alone.Lost)
	for name, f := range map[string][2]float64{
		"lost":       {float64(c.Lost) / n, 0.2},
		"corrupted":  {float64(c.Corrupted) / n, 0.8 * 0.05},
		"disguised":  {float64(c.Disguised) / n, 0.8 * 0.05},
		"duplicated": {float64(c.Duplicated) / n, 0.8 * 0.05},
		"reordered":  {float64(c.Reordered) / n, 0.8 * 0.25},
	} {
		require.InDelta(t, f[1], f[0], 0.01, name)
	}
	require.Len(t, got, int(c.Delivered))
}

// TestLaneReorders: a packet that is held back is overtaken by the packets that
// come within ReorderBy.
func TestLaneReorders(t *testing.T) {
	l := newLane(Path{Reorder: 1, ReorderBy: 5 * time.Millisecond})
	l.admit(0, numbered(0))
	l.set(Path{})
	l.admit(4*time.Millisecond, numbered(1))
	l.admit(6*time.Millisecond, numbered(2))
	require.Equal(t, []int{1, 0, 2}, drain(l, time.Second))
}

// A rate lets packets wait for each other, in a queue that is bounded.
func TestLaneRate(t *testing.T) {
	frame := len(numbered(0)) // 1042 bytes
	l := newLane(Path{Rate: int64(frame) * 8 * 1000, Queue: 10 * frame, Delay: time.Second})
	for i := range 15 {
		l.admit(0, numbered(i))
	}
	require.Equal(t, uint64(5), l.counts.Overflowed)
	for i := range 10 { // one a millisecond
		at, ok := l.next()
		require.True(t, ok)
		require.Equal(t, time.Second+time.Duration(i+1)*time.Millisecond, at)
		require.Equal(t, []int{i}, drain(l, at))
	}
	l.admit(9500*time.Microsecond, numbered(15)) // half a frame still waits
	at, _ := l.next()
	require.Equal(t, time.Second+11*time.Millisecond, at)
	balanced(t, l.counts)
}

func TestLaneMTU(t *testing.T) {
	l := newLane(Path{MTU: len(numbered(0)) - ethernetLen})
	l.admit(0, numbered(0))
	l.set(Path{MTU: len(numbered(0)) - ethernetLen - 1})
	l.admit(0, numbered(1))
	require.Equal(t, []int{0}, drain(l, 0))
	require.Equal(t, uint64(1), l.counts.TooLong)
	balanced(t, l.counts)
}
