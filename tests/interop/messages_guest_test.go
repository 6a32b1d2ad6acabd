//go:build guest && linux

package interop

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// sizes are the lengths in bytes that every kind of message is tried with: the
// pads, and around one, two and several packets.
func sizes(mtu int) []int {
	return []int{0, 1, 2, 3, 4, 61, mtu - 1, mtu, mtu + 1, 2 * mtu, 2*mtu + 3, 65536}
}

var mtus = []int{1024, 4096}

// TestMessages moves every kind of message, in every length, in both
// directions, over both families and at both path MTUs.
func TestMessages(t *testing.T) {
	for i, f := range families {
		t.Run(f.name, func(t *testing.T) {
			soft, rxe := devices(t, softName(f, 0, ""), f, maxMessage)
			for j, mtu := range mtus {
				if !amount.Part(i+j, 2) {
					continue
				}
				t.Run(fmt.Sprint("MTU", mtu), func(t *testing.T) {
					a, b := newPair(t, soft, rxe, uapi.QPConfig{MTU: mtu, Inline: 64})
					info := must.Get(a.device.QueryQP(a.qp))(t)
					require.Equal(t, mtu, info.MTU)
					watch := newWatch(t, a)
					bothWays(t, a, b, mtu)
					watch.allReceived(t)
				})
			}
			counters := must.Get(soft.device.Counters())(t)
			require.Greater(t, counters["gso_pkts"], uint64(amount.Of(100, 1000)), "many of them left by GSO, each with an ICRC for its own identification")
			require.Zero(t, counters["gso_refused"])
			t.Logf("GSO: %d packets in %d sends, %d suspensions", counters["gso_pkts"], counters["gso_sends"], counters["gso_suspended"])
		})
	}
	require.Zero(t, lab.kmsg.badICRCs(t), "rxe saw a bad ICRC although none was made")
}

// watch compares what the soft side sends with what rxe receives, which counts
// a packet after it has checked its ICRC: with no fault made, all of them. It
// works on kernels that do not log bad ICRCs as well.
type watch struct {
	e                    *end
	sent, received, lost uint64
	icrc                 uint64 // packets that the soft side has dropped for their ICRC
}

func newWatch(t *testing.T, soft *end) *watch {
	w := &watch{e: soft}
	w.sent, w.received, w.lost = w.now(t)
	c := must.Get(soft.device.Counters())(t)
	w.icrc = c["drop_icrc"]
	return w
}

// now reads the counters while nothing is sent, such as the last
// acknowledgements of queue pairs that have gone; lost is what this kernel's
// queues between the two dropped.
func (w *watch) now(t *testing.T) (sent, received, lost uint64) {
	for again := uint64(1); again != sent; {
		c := must.Get(w.e.device.Counters())(t)
		sent, received = c["sent_pkts"], freshCounter("rcvd_pkts")
		c = must.Get(w.e.device.Counters())(t)
		again = c["sent_pkts"]
	}
	text, err := os.ReadFile("/proc/net/softnet_stat") // a line a processor, the second field is drops
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		n := must.Get(strconv.ParseUint(strings.Fields(line)[1], 16, 64))(t)
		lost += n
	}
	return sent, received, lost
}

func (w *watch) allReceived(t *testing.T) {
	var sent, received, lost uint64
	require.Eventually(t, func() bool {
		sent, received, lost = w.now(t)
		return received-w.received+lost-w.lost >= sent-w.sent
	}, patience, 10*time.Millisecond, "rxe did not take every packet: a bad ICRC?")
	c := must.Get(w.e.device.Counters())(t)
	// One of a peer may be: rxe may begin with any of 65,536 identifications,
	// of which 64 are those of soft devices; the first other one after these
	// is not believed (rnic/link/udp/habit.go).
	require.LessOrEqual(t, c["drop_icrc"], w.icrc+1, "the soft side dropped packets of rxe for their ICRC")
	require.Zero(t, c["drop_malformed"])
	t.Logf("sent %d, received %d, lost on the way %d", sent-w.sent, received-w.received, lost-w.lost)
}

