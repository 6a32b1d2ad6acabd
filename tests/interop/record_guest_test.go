//go:build guest && linux

package interop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestRecord plays short scripts under a capture: their packets are checked,
// and become a recording of tests/testdata when the host asks for it.
func TestRecord(t *testing.T) {
	for _, r := range []struct {
		name, title, options string
		family               family
		mtu                  int
	}{
		{"ipv4-mtu1024", "every kind of message, and errors, over IPv4 at path MTU 1024", "", families[0], 1024},
		{"ipv6-mtu4096", "every kind of message, and errors, over IPv6 at path MTU 4096", "", families[1], 4096},
	} {
		t.Run(r.name, func(t *testing.T) {
			c := newCapture(t)
			script(t, c, r.family, r.mtu)
			c.stop()
			c.save(t, r.name, r.title)
		})
	}
	t.Run("ipv6-loss", func(t *testing.T) {
		c := newCapture(t)
		lossy(t, c, families[1], 1024)
		c.stop()
		c.save(t, "ipv6-loss", "lost requests and lost answers of the soft side, over IPv6 at path MTU 1024")
	})
	t.Run("ipv6-unreliable", func(t *testing.T) {
		c := newCapture(t)
		unreliable(t, c, families[1])
		c.stop()
		c.save(t, "ipv6-unreliable", "unreliable connections and datagrams to a multicast group, and SEND with invalidate, of rxe over IPv6")
	})
}

// plain lets a soft device send datagrams: a packet socket on a veth pair sees
// a GSO send before it is cut up.
const plain = "?gso=off"

func script(t *testing.T, c *capture, f family, mtu int) {
	soft, rxe := devices(t, softName(f, 0, plain), f, 1<<16)
	for _, d := range [][2]*device{{soft, rxe}, {rxe, soft}} {
		from, to := newPair(t, d[0], d[1], uapi.QPConfig{MTU: mtu})
		long := 2*mtu + 3 // First, Middle, Last
		if mtu == 4096 {
			long = mtu + 3
		}
		for _, m := range messages {
			for _, n := range []int{0, 5, long} {
				if m.op == uapi.OpRead && n == 0 {
					continue
				}
				c.step("%s: %v, %d bytes", from.name, m.op, n)
				move(t, from, to, m, n, 1)
			}
		}
		c.step("%s: SEND, solicited, 2 bytes", from.name)
		move(t, from, to, message{op: uapi.OpSend, wc: uapi.WCOpSend, recv: true, flags: uapi.Solicited}, 2, 1)
		for _, op := range []uapi.Op{uapi.OpFetchAdd, uapi.OpCompareSwap} {
			c.step("%s: %v", from.name, op)
			from.post(t, uapi.WR{Op: op, Flags: uapi.Signaled, CompareAdd: 0x0123456789abcdef, Swap: 0xfedcba9876543210,
				SGE:        []uapi.SGE{{MR: from.mr, Length: 8}},
				RemoteAddr: to.region.Addr + 64, RKey: to.region.RKey})
			require.Equal(t, uapi.WCSuccess, from.next(t).Status)
		}
		c.step("%s: 6 WRITEs at once, 16 bytes each, the last one signaled", from.name)
		burst(t, from, to, 6)
		c.step("%s: SEND, 3000 bytes, before the receive is posted", from.name)
		notReady(t, d[0], d[1])
	}
	for _, x := range failures {
		c.step("soft, then rxe: %s", x.name)
		fails(t, soft, rxe, x, x.softAsks, x.rxeReceives)
		fails(t, rxe, soft, x, x.rxeAsks, x.softReceives)
	}
}

// burst posts n small WRITEs in one call.
func burst(t *testing.T, from, to *end, n int) {
	var list []uapi.WR
	for i := range n {
		wr := uapi.WR{ID: uapi.WRID(i), Op: uapi.OpWrite, SGE: []uapi.SGE{{MR: from.mr, Offset: uint64(16 * i), Length: 16}},
			RemoteAddr: to.region.Addr + uint64(to.half+margin+16*i), RKey: to.region.RKey}
		if i == n-1 {
			wr.Flags = uapi.Signaled
		}
		list = append(list, wr)
	}
	want := pattern(16 * n)
	copy(from.source(), want)
	fill(to.target(), len(want))
	k := must.Get(from.device.Post(from.qp, list))(t)
	require.Equal(t, n, k)
	from.success(t, uapi.WCOpWrite)
	holds(t, "the WRITEs", to.target(), want)
}

// lossy moves messages while the soft side loses one packet in six.
func lossy(t *testing.T, c *capture, f family, mtu int) {
	soft := newDevice(t, "soft", openSoft(t, softName(f, softAddrs-1, plain+"&loss=17%&seed=11")), 1<<16)
	rxe := newDevice(t, "rxe", openRXE(t, f), 1<<16)
	from, to := newPair(t, soft, rxe, uapi.QPConfig{MTU: mtu, Timeout: 67 * time.Millisecond})
	for range 2 {
		for _, m := range []message{messages[0], messages[3], messages[4]} {
			for _, n := range []int{5, 4*mtu + 3} {
				c.step("%s: %v, %d bytes", from.name, m.op, n)
				move(t, from, to, m, n, 1)
			}
		}
		from, to = to, from
	}
}
