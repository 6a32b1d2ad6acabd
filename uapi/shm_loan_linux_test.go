package uapi_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

const faulty = "loss=5%&reorder=10%&dup=1%&corrupt=0.5%&seed=7"

// near opens two devices that meet through shared memory, and connects a pair
// whose sender lends its memory.
func near(t *testing.T, options string) (a, b *uapi.Device) {
	t.Helper()
	device := "soft?port=0&shm=on" + options
	return openDevice(t, device), openDevice(t, device)
}

// lent connects, and writes until x lends its payloads: b maps the memory
// meanwhile.
func lent(t *testing.T, a, b *uapi.Device, config uapi.QPConfig, size int) (x, y *uapitest.End) {
	t.Helper()
	x, y = uapitest.ConnectWith(t, a, b, config, size)
	for end := time.Now().Add(time.Minute); counters(t, a)["shm_ref_bytes"] == 0; {
		require.True(t, time.Now().Before(end), "nothing is lent")
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 4096))
		x.Next(1)
	}
	return x, y
}

// move writes and sends pieces of all sizes and compares.
func move(t *testing.T, x, y *uapitest.End, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	rand.NewChaCha8([32]byte{byte(seed)}).Read(x.Buf)
	for range 60 {
		n := 1 + random.IntN(1<<random.IntN(20))
		from, to := random.IntN(len(x.Buf)-n+1), random.IntN(len(y.Buf)-n+1)
		list := []uapi.WR{{Op: uapi.OpWriteImm, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: x.MR, Offset: uint64(from), Length: uint64(n)}}, RemoteAddr: x.Peer.Addr + uint64(to), RKey: x.Peer.RKey}}
		if random.IntN(2) == 0 {
			list[0].Op = uapi.OpSend
		}
		y.Must(y.PostRecv(y.QP, y.MR, uint64(to), uint64(n)))
		must.Get(x.Post(x.QP, list))(t)
		y.Next(1)
		require.True(t, bytes.Equal(x.Buf[from:from+n], y.Buf[to:to+n]), "%d bytes", n)
		x.Next(1)
	}
}

// Memory of Alloc goes by reference, also where packets are lost, doubled,
// overtaken and delayed. A capture has whole packets.
func TestAllocatedMemoryIsLent(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{
		"plain": "", "faults": "&" + faulty, "delay": "&delay=1ms&dup=20%", "goes back": "&extensions=off&loss=5%&seed=3",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := near(t, options)
			x, y := lent(t, a, b, uapi.QPConfig{SendDepth: 4, RecvDepth: 4}, 4<<20)
			before := counters(t, a)["shm_ref_bytes"]
			move(t, x, y, 1)
			require.Greater(t, counters(t, a)["shm_ref_bytes"], before)
			require.Positive(t, counters(t, b)["shm_pulled_bytes"])
			require.Zero(t, counters(t, b)["shm_broken"])
		})
	}
	t.Run("capture", func(t *testing.T) {
		t.Parallel()
		a, b := near(t, "&pcap="+t.TempDir()+"/{device}.pcapng")
		x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 4, RecvDepth: 4}, 1<<20)
		move(t, x, y, 2)
		require.Zero(t, counters(t, a)["shm_ref_bytes"]+counters(t, b)["drop_icrc"])
	})
}

// A program writes to its buffers as soon as it has them back, by the flush of
// its requests, by the end of the queue pair or of the region. The peer then
// completes messages with the bytes that were sent, and no others.
func TestBuffersComeBack(t *testing.T) {
	t.Parallel()
	a, b := near(t, "")
	lent(t, a, b, uapi.QPConfig{SendDepth: 4}, 64<<10)
	const depth, piece, junk = 8, 64 << 10, 0xee
	random := rand.New(rand.NewPCG(7, 7))
	recalled := counters(t, a)["shm_recalled"]
	cycles := 150
	if testing.Short() {
		cycles = 30
	}
	for cycle := range cycles {
		x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: depth, RecvDepth: depth}, depth*piece)
		at := map[uapi.WRID]int{}
		for i := range uint64(depth) {
			for k := range piece {
				x.Buf[int(i)*piece+k] = byte(i + 1)
			}
			at[y.Must(y.PostRecv(y.QP, y.MR, i*piece, piece))] = int(i) * piece
		}
		for i := range uint64(depth) {
			wr := uapi.WR{Op: uapi.OpSend, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: x.MR, Offset: i * piece, Length: piece}}}
			if cycle%3 == 2 && i == depth/2 {
				wr.Op, wr.RemoteAddr, wr.RKey = uapi.OpWrite, x.Peer.Addr, x.Peer.RKey^1
			}
			must.Get(x.Post(x.QP, []uapi.WR{wr}))(t)
		}
		switch cycle % 3 {
		case 0:
			x.Next(random.IntN(depth / 2))
			require.NoError(t, x.DestroyQP(x.QP))
		case 1:
			x.Next(random.IntN(depth / 2))
			require.NoError(t, x.DeregMR(x.MR))
		case 2:
			require.Equal(t, uapi.WCWRFlushErr, x.NextUnchecked(depth)[depth-1].Status)
		}
		for i := range x.Buf {
			x.Buf[i] = junk
		}
		var wc [depth]uapi.WC
		for quiet := 0; quiet < 100; quiet++ {
			n := must.Get(y.PollCQ(y.QP, wc[:]))(t)
			for _, c := range wc[:n] {
				quiet = 0
				if c.Status != uapi.WCSuccess {
					continue
				}
				got := y.Buf[at[c.WRID]:][:piece]
				require.Equal(t, bytes.Repeat(got[:1], piece), got)
				require.NotEqual(t, byte(junk), got[0])
			}
		}
		_ = y.DestroyQP(y.QP)
	}
	t.Logf("%d packets taken back", counters(t, a)["shm_recalled"]-recalled)
}