func softName(f family, n int, options string) string {
	return fmt.Sprintf("soft:[%v]%s", f.softAddr(n), options)
}

func bothWays(t *testing.T, a, b *end, mtu int) {
	for _, way := range []struct{ from, to *end }{{a, b}, {b, a}} {
		t.Run(way.from.name+" requests", func(t *testing.T) {
			for _, m := range messages {
				t.Run(m.op.String(), func(t *testing.T) { lengths(t, way.from, way.to, m, mtu) })
			}
			t.Run("inline", func(t *testing.T) {
				for _, n := range []int{1, 5, 64} {
					move(t, way.from, way.to, message{op: uapi.OpWrite, wc: uapi.WCOpWrite, flags: uapi.Inline}, n, 1)
					move(t, way.from, way.to, message{op: uapi.OpSend, wc: uapi.WCOpSend, recv: true, flags: uapi.Inline | uapi.Solicited}, n, 1)
				}
			})
			t.Run("atomics", func(t *testing.T) { atomics(t, way.from, way.to) })
			t.Run("queue", func(t *testing.T) { queueful(t, way.from, way.to, mtu) })
		})
	}
}

// lengths moves a message of each length, and looks after rxe's counter.
// The longest one is left out where it would say nothing new and take long.
func lengths(t *testing.T, from, to *end, m message, mtu int) {
	list := sizes(mtu)
	if m.op != uapi.OpWriteImm && m.op != uapi.OpSendImm && (mtu == 4096 || from.v4) {
		list = append(list, maxMessage)
	}
	before, need := freshCounter("rcvd_pkts"), 0
	for _, n := range list {
		move(t, from, to, m, n, 1)
		need += received(from, m, n, mtu)
	}
	move(t, from, to, m, 3*mtu+5, 3)
	got := int(freshCounter("rcvd_pkts") - before)
	require.GreaterOrEqual(t, got, need, "rxe received fewer packets than the messages have")
}

// received is how many packets rxe receives at least of a message of n bytes:
// the data when it comes from the soft side, else the request or the answer.
func received(from *end, m message, n, mtu int) int {
	if (from.name == "soft") != (m.op == uapi.OpRead) {
		return max(1, (n+mtu-1)/mtu)
	}
	return 1
}

// atomics adds and swaps on one word of the responder.
func atomics(t *testing.T, from, to *end) {
	const at = 1024
	word := to.target()[at:][:8]
	old := from.target()[margin:][:8]
	do := func(wr uapi.WR, wc uapi.Opcode, before, after uint64) {
		fill(from.target(), 8)
		wr.Flags, wr.ID = uapi.Signaled, 3
		wr.SGE = []uapi.SGE{{MR: from.mr, Offset: uint64(from.half + margin), Length: 8}}
		wr.RemoteAddr, wr.RKey = to.region.Addr+uint64(to.half+at), to.region.RKey
		from.post(t, wr)
		from.success(t, wc)
		require.Equal(t, before, binary.NativeEndian.Uint64(old), "the old value")
		require.Equal(t, after, binary.NativeEndian.Uint64(word), "the new value")
		holds(t, "the old value", from.target(), old)
		count(1, 8)
	}
	const x, y = 0x0123456789abcdef, 0xfedcba9876543210
	binary.NativeEndian.PutUint64(word, x)
	do(uapi.WR{Op: uapi.OpFetchAdd, CompareAdd: 0x1111111111111111}, uapi.WCOpFetchAdd, x, x+0x1111111111111111)
	do(uapi.WR{Op: uapi.OpFetchAdd, CompareAdd: ^uint64(0)}, uapi.WCOpFetchAdd, x+0x1111111111111111, x+0x1111111111111110)
	do(uapi.WR{Op: uapi.OpCompareSwap, CompareAdd: y, Swap: 1}, uapi.WCOpCompareSwap, x+0x1111111111111110, x+0x1111111111111110)
	do(uapi.WR{Op: uapi.OpCompareSwap, CompareAdd: x + 0x1111111111111110, Swap: y}, uapi.WCOpCompareSwap, x+0x1111111111111110, y)

	// Many at a time: each old value once, in order.
	const many = 32
	binary.NativeEndian.PutUint64(word, 0)
	var list []uapi.WR
	for i := range many {
		list = append(list, uapi.WR{ID: uapi.WRID(i), Op: uapi.OpFetchAdd, Flags: uapi.Signaled, CompareAdd: 1,
			SGE:        []uapi.SGE{{MR: from.mr, Offset: uint64(from.half + 8*i), Length: 8}},
			RemoteAddr: to.region.Addr + uint64(to.half+at), RKey: to.region.RKey})
	}
	n := must.Get(from.device.Post(from.qp, list))(t)
	require.Equal(t, many, n)
	for i := range many {
		wc := from.success(t, uapi.WCOpFetchAdd)
		require.EqualValues(t, i, wc.WRID)
		require.EqualValues(t, i, binary.NativeEndian.Uint64(from.target()[8*i:]))
	}
	require.EqualValues(t, many, binary.NativeEndian.Uint64(word))
	count(many, 8*many)
}

