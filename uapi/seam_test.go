package uapi

import (
	"bytes"
	"context"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// openRecorded opens a device with a recorder at the system-call line.
func openRecorded(t *testing.T, device string) (*Context, *recorder) {
	t.Helper()
	r := &recorder{counts: map[string]int{}, commands: map[string]int{}}
	c, err := OpenWith(device, OpenConfig{wrap: r.wrap})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c, r
}

// demo works as a program does: it connects two contexts, moves a megabyte with
// WRITE, reads it back, sends a message with an immediate, does an atomic, and
// tidies up.
func demo(t *testing.T, a, b *Context) {
	const total, piece = 1 << 20, 64 << 10
	ctx := context.Background()
	source := bytes.Repeat([]byte("rdmashim"), total/8)
	back, target := make([]byte, total), make([]byte, total)
	var mrs [3]MR
	for i, buf := range [][]byte{source, back, target} {
		c := a
		if i == 2 {
			c = b
		}
		mr, err := c.RegMR(buf, AccessLocalWrite|AccessRemoteWrite|AccessRemoteRead|AccessRemoteAtomic)
		require.NoError(t, err)
		mrs[i] = mr
		defer func() { require.NoError(t, c.DeregMR(mr)) }()
	}
	qa, err := a.CreateQP(32, 1)
	require.NoError(t, err)
	defer func() { require.NoError(t, a.DestroyQP(qa)) }()
	qb, err := b.CreateQP(1, 1)
	require.NoError(t, err)
	defer func() { require.NoError(t, b.DestroyQP(qb)) }()
	ea, err := a.LocalEndpoint(qa)
	require.NoError(t, err)
	eb, err := b.LocalEndpoint(qb)
	require.NoError(t, err)
	require.NoError(t, a.ConnectQP(qa, eb))
	require.NoError(t, b.ConnectQP(qb, ea))
	peer, err := b.QueryMR(mrs[2])
	require.NoError(t, err)
	_, err = b.PostRecv(qb, mrs[2], 0, piece)
	require.NoError(t, err)

	wc := make([]WC, 32)
	finish := func(c *Context, qp QP, n int) {
		for n > 0 {
			got, err := c.WaitCQ(ctx, qp, wc)
			require.NoError(t, err)
			for _, c := range wc[:got] {
				require.NoError(t, c.Err())
			}
			n -= got
		}
	}
	for at := uint64(0); at < total; at += piece {
		_, err := a.PostWrite(qa, mrs[0], at, peer.Addr+at, peer.RKey, piece)
		require.NoError(t, err)
	}
	finish(a, qa, total/piece)
	for at := uint64(0); at < total; at += piece {
		_, err := a.PostRead(qa, mrs[1], at, peer.Addr+at, peer.RKey, piece)
		require.NoError(t, err)
	}
	finish(a, qa, total/piece)
	require.True(t, bytes.Equal(source, back))
	_, err = a.PostSendImm(qa, mrs[0], 100, 7)
	require.NoError(t, err)
	_, err = a.PostFetchAdd(qa, mrs[1], 0, peer.Addr+1024, peer.RKey, 1)
	require.NoError(t, err)
	finish(a, qa, 2)
	finish(b, qb, 1)
	_, err = a.Counters()
	require.NoError(t, err)
}

// A program's calls pass the system-call line as commands of the kernel's ABI,
// and its data does not pass it at all.
func TestControlTrafficPassesTheSeam(t *testing.T) {
	for _, device := range []string{"sim?net=seam", "soft?port=0"} {
		t.Run(device, func(t *testing.T) {
			a, ra := openRecorded(t, device)
			b, rb := openRecorded(t, device)
			demo(t, a, b)

			require.Equal(t, []string{
				"ALLOC_PD", "CREATE_COMP_CHANNEL", "CREATE_CQ", "CREATE_QP", "DEREG_MR", "DESTROY_CQ", "DESTROY_QP",
				"DEVICE.5", // QUERY_GID_TABLE
				"GET_CONTEXT", "MODIFY_QP", "POST_SEND", "QUERY_DEVICE", "QUERY_PORT", "REG_MR", "REQ_NOTIFY_CQ",
			}, slices.DeleteFunc(ra.seen(), func(name string) bool {
				return name == "QUERY_QP" // of a client that waits long enough to wonder whether the queue pair lives
			}))
			for _, r := range []*recorder{ra, rb} {
				require.Empty(t, r.wild, "only doorbells are written, with no work request in them")
				require.Equal(t, 2, r.count("Adopt"), "the two event files")
				require.Equal(t, 3, r.count("Mmap"), "a send, a receive and a completion queue")
				require.Equal(t, r.count("Mmap"), r.count("Munmap"))
				require.Less(t, r.bytes, 64<<10, "a megabyte went each way")
			}
			require.Equal(t, ra.commands["POST_SEND"], ra.count("Write"))
			require.LessOrEqual(t, ra.count("Write"), 34, "a doorbell for each post")
			require.GreaterOrEqual(t, ra.count("Write"), 3, "the device spares some while it works")
			require.Zero(t, rb.commands["POST_SEND"], "receives ring none")
			require.Equal(t, 3, ra.commands["MODIFY_QP"], "INIT, RTR, RTS")
		})
	}
}

// With the line shut no control call works, on any kernel: there is no other
// way.
func TestNothingGoesAroundTheSeam(t *testing.T) {
	c, r := openRecorded(t, "sim")
	mr, err := c.RegMR(make([]byte, 8), 0)
	require.NoError(t, err)
	qp, err := c.CreateQP(4, 4)
	require.NoError(t, err)
	e, err := c.LocalEndpoint(qp)
	require.NoError(t, err)
	spare, err := c.CreateQP(4, 4)
	require.NoError(t, err)

	r.shut.Store(true)
	_, err = c.RegMR(make([]byte, 8), 0)
	require.ErrorIs(t, err, syscall.EIO)
	_, err = c.CreateQP(1, 1)
	require.ErrorIs(t, err, syscall.EIO)
	_, err = c.CreateCQ(1)
	require.ErrorIs(t, err, syscall.EIO)
	_, err = c.LocalEndpoint(spare)
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorIs(t, c.ConnectQP(qp, e), syscall.EIO)
	_, err = c.QueryQP(qp)
	require.ErrorIs(t, err, syscall.EIO)
	_, err = c.QueryDevice()
	require.ErrorIs(t, err, syscall.EIO)
	_, err = c.Counters()
	require.ErrorIs(t, err, syscall.EIO)
	_, err = c.Stats()
	require.ErrorIs(t, err, syscall.EIO)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.WaitCQ(ctx, qp, make([]WC, 1))
	require.Error(t, err, "waiting arms")

	before := r.bytes
	n, err := c.PollCQ(qp, make([]WC, 1))
	require.NoError(t, err, "polling is no system call")
	require.Zero(t, n)
	_, err = c.PostRecv(qp, mr, 0, 8)
	require.NoError(t, err, "nor is posting a receive")
	require.Equal(t, before, r.bytes)

	r.shut.Store(false)
	require.NoError(t, c.DestroyQP(spare))
	require.NoError(t, c.DestroyQP(qp))
	require.NoError(t, c.DeregMR(mr))
}