// queueful posts many different requests at once: they complete in order and
// leave the right bytes.
func queueful(t *testing.T, from, to *end, mtu int) {
	n := 2*mtu + 7
	const rounds = 8
	var list, recvs []uapi.WR
	wrote, read, sent := pattern(rounds*n), pattern(rounds*n), pattern(rounds*n)
	wrote, read, sent = wrote[:rounds*n], read[:rounds*n], sent[:rounds*n]
	// from: sources of writes, then of sends; targets of reads.
	// to: targets of writes, then of sends; sources of reads.
	copy(from.source(), wrote)
	copy(from.source()[rounds*n:], sent)
	copy(to.source(), read)
	fill(to.target(), 2*rounds*n)
	fill(from.target(), rounds*n)
	for i := range rounds {
		o := uint64(i * n)
		l := uint64(n)
		all := uint64(rounds * n)
		recvs = append(recvs, uapi.WR{ID: uapi.WRID(100 + i), Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: to.mr, Offset: uint64(to.half+margin) + all + o, Length: l}}})
		list = append(list,
			uapi.WR{ID: uapi.WRID(3 * i), Op: uapi.OpWrite, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: from.mr, Offset: o, Length: l}},
				RemoteAddr: to.region.Addr + uint64(to.half+margin) + o, RKey: to.region.RKey},
			uapi.WR{ID: uapi.WRID(3*i + 1), Op: uapi.OpRead, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: from.mr, Offset: uint64(from.half+margin) + o, Length: l}},
				RemoteAddr: to.region.Addr + o, RKey: to.region.RKey},
			uapi.WR{ID: uapi.WRID(3*i + 2), Op: uapi.OpSendImm, Flags: uapi.Signaled, Imm: uint32(i), SGE: []uapi.SGE{{MR: from.mr, Offset: all + o, Length: l}}})
	}
	for _, l := range []struct {
		e   *end
		wrs []uapi.WR
	}{{to, recvs}, {from, list}} {
		k := must.Get(l.e.device.Post(l.e.qp, l.wrs))(t)
		require.Equal(t, len(l.wrs), k)
	}
	for i := range list {
		wc := from.next(t)
		require.Equal(t, uapi.WCSuccess, wc.Status, "%v", wc)
		require.EqualValues(t, i, wc.WRID, "%v", wc)
	}
	for i := range recvs {
		wc := to.success(t, uapi.WCOpRecv)
		require.EqualValues(t, 100+i, wc.WRID)
		require.EqualValues(t, i, wc.Imm)
		require.EqualValues(t, n, wc.ByteLen)
	}
	holds(t, "writes and sends", to.target(), append(append([]byte{}, wrote...), sent...))
	holds(t, "reads", from.target(), read)
	count(3*rounds, 3*rounds*n)
}
